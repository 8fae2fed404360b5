"""Results in `out=`: in factories, and in memory that it shares with operands, of every function that takes it."""

import numpy as np
import pytest

import calls
import cygrad as cg
import public
import samples
from cygrad.operators._written import catalogue
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from samples import array_of, same_bits

# ----- Factories -----
FACTORIES = {
    "arange": lambda **k: cg.arange(0, 6, 2, **k),
    "linspace": lambda **k: cg.linspace(0, 4, 3, **k),
    "full": lambda **k: cg.full((3,), 2, **k),
    "eye": lambda **k: cg.eye(3, 1, **k)[:, 0] if "out" not in k else cg.eye(3, 1, **k),
    "fft_fftfreq": lambda **k: cg.fft.fftfreq(3, **k),
    "fft_rfftfreq": lambda **k: cg.fft.rfftfreq(5, **k),
}
FRACTIONS = {"fft_fftfreq", "fft_rfftfreq"}     # factories of numbers that are not whole


def out_for(name, dtype=cg.float32):
    return cg.zeros(3, 1, dtype=dtype) if name == "eye" else cg.zeros(3, dtype=dtype)


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_compute_in_the_dtype_of_out(name):
    for dtype in (cg.float32, cg.float64) if name in FRACTIONS else (cg.float32, cg.float64, cg.int64, cg.uint8):
        out = out_for(name, dtype)
        assert FACTORIES[name](out=out) is out
        assert out._version == 1 and out.reshape(-1).tolist() == FACTORIES[name](dtype=dtype).tolist()


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_refuse_an_out_that_does_not_fit(name):
    make = FACTORIES[name]
    with pytest.raises(RuntimeError, match=r"dtype cygrad.int64 does not match dtype of out parameter \(cygrad.float32\)"):
        make(out=out_for(name), dtype=cg.int64)
    with pytest.raises(RuntimeError, match=r"out= has shape \[4\] but the result has shape"):
        make(out=cg.zeros(4))
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not list"):
        make(out=[1])
    with pytest.raises(RuntimeError, match="functions with out=... arguments don't support automatic differentiation"):
        make(out=out_for(name).requires_grad_())


REFUSED = [
    (lambda: cg.linspace(0, 1, 2.5), TypeError, "steps"),
    (lambda: cg.linspace("a", 1, 2), TypeError, r"linspace\(\): argument 'start' must be Number, not str"),
    (lambda: cg.linspace(0, cg.ones(2), 2), RuntimeError, "linspace only supports 0-dimensional start and end tensors"),
    (lambda: cg.linspace(0, 1, 3, dtype=cg.bool), NotImplementedError, "not implemented for 'bool'"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- Shared memory: the result has the same values as in memory of its own (torch refuses most of these calls) -----
FORMS = {       # of rows: with parameters, and with a condition
    "add": lambda x, **k: cg.add(x, x.flip(0), alpha=2, **k),
    "where": lambda x, **k: cg.where(x > 0, x, -x, **k),
    "clamp": lambda x, **k: cg.clamp(x, -1, x.mean(), **k),
    "round": lambda x, **k: cg.round(x, decimals=1, **k),
    "logit": lambda x, **k: cg.logit(x, 0.25, **k),
}


def shifted(call):
    """Return the result in memory of its own, and in memory that overlaps the operand's, one element on."""
    memory = cg.tensor(np.linspace(-1.75, 2.25, 12).astype("float32"))
    expected = array_of(call(memory[:6].view(2, 3)))
    out = memory[1:1 + expected.size].view(expected.shape)
    result = call(memory[:6].view(2, 3), out=out)
    assert result.data_ptr() == out.data_ptr()
    return array_of(out), expected


@pytest.mark.parametrize("name", FORMS)
def test_out_of_forms_that_overlaps_an_operand(name):
    written, expected = shifted(FORMS[name])
    assert same_bits(written, expected)


@pytest.mark.parametrize("name", [name for name, row in ELEMENTWISE.items() if "f" in row.kinds and row.result == "same" and not row.masks])
def test_out_of_rows_that_overlaps_an_operand(name):
    row = ELEMENTWISE[name]
    written, expected = shifted(lambda x, **k: samples.function(row)(*[x, x.flip(0), x.flip(1)][:len(row.operands)], **k))
    assert same_bits(written, expected)


@pytest.mark.parametrize("name", [name for name in REDUCTIONS if name not in ("any", "all")])
def test_out_of_reductions_that_overlaps_an_operand(name):
    written, expected = shifted(lambda x, **k: getattr(cg, name)(x, 0, **k))
    assert same_bits(written, expected)


def computed(function, arguments, keywords):
    """Return copies of the results as a tuple; None if the function does not take the arguments."""
    try:
        results = function(*calls.copied(arguments), **keywords)
    except (RuntimeError, NotImplementedError):
        return None
    return tuple(result.detach().clone() for result in samples.as_tuple(results))


@pytest.mark.cases("offset", [0, 1])
@pytest.mark.cases("name, arguments, keywords", calls.calls_with_out)
def test_out_of_samples_may_lie_over_the_first_operand(name, arguments, keywords, offset):
    """At the operand's address, or one element on; the operand is converted to the result's dtype if the function takes it."""
    function, arguments = public.function(name), calls.copied(arguments)
    path, first = next(place for place in calls.places(arguments) if isinstance(place[1], cg.Tensor))
    expected = computed(function, arguments, keywords)
    if first.dtype != expected[0].dtype:
        first = first.to(expected[0].dtype)
        converted = computed(function, calls.replaced(arguments, path, first), keywords)
        if converted is None or converted[0].dtype != first.dtype:
            pytest.skip("the operand cannot be of the result's dtype")
        expected = converted
    memory = cg.zeros(max(first.numel(), expected[0].numel()) + 1, dtype=first.dtype)
    inside = memory[:first.numel()].view(first.shape)
    inside.copy_(first)
    place = memory[offset:offset + expected[0].numel()].view(expected[0].shape)
    out = (place, *map(cg.empty_like, expected[1:]))
    function(*calls.replaced(arguments, path, inside), **keywords, out=place if len(out) == 1 else out)
    assert all(same_bits(array_of(part), array_of(right)) for part, right in zip(out, expected, strict=True))


def test_every_function_that_takes_out_is_here():
    here = {*ELEMENTWISE, *REDUCTIONS, *FACTORIES} | {name for name, _, _ in calls.calls_with_out()}
    taking = {entry.name for entry in catalogue.entries() if entry.function and not entry.form for signature in entry.signatures
              if "out" in [a.arg for a in (*signature.args.args, *signature.args.kwonlyargs)]}
    functions = [public.function(name) for name in here]
    assert {name for name in taking - here if public.function(name) not in functions} == set()
