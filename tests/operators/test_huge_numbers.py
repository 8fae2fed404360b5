"""Sizes, strides, offsets and counts of any size: a right shape or an error in words, at once, and nothing outside of memory."""

import math
import warnings

import pytest

import calls
import cygrad as cg
from calls import ERRORS, WORDLESS

NUMBERS = [
    *(sign * (2**bits + more) for bits in (31, 32, 60, 61, 62) for sign in (1, -1) for more in (0,)),
    2**63 - 1, -(2**63), 2**63, 2**64, -(2**64), 10**5000,
]

pytestmark = pytest.mark.usefixtures("little_memory")


def check(result, source):
    for tensor in calls.tensors_in(result):
        assert calls.lies_inside(tensor), source
        assert math.prod(tensor.shape) == tensor.numel(), source


def attempted(function, *arguments, **keywords):
    """Return the result of a call, or None if it raises an error of the usual types with a message."""
    try:
        return function(*arguments, **keywords)
    except ERRORS as error:
        assert len(str(error)) > 10, repr(error)
        assert not isinstance(error, MemoryError) or isinstance(error, cg.OutOfMemoryError), repr(error)
        assert not any(text in str(error) for text in WORDLESS), error
        return None


def test_every_integer_that_a_sample_gives():
    """Large strides and offsets, counts and dims of all functions that the samples of the rules call."""
    count = 0
    for owner, name, arguments, keywords in calls.recorded_calls():
        call = (arguments, keywords)
        for path, value in calls.places(call):
            if type(value) is not int or len(path) < 2:
                continue
            for number in NUMBERS:
                positional, named = calls.replaced(calls.copied(call), path, number)
                source = (name, path, number if abs(number) < 2**70 else "10**5000")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        result = attempted(getattr(owner, name), *positional, **named)
                    except AssertionError as error:
                        raise AssertionError(source) from error
                check((result, positional), source)
                count += 1
    assert count > 2000


