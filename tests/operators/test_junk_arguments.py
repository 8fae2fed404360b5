"""Junk in each argument of each public function: an error of the right type that names the fault, never an internal one."""

import contextlib
import inspect
import warnings

import pytest

import calls
import cygrad as cg
import public
from calls import ERRORS, WORDLESS
from cygrad._core.entry.operator_object import name_in_messages

pytestmark = pytest.mark.usefixtures("little_memory")


class Stranger:
    """An object that no function takes."""


JUNK = {
    "None": None,
    "text": "a",
    "stranger": Stranger(),
    "2**70": 2**70,
    "-2**63": -(2**63),
    "2**63 - 1": 2**63 - 1,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "nothing": [],
    "texts": ["a"],
    "large": [2**62, 2**62],
    "long": [0] * 65,
    "dict": {},
    "bytes": b"x",
}
# Functions that change the process, write files, or raise torch's AssertionError about devices. Messages wait for partners: tests/mpi.
SKIPPED = {"set_default_dtype", "set_num_threads", "set_printoptions", "save", "load", "cuda", "seed", "backward"}
NEVER_READ = {"layout", "pin_memory", "memory_format"}
OPERANDS = {"input", "self", "tensor", "other", "src", "source", "vec2", "mat2", "mat1", "exponent", "end", "weight"}


def functions():
    """Return the functions of the package and the methods of Tensor by name, each once."""
    names = {}
    for name, thing in public.public():
        short = name.rpartition(".")[2]
        if short.rstrip("_") in SKIPPED or name.startswith("cygrad.mpi.") or inspect.ismodule(thing) or not (
                name in (f"cygrad.{short}", f"cygrad.Tensor.{short}") or public.is_operator(thing)):
            continue
        if not isinstance(thing, type):
            names.setdefault(thing, name)
    return {name: thing for thing, name in names.items()}


def junk_calls(function, name):
    """Yield (argument, kind of junk, arguments, keywords): junk for one argument, and a plain value for each other required one."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    required = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    for place, parameter in enumerate(parameters[:6]):
        if not place and name.startswith("cygrad.Tensor.") or parameter.name in NEVER_READ:
            continue
        for kind, junk in JUNK.items():
            x = cg.arange(6.0).reshape(2, 3)
            plain = {p.name: x if p.name in OPERANDS else 0 for p in required}
            if parameter.kind is parameter.KEYWORD_ONLY or parameter in required:
                yield parameter.name, kind, [], plain | {parameter.name: junk}
            else:
                before = [plain.get(p.name, p.default) for p in parameters[:place] if p.kind is not p.KEYWORD_ONLY]
                yield parameter.name, kind, [*before, junk], {}


def test_junk_is_refused_in_words():
    wrong, count = [], 0
    for name, function in functions().items():
        with contextlib.suppress(ValueError):      # of a function without a signature
            for argument, kind, arguments, keywords in junk_calls(function, name):
                count += 1
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        result = function(*arguments, **keywords)
                except Exception as error:
                    text = str(error)
                    if not isinstance(error, ERRORS) or len(text) < 8 or any(words in text for words in WORDLESS):
                        wrong.append(f"{name}({argument}={kind}): {type(error).__name__}: {text}")
                    elif kind == "stranger" and isinstance(error, TypeError) and not any(
                        words in text for words in (argument, "Stranger", "argument", "must be")
                    ):
                        wrong.append(f"{name}({argument}={kind}) does not say which: {type(error).__name__}: {text}")
                else:
                    wrong += [f"{name}({argument}={kind}): outside of memory" for tensor in calls.tensors_in(result)
                              if not calls.lies_inside(tensor)]
    assert wrong == []
    assert count > 5000


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.topk("a"), TypeError, r"topk\(\): argument 'k' \(position 2\) must be int, not str"),
        (lambda x: x.gather(0, None), TypeError, r"argument 'index' \(position 3\) must be Tensor, not NoneType"),
        (lambda x: x.transpose(None, 1), TypeError, r"argument 'dim0' must be int, not NoneType"),
        (lambda x: x.narrow(0, 2**70, 1), ValueError, "Overflow when unpacking long long: argument 'start' must lie between"),
        (lambda x: x.expand_as(3), TypeError, r"expand_as\(\): argument 'other' \(position 2\) must be Tensor, not int"),
    ],
)
def test_the_words(call, error, message):
    with pytest.raises(error, match=message):
        call(cg.ones(2, 3))


def test_errors_of_the_user_propagate_unchanged():
    class Refusing:
        def __index__(self):
            raise AttributeError("mine")

    for call in (lambda x: x.narrow(Refusing(), 0, 1), lambda x: x.sum(Refusing()), lambda x: x[Refusing()]):
        with pytest.raises(AttributeError, match="mine"):
            call(cg.ones(2, 3))


def flags():
    """Return (operator, place or None, name) of each parameter that is True or False."""
    result = []
    for operator in {operator for _, operator in public.operators()}:
        for place, parameter in enumerate(inspect.signature(operator).parameters.values()):
            if parameter.annotation in ("bool", "bool | None"):
                result.append((operator, None if parameter.kind is parameter.KEYWORD_ONLY else place, parameter.name))
    return sorted(result, key=lambda flag: (flag[0].name, flag[2]))


@pytest.mark.cases(("operator", "place", "name"), flags)
def test_flags_are_true_or_false(operator, place, name):
    """Other objects have no truth value here: `sum(0, 1)` means dims, "no" would be true, and a tensor of flags is no flag.

    Where signatures are listed, the sentence is the last line, and may be about an argument before."""
    for junk in (*(value for value in JUNK.values() if value is not None), 0, 1, 0.5, cg.tensor(True)):
        where = rf"{name_in_messages(operator.name)}\(\): argument '{name}'( \(position \d+\))?"
        words = rf"(?m)^{where} must be bool, not {type(junk).__name__}$"
        with pytest.raises(TypeError, match=words):
            operator(**{name: junk})
        if place is not None:
            with pytest.raises(TypeError, match=rf"{words}|\(\) received an invalid combination of arguments"):
                operator(*[False] * place, junk)


def test_a_tensor_is_no_dtype():
    """Not even where a tensor names a dtype, as `to(other)` does; of each function whose other arguments fit."""
    wrong, count = [], 0
    for name, function in functions().items():
        with contextlib.suppress(ValueError):      # of a function without a signature
            parameters = inspect.signature(function).parameters.values()
            if not any(p.name == "dtype" for p in parameters):
                continue
            x = cg.arange(6.0).reshape(2, 3)
            plain = [x if p.name in OPERANDS or name.startswith("cygrad.Tensor.") else 1 for p in parameters
                     if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "dtype"]
            try:
                function(*plain, dtype=cg.float32)
            except ERRORS:
                continue
            count += 1
            try:
                function(*plain, dtype=cg.ones(2))
            except TypeError as error:
                if "dtype" not in str(error) or "not Tensor" not in str(error) and "dtype=Tensor" not in str(error):
                    wrong.append(f"{name}: {error}")
            except Exception as error:
                wrong.append(f"{name}: {error!r}")
            else:
                wrong.append(name)
    assert wrong == []
    assert count > 40
