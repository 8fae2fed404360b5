"""float16, bfloat16 and other floats that are stored only: each result is float32's, rounded once."""

import copy
import functools
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import cygrad as cg
import samples
from cygrad._core.operands.arrays import from_bits, to_array, to_bits
from cygrad._kernels.drivers.elementwise import available_isas, isa
from cygrad.ops import ELEMENTWISE, REDUCTIONS
from cygrad.ops.dtypes import DTYPES
from samples import BROADCASTS, as_tuple

NARROW = [row.name for row in DTYPES if row.is_opaque]
ROWS = [row for row in ELEMENTWISE.values() if "f" in row.kinds and not row.stored]


LAYOUTS = {
    "transposed": lambda t: t.t().contiguous().t() if t.ndim == 2 else t,
    "stepped": lambda t: cg.stack([t, t], -1)[..., 0],
    "cut": lambda t: cg.cat([t, t, t], -1)[..., 1:t.shape[-1] + 1],
    "expanded": lambda t: t[:1].expand(t.shape),
    "foreign": lambda t: from_bits(to_bits(t).copy(), t.dtype),
}


@functools.cache
def every(dtype):
    """Return all numbers of a dtype."""
    bits = 8 * getattr(cg, dtype).itemsize
    return cg.frombuffer(bytearray(np.arange(1 << bits, dtype=f"uint{bits}").tobytes()), dtype=getattr(cg, dtype))


def drawn(row, dtype, shapes):
    """Return operands of a row: masks are bool, all others of a narrow dtype."""
    arrays = samples.operands(row, "float32", shapes)
    return [cg.tensor(array) if operand in row.masks else cg.tensor(array).to(getattr(cg, dtype))
            for operand, array in zip(row.operands, arrays, strict=False)]


def wide(value):
    return value.detach().float() if isinstance(value, cg.Tensor) and value.is_floating_point() else value


def check_rounded(results, expected, dtype):
    """Compare results with float32's rounded ones, bit by bit except for NaNs."""
    for one, other in zip(as_tuple(results), as_tuple(expected), strict=True):
        assert one.dtype == (dtype if other.dtype == cg.float32 else other.dtype) and one.shape == other.shape
        rounded = other.to(one.dtype)
        same = to_bits(one.detach()) == to_bits(rounded.detach())
        assert (same | to_array(one.detach() != one.detach()) & to_array(rounded.detach() != rounded.detach())).all()


def check_near(result, expected, dtype, rtol, atol):
    """Compare with float32's within tolerances of bfloat16, or of a coarser format."""
    times = max(1, cg.finfo(getattr(cg, dtype)).eps / cg.finfo(cg.bfloat16).eps)
    np.testing.assert_allclose(to_array(result.detach()), to_array(expected.detach()), rtol=times * rtol, atol=times * atol)


# ----- Conversions -----
def sizes(row):
    """Return the sizes of all numbers of a format, by their bits; the last is infinity, as if it were the next number."""
    digits, bits = row.precision - 1, np.arange((1 << 8 * row.itemsize - 1) - (1 << row.precision - 1) + 1)
    exponent, fraction = bits >> digits, bits & (1 << digits) - 1
    bias = (1 << 8 * row.itemsize - row.precision - 1) - 1
    return np.ldexp(fraction + (exponent > 0) * 2.0**digits, np.maximum(exponent, 1) - bias - digits)


def rounded(row, numbers):
    """Return the bits of the nearest numbers of a format, ties to even."""
    numbers = numbers.astype(np.float64)
    steps, size = sizes(row), np.abs(numbers)
    above = np.minimum(np.searchsorted(steps, size), len(steps) - 1)
    below = np.maximum(above - 1, 0)
    nearer = (steps[above] - size < size - steps[below]) | (steps[above] - size == size - steps[below]) & (above % 2 == 0)
    return np.where(nearer, above, below) | np.signbit(numbers) << 8 * row.itemsize - 1


