"""Keywords: every parameter that torch names is taken by that name, and functions take the parameters that the stubs declare."""

import ast
import contextlib
import inspect
import pickle
import pydoc
import re
from operator import attrgetter
from pathlib import Path

import pytest

import cygrad as cg
import public
from cygrad import signatures
from cygrad._core.entry.operator_object import name_in_messages
from cygrad.autograd.profiler import profile
from cygrad.operators import NAMESPACES
from cygrad.operators._written import catalogue
from cygrad.operators._written.stubs import NUMPY_WORDS
from torch_signatures import read

# Keywords that torch's stubs declare and torch itself does not take; one of its own use; and views in another dtype.
MISTAKES = {".requires_grad_": {"mode"}, ".random_": {"from_"}, ".uniform_": {"from_"},
            ".expand": {"implicit"}, "expand_copy": {"implicit"}, ".view": {"dtype"}, "view_copy": {"dtype"}}
@pytest.mark.cases("name, words", read, ids=lambda overload: "-".join([overload[0], *overload[1]]))
def test_keywords_are_the_keywords_of_torch(name, words):
    """A call by keywords alone, with values of no use, may complain of the values but not of the names."""
    function = getattr(cg.Tensor, name[1:]) if name.startswith(".") else getattr(cg, name)
    is_method = name.startswith(".") or name.endswith("_")      # functions that change their tensor are the methods
    operand = [cg.ones(2)] if is_method else []
    keywords = {word: object() for word in words[is_method and words[:1] == ["input"]:] if word not in MISTAKES.get(name, ())}
    try:
        function(*operand, **keywords)
    except (TypeError, ValueError, RuntimeError, AttributeError, AssertionError, IndexError) as error:
        assert not re.search(r"unexpected keyword|missing|multiple values|positional argument|takes no keyword|got both", str(error)), error


@pytest.mark.cases("name, words", read, ids=lambda overload: "-".join([overload[0], *overload[1]]))
def test_each_keyword_is_known(name, words):
    """By itself, beside the operand: errors of other arguments hide no unknown name."""
    function = getattr(cg.Tensor, name[1:]) if name.startswith(".") else getattr(cg, name)
    operand = [cg.ones(2, 2)] * (name.startswith(".") or name.endswith("_"))
    first = {"input": cg.ones(2, 2)} if "input" in words and not operand else {}
    for word in set(words) - MISTAKES.get(name, set()) - {"input"}:
        try:
            function(*operand, **first, **{word: object()})
        except (TypeError, ValueError, RuntimeError, AttributeError, AssertionError, IndexError) as error:
            assert not re.search("unexpected keyword|takes no keyword", str(error)), error


