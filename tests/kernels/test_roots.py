"""Square roots of doubles have the bits of the instruction, which are right to the last one: also where they are computed by estimates."""

import math

import numpy as np
import pytest

import cygrad as cg


def roots_of(residual, bits):
    """Return the n below 2^bits, one of each parity, by which n n + n - residual is a multiple of 2^bits; the residual is even."""
    for n in (0, 1):
        for digit in range(1, bits):
            n += ((n * n + n - residual) >> digit & 1) << digit      # 2 n + 1 is odd: each bit has one solution
        yield n


def near_the_middle_of_two_doubles(residuals):
    """Yield doubles x = (n + 1/2)^2 - 1/4 - residual, n of 53 bits: their roots lie within residual / 2^53 units of n + 1/2."""
    for residual in residuals:
        for bits, low, high in ((52, 1 << 52, math.isqrt(1 << 105)), (53, math.isqrt(1 << 105) + 1, 1 << 53)):
            for n in (root + (1 << 52) * (bits == 52) for root in roots_of(residual, bits)):
                if low <= n < high:
                    yield n * n + n - residual


def computed(x):
    with cg.no_grad():
        return cg.tensor(x).sqrt().numpy()


@pytest.mark.parametrize("power", [-1000, -960, -512, -106, 0, 500, 912])
def test_roots_near_the_middle_of_two_doubles_are_rounded_correctly(power):
    numbers = [*near_the_middle_of_two_doubles(range(-1024, 1025, 2))]
    assert len(numbers) > 1000 and all(int(float(number)) == number for number in numbers)
    scaled = np.array(numbers, np.float64) * 2.0 ** power
    np.testing.assert_array_equal(computed(scaled), np.sqrt(scaled), strict=True)
    if power == 0:
        nearest = [root + (number - root * root > root) for number in numbers for root in [math.isqrt(number)]]
        np.testing.assert_array_equal(computed(scaled), np.array(nearest, np.float64), strict=True)


def test_roots_of_all_exponents_and_of_special_numbers():
    stream = np.random.default_rng(4)
    bits = stream.integers(0, 1 << 63, 400_003, dtype=np.uint64)
    edges = np.ldexp(1.0, [-1074, -1022, -961, -960, -959, 1018, 1019, 1020, 1023])
    special = [0.0, -0.0, -1.0, math.inf, -math.inf, math.nan, *edges, *np.nextafter(edges, 0), *np.nextafter(edges, math.inf)]
    squares = stream.integers(1, 1 << 26, 5000).astype(np.float64) ** 2
    alone = np.full((len(special), 9), 2.0)
    alone[np.arange(len(special)), np.arange(len(special)) % 8] = special       # one in a vector of ordinary numbers
    x = np.concatenate([special, bits.view(np.float64), squares, squares + 1, alone.reshape(-1)])
    with np.errstate(invalid="ignore"):
        expected = np.sqrt(x)
    np.testing.assert_array_equal(computed(x), expected)
    np.testing.assert_array_equal(np.signbit(computed(x))[1], True)
    np.testing.assert_array_equal(computed(x[5:]), expected[5:])        # other places in vectors


def test_roots_that_are_written_past_the_caches():
    x = np.random.default_rng(5).uniform(0, 4, 3_000_001)
    np.testing.assert_array_equal(computed(x), np.sqrt(x))