def floats():
    """Return float32s of all exponents: halfway between narrow floats, next to these, and others."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001], np.uint32)
    numbers = (high[:, None] | low).reshape(-1).view(np.float32)
    return numbers[~np.isnan(numbers)]


def converted_bits():
    """Return the conversions of this process, as arrays of bits."""
    return {f"{dtype}_{way}": to_bits(tensor) for dtype in NARROW
            for way, tensor in (("to", cg.from_numpy(floats()).to(getattr(cg, dtype))), ("from", every(dtype).float()))}


@pytest.mark.parametrize("row", [row for row in DTYPES if row.is_opaque], ids=lambda row: row.name)
def test_conversions_round_to_nearest(row):
    """Formats are IEEE's: a sign, the exponent, and a significand of so many bits."""
    bits = converted_bits()
    np.testing.assert_array_equal(bits[f"{row.name}_to"].astype(np.int64) & (1 << 8 * row.itemsize) - 1, rounded(row, floats()))
    numbers = bits[f"{row.name}_from"]
    positive, negative = np.split(numbers, 2)
    finite = sizes(row)[:-1]
    for half, sign in ((positive, 1), (negative, -1)):
        np.testing.assert_array_equal(half[:len(finite)], (sign * finite).astype(np.float32))
        assert half[len(finite)] == sign * np.inf and np.isnan(half[len(finite) + 1:]).all()


@pytest.mark.parametrize("level", [level for level in available_isas() if level != isa()])
def test_conversions_have_the_same_bits_on_every_level(level):
    for name, bits in samples.at_level(level, __name__, "converted_bits").items():
        np.testing.assert_array_equal(bits.view(np.uint8), converted_bits()[name].view(np.uint8))


@pytest.mark.cases("other", [row.name for row in DTYPES])
@pytest.mark.cases("dtype", NARROW)
def test_conversions_go_by_way_of_floats(dtype, other):
    """In all layouts; NaN is true, and becomes a quiet NaN."""
    x, to = every(dtype), getattr(cg, other)
    if to.is_differentiable or other == "bool":
        check_rounded(x.to(to), x.float().to(to), to)
        assert x.to(to).to(x.dtype)[~x.isnan()].equal(x.to(to).float().to(x.dtype)[~x.isnan()])
    small = cg.arange(100).to(to)
    for layout in (lambda t: t, lambda t: t[::3], lambda t: t[:1].expand(7), lambda t: t.reshape(10, 10).t(), lambda t: t[:0]):
        assert layout(small).to(x.dtype).tolist() == layout(small).float().to(x.dtype).tolist()
        assert layout(small).to(x.dtype).to(to).equal(layout(small))


# ----- Rows -----
@pytest.mark.cases("row", [row for row in ROWS if len(row.operands) == 1], ids=lambda row: row.name)
@pytest.mark.cases("dtype", NARROW)
def test_rows_of_all_numbers(dtype, row):
    x = every(dtype)
    call = samples.function(row)
    check_rounded(call(x), call(x.float()), x.dtype)


@pytest.mark.cases("row", ROWS, ids=lambda row: row.name)
@pytest.mark.cases("shapes", [((n,),) * 3 for n in (1, 3, 17, 600)] + [((3, 5),) * 3, *BROADCASTS])
@pytest.mark.cases("dtype", NARROW)
def test_rows(dtype, shapes, row):
    x = drawn(row, dtype, shapes)
    call = samples.function(row)
    check_rounded(call(*x), call(*map(wide, x)), getattr(cg, dtype))


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("row", ROWS, ids=lambda row: row.name)
@pytest.mark.cases("dtype", NARROW)
def test_rows_in_every_layout(dtype, row, layout):
    x = list(map(LAYOUTS[layout], drawn(row, dtype, ((5, 7),) * 3)))
    call = samples.function(row)
    check_rounded(call(*x), call(*map(wide, x)), getattr(cg, dtype))


