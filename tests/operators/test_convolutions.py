"""Convolutions against their definition, their transposes as adjoints, in blocks and in every layout; and arguments that do not fit."""

import contextlib
import itertools
import math

import numpy as np
import pytest

import cygrad as cg
from cygrad.operators import convolutions
from samples import LAYOUTS, array_of

F = cg.nn.functional
FORMS = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d), 3: (F.conv3d, F.conv_transpose3d)}


def defined(x, w, stride, padding, dilation, groups):
    """Return a convolution by its definition: one product for each place in the kernel."""
    dims = w.ndim - 2
    padded = np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    count = [(size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(padded.shape[2:], w.shape[2:], stride, dilation, strict=True)]
    split = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    result = np.zeros((x.shape[0], w.shape[0], *count), x.dtype)
    for place in np.ndindex(w.shape[2:]):
        part = padded[:, :, *(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(place, dilation, count, stride, strict=True))]
        grouped = part.reshape(x.shape[0], groups, -1, *count)
        weights = split[(slice(None),) * 3 + place]
        result += np.einsum("goc,ngc...->ngo...", weights, grouped).reshape(result.shape)
    assert result.ndim == dims + 2
    return result


def cases():
    """Return (dims, stride, padding, dilation, groups, shapes of the input and the weight)."""
    stream, result = np.random.default_rng(0), []
    for dims, _ in itertools.product((1, 2, 3), range(6)):
        stride, padding, dilation, kernel = (tuple(map(int, stream.integers(low, high, dims)))
                                             for low, high in ((1, 4), (0, 3), (1, 3), (1, 4)))
        sizes = tuple(int(n) + d * (k - 1) for n, d, k in zip(stream.integers(1, 5, dims), dilation, kernel, strict=True))
        groups, own, channels, examples = map(int, stream.integers(1, 4, 4))
        result.append((dims, stride, padding, dilation, groups, (examples, groups * channels, *sizes), (groups * own, channels, *kernel)))
    return result


def numbers(shape, dtype, seed=0):
    stream = np.random.default_rng([seed, *shape])
    array = stream.integers(-8, 9, shape)
    return (array + 1j * stream.integers(-8, 9, shape) if dtype.startswith("complex") else array).astype(dtype)


@contextlib.contextmanager
def other_ways():
    """Return to the usual ways at the end."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    convolutions.choose_ways()


@pytest.mark.cases("dims, stride, padding, dilation, groups, shape, kernels", cases)
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "uint8"])
def test_values_by_the_definition(dtype, dims, stride, padding, dilation, groups, shape, kernels):
    x, w = numbers(shape, dtype), numbers(kernels, dtype, 1)
    bias = numbers(kernels[:1], dtype, 2)
    result = FORMS[dims][0](cg.tensor(x), cg.tensor(w), cg.tensor(bias), stride, padding, dilation, groups)
    expected = defined(x, w, stride, padding, dilation, groups) + bias.reshape(-1, *(1,) * dims)
    np.testing.assert_array_equal(array_of(result), expected)       # small integers: exact in every order


@pytest.mark.cases("dims, stride, padding, dilation, groups, shape, kernels", cases)
@pytest.mark.parametrize("adding", [0, 100])
@pytest.mark.parametrize("block", [1, 40, 1 << 18])
def test_transposes_are_adjoints_in_blocks_of_any_size(block, adding, dims, stride, padding, dilation, groups, shape, kernels):
    """<conv(x, w), y> is <x, transpose(y, w)> and <w, gradient of the weight>, and convolution is the same in every block."""
    x, w = cg.tensor(numbers(shape, "float64")).requires_grad_(), cg.tensor(numbers(kernels, "float64", 1)).requires_grad_()
    convolve, transpose = FORMS[dims]
    with other_ways() as patch:
        patch.setattr(convolutions, "BLOCK", block)
        patch.setattr(convolutions, "ADDING", adding)
        patch.setattr(convolutions, "SMALL", 0)
        convolutions.choose_ways()
        result = convolve(x, w, None, stride, padding, dilation, groups)
        np.testing.assert_array_equal(array_of(result), defined(array_of(x), array_of(w), stride, padding, dilation, groups))
        y = cg.tensor(numbers(result.shape, "float64", 3))
        product = (result * y).sum()
        for operand, gradient in zip((x, w), cg.autograd.grad(product, (x, w)), strict=True):
            assert (gradient * operand).sum() == product
        smallest = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(
            result.shape[2:], stride, padding, dilation, kernels[2:], strict=True)]
        more = tuple(size - own for size, own in zip(shape[2:], smallest, strict=True))
        if all(count < max(s, d) for count, s, d in zip(more, stride, dilation, strict=True)):
            back = transpose(y, w, None, stride, padding, more, groups, dilation)
            assert back.shape == x.shape
            assert (back * x).sum() == product


# ----- In the frequency domain -----
@pytest.mark.cases("dims, stride, padding, dilation, groups, shape, kernels", cases)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products_of_spectra_are_the_same(dtype, dims, stride, padding, dilation, groups, shape, kernels):
    results = []
    for limit in (1, 1 << 40):
        x, w = (cg.tensor(numbers(each, dtype, seed)).requires_grad_() for seed, each in enumerate((shape, kernels)))
        with other_ways() as patch:
            patch.setattr(convolutions, "LONG", limit)
            patch.setattr(convolutions, "MANY", 1)
            convolutions.choose_ways()
            result = FORMS[dims][0](x, w, None, stride, padding, dilation, groups)
            y = cg.tensor(numbers(result.shape, dtype, 3))
            results.append([result, *cg.autograd.grad(result, (x, w), y)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(array_of(one), array_of(other), rtol=1e-12, atol=1e-10)


def test_long_kernels_take_spectra(monkeypatch):
    """Their results are right to rounding errors of the largest; where one is not finite, windows are as they are without spectra."""
    calls = []
    monkeypatch.setattr(convolutions, "_by_spectra", lambda *arguments, own=convolutions._by_spectra: calls.append(1) or own(*arguments))
    x, w = cg.randn(2, 1, 700, rng=0, dtype=cg.float64).requires_grad_(), cg.randn(2, 1, 150, rng=1, dtype=cg.float64).requires_grad_()
    result = F.conv1d(x, w)
    expected = np.stack([[np.correlate(array_of(a)[0], array_of(b)[0], "valid") for b in w] for a in x])
    np.testing.assert_allclose(array_of(result), expected, atol=1e-12)
    cg.autograd.grad(result.sum(), (x, w))
    assert len(calls) == 3
    x = x.detach().clone()
    x[0, 0, 300] = math.nan
    assert F.conv1d(x, w).isnan().sum() == 2 * 150
    assert len(calls) == 4
    assert F.conv1d(x.long() * 0 + 1, w.long() * 0 + 1).unique().tolist() == [150] and len(calls) == 4


@pytest.mark.parametrize("kernel, dilation", [(1, 1), (2, 1), (3, 2), (4, 1), (2, 3)])
def test_same_keeps_sizes(kernel, dilation):
    """A kernel of an even extent has one zero more behind than before."""
    x, w = cg.tensor(numbers((2, 1, 7), "float64")), cg.tensor(numbers((1, 1, kernel), "float64", 1))
    total = dilation * (kernel - 1)
    padded = F.pad(x, (total // 2, total - total // 2))
    result = F.conv1d(x, w, padding="same", dilation=dilation)
    assert result.shape == x.shape
    assert result.equal(F.conv1d(padded, w, dilation=dilation))
    assert F.conv1d(x, w, padding="valid").equal(F.conv1d(x, w))


@pytest.mark.cases("layout", LAYOUTS)
def test_layouts(layout):
    x, w = LAYOUTS[layout](numbers((3, 2, 5), "float64")), LAYOUTS[layout](numbers((2, 2, 3), "float64", 1))
    y = LAYOUTS[layout](numbers((3, 2, 5), "float64", 2))
    assert F.conv1d(x, w, padding=1).equal(F.conv1d(x.clone(), w.clone(), padding=1))
    for stride in (1, 2):
        assert F.conv_transpose1d(y, w, stride=stride).equal(F.conv_transpose1d(y.clone(), w.clone(), stride=stride))


def test_one_example_needs_no_dim():
    x, w = cg.tensor(numbers((2, 4, 5), "float64")), cg.tensor(numbers((3, 2, 2, 2), "float64", 1))
    assert F.conv2d(x, w).equal(F.conv2d(x.unsqueeze(0), w).squeeze(0))
    back = cg.tensor(numbers((3, 4, 5), "float64"))
    assert F.conv_transpose2d(back, w).equal(F.conv_transpose2d(back.unsqueeze(0), w).squeeze(0))


def test_no_examples_and_no_channels():
    x = cg.zeros(0, 2, 5, requires_grad=True)
    w = cg.ones(3, 2, 2, requires_grad=True)
    result = F.conv1d(x, w)
    assert result.shape == (0, 3, 4)
    gradients = cg.autograd.grad(result.sum(), (x, w))
    assert gradients[0].shape == x.shape and not gradients[1].any()
    assert F.conv1d(cg.zeros(2, 0, 5), cg.zeros(3, 0, 2), cg.ones(3)).equal(cg.ones(2, 3, 4))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_once(name):
    dtype = getattr(cg, name)
    x, w, b = cg.randn(2, 3, 9, rng=0).to(dtype), cg.randn(4, 3, 5, rng=1).to(dtype), cg.randn(4, rng=2).to(dtype)
    assert F.conv1d(x, w, b).equal(F.conv1d(x.float(), w.float(), b.float()).to(dtype))
    y = cg.randn(2, 4, 5, rng=3).to(dtype)
    assert F.conv_transpose1d(y, w).equal(F.conv_transpose1d(y.float(), w.float()).to(dtype))


def test_numbers_that_are_not_finite_stay_in_their_windows():
    x = cg.ones(1, 1, 9, dtype=cg.float64)
    x[0, 0, 4] = math.nan
    result = F.conv1d(x, cg.ones(1, 1, 3, dtype=cg.float64), padding=1)
    assert result.isnan().flatten().tolist() == [3 <= k <= 5 for k in range(9)]
    x[0, 0, 4] = math.inf
    result = F.conv_transpose1d(x, cg.ones(1, 1, 3, dtype=cg.float64), padding=1)
    assert result.isinf().flatten().tolist() == [3 <= k <= 5 for k in range(9)] and not result.isnan().any()


def test_the_names_of_the_package():
    assert cg.conv2d is F.conv2d and cg.conv_transpose3d is F.conv_transpose3d and cg.conv_tbc is F.conv_tbc
    x, w = cg.ones(1, 1, 3, 3), cg.ones(1, 1, 2, 2)
    assert cg.convolution(x, w, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1).equal(F.conv_transpose2d(x, w))


ONES = (cg.ones(1, 1, 4), cg.ones(1, 1, 3))


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.conv1d(cg.ones(1, 1, 4), cg.ones(1, 1, 5)), RuntimeError, r"Calculated padded input size per channel: \(4\). Kernel size: "),
    (lambda: F.conv1d(cg.ones(1, 2, 4), cg.ones(1, 1, 3)), RuntimeError, r"Given groups=1, weight of size \[1, 1, 3\], expected input"),
    (lambda: F.conv1d(cg.ones(1, 4, 4), cg.ones(3, 2, 3), groups=2), RuntimeError, "Given groups=2, expected weight to be divisible by 2"),
    (lambda: F.conv1d(*ONES, stride=0), RuntimeError, "non-positive stride is not supported"),
    (lambda: F.conv1d(*ONES, padding=-1), RuntimeError, "negative padding is not supported"),
    (lambda: F.conv1d(*ONES, dilation=0), RuntimeError, "dilation should be greater than zero"),
    (lambda: F.conv1d(*ONES, groups=0), RuntimeError, "non-positive groups is not supported"),
    (lambda: F.conv1d(*ONES, padding="x"), RuntimeError, "Invalid padding string: 'x'"),
    (lambda: F.conv1d(*ONES, padding="same", stride=2), RuntimeError, "padding='same' is not supported for strided convolutions"),
    (lambda: F.conv1d(*ONES, cg.ones(2)), RuntimeError, r"Given weight of size \[1, 1, 3\], expected bias to be 1-dimensional with 1 el"),
    (lambda: F.conv1d(cg.ones(4), ONES[1]), RuntimeError, r"Expected 2D \(unbatched\) or 3D \(batched\) input to conv1d, but got input of"),
    (lambda: F.conv1d(ONES[0], cg.ones(1, 3)), RuntimeError, "weight should have at least three dimensions"),
    (lambda: F.conv2d(cg.ones(1, 1, 4, 4), ONES[1]), RuntimeError, "conv2d takes a weight of 4 dims"),
    (lambda: F.conv2d(cg.ones(1, 1, 4, 4), cg.ones(1, 1, 3, 3), stride=(1, 1, 1)), RuntimeError, "expected stride to be a single integer "),
    (lambda: F.conv1d(ONES[0], ONES[1].double()), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: F.conv1d(cg.ones(1, 1, 4), cg.ones(1, 2, 2), stride=-1), RuntimeError, "non-positive stride is not supported"),
    (lambda: F.conv1d(cg.ones(1, 1, 4).long(), cg.ones(1, 1, 2).long(), cg.ones(1)), RuntimeError, r"type \(long int\) and bias type"),
    (lambda: F.conv1d(*ONES, cg.ones(1).double()), RuntimeError, r"Input type \(float\) and bias type \(double\) should be the same"),
    (lambda: F.conv1d(ONES[0].bool(), ONES[1].bool()), NotImplementedError, "\"slow_conv2d_cpu\" not implemented for 'Bool'"),
    (lambda: F.conv1d(cg.ones(1, 1, 4), cg.ones(1, 1, 0)), RuntimeError, "kernel size should be greater than zero"),
    (lambda: F.conv1d(ONES[0], cg.ones(0, 1, 3)), RuntimeError, "expected weight to be at least 1 at dimension 0"),
    (lambda: F.conv1d(*ONES, stride=1.5), TypeError, "argument 'stride' must be int or tuple of ints, not float"),
    (lambda: F.conv1d(ONES[0], 3), TypeError, "argument 'weight'.*must be Tensor, not int"),
    (lambda: F.conv_transpose1d(*ONES, output_padding=1), RuntimeError, "output padding must be smaller than either stride or dilation"),
    (lambda: F.conv_transpose1d(*ONES, output_padding=-1), RuntimeError, "negative output_padding is not supported"),
    (lambda: F.conv_transpose1d(cg.ones(1, 2, 4), cg.ones(3, 1, 3)), RuntimeError, r"Given transposed=1, weight of size \[3, 1, 3\], exp"),
    (lambda: F.conv_transpose1d(*ONES, padding=3), RuntimeError, "Calculated output size per channel: .0.. Output size is too small"),
    (lambda: F.conv_tbc(cg.ones(2, 2), cg.ones(1, 2, 1), cg.ones(1)), RuntimeError, "Input must have 3 dims: time, batch, in_channel"),
    (lambda: cg.convolution(cg.ones(1, 4), ONES[1], None, [1], [0], [1], False, [0], 1), RuntimeError, "Expected 3-dimensional input for"),
    (lambda: F.unfold(cg.ones(1, 1, 4, 4), 0), RuntimeError, "kernel size should be greater than zero"),
    (lambda: F.unfold(cg.ones(1, 1, 4, 4), 5), RuntimeError, r"Given input with spatial size .*components must be at least one"),
    (lambda: F.unfold(cg.ones(1, 1, 4, 4).long(), 2), NotImplementedError, "\"im2col_out_cpu\" not implemented for 'Long'"),
    (lambda: F.unfold(cg.ones(1, 1, 4, 4), (2, 2, 2)), RuntimeError, "It is expected kernel_size equals to 2, but got size 3"),
    (lambda: F.unfold(cg.ones(1, 1, 4, 4), 2, padding=-1), RuntimeError, "padding should be non-negative"),
    (lambda: F.fold(cg.ones(1, 4, 3), (2, 2), 2), RuntimeError, "expected size of input's dimension 2 to match the calculated number of "),
    (lambda: F.fold(cg.ones(1, 3, 1), (2, 2), 2), RuntimeError, "Expected size of input's dimension 1 to be divisible by the product of"),
    (lambda: F.fold(cg.ones(4), (2, 2), 2), RuntimeError, r"Expected 2D or 3D \(batch mode\) tensor for input"),
])
def test_arguments_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ----- Windows as columns -----
def test_columns_times_kernels_are_the_convolution():
    x, w = cg.tensor(numbers((2, 3, 6, 5), "float64")), cg.tensor(numbers((4, 3, 2, 3), "float64", 1))
    columns = F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))
    product = w.reshape(4, -1) @ columns
    expected = F.conv2d(x, w, dilation=(2, 1), padding=(1, 0), stride=(1, 2))
    assert product.reshape(expected.shape).equal(expected)


def test_windows_are_added_where_they_lie():
    """The sum of the columns of ones says in how many windows each element is."""
    ones = cg.ones(1, 2, 5, 4)
    count = F.fold(F.unfold(ones, 3, padding=1, stride=2), (5, 4), 3, padding=1, stride=2)
    number = [sum(0 <= i + 1 - 2 * n <= 2 for n in range(3)) for i in range(5)]
    other = [sum(0 <= i + 1 - 2 * n <= 2 for n in range(2)) for i in range(4)]
    np.testing.assert_array_equal(array_of(count)[0, 1], np.outer(number, other))