# Calls with one number, and others where two or three multiply.
SIZES = {
    "zeros": lambda n: cg.zeros(n),
    "empty": lambda n: cg.empty(n, n),
    "ones": lambda n: cg.ones((0, n, n)),
    "full": lambda n: cg.full((n,), 1.0),
    "eye": lambda n: cg.eye(n),
    "eye m": lambda n: cg.eye(1, n),
    "arange": lambda n: cg.arange(n),
    "arange far": lambda n: cg.arange(n, n + 3),
    "arange steps": lambda n: cg.arange(0, n, n),
    "linspace": lambda n: cg.linspace(0, 1, n),
    "rand": lambda n: cg.rand(n),
    "randperm": lambda n: cg.randperm(n),
    "randint": lambda n: cg.randint(n, (2,)),
    "new_zeros": lambda n: cg.ones(1).new_zeros(n, n),
    "new_full": lambda n: cg.ones(1).new_full((n,), 1),
    "reshape": lambda n: cg.zeros(0).reshape(n, n),
    "reshape four": lambda n: cg.zeros(0).reshape(2**16, 2**16, 2**16, 2**16),
    "reshape nothing": lambda n: cg.zeros(0).reshape(0, n, n),
    "reshape inferred": lambda n: cg.zeros(4).reshape(-1, n),
    "view": lambda n: cg.zeros(0).view(n, n, n),
    "unflatten": lambda n: cg.zeros(4).unflatten(0, (n, n)),
    "expand": lambda n: cg.zeros(1).expand(n),
    "expand twice": lambda n: cg.zeros(1, dtype=cg.uint8).expand(n, n),
    "expand nothing": lambda n: cg.zeros(1).expand(n, 0, n),
    "as_strided sizes": lambda n: cg.zeros(4).as_strided((n, n), (0, 0)),
    "as_strided strides": lambda n: cg.zeros(4).as_strided((2, 2), (n, n)),
    "as_strided offset": lambda n: cg.zeros(4).as_strided((2,), (1,), n),
    "as_strided nothing": lambda n: cg.zeros(4).as_strided((0, 2), (1, n), n),
    "as_strided one": lambda n: cg.zeros(4).as_strided((1,), (n,)),
    "as_strided all": lambda n: cg.zeros(4).as_strided((n,), (n,), n),
    "set_": lambda n: cg.zeros(4).set_(cg.zeros(4), n, (2,), (1,)),
    "set_ strides": lambda n: cg.zeros(4).set_(cg.zeros(4), 0, (2, 2), (n, 1)),
    "set_ size": lambda n: cg.zeros(4).set_(cg.zeros(4), 0, (n, n)),
    "resize_": lambda n: cg.zeros(4).resize_(n, n),
    "unfold": lambda n: cg.zeros(4).unfold(0, n, 1),
    "unfold step": lambda n: cg.zeros(4).unfold(0, 1, n),
    "windows": lambda n: cg.zeros(1).expand(n).unfold(0, n // 2, 1),
    "repeat": lambda n: cg.zeros(2).repeat(n, n),
    "repeat nothing": lambda n: cg.zeros(0).repeat(n, n),
    "tile": lambda n: cg.zeros(2).tile((n, n)),
    "repeat_interleave": lambda n: cg.zeros(2).repeat_interleave(n),
    "kron": lambda n: cg.kron(cg.zeros(1).expand(n), cg.zeros(1).expand(n)),
    "outer": lambda n: cg.outer(cg.zeros(1).expand(n), cg.zeros(1).expand(n)),
    "sum of huge": lambda n: cg.zeros(1).expand(n) + cg.zeros(1).expand(n),
    "broadcast": lambda n: cg.zeros(1, 1).expand(n, 1) * cg.zeros(1, 1).expand(1, n),
    "convert": lambda n: cg.zeros(1, dtype=cg.uint8).expand(n).double(),
    "cat": lambda n: cg.cat([cg.zeros(1).expand(n)] * 8),
    "stack": lambda n: cg.stack([cg.zeros(1).expand(n)] * 8),
    "matmul": lambda n: cg.zeros(1, 1).expand(n, 1) @ cg.zeros(1, 1).expand(1, n),
    "diag_embed": lambda n: cg.zeros(2).diag_embed(n),
    "diagonal": lambda n: cg.zeros(2, 2).diagonal(n),
    "tril": lambda n: cg.zeros(2, 2).tril(n),
    "triu": lambda n: cg.zeros(2, 2).triu_(n),
    "roll": lambda n: cg.zeros(2, 2).roll((n, n), (0, 1)),
    "narrow": lambda n: cg.zeros(4).narrow(0, 1, n),
    "narrow start": lambda n: cg.zeros(4).narrow(0, n, n),
    "select": lambda n: cg.zeros(4).select(0, n),
    "item": lambda n: cg.zeros(4)[n],
    "slice": lambda n: cg.zeros(4)[n:],
    "stop": lambda n: cg.zeros(4)[: n],
    "step": lambda n: cg.zeros(4)[:: n],
    "slices of nothing": lambda n: cg.zeros(0, 5)[:, 3:].resize_(2),
    "index": lambda n: cg.zeros(4)[[n, 0]],
    "split": lambda n: cg.zeros(4).split(n),
    "split of huge": lambda n: cg.zeros(1).expand(n).split(1),
    "sections": lambda n: cg.zeros(4).split([n, 4 - n]),
    "chunk": lambda n: cg.zeros(0).chunk(n),
    "chunk of huge": lambda n: cg.zeros(1).expand(n).chunk(n),
    "tensor_split": lambda n: cg.zeros(4).tensor_split(n),
    "unbind": lambda n: cg.zeros(1).expand(n).unbind(),
    "iterate": lambda n: list(cg.zeros(1).expand(n)),
    "tolist": lambda n: cg.zeros(1).expand(n).tolist(),
    "topk": lambda n: cg.zeros(4).topk(n),
    "kthvalue": lambda n: cg.zeros(4).kthvalue(n),
    "diff": lambda n: cg.zeros(4).diff(n),
    "dim": lambda n: cg.zeros(4).sum(n),
    "dims": lambda n: cg.zeros(4).sum((0, n)),
    "size": lambda n: cg.zeros(4).size(n),
    "round": lambda n: cg.zeros(4).round(decimals=n),
    "frombuffer": lambda n: cg.frombuffer(bytearray(16), dtype=cg.uint8, count=n, offset=n),
    "seed": lambda n: cg.Generator().manual_seed(n),
}


@pytest.mark.cases("call", SIZES)
def test_sizes_and_their_products(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in NUMBERS:
            source = (call, number if abs(number) < 2**70 else "10**5000")
            check(attempted(SIZES[call], number), source)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cg.zeros(4).as_strided((2,), (2**60,)), RuntimeError, r"strides \[1152921504606846976\].*are out of bounds for storage"),
        (lambda: cg.zeros(4).as_strided((2,), (2**62,)), RuntimeError, "Storage size calculation overflowed with sizes"),
        (lambda: cg.zeros(0).reshape(2**32, 2**32), RuntimeError, "Storage size calculation overflowed with sizes"),
        (lambda: cg.zeros(1).expand(2**40).unfold(0, 2**39, 1), RuntimeError, "Storage size calculation overflowed"),
        (lambda: cg.zeros(1).expand(2**50).tolist(), cg.OutOfMemoryError, "1125899906842624 Python numbers do not fit into memory"),
        (lambda: cg.zeros(1).expand(2**50).unbind(), cg.OutOfMemoryError, "1125899906842624 views at once"),
        (lambda: cg.zeros(4).sum(2**64), ValueError, r"Overflow when unpacking long long: argument 'dim' must lie between -2\*\*63"),
        (lambda: cg.zeros(2**64), TypeError, "argument 'size' failed to unpack the object at pos 0"),
        (lambda: cg.arange(10**30), ValueError, "Overflow when unpacking long long: argument .end."),
        (lambda: cg.arange(0, 1e30), RuntimeError, "invalid size, possible overflow"),
        (lambda: cg.manual_seed(math.inf), ValueError, "manual_seed expected a finite number"),
    ],
)
def test_the_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ----- Results that no memory holds -----
def images(*sizes):
    return cg.ones(1, 1, *sizes)