@pytest.mark.cases("row", [row for row in ROWS if row.in_place and not row.masks and row.result != "bool"], ids=lambda row: row.name)
@pytest.mark.cases("layout", [name for name in LAYOUTS if name != "expanded"])
@pytest.mark.cases("dtype", NARROW)
def test_in_place_and_out(dtype, layout, row):
    x = drawn(row, dtype, ((5, 7),) * 3)
    call = samples.function(row)
    expected = call(*map(wide, x))
    target = LAYOUTS[layout](cg.zeros(5, 7, dtype=x[0].dtype))
    check_rounded(call(*x, out=target), expected, x[0].dtype)
    if layout == "cut":     # the elements beside it are unchanged
        assert not target._base[:, :1].any() and not target._base[:, 8:].any()
    if len(row.operands) == 1:
        target = LAYOUTS[layout](x[0].clone())
        around, expected = target._base[:, 8:].clone() if layout == "cut" else None, call(wide(target))
        check_rounded(getattr(target, f"{row.name}_")(**samples.parameters_of(row.name)), expected, x[0].dtype)
        assert around is None or target._base[:, 8:].equal(around)


@pytest.mark.parametrize("dtype", NARROW)
def test_bits_depend_on_no_position(dtype):
    x = every(dtype)[1 << 10:1 << 14].contiguous()
    y = x.flip(0)
    for call in (cg.add, cg.mul, lambda x, _: x.exp(), lambda x, _: x.tanh(), cg.pow):
        whole = call(x, y)
        for start, stop in ((1, 5), (3, 100), (7, 1000), (13, 14)):
            for place in (lambda t: t, cg.clone, LAYOUTS["foreign"]):
                assert (to_bits(call(place(x[start:stop]), place(y[start:stop]))) == to_bits(whole[start:stop])).all()


@pytest.mark.parametrize("dtype", NARROW)
def test_bits_depend_on_no_threads(dtype):
    x = cg.rand(1 << 20, rng=0).to(getattr(cg, dtype))
    runs = []
    for count in (1, 2):
        with samples.threads(count, parallel=False):
            runs.append([x + x, x.exp(), x.sum(), x.reshape(1 << 10, -1).sum(0), x.reshape(-1, 4).sum(1)])
    for one, other in zip(*runs, strict=True):
        assert one.equal(other)


# ----- Numbers beside them -----
@pytest.mark.cases("dtype", NARROW)
def test_numbers_stay_as_they_are(dtype):
    """0.1 is no narrow float: the product is the one with float32's 0.1, as in torch."""
    x = cg.arange(1, 200).to(getattr(cg, dtype))
    for call in (lambda x: x * 0.1, lambda x: 0.1 * x, lambda x: x + 0.1, lambda x: x / 3, lambda x: cg.add(x, x, alpha=0.1),
                 lambda x: x.clamp(0.1, 77.7), lambda x: x * cg.tensor(0.1)):
        for part in (x, x[:3], x.reshape(1, -1), LAYOUTS["stepped"](x)):
            check_rounded(call(part), call(part.float()), x.dtype)


def test_promotion():
    half, brain = cg.ones(2, dtype=cg.float16), cg.ones(2, dtype=cg.bfloat16)
    assert (half + brain).dtype == cg.float32 == cg.promote_types(cg.float16, cg.bfloat16)
    for x in (half, brain):
        for other in (1, 1.5, True, cg.tensor(1.5), cg.tensor(1.5, dtype=cg.float64), cg.ones(2, dtype=cg.int64)):
            assert (x + other).dtype == (other + x).dtype == x.dtype
        assert (x + cg.ones(2)).dtype == cg.float32 and (x + cg.ones(2, dtype=cg.float64)).dtype == cg.float64
        assert (x + cg.ones(2, dtype=cg.complex64)).dtype == cg.complex64


