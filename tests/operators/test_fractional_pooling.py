"""Fractional pooling: windows by the definition, drawn numbers, equal elements and NaN, errors."""

import itertools

import numpy as np
import pytest

import cygrad as cg

F = cg.nn.functional


def starts(fraction, size, window, count):
    """Return the beginnings of windows by the definition."""
    if count == 1:
        return [size - window]
    step = (size - window) / (count - 1)
    return [int((i + fraction) * step) - int(fraction * step) for i in range(count - 1)] + [size - window]


def by_hand(x, windows, counts, numbers):
    """Return largest elements and their places, window by window; for two dims the numbers belong to the last dim first."""
    dims, sizes = len(windows), x.shape[-len(windows):]
    values, places = np.zeros((*x.shape[:-dims], *counts)), np.zeros((*x.shape[:-dims], *counts), int)
    for plane in np.ndindex(x.shape[:-dims]):
        order = numbers[plane][::-1] if dims == 2 else numbers[plane]
        begins = [starts(*extent) for extent in zip(order, sizes, windows, counts, strict=True)]
        for number in np.ndindex(*counts):
            corner = [begin[k] for begin, k in zip(begins, number, strict=True)]
            where = [tuple(c + k for c, k in zip(corner, step, strict=True)) for step in itertools.product(*map(range, windows))]
            best = max(where, key=lambda place: x[plane][place])
            values[plane + number], places[plane + number] = x[plane][best], np.ravel_multi_index(best, sizes)
    return values, places


@pytest.mark.cases("batched", [True, False])
@pytest.mark.cases("sizes, windows, counts", [
    ((5, 7), (2, 3), (3, 4)), ((6, 6), (1, 6), (6, 1)), ((9, 4), (3, 2), (2, 2)), ((4, 5), (2, 2), (0, 2)),
    ((5, 6, 7), (2, 3, 1), (3, 2, 4)), ((4, 4, 4), (4, 1, 2), (1, 4, 2)),
])
def test_windows_by_the_definition(sizes, windows, counts, batched):
    rng = np.random.default_rng(7)
    shape = (2, 3, *sizes) if batched else (3, *sizes)
    x, numbers = rng.standard_normal(shape), rng.random((shape[0] if batched else 1, 3, len(sizes)))
    pool = getattr(F, f"fractional_max_pool{len(sizes)}d")
    result, indices = pool(cg.tensor(x), windows, counts, return_indices=True, _random_samples=cg.tensor(numbers))
    expected, places = by_hand(x if batched else x[None], windows, counts, numbers)
    assert result.tolist() == expected.reshape(result.shape).tolist() and indices.tolist() == places.reshape(result.shape).tolist()
    assert pool(cg.tensor(x), windows, counts, _random_samples=cg.tensor(numbers)).tolist() == result.tolist()


def test_numbers_are_drawn_from_the_default_generator():
    x = cg.arange(121.0).reshape(1, 11, 11)
    calls = []
    for seed in (1, 1, 2, 3):
        cg.manual_seed(seed)
        calls.append([F.fractional_max_pool2d(x, 2, 5).tolist() for _ in range(4)])
    assert calls[0] == calls[1] and calls[0] != calls[2] and len({str(call) for call in calls[0]}) > 1
    planes = F.fractional_max_pool3d(cg.arange(512.0).reshape(1, 1, 8, 8, 8).expand(5, 4, 8, 8, 8), 3, output_ratio=0.5)
    assert planes.shape == (5, 4, 4, 4, 4) and len({str(plane) for plane in planes.flatten(0, 1).tolist()}) > 10


def test_of_equal_elements_the_first_and_of_nan_the_last():
    x = cg.tensor([[[1.0, 1.0, cg.nan, 0.0], [1.0, 0.0, cg.nan, 2.0]]])
    result, indices = F.fractional_max_pool2d(x, 2, (1, 2), return_indices=True, _random_samples=cg.zeros(1, 1, 2))
    assert indices.tolist() == [[[0, 6]]] and result[0, 0, 0] == 1 and result[0, 0, 1].isnan()