TOO_MANY = {
    "repeat_interleave": lambda n: cg.repeat_interleave(cg.ones(4), n),
    "repeat_interleave by a tensor": lambda n: cg.repeat_interleave(cg.ones(4), cg.tensor([n] * 4)),
    "repeat_interleave of places": lambda n: cg.repeat_interleave(cg.tensor([n] * 4)),
    "repeat_interleave of a few more": lambda n: cg.repeat_interleave(cg.tensor([n] * 4 + [3])),
    "repeat_interleave of all": lambda n: cg.repeat_interleave(cg.ones(4), cg.tensor(n), output_size=0),
    "combinations": lambda n: cg.combinations(cg.arange(3), n, True),
    "combinations of one": lambda n: cg.combinations(cg.arange(1), n, True),
    "cartesian_prod": lambda n: cg.cartesian_prod(*[cg.ones(1).expand(n)] * 2),
    "vander": lambda n: cg.vander(cg.ones(3), n),
    "linalg.vander": lambda n: cg.linalg.vander(cg.ones(3), N=n),
    "tril_indices": lambda n: cg.tril_indices(n, n),
    "triu_indices": lambda n: cg.triu_indices(n, n),
    "a row": lambda n: cg.tril_indices(1, n, n),
    "bincount": lambda n: cg.bincount(cg.tensor([n])),
    "bincount of weights": lambda n: cg.bincount(cg.tensor([n - 1]), cg.ones(1)),
    "minlength": lambda n: cg.bincount(cg.tensor([0]), minlength=n),
    "histc": lambda n: cg.histc(cg.ones(3), n),
    "histogram": lambda n: cg.histogram(cg.ones(3), n),
    "histogramdd": lambda n: cg.histogramdd(cg.ones(3, 2), n),
    "hann_window": lambda n: cg.hann_window(n),
    "kaiser_window": lambda n: cg.kaiser_window(n, periodic=False),
    "nuttall": lambda n: cg.signal.windows.nuttall(n),
    "exponential": lambda n: cg.signal.windows.exponential(n),
    "fftfreq": lambda n: cg.fft.fftfreq(n),
    "rfftfreq": lambda n: cg.fft.rfftfreq(n),
    "multinomial": lambda n: cg.multinomial(cg.ones(3), n, True),
    "affine_grid": lambda n: cg.nn.functional.affine_grid(cg.ones(1, 2, 3), (1, 1, n, n)),
    "interpolate": lambda n: cg.nn.functional.interpolate(images(4), n),
    "interpolate by a factor": lambda n: cg.nn.functional.interpolate(images(4), scale_factor=float(n)),
    "bilinear": lambda n: cg.nn.functional.interpolate(images(4, 4), (n, n), mode="bilinear"),
    "adaptive_avg_pool1d": lambda n: cg.nn.functional.adaptive_avg_pool1d(images(5), n),
    "adaptive_avg_pool2d": lambda n: cg.nn.functional.adaptive_avg_pool2d(images(5, 5), n),
    "adaptive_max_pool2d": lambda n: cg.nn.functional.adaptive_max_pool2d(images(5, 5), n),
    "unfold": lambda n: cg.nn.functional.unfold(images(5, 5), 3, 1, n, 2),
    "replicate": lambda n: cg.nn.functional.pad(images(5), (n // 2, n // 2), "replicate"),
}


@pytest.mark.cases("call", TOO_MANY)
@pytest.mark.cases("number", [2**36, 2**40, 2**61, 2**62, 2**63 - 1], ids=str)
def test_results_that_no_memory_holds(call, number):
    with pytest.raises(cg.OutOfMemoryError, match=r"Storage size calculation overflowed|cannot allocate memory"):
        TOO_MANY[call](number)


@pytest.mark.parametrize(("size", "count"), [(100000, 3), (2000, 3), (200, 150), (100000, 50000)])
def test_combinations_are_counted_before_they_are_made(size, count):
    with pytest.raises(cg.OutOfMemoryError):
        cg.combinations(cg.arange(size), count)


def test_few_of_huge_matrices_and_numbers():
    assert cg.tril_indices(10**6, 10**6, 2 - 10**6).tolist() == [[999998, 999999, 999999], [0, 0, 1]]
    assert cg.triu_indices(3, 10**9, 10**9 - 1).tolist() == [[0], [10**9 - 1]]
    assert cg.combinations(cg.arange(10), 2**40).shape == (0, 2**40)
    assert cg.combinations(cg.arange(100000), 100000).shape == (1, 100000)


# ----- Sums and products of sizes that are 2**63 or more -----
@pytest.mark.parametrize("segments", [{"lengths": [2**62, 2**62, 2**62, 2**62 + 4]}, {"offsets": [0, 2**63 - 1, -3]},
                                      {"offsets": [0, 2**62, -(2**62), 4]}], ids=str)
@pytest.mark.parametrize("unsafe", [False, True])
def test_lengths_whose_sum_wraps_around(segments, unsafe):
    with pytest.raises(RuntimeError, match="Expected all rows of lengths along axis to sum to|Expected offsets to begin with 0 and not"):
        cg.segment_reduce(cg.ones(4), "sum", **{name: cg.tensor(value) for name, value in segments.items()}, unsafe=unsafe)


WINDOWS = {
    "unfold": lambda n: cg.nn.functional.unfold(images(5, 5), 3, 1, n, n),
    "unfold dilated": lambda n: cg.nn.functional.unfold(images(5, 5), 3, n // 2, n, n),
    "columns added up": lambda n: cg.nn.functional.fold(cg.ones(1, 4, 9), 5, 2, 1, n, n),
    "conv1d": lambda n: cg.conv1d(images(5), images(3), None, n, n),
    "conv_transpose1d": lambda n: cg.conv_transpose1d(images(3), images(3), None, n, n),
}


@pytest.mark.cases("call", WINDOWS)
def test_windows_that_reach_far(call):
    expected = WINDOWS[call](2**40)
    assert cg.equal(WINDOWS[call](2**60), expected)
    with pytest.raises(RuntimeError, match=r"windows must lie between place -2\*\*63 and 2\*\*63 - 1"):
        WINDOWS[call](2**63 - 1)


def test_means_over_huge_windows():
    pooled = cg.nn.functional.avg_pool2d(images(5, 5), (2**32 + 1, 1), 1, (2**31, 0))
    assert cg.allclose(pooled, cg.tensor(5 / 2**32), rtol=1e-6, atol=0)
    assert cg.nn.functional.avg_pool1d(images(5), 2**63 - 1, 2**62, 2**62 - 1).max() < 1e-17


# ----- Text -----
@pytest.mark.parametrize("shape", [(2**50,), (2**25, 2**25), (2, 2**48, 3), (2**50, 0)])
def test_printing_reads_only_the_shown_elements(shape):
    text = repr(cg.tensor(1.5).expand(shape))
    assert text == str(cg.tensor(1.5).expand(shape)) == f"{cg.tensor(1.5).expand(shape)}"
    assert ("1.5000" in text) == (0 not in shape)
    assert len(text) < 2000


# ----- States of generators -----
@pytest.mark.cases("place", range(48))
def test_damaged_states_are_refused_or_taken(place):
    generator = cg.Generator()
    state = generator.get_state()
    for byte in (0, 1, 2, 127, 255):
        damaged = state.clone()
        damaged[place] = byte
        if attempted(generator.set_state, damaged) is None:
            assert cg.equal(cg.Generator().get_state(), state)
        cg.rand(3, generator=generator)


@pytest.mark.parametrize("junk", [None, 3, "state", cg.zeros(48), cg.zeros(47, dtype=cg.uint8), cg.zeros(0, dtype=cg.uint8), [0] * 48])
def test_junk_is_no_state(junk):
    with pytest.raises((TypeError, RuntimeError), match="RNG state"):
        cg.Generator().set_state(junk)