# ----- Calls that PyTorch's operator database makes -----
X = cg.arange(6.0).reshape(2, 3)
CALLS = [
    (lambda: X.flip(dims=(0, -1)), X.flip(0, 1)),
    (lambda: cg.flip(X, dims=[1]), X.flip(1)),
    (lambda: cg.vmap(lambda row: row.flip(dims=(0,)))(X), X.flip(1)),
    (lambda: X.tile(dims=(2,)), X.tile(2)),
    (lambda: X.repeat(repeats=(2, 1)), X.repeat(2, 1)),
    (lambda: cg.tensor(3.0).repeat(()), cg.tensor(3.0)),
    (lambda: X.sum_to_size(size=(1, 3)), X.sum(0, keepdim=True)),
    (lambda: X.clone().resize_(size=(3, 2)), X.reshape(3, 2)),
    (lambda: X.split(split_size=2, dim=1)[0], X[:, :2]),
    (lambda: cg.vmap(lambda row: row.split(split_size=2)[0])(X), X[:, :2]),
    (lambda: cg.split(tensor=X, split_size_or_sections=2, dim=1)[0], X[:, :2]),
    (lambda: cg.cholesky_solve(X.T, input2=cg.eye(3)), X.T),
    (lambda: cg.cholesky_inverse(input=cg.eye(2)), cg.eye(2)),
    (lambda: cg.hann_window(2, pin_memory=True), cg.tensor([0.0, 1.0])),
    (lambda: cg.tensor_split(X, sections=2)[1], X[1:]),
    (lambda: cg.tensor_split(X, indices=(1,), dim=1)[0], X[:, :1]),
    (lambda: cg.tensor_split(X, tensor_indices_or_sections=cg.tensor([1]))[0], X[:1]),
    (lambda: cg.hsplit(X, sections=3)[2], X[:, 2:]),
    (lambda: X.vsplit(indices=[1])[1], X[1:]),
    (lambda: cg.repeat_interleave(repeats=cg.tensor([0, 2])), cg.tensor([1, 1])),
    (lambda: X.argsort(descending=True, out=cg.empty(2, 3, dtype=cg.int64)), X.argsort(descending=True)),
    (lambda: cg.slice_scatter(X, X[:1] * 2, 0, 1, out=cg.empty(2, 3)), cg.cat([X[:1], X[:1] * 2])),
    (lambda: X.clamp_max(max=2), X.clamp(max=2)),
    (lambda: X.clone().clamp_min_(min=2), X.clamp(min=2)),
    (lambda: X.clone().pow_(exponent=2), X * X),
    (lambda: (X / 6).logit_(eps=0.1), (X / 6).logit(0.1)),
    (lambda: X.clone().swapaxes_(axis0=0, axis1=1), X.T),
    (lambda: cg.baddbmm(X[None], batch1=X[None], batch2=X.T[None] @ X[None]), (X + X @ (X.T @ X))[None]),
    (lambda: X.to(other=cg.ones(1).double()), X.double()),
    (lambda: X.int(memory_format=cg.preserve_format), X.int()),
    (lambda: X.select(axis=1, index=2), X[:, 2]),
    (lambda: cg.tensordot(X, X, axes=([0], [0])), X.T @ X),
    (lambda: cg.tensordot(X, X.T, axes=1), X @ X.T),
    (lambda: cg.vmap(lambda a: cg.tensordot(a, a, axes=1))(X), (X * X).sum(1)),
    (lambda: X.gather(axis=0, index=cg.tensor([[1]])), X[1:, :1]),
    (lambda: cg.vmap(lambda row: row.unsqueeze(axis=0))(X), X.unsqueeze(1)),
    (lambda: X.diff(n=0, prepend=X, append=X), X),
    (lambda: cg.gather(X, 0, cg.zeros(0, 3, dtype=cg.uint8)), cg.zeros(0, 3)),
    (lambda: cg.tensor(1.0).put(cg.tensor([0]), cg.tensor([2.0]), accumulate=True), cg.tensor(3.0)),
    (lambda: cg.index_add(X.to(cg.uint8), 0, cg.tensor([0]), X.to(cg.uint8)[:1], alpha=-1),
     (X * cg.tensor([[0], [1]])).to(cg.uint8)),
]


@pytest.mark.cases(("call", "expected"), CALLS)
def test_calls(call, expected):
    result = call()
    assert result.dtype == expected.dtype and cg.equal(result, expected)


# ----- NumPy's names -----
OPERATORS = {operator for _, operator in public.operators()}


@pytest.mark.parametrize("ours, theirs", [("dim", "axis"), ("keepdim", "keepdims")])
def test_operators_take_the_names_of_numpy(ours, theirs):
    operators = [operator for operator in OPERATORS if ours in inspect.signature(operator).parameters]
    assert len(operators) > 10
    for operator in operators:
        with pytest.raises(TypeError, match=f"got both '{ours}' and '{theirs}'"):
            operator(X, **{ours: 0, theirs: 0})
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        X.flip(axis=0)


def test_a_name_of_numpy_is_refused_beside_ours_after_it_was_taken():
    for _ in range(2):
        assert X.sum(axis=0).tolist() == X.sum(0).tolist()
        with pytest.raises(TypeError, match="got both 'dim' and 'axis': they mean the same"):
            X.sum(0, axis=1)


def test_a_name_of_numpy_that_was_put_together_is_one():
    assert cg.equal(X.sum(**{"".join(["ax", "is"]): 0}), X.sum(0))