# ----- Reductions -----
SHAPES_AND_DIMS = [((5000,), None), ((7,), 0), ((64, 700), 0), ((64, 700), 1), ((9, 5), 0), ((9, 5), 1), ((300, 3, 50), 1),
                   ((300, 3, 50), (0, 2)), ((40, 50, 3), (0, 1)), ((2000, 3), 1), ((30000,), None), ((5000, 3), 0), ((1, 9), 0),
                   ((70, 40), 0), ((3, 1030), 1), ((), None)]


@pytest.mark.cases("row", list(REDUCTIONS.values()), ids=lambda row: row.name)
@pytest.mark.cases("shape, dim", SHAPES_AND_DIMS)
@pytest.mark.cases("dtype", NARROW)
def test_reductions(dtype, shape, dim, row):
    x = cg.tensor(samples.draw("float32", shape, domain=(0.9, 1.1))).to(getattr(cg, dtype))
    call = getattr(cg, row.name)
    for layout in (lambda t: t, lambda t: t.t().contiguous().t() if t.ndim == 2 else t, lambda t: cg.stack([t, t], -1)[..., 0]):
        part = layout(x)
        check_rounded(call(part, dim), call(part.float(), dim), x.dtype)
        if row.result != "truth":
            check_rounded(call(part, dim, keepdim=True, dtype=cg.float32) if row.result == "widest" else call(part, dim, keepdim=True),
                          call(part.float(), dim, keepdim=True), cg.float32 if row.result == "widest" else x.dtype)