def test_the_gradient_goes_to_the_largest_elements():
    x = cg.randn(2, 3, 6, 6, dtype=cg.float64, requires_grad=True)
    result, indices = F.fractional_max_pool2d(x, 2, 3, return_indices=True)
    result.sum().backward()
    assert cg.equal(x.grad.flatten(-2), cg.zeros(2, 3, 36, dtype=cg.float64).scatter_add(
        -1, indices.flatten(-2), cg.ones(2, 3, 9, dtype=cg.float64)))


def pool2d(*arguments, x=(1, 2, 5, 6), dtype=cg.float32, samples=None, **options):
    """Call the pooling of ones; `samples` is the shape of the numbers, or the numbers."""
    numbers = cg.zeros(samples) if isinstance(samples, tuple) else samples
    return F.fractional_max_pool2d(cg.ones(x, dtype=dtype), *arguments, **options, _random_samples=numbers)


def pool3d(*arguments):
    return F.fractional_max_pool3d(cg.ones(1, 1, 2, 5, 6), *arguments)


@pytest.mark.cases("call, error, message", [
    (lambda: pool2d(2), ValueError, "fractional_max_pool2d requires specifying either an output_size or an output_ratio"),
    (lambda: pool2d(2, output_ratio=(0.5,) * 3), ValueError, "fractional_max_pool2d requires output_ratio to either be"),
    (lambda: pool2d(2, output_ratio=cg.nan), ValueError, "fractional_max_pool2d requires output_ratio of finite"),
    (lambda: pool2d(2, output_ratio="a"), ValueError, "fractional_max_pool2d requires output_ratio"),
    (lambda: pool2d(6, 2), RuntimeError, r"fractional_max_pool2d\(\): pool height 6 too large relative to input height 5"),
    (lambda: pool2d(2, (2, 9)), RuntimeError, r"fractional_max_pool2d\(\): pool width 2 too large"),
    (lambda: pool2d(0, 2), RuntimeError, r"fractional_max_pool2d\(\): kernel_size must be greater than zero"),
    (lambda: pool2d(2, -1), RuntimeError, "Trying to create tensor with negative dimension -1"),
    (lambda: pool2d(2, (2, 2, 2)), RuntimeError, "fractional_max_pool2d: output_size must either be a single Int or tuple"),
    (lambda: pool2d((2,) * 3, 2), RuntimeError, "fractional_max_pool2d: kernel_size must either be a single Int"),
    (lambda: pool2d(2, 2, x=(5, 6)), RuntimeError, r"fractional_max_pool2d\(\): Expected 3D or 4D tensor, but got: \[5, 6\]"),
    (lambda: pool2d(2, 2, x=(1, 0, 5, 6)), RuntimeError, r"fractional_max_pool2d\(\): Expected input to have non-zero size"),
    (lambda: pool2d(2, 2, dtype=cg.int32), NotImplementedError, '"fractional_max_pool2d_out_frame" not implemented for \'Int\''),
    (lambda: pool2d(2, 2, dtype=cg.float64, samples=(1, 2, 2)), RuntimeError, "Expect _random_samples to have the same dtype"),
    (lambda: pool2d(2, 2, samples=(2, 2)), RuntimeError, "Expect _random_samples to have 3 dimensions, got 2"),
    (lambda: pool2d(2, 2, samples=(1, 1, 2)), RuntimeError, r"Expect _random_samples.size\(1\) equals to input"),
    (lambda: pool2d(2, 2, samples=(0, 2, 2)), RuntimeError, r"Expect _random_samples.size\(0\) no less then input"),
    (lambda: pool2d(2, 2, samples=(1, 2, 1)), RuntimeError, r"Expect _random_samples.size\(2\) equals to 2; got 1"),
    (lambda: pool2d(2, 2, samples=cg.full((1, 2, 2), cg.nan)), RuntimeError, "Expect _random_samples from 0 to 1, got .* not finite"),
    (lambda: pool2d(1, 7, x=(1, 2, 7, 7), samples=cg.full((1, 2, 2), 1.2e8)), RuntimeError, "Expect _random_samples .* got others"),
    (lambda: pool3d(2, (2, 2)), RuntimeError, "fractional_max_pool3d: output_size must either be a single Int or tuple of three"),
    (lambda: pool3d((1, 1, 9), 2), RuntimeError, r"fractional_max_pool3d_out\(\): pool width 9 too large relative to input width 6"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call()
