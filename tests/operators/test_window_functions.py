"""Window functions against their definitions, one point after the other."""

import math

import numpy as np
import pytest

import cygrad as cg
from cygrad.operators._written import catalogue
from samples import array_of

WINDOWS = cg.signal.windows


def cosines(*coefficients):
    return lambda n, span: sum((-1) ** k * a * math.cos(2 * math.pi * k * n / span) for k, a in enumerate(coefficients))


def kaiser(beta):
    return lambda n, span: float(np.i0(beta * math.sqrt(max(0, 1 - (2 * n / span - 1) ** 2))) / np.i0(beta))


DEFINITIONS = {
    "bartlett": ({}, lambda n, span: 1 - abs(2 * n / span - 1)),
    "blackman": ({}, cosines(0.42, 0.5, 0.08)),
    "hann": ({}, cosines(0.5, 0.5)),
    "hamming": ({}, cosines(0.54, 0.46)),
    "nuttall": ({}, cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    "general_hamming": ({"alpha": 0.7}, cosines(0.7, 0.3)),
    "general_cosine": ({"a": [0.5, 0.3, 0.2]}, cosines(0.5, 0.3, 0.2)),
    "cosine": ({}, lambda n, span: math.sin(math.pi * (n + 0.5) / (span + 1))),
    "gaussian": ({"std": 1.5}, lambda n, span: math.exp(-(((n - span / 2) / 1.5) ** 2) / 2)),
    "kaiser": ({"beta": 5.0}, kaiser(5.0)),
    "exponential": ({"tau": 2.0}, lambda n, span: math.exp(-abs(n - span / 2) / 2)),
}


def test_every_window_has_a_definition():
    assert {entry.name for entry in catalogue.entries() if entry.namespace() == "signal.windows"} == {
        f"signal_windows_{name}" for name in DEFINITIONS}


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_windows_are_their_definitions(name, symmetric):
    options, value = DEFINITIONS[name]
    for count in (2, 3, 7, 8):
        expected = [value(n, count - 1 if symmetric else count) for n in range(count)]
        window = getattr(WINDOWS, name)(count, sym=symmetric, dtype=cg.float64, **options)
        assert np.allclose(array_of(window), expected, rtol=1e-14, atol=1e-15)
        assert getattr(WINDOWS, name)(count, sym=symmetric, **options).dtype == cg.float32
        older = getattr(cg, f"{name}_window", None)
        if older is not None:
            of_old = older(count, not symmetric, dtype=cg.float64, **options)
            assert np.allclose(array_of(of_old), expected, rtol=1e-14, atol=1e-15)
    for count, elements in ((0, []), (1, [1.0])):
        assert getattr(WINDOWS, name)(count, sym=symmetric, **options).tolist() == elements


def test_a_window_may_be_a_leaf_and_have_16_bits():
    assert WINDOWS.hann(4, requires_grad=True).requires_grad
    assert cg.hann_window(4, dtype=cg.float16).tolist() == [0, 0.5, 1, 0.5]


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: WINDOWS.hann(-1), ValueError, "general_cosine requires non-negative window length, got M=-1"),
    (lambda: WINDOWS.nuttall(-1), ValueError, "general_cosine requires non-negative window length, got M=-1"),
    (lambda: WINDOWS.general_hamming(4, dtype=cg.float16), ValueError, "general_cosine expects float32 or float64 dtypes"),
    (lambda: WINDOWS.bartlett(-1), ValueError, "bartlett requires non-negative window length, got M=-1"),
    (lambda: WINDOWS.hann(2.5), TypeError, "M"),
    (lambda: WINDOWS.hann(4, dtype=cg.int64), ValueError, "general_cosine expects float32 or float64 dtypes, got: cygrad.int64"),
    (lambda: WINDOWS.kaiser(4, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
    (lambda: WINDOWS.gaussian(4, std=0), ValueError, "Standard deviation must be positive, got: 0 instead."),
    (lambda: WINDOWS.exponential(4, tau=0), ValueError, "Tau must be positive, got: 0 instead."),
    (lambda: WINDOWS.exponential(4, center=1.0), ValueError, "Center must be None for symmetric windows"),
    (lambda: WINDOWS.general_cosine(4, a=[]), ValueError, "Coefficients cannot be empty"),
    (lambda: WINDOWS.general_cosine(4, a=0.5), TypeError, "Coefficients must be a list/tuple, but argument 'a' is float"),
    (lambda: cg.hann_window(-1), RuntimeError, "hann_window requires non-negative window_length, got window_length=-1"),
    (lambda: cg.hann_window(4, dtype=cg.int64), RuntimeError, "hann_window expects floating point dtypes, got: cygrad.int64"),
    (lambda: cg.hann_window(4, device="cuda"), AssertionError, "CPU only"),
])
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