@pytest.mark.cases("row", [row for row in REDUCTIONS.values() if row.block_step], ids=lambda row: row.name)
@pytest.mark.cases("shape", [(2, 4095), (2, 4096), (12300,)])
@pytest.mark.cases("dtype", NARROW)
def test_long_reductions_add_in_the_order_of_float32(dtype, shape, row):
    """Terms of all sizes that nearly cancel, so that the order shows."""
    random = np.random.default_rng(5)
    half = random.standard_normal((*shape[:-1], shape[-1] // 2)) * 2.0 ** random.integers(-10, 9, (*shape[:-1], shape[-1] // 2))
    half = cg.tensor(half).to(getattr(cg, dtype))
    x = cg.cat([half, -half.flip(-1), cg.zeros(*shape[:-1], shape[-1] % 2, dtype=half.dtype)], -1)
    call = getattr(cg, row.name)
    expected = call(x.float(), -1)
    assert not expected.equal(call(x.double(), -1).float())
    check_rounded(call(x, -1), expected, x.dtype)


# ----- All other operators -----
CALLS = [(name, sample) for name, calls in (samples.SAMPLES | samples.PLAIN).items() for sample in calls
         if "narrow floats" not in sample.exempt]


@pytest.mark.cases("name, sample", CALLS, ids=lambda case: str(case[0]))
@pytest.mark.cases("dtype", NARROW)
def test_all_other_operators(dtype, name, sample):
    """Values and gradients are near float32's, and of the operands' dtype."""
    narrow = getattr(cg, dtype)
    x = [cg.tensor(array).to(narrow).requires_grad_(name in samples.SAMPLES) for array in samples.rule_operands(sample.shapes)]
    y = [t.detach().float().requires_grad_(name in samples.SAMPLES) for t in x]
    try:
        expected = as_tuple(sample.call(*y))
    except (NotImplementedError, RuntimeError, TypeError):
        return      # is not for floats
    try:
        results = as_tuple(sample.call(*x))
    except (NotImplementedError, RuntimeError) as error:
        refused = "not implemented for|doesn't handle types other than float|of float, double, cfloat or cdouble|Low precision"
        assert re.search(refused, str(error))       # linear algebra, as torch
        return
    for one, other in zip(results, expected, strict=True):
        if not isinstance(one, cg.Tensor):
            assert type(one) is type(other)
            continue
        assert one.shape == other.shape and one.requires_grad == other.requires_grad
        assert one.dtype in ((narrow, cg.float32) if other.dtype == cg.float32 else (other.dtype,))
        assert one.dtype == narrow or other.dtype != cg.float32 or "float32" in str(one.grad_fn) or name == "cumprod"
        check_near(one, other, dtype, rtol=0.01, atol=0.02)
        if one.requires_grad:
            gradients = cg.autograd.grad(one, x, cg.ones_like(one), allow_unused=True, create_graph=True, retain_graph=True)
            by_float = cg.autograd.grad(other, y, cg.ones_like(other), allow_unused=True, retain_graph=True)
            for g, slope in zip(gradients, by_float, strict=True):
                assert (g is None) == (slope is None)
                if g is not None:
                    assert g.dtype == narrow
                    check_near(g, slope, dtype, rtol=0.03, atol=0.05)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("function, dims", [
    ("addmm", (2, 2, 2)), ("baddbmm", (3, 3, 3)), ("addbmm", (2, 3, 3)), ("addmv", (1, 2, 1)), ("addr", (2, 1, 1)),
])
def test_sums_with_products_are_rounded_once(function, dims, dtype):
    stream, call = np.random.default_rng(4), getattr(cg, function)
    x = [cg.tensor(stream.standard_normal([5] * ndim)).to(getattr(cg, dtype)) for ndim in dims]
    check_rounded(call(*x, beta=0.7, alpha=1.3), call(*(t.float() for t in x), beta=0.7, alpha=1.3), x[0].dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("call", [lambda *x: cg.linalg.multi_dot(x), cg.chain_matmul, lambda x, *_: x.matrix_power(7)],
                         ids=["multi_dot", "chain_matmul", "matrix_power"])
def test_chains_of_products_are_rounded_once(call, dtype):
    stream = np.random.default_rng(6)
    x = [cg.tensor(stream.standard_normal((5, 5))).to(getattr(cg, dtype)).requires_grad_() for _ in range(4)]
    y = [t.detach().float().requires_grad_() for t in x]
    results = call(*x), call(*y)
    check_rounded(results[0].detach(), results[1].detach(), x[0].dtype)
    cotangent = cg.tensor(stream.standard_normal((5, 5))).to(x[0].dtype)
    gradients = [cg.autograd.grad(result, inputs, cotangent.to(result.dtype), allow_unused=True)
                 for result, inputs in zip(results, (x, y), strict=True)]
    for one, other in zip(*gradients, strict=True):
        if other is not None:
            check_rounded(one, other, one.dtype)


@pytest.mark.cases("row", [row for row in samples.differentiable_rows() if row in ROWS], ids=lambda row: row.name)
@pytest.mark.cases("dtype", NARROW)
def test_gradients_of_rows(dtype, row):
    """They are computed in float32 from values saved in 16 bits."""
    x = [t.requires_grad_() if t.is_floating_point() else t for t in drawn(row, dtype, ((4, 9),) * 3)]
    y = [wide(t).requires_grad_() if t.requires_grad else t for t in x]
    for tensors in (x, y):
        result = samples.function(row)(*tensors)
        result.backward(cg.ones_like(result), create_graph=True)
    for one, other in zip(x, y, strict=True):
        if one.requires_grad:
            assert one.grad.dtype == one.dtype
            check_near(one.grad, other.grad, dtype, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("p", [1.5, 2, 3])
def test_norms_of_more_elements_than_their_dtype_counts(dtype, p):
    x = cg.full((70_000,), 1.5, dtype=getattr(cg, dtype))
    assert cg.equal(x.norm(p), x.float().norm(p).to(x.dtype)) and x.norm(p).isfinite()


@pytest.mark.parametrize("dtype", NARROW)
def test_gradients_accumulate_in_the_dtype_of_the_leaf(dtype):
    x = cg.ones(3, dtype=getattr(cg, dtype)).requires_grad_()
    small = cg.finfo(x.dtype).eps / 4
    for _ in range(4):
        (x * small).sum().backward()
    x.sum().backward()
    (x * small).sum().backward()
    assert x.grad.dtype == x.dtype and x.grad.tolist() == [1 + 4 * small if 4 * small >= cg.finfo(x.dtype).eps else 1] * 3


# ----- Exchange -----
@pytest.mark.parametrize("dtype", NARROW)
def test_numpys_arrays_share_memory(dtype):
    if not hasattr(np, dtype):
        pytest.importorskip("ml_dtypes")
    x = cg.tensor([[0.1, -2.0], [3.0, float("inf")]], dtype=getattr(cg, dtype))
    array = x.t().numpy()
    assert array.dtype.name == dtype and array.tolist() == x.t().tolist()
    again = cg.from_numpy(array)
    assert again.dtype == x.dtype and again.data_ptr() == x.data_ptr() and again.stride() == (1, 2)
    array[0, 0] = 7
    assert x[0, 0] == 7
    assert np.asarray(x).dtype == array.dtype and cg.tensor(array).equal(x.t()) and cg.tensor([array[0]]).dtype == x.dtype
    assert (x * array.dtype.type(0.5)).equal(x * 0.5) and (cg.ones(1) * array.dtype.type(0.5)).dtype == cg.float32


def test_numpy_alone_has_no_bfloat16():
    script = ("import sys\nclass Without:\n  def find_spec(self, name, *_):\n    if name == 'ml_dtypes': raise ImportError\n"
              "sys.meta_path.insert(0, Without()); import cygrad as cg; x = cg.ones(2, dtype=cg.bfloat16)\n"
              "print(x, x.tolist(), (x @ x).item())\ntry: x.numpy()\nexcept TypeError as error: print(error)")
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "tensor([1., 1.], dtype=cygrad.bfloat16) [1.0, 1.0] 2.0" in output and "install ml_dtypes" in output


def test_numpy_gets_bfloat16_from_ml_dtypes():
    pytest.importorskip("ml_dtypes")
    script = ("import cygrad as cg, numpy as np\nprint(np.zeros(2, dtype=cg.bfloat16).dtype, cg.bfloat16.type(1.5), "
              "hasattr(cg.bfloat16, 'dtype'))")
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout
    assert output == "bfloat16 1.5 True\n"


def test_elements_of_another_size_are_refused():
    with pytest.raises(ValueError, match="their sizes differ"):
        from_bits(np.zeros(3, np.int8), cg.float16)


def test_buffers():
    x = cg.tensor([1.5, -2.0], dtype=cg.float16)
    assert memoryview(x).format == "e" and np.asarray(memoryview(x)).tolist() == [1.5, -2.0]
    with pytest.raises(BufferError, match="no format for bfloat16"):
        memoryview(x.bfloat16())


@pytest.mark.parametrize("dtype", NARROW)
def test_dlpack(dtype):
    x = cg.tensor([1.5, -2.0, 0.1], dtype=getattr(cg, dtype))
    again = cg.from_dlpack(x[::2])
    assert again.dtype == x.dtype and again.data_ptr() == x.data_ptr() and again.equal(x[::2])


@pytest.mark.parametrize("dtype", NARROW)
def test_copies(dtype):
    x = cg.tensor([[1.5, -2.0, 0.1]] * 2, dtype=getattr(cg, dtype)).t()
    for way in (copy.copy, copy.deepcopy, *(functools.partial(lambda protocol, t: pickle.loads(pickle.dumps(t, protocol)), protocol)
                                           for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1))):
        assert way(x).dtype == x.dtype and way(x).equal(x) and way(x).stride() == x.stride()


@pytest.mark.parametrize(("dtype", "word", "number"), [(cg.float16, "Half", 1e6), (cg.bfloat16, "BFloat16", 1e39)])
def test_a_number_that_is_too_large_is_refused(dtype, word, number):
    for call in (lambda: cg.full((2,), number, dtype=dtype), lambda: cg.zeros(2, dtype=dtype).fill_(number)):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type c10::{word} without overflow"):
            call()
    assert (cg.ones(2, dtype=dtype) * number).isinf().all() and cg.tensor([number], dtype=dtype).isinf().all()


@pytest.mark.parametrize("dtype", NARROW)
def test_nothing(dtype):
    x, none = cg.empty(0, dtype=getattr(cg, dtype)), cg.empty(0, dtype=cg.int64)
    for call in (lambda: x.gather(0, none), lambda: x.take(none), lambda: x + x, lambda: x.exp(), lambda: x.sort()[0], lambda: x.flip(0),
                 lambda: x[none], lambda: x.cumsum(0), lambda: cg.cat([x, x]), lambda: x.softmax(0), lambda: x.unique()):
        assert call().shape == (0,) and call().dtype == x.dtype
    assert x.sum() == 0 and x.sum().dtype == x.dtype and x.median().isnan()


# ----- Operators that read the stored bits -----
TARGETS = [0.0, -0.0, 2.0 ** -133, -2.0 ** -24, 1.0, -1.5, 65504.0, np.inf, -np.inf, np.nan]


def all_pairs(dtype):
    """Return every number beside each target, and each target beside every number."""
    numbers, targets = every(dtype), cg.tensor(TARGETS).to(getattr(cg, dtype))
    a, b = numbers.repeat(len(TARGETS)), targets.repeat_interleave(len(numbers))
    return cg.cat([a, b]), cg.cat([b, a])


def stored_neighbours():
    """Return the bits of the neighbours of all pairs."""
    return {dtype: to_bits(cg.nextafter(*all_pairs(dtype))) for dtype in NARROW}


def neighbours(a, b, numbers):
    """Return the number next to `a` on the side of `b` in the list of all numbers, by definition."""
    numbers, known = np.unique(numbers[~np.isnan(numbers)]), ~np.isnan(a) & ~np.isnan(b)
    start, end = np.where(known, a, 0), np.where(known, b, 0)
    side = (end > start).astype(int) - (end < start)
    beside = np.copysign(numbers[np.searchsorted(numbers, start) + side], np.where(start == 0, end, start))
    return np.where(known, np.where(side == 0, end, beside), np.float32("nan"))


@pytest.mark.parametrize("dtype", NARROW)
def test_neighbours_are_next_in_the_list_of_all_numbers(dtype):
    a, b = (to_array(x) for x in all_pairs(dtype))
    expected = cg.tensor(neighbours(a, b, to_array(every(dtype))))
    check_rounded(cg.nextafter(*all_pairs(dtype)), expected, getattr(cg, dtype))


@pytest.mark.parametrize("level", [level for level in available_isas() if level != isa()])
def test_neighbours_are_the_same_on_every_level(level):
    for name, bits in samples.at_level(level, __name__, "stored_neighbours").items():
        np.testing.assert_array_equal(bits, stored_neighbours()[name])


@pytest.mark.cases("layout", LAYOUTS)
@pytest.mark.cases("dtype", NARROW)
def test_neighbours_of_all_operands(dtype, layout):
    """Operands of other dtypes and numbers are rounded first; also into targets of another dtype."""
    x = LAYOUTS[layout](every(dtype)[15000:15096].reshape(8, 12))
    y = x.flip(0)
    expected = cg.stack([cg.nextafter(*pair) for pair in zip(x.reshape(-1), y.reshape(-1), strict=True)]).reshape(x.shape)
    near = 1 + 2.0 ** -12
    assert cg.nextafter(x, y).equal(expected) and x.clone().nextafter_(y).equal(expected)
    assert cg.nextafter(x, y, out=cg.empty(x.shape)).equal(expected.float())
    assert np.nextafter(x, near).equal(cg.nextafter(x, cg.ones(1, dtype=x.dtype))) and np.nextafter(x, near).dtype == x.dtype
    assert cg.nextafter(x, cg.tensor(near)).equal(np.nextafter(x, near)) and cg.nextafter(x, x.long()).equal(cg.nextafter(x, x.trunc()))
    assert cg.func.vmap(cg.nextafter)(x, y).equal(expected) and cg.nextafter(x[:1], y).equal(cg.nextafter(x[:1].expand(x.shape), y))
