"""Pooling against windows that are cut out one by one; ties, NaNs and ends; and arguments that do not fit."""

import itertools
import math

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional
MEANS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
LARGEST = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
NORMS = {1: F.lp_pool1d, 2: F.lp_pool2d, 3: F.lp_pool3d}
ADAPTIVE = {1: (F.adaptive_avg_pool1d, F.adaptive_max_pool1d), 2: (F.adaptive_avg_pool2d, F.adaptive_max_pool2d),
            3: (F.adaptive_avg_pool3d, F.adaptive_max_pool3d)}
INVERSES = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}


def cases():
    """Return (kernel, stride, padding, dilation, ceil_mode, sizes), of one to three dims."""
    stream, result = np.random.default_rng(0), []
    for dims, ceil_mode, _ in itertools.product((1, 2, 3), (False, True), range(4)):
        kernel, stride, dilation = (tuple(map(int, stream.integers(1, high, dims))) for high in (4, 4, 3))
        padding = tuple(int(stream.integers(0, k // 2 + 1)) for k in kernel)
        sizes = tuple(int(n) + d * (k - 1) for n, d, k in zip(stream.integers(1, 5, dims), dilation, kernel, strict=True))
        result.append((kernel, stride, padding, dilation, ceil_mode, sizes))
    return result


def window_places(size, k, s, p, d, ceil_mode):
    """Return the places of each window along a dim, also outside of it."""
    count = (math.ceil if ceil_mode else math.floor)((size + 2 * p - d * (k - 1) - 1) / s) + 1
    starts = [i * s - p for i in range(count)]
    return [[start + d * t for t in range(k)] for start in starts if not ceil_mode or start < size]


def windows(kernel, stride, padding, dilation, ceil_mode, sizes):
    """Yield (place of the result, the window's places in the input, how many places the window has up to the end of the padding)."""
    along = [window_places(*each, ceil_mode) for each in zip(sizes, kernel, stride, padding, dilation, strict=True)]
    for place in itertools.product(*(range(len(places)) for places in along)):
        own = [places[i] for places, i in zip(along, place, strict=True)]
        inside = [p for p in itertools.product(*own) if all(0 <= q < size for q, size in zip(p, sizes, strict=True))]
        whole = math.prod(sum(q < size + pad for q in each) for each, size, pad in zip(own, sizes, padding, strict=True))
        yield place, inside, whole


def numbers(sizes):
    """Return distinct whole numbers, without an order."""
    count = 2 * math.prod(sizes)
    return (np.random.default_rng(1).permutation(count) - count // 3).reshape(1, 2, *sizes)


@pytest.mark.cases("kernel, stride, padding, dilation, ceil_mode, sizes", cases)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64"])
def test_largest_elements(dtype, kernel, stride, padding, dilation, ceil_mode, sizes):
    x = numbers(sizes)
    if len(sizes) == 1 and dtype == "int64":
        return      # refused, as in torch
    values, places = LARGEST[len(sizes)](cg.tensor(x).to(getattr(cg, dtype)), kernel, stride, padding, dilation, ceil_mode,
                                         return_indices=True)
    count = 0
    for place, inside, _ in windows(kernel, stride, padding, dilation, ceil_mode, sizes):
        for channel in range(2):
            best = max(inside, key=lambda p, channel=channel: x[0, channel][p])
            assert values[0, channel][place] == x[0, channel][best]
            assert places[0, channel][place] == np.ravel_multi_index(best, sizes)
            count += 1
    assert count == values.numel() == places.numel()


@pytest.mark.cases("kernel, stride, padding, dilation, ceil_mode, sizes", cases)
@pytest.mark.parametrize("include", [False, True])
def test_means(include, kernel, stride, padding, dilation, ceil_mode, sizes):
    x, dims = numbers(sizes).astype(float), len(sizes)
    ones = (1,) * dims
    if any(size < k for size, k in zip(sizes, kernel, strict=True)):
        return
    result = MEANS[dims](cg.tensor(x), kernel, stride, padding, ceil_mode, include)
    integers = MEANS[dims](cg.tensor(x).long(), kernel, stride, padding, ceil_mode, include)
    count = 0
    for place, inside, whole in windows(kernel, stride, padding, ones, ceil_mode, sizes):
        divisor = whole if include else len(inside)
        for channel in range(2):
            total = sum(x[0, channel][p] for p in inside)
            assert result[0, channel][place].item() == pytest.approx(total / divisor, rel=1e-14)
            assert integers[0, channel][place] == int(total / divisor)
            count += 1
    assert count == result.numel()
    if dims > 1:
        sums = MEANS[dims](cg.tensor(x), kernel, stride, padding, ceil_mode, include, 1)
        divided = MEANS[dims](cg.tensor(x), kernel, stride, padding, ceil_mode, include, -4)
        assert divided.equal(sums / -4)


@pytest.mark.parametrize("sizes, counts", [((7,), (3,)), ((4,), (6,)), ((5, 3), (2, 3)), ((2, 5, 4), (1, 4, 3)), ((3, 3), (0, 2))])
def test_windows_that_cover_a_dim(sizes, counts):
    x, (mean, largest) = numbers(sizes).astype(float), ADAPTIVE[len(sizes)]
    means, (values, places) = mean(cg.tensor(x), counts), largest(cg.tensor(x), counts, True)
    assert means.shape == values.shape == places.shape == (1, 2, *counts)
    for place in np.ndindex(counts):
        part = tuple(slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(place, sizes, counts, strict=True))
        for channel in range(2):
            assert means[0, channel][place].item() == pytest.approx(x[0, channel][part].mean())
            assert values[0, channel][place] == x[0, channel][part].max() == x[0, channel].flat[places[0, channel][place].item()]


def test_global_means_and_none():
    x = cg.randn(2, 3, 4, 5, rng=0, dtype=cg.float64)
    assert F.adaptive_avg_pool2d(x, 1).allclose(x.mean((2, 3), keepdim=True))
    assert F.adaptive_max_pool2d(x, (1, None)).equal(x.amax(2, keepdim=True))


# ----- Ties, NaNs, ends -----
def test_of_equal_elements_the_first_counts():
    x = cg.zeros(1, 4, 4, requires_grad=True)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert places.tolist() == [[[0, 2], [8, 10]]]
    gradient, = cg.autograd.grad(values.sum(), x)
    assert gradient.sum() == 4 and gradient[0, ::2, ::2].equal(cg.ones(2, 2))


def test_nan_is_the_largest_element_and_stays_in_its_windows():
    x = cg.arange(8.0).reshape(1, 1, 8)
    x[0, 0, 4] = math.nan
    values, places = F.max_pool1d(x, 2, 1, return_indices=True)
    assert values.isnan().flatten().tolist() == [k in (3, 4) for k in range(7)]
    assert places[0, 0, 3] == places[0, 0, 4] == 4
    assert F.avg_pool1d(x, 2, 1).isnan().flatten().tolist() == [k in (3, 4) for k in range(7)]
    assert F.adaptive_avg_pool1d(x, 4).isnan().flatten().tolist() == [k == 2 for k in range(4)]


def test_of_several_nans_the_last_counts_at_the_ends_too():
    nan = math.nan
    for numbers, expected in (([nan, nan, 0.0, 1.0, nan, nan], [1, 1, 5]), ([0.0, 1.0, 2.0, nan, nan], [1, 3, 4])):
        assert F.max_pool1d(cg.tensor([[numbers]]), 3, 2, 1, return_indices=True)[1].tolist() == [[expected]]


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_unsigned_integers_have_no_largest_elements(dtype):
    x = cg.ones(1, 2, 2, dtype=getattr(cg, dtype))
    for call in (lambda: F.max_pool1d(x, 2), lambda: F.max_pool2d(x, 2), lambda: F.adaptive_max_pool1d(x, 1)):
        with pytest.raises(NotImplementedError, match="not implemented for 'UInt"):
            call()


def test_places_that_changed_are_refused_by_a_backward():
    x = cg.arange(8.0).reshape(1, 1, 8).requires_grad_()
    values, places = F.max_pool1d(x, 2, return_indices=True)
    places.numpy()[0, 0, 1] = 8         # unseen by the count of changes
    with pytest.raises(RuntimeError, match="index 8 is out of bounds"):
        values.sum().backward()


def test_arrays_in_any_layout_and_many_dims():
    whole = cg.randn(3, 4, 6, 8, dtype=cg.float64)
    for x in (whole.permute(0, 2, 3, 1), whole[:, :, ::2, 1::3], whole[:1].expand(3, 4, 6, 8), whole[:, 1]):
        for pool in (F.max_pool2d, F.avg_pool2d):
            assert (pool(x, 2) == pool(x.contiguous(), 2)).all()


@pytest.mark.parametrize("number", [-math.inf, math.inf])
def test_infinite_elements(number):
    x = cg.full((1, 1, 6), number, requires_grad=True)
    values, places = F.max_pool1d(x, 3, 3, 1, return_indices=True)
    assert values.equal(cg.full((1, 1, 2), number)) and places.tolist() == [[[0, 2]]]
    assert F.avg_pool1d(x, 2).equal(cg.full((1, 1, 3), number))


def test_the_least_integers_are_larger_than_padding():
    x = cg.full((1, 1, 3, 3), -128, dtype=cg.int8)
    assert F.max_pool2d(x, 3, 2, 1).equal(cg.full((1, 1, 2, 2), -128, dtype=cg.int8))


def test_gradients_of_means_are_shared():
    x = cg.zeros(1, 6, requires_grad=True, dtype=cg.float64)
    gradient, = cg.autograd.grad(F.avg_pool1d(x, 3, 2, 1).sum(), x)
    np.testing.assert_allclose(array_of(gradient)[0] * 3, [1, 2, 1, 2, 1, 1])


def test_huge_kernels_need_no_memory():
    x = cg.ones(1, 1, 4)
    k = 1 << 40
    assert F.avg_pool1d(x, k, k, k // 2, False, False).equal(cg.ones(1, 1, 1))
    assert F.max_pool1d(x, k, k, k // 2).equal(cg.ones(1, 1, 1))


def test_no_examples():
    x = cg.zeros(0, 2, 4, 4, requires_grad=True)
    for result in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_max_pool2d(x, 2)):
        assert result.shape == (0, 2, 2, 2)
        assert cg.autograd.grad(result.sum(), x)[0].shape == x.shape


# ----- Norms, and the inverse -----
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_norms(dims):
    x = cg.randn(2, 2, *(4,) * dims, rng=0, dtype=cg.float64).abs()
    kernel = 2
    for power in (1, 2, 3.5, -1):
        expected = (MEANS[dims](x ** power, kernel) * kernel**dims) ** (1 / power)
        np.testing.assert_allclose(array_of(NORMS[dims](x, power, kernel)), array_of(expected), rtol=1e-13)
    assert NORMS[dims](-x, math.inf, kernel).equal(LARGEST[dims](x, kernel))
    assert NORMS[dims](-x, -math.inf, kernel).equal(-LARGEST[dims](-x, kernel))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_inverse_puts_elements_back(dims):
    x = cg.tensor(numbers((4,) * dims)).double() + 100
    values, places = LARGEST[dims](x, 2, return_indices=True)
    back = INVERSES[dims](values, places, 2)
    assert back.shape == x.shape
    assert back.where(back != 0, x).equal(x) and (back != 0).sum() == values.numel()
    larger = INVERSES[dims](values, places, 2, output_size=(5,) * dims)
    assert larger.shape == (1, 2, *(5,) * dims) and larger.sum() == back.sum()


def test_narrow_floats_are_rounded_once():
    for dtype in (cg.float16, cg.bfloat16):
        x = cg.randn(2, 3, 7, 6, rng=0).to(dtype)
        for call in (lambda x: F.avg_pool2d(x, 3, 1, 1), lambda x: F.adaptive_avg_pool2d(x, (3, 4)), lambda x: F.lp_pool2d(x, 2, 2)):
            assert call(x).equal(call(x.float()).to(dtype))


ONE, TWO = cg.ones(1, 1, 4), cg.ones(1, 1, 4, 4)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.avg_pool1d(ONE, 0), RuntimeError, "kernel size should be greater than zero"),
    (lambda: F.avg_pool1d(ONE, 5), RuntimeError, r"Given input size: \(1x4\). Calculated output size: \(1x0\). Output size is too small"),
    (lambda: F.avg_pool1d(ONE, 2, 0), RuntimeError, "stride should not be zero"),
    (lambda: F.avg_pool1d(ONE, 2, 1, 2), RuntimeError, "pad should be at most half of effective kernel size, but got pad=2"),
    (lambda: F.avg_pool1d(ONE, 2, 1, -1), RuntimeError, "pad must be non-negative, but got pad: -1"),
    (lambda: F.avg_pool1d(cg.ones(4), 2), RuntimeError, "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'self'"),
    (lambda: F.avg_pool2d(TWO, (2, 2, 2)), RuntimeError, "avg_pool2d: kernel_size must either be a single int, or a tuple of two ints"),
    (lambda: F.avg_pool2d(TWO, 2, (2, 2, 2)), RuntimeError, "avg_pool2d: stride must either be omitted, a single int, or a tuple of two"),
    (lambda: F.avg_pool2d(TWO, 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
    (lambda: F.avg_pool2d(TWO.bool(), 2), NotImplementedError, "\"avg_pool2d\" not implemented for 'Bool'"),
    (lambda: F.avg_pool2d(TWO.int(), 2), NotImplementedError, "\"avg_pool2d\" not implemented for 'Int'"),
    (lambda: F.avg_pool2d(cg.ones(4, 4), 2), RuntimeError, r"non-empty 3D or 4D \(batch mode\) tensor expected for input"),
    (lambda: F.avg_pool2d(cg.ones(1, 0, 4, 4), 2), RuntimeError, r"Expected 3D or 4D \(batch mode\) tensor with optional 0 dim batch size"),
    (lambda: F.max_pool1d(ONE, 5), RuntimeError, r"max_pool1d\(\) Invalid computed output size: 0"),
    (lambda: F.max_pool1d(ONE, 0), RuntimeError, r"max_pool1d\(\) kernel_size must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(ONE, 2, 0), RuntimeError, r"max_pool1d\(\) stride must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(ONE, 2, 1, 2), RuntimeError, r"max_pool1d\(\) padding should be at most half of kernel size, but got padding=2"),
    (lambda: F.max_pool1d(ONE, 2, 1, -1), RuntimeError, r"max_pool1d\(\) padding must be non-negative, but got -1"),
    (lambda: F.max_pool1d(ONE, 2, 1, 0, 0), RuntimeError, r"max_pool1d\(\) dilation must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(ONE.int(), 2), NotImplementedError, "\"max_pool1d_impl\" not implemented for 'Int'"),
    (lambda: F.max_pool1d(cg.ones(1, 1, 1), 2, 1, 1, 2), RuntimeError, "a window has no element of the input, only padding"),
    (lambda: F.max_pool2d(TWO, 5), RuntimeError, r"Given input size: \(1x4x4\). Calculated output size: \(1x0x0\). Output size is too "),
    (lambda: F.max_pool2d(TWO * 1j, 2), NotImplementedError, "\"max_pool2d\" not implemented for 'ComplexFloat'"),
    (lambda: F.adaptive_avg_pool1d(ONE, -1), RuntimeError, "elements of output_size must be greater than or equal to 0 but received"),
    (lambda: F.adaptive_avg_pool2d(TWO, (2, 2, 2)), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
    (lambda: F.adaptive_avg_pool2d(cg.ones(4, 4), 2), ValueError, "Input dimension should be at least 3, but got a tensor of shape"),
    (lambda: F.adaptive_max_pool3d(cg.tensor(1.0), 2), ValueError, "Input dimension should be at least 4"),
    (lambda: F.adaptive_avg_pool2d(cg.ones([2] * 5), 2), RuntimeError, r"adaptive_avg_pool2d\(\): Expected 3D or 4D tensor, but got"),
    (lambda: F.adaptive_avg_pool1d(cg.ones(2, 2, 2), ()), RuntimeError, "argument 'output_size' should contain one int"),
    (lambda: F.adaptive_max_pool1d(cg.ones(2, 2, 2), -1), RuntimeError, r"negative dimension -1: \[2, 2, -1\]"),
    (lambda: F.max_pool3d(cg.ones(2, 1, 0, 1, 2), 1), RuntimeError, r"out_cpu_template\(\): .* dimension 1 has length zero"),
    (lambda: F.avg_pool3d(cg.ones(0, 1, 2, 2), 1), RuntimeError, r"avg_pool3d\(\): Expected input's non-batch dimensions to have positive"),
    (lambda: F.max_pool1d(ONE, 2, 1, -1, return_indices=True), RuntimeError, "^pad must be non-negative, but got pad: -1"),
    (lambda: F.max_pool1d(ONE, 2, 1, 2, return_indices=True), RuntimeError, "^pad should be at most half of effective kernel size"),
    (lambda: F.adaptive_avg_pool2d(TWO[:, :, :0], 2), RuntimeError, "input to have non-zero size for non-batch dimensions, but input has "),
    (lambda: F.adaptive_max_pool2d(TWO.int(), 2), NotImplementedError, "\"adaptive_max_pool2d\" not implemented for 'Int'"),
    (lambda: F.lp_pool1d(ONE, 0, 2), ValueError, "argument 'norm_type' must not be 0"),
    (lambda: F.lp_pool1d(ONE, "a", 2), TypeError, "argument 'norm_type'"),
    (lambda: F.max_unpool1d(ONE[..., :2], cg.tensor([[[0, 9]]]), 2), RuntimeError, "Found an invalid max index: 9"),
    (lambda: F.max_unpool1d(ONE[..., :2], cg.tensor([[[0, -1]]]), 2), RuntimeError, "Found an invalid max index: -1"),
    (lambda: F.max_unpool1d(ONE[..., :2], cg.tensor([[0, 2]]), 2), RuntimeError, "Expected shape of indices to be same as that"),
    (lambda: F.max_unpool1d(ONE[..., :2], cg.tensor([[[0, 2]]]).int(), 2), RuntimeError, "elements in indices should be type int64 but "),
    (lambda: F.max_unpool1d(ONE[..., :2], cg.tensor([[[0, 2]]]), 2, output_size=(9,)), ValueError, 'invalid output_size "'),
])
def test_arguments_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()