REFUSED = [
    (lambda: X.repeat(2, 1, repeats=(1, 1)), "the integers were given twice"),
    (lambda: cg.hsplit(X, 1, sections=1), "takes one: sections or indices"),
    (lambda: cg.tensor_split(X), "missing 1 required positional argument: sections or indices"),
    (lambda: X.pow_(), "missing required argument: 'exponent'"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# ----- Wrong arguments -----
def tensor_parameters():
    """Return (name, number of tensors, place of the wrong one, its parameter) for functions whose first parameters are all tensors."""
    results = []
    for entry in catalogue.entries():
        if entry.function and len(entry.signatures) == 1:
            parameters = entry.signatures[0].args
            required = parameters.args[:len(parameters.args) - len(parameters.defaults)]
            if not parameters.vararg and all(p.annotation is not None and ast.unparse(p.annotation) == "Tensor" for p in required):
                results += [(entry.name, len(required), place, parameter.arg) for place, parameter in enumerate(required)]
    return results


@pytest.mark.cases("company", [contextlib.nullcontext, profile], ids=["alone", "profiled"])
@pytest.mark.cases(("name", "count", "place", "parameter"), tensor_parameters)
def test_errors_name_the_argument_that_is_no_tensor(name, count, place, parameter, company):
    """Also where operators ask whether a tensor is special, as in a profile."""
    arguments = [cg.ones(2, 2)] * count
    arguments[place] = object()
    with company(), pytest.raises((TypeError, RuntimeError)) as raised:        # other tensors may be refused for their shape or dtype first
        public.function(name)(*arguments)
    said = str(raised.value)
    if raised.type is TypeError:
        assert set(re.findall(r"argument '(\w+)'", said)) <= {parameter}
        assert set(re.findall(r"^(\w+)\(\)", said)) <= {name_in_messages(public.function(name).name)}, "it speaks of an operator within"


# ----- Signatures that `help` and notebooks show -----
def declared_in_stubs():
    """Yield (place, name, parameters) of the functions and methods that the stubs declare by one signature; NumPy's words left out."""
    package = Path(cg.__file__).parent
    body = ast.parse((package / "_core/entry/operators.pyi").read_text()).body
    methods = next(node for node in reversed(body) if isinstance(node, ast.ClassDef))
    places = [(cg, ast.parse((package / "__init__.pyi").read_text())), (cg.Tensor, methods)]
    stubs = {space: signatures.stub_of(space) for space in NAMESPACES.values()}
    places += [(attrgetter(space)(cg), ast.parse(path.read_text())) for space, path in stubs.items()]
    for place, tree in places:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.name.startswith("_"):
                arguments = node.args
                parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, [arguments.kwarg])]
                yield place, node.name, [each.arg for each in parameters if each.arg not in NUMPY_WORDS.values()]


@pytest.mark.cases("place, name, parameters", declared_in_stubs, ids=lambda case: getattr(case, "__name__", str(case)))
def test_signatures_equal_the_signatures_of_the_stubs(place, name, parameters):
    """So `help`, `inspect` and notebooks show no address of an object, and each name by which a function is public."""
    function = getattr(place, name)
    signature = inspect.signature(function)
    assert " at 0x" not in str(signature)
    names = [parameter.name for parameter in signature.parameters.values()
             if parameter.kind is not parameter.VAR_POSITIONAL and parameter.name not in NUMPY_WORDS.values()]
    assert names[place is cg.Tensor:] == parameters[place is cg.Tensor:]
    if place is cg.linalg:
        assert (function.__name__, function.__qualname__, function.__module__) == (name, name, "cygrad.linalg")
    assert pydoc.render_doc(function, renderer=pydoc.plaintext).count(f"{function.__name__}(")


def test_signatures_can_be_changed_and_pickled():
    signature = inspect.signature(cg.tanh)
    assert str(signature.replace(return_annotation=signature.empty)) == "(input: 'Tensor', *, out: 'Tensor | None' = None)"
    assert pickle.loads(pickle.dumps(signature)) == signature
    assert pickle.loads(pickle.dumps(cg.linalg.solve)) is cg.linalg.solve
