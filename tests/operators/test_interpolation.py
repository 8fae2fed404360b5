"""Interpolation: functions that each kernel reproduces, adjoints, bytes, options; and arguments that do not fit."""

import math

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional
MODES = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "nearest": 2, "nearest-exact": 3, "area": 2}
SMOOTH = ("bilinear", "bicubic", "lanczos")


def image(*sizes, dtype=cg.float64):
    return cg.randn(2, 3, *sizes, rng=0, dtype=dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.cases("size", [1, 2, 3, 5, 8])
def test_constants_stay_constant(mode, size):
    ones = cg.ones(1, 1, *(3, 4, 2)[:MODES[mode]], dtype=cg.float64)
    np.testing.assert_allclose(array_of(F.interpolate(ones, size, mode=mode)), 1, rtol=1e-14)
    if mode in SMOOTH:
        np.testing.assert_allclose(array_of(F.interpolate(ones, size, mode=mode, antialias=True)), 1, rtol=1e-14)


def places(n, m, align_corners):
    return np.arange(m) * (n - 1) / (m - 1) if align_corners else (np.arange(m) + 0.5) * n / m - 0.5


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.cases("n, m", [(5, 9), (9, 5), (4, 8), (7, 3)])
def test_lines_stay_lines_and_parabolas_parabolas(align_corners, n, m):
    """Inside: at the ends elements are repeated. Cubic convolution of an a other than -0.5 reproduces lines only."""
    where = places(n, m, align_corners)
    inner = (where >= 2) & (where <= n - 3)
    line = cg.arange(n, dtype=cg.float64).reshape(1, 1, n)
    linear = array_of(F.interpolate(line, m, mode="linear", align_corners=align_corners)).ravel()
    np.testing.assert_allclose(linear, np.clip(where, 0, n - 1), atol=1e-13)
    cubic = array_of(F.interpolate(line[..., None].expand(1, 1, n, 2), (m, 2), mode="bicubic", align_corners=align_corners))[0, 0, :, 0]
    assert np.abs(cubic - where)[inner].max(initial=0) <= 0.1
    on_elements = inner & (where == np.round(where))
    np.testing.assert_allclose(cubic[on_elements], where[on_elements], atol=1e-13)


def test_smooth_kernels_reproduce_lines_inside():
    line = cg.arange(32, dtype=cg.float64).reshape(1, 1, 32, 1).expand(1, 1, 32, 2)
    where = (np.arange(8) + 0.5) * 4 - 0.5
    for mode in SMOOTH:
        result = array_of(F.interpolate(line, (8, 2), mode=mode, antialias=True))[0, 0, :, 0]
        np.testing.assert_allclose(result[3:-3], where[3:-3], atol=1e-12, err_msg=mode)


def test_nearest_elements():
    x = cg.arange(5.0).reshape(1, 1, 5)
    for m in range(1, 14):
        exact = np.floor((np.arange(m) + 0.5) * 5 / m)
        assert F.interpolate(x, m, mode="nearest-exact").flatten().tolist() == exact.tolist()
        assert F.interpolate(x, m).flatten().tolist() == [i * 5 // m for i in range(m)]


def test_areas_are_adaptive_means():
    x = image(5, 7)
    assert F.interpolate(x, (2, 3), mode="area").equal(F.adaptive_avg_pool2d(x, (2, 3)))


def test_factors():
    """A size is rounded down; places follow from the factor, or with recompute_scale_factor from sizes."""
    x = image(5)
    by_factor = F.interpolate(x, scale_factor=1.5, mode="linear")
    assert by_factor.shape[-1] == 7
    assert not by_factor.equal(F.interpolate(x, 7, mode="linear"))
    assert F.interpolate(x, scale_factor=1.5, mode="linear", recompute_scale_factor=True).equal(F.interpolate(x, 7, mode="linear"))
    where = np.clip((np.arange(7) + 0.5) / 1.5 - 0.5, 0, 4)
    np.testing.assert_allclose(array_of(by_factor)[0, 0], np.interp(where, np.arange(5), array_of(x)[0, 0]), atol=1e-14)
    assert F.interpolate(x, scale_factor=np.float32(2)).equal(F.interpolate(x, 10))


@pytest.mark.parametrize("mode", MODES)
def test_the_same_size_is_a_copy(mode):
    x = image(*(3, 4, 2)[:MODES[mode]])
    result = F.interpolate(x, tuple(x.shape[2:]), mode=mode)
    assert result.equal(x) and result.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("mode", [*MODES, "lanczos"])
@pytest.mark.cases("size", [2, 3, 7])
def test_the_gradient_is_the_adjoint(mode, size):
    options = {"antialias": True} if mode == "lanczos" else {}
    x = image(*(5, 4, 3)[:MODES.get(mode, 2)]).requires_grad_()
    result = F.interpolate(x, size, mode=mode, **options)
    y = cg.randn(*result.shape, rng=1, dtype=cg.float64)
    gradient, = cg.autograd.grad(result, x, y)
    assert (gradient * x).sum().item() == pytest.approx((result * y).sum().item())


def test_a_number_that_is_not_finite_stays_near_its_place():
    x = cg.ones(1, 1, 8, dtype=cg.float64)
    x[0, 0, 4] = math.nan
    assert F.interpolate(x, 16, mode="linear").isnan().sum() <= 4
    assert F.interpolate(x, 4, mode="area").isnan().sum() == 1


def test_bytes():
    x = cg.tensor(np.random.default_rng(0).integers(0, 256, (1, 2, 5, 6)).astype(np.uint8))
    assert F.interpolate(x, scale_factor=2).equal(F.interpolate(x.float(), scale_factor=2).to(cg.uint8))
    for mode in ("bilinear", "bicubic"):
        result, exact = F.interpolate(x, (7, 9), mode=mode), F.interpolate(x.double(), (7, 9), mode=mode)
        assert result.dtype == cg.uint8
        assert (result.double() - exact.clamp(0, 255)).abs().max() <= 0.5001


def test_narrow_floats_are_rounded_once():
    for dtype in (cg.float16, cg.bfloat16):
        x = image(5, 4, dtype=cg.float32).to(dtype)
        for mode in ("bilinear", "bicubic", "nearest", "area"):
            assert F.interpolate(x, (3, 7), mode=mode).equal(F.interpolate(x.float(), (3, 7), mode=mode).to(dtype))


def test_older_names():
    x = image(3, 4)
    assert F.upsample(x, scale_factor=2, mode="bilinear").equal(F.interpolate(x, scale_factor=2, mode="bilinear"))
    assert F.upsample_bilinear(x, 5).equal(F.interpolate(x, 5, mode="bilinear", align_corners=True))
    assert F.upsample_nearest(x, 5).equal(F.interpolate(x, 5))


LINE, SQUARE = cg.ones(1, 1, 4), cg.ones(1, 1, 4, 4)


@pytest.mark.parametrize(("x", "options", "error", "words"), [
    (LINE, {}, ValueError, "either size or scale_factor should be defined"),
    (LINE, {"size": 2, "scale_factor": 2.0}, ValueError, "only one of size or scale_factor should be defined"),
    (LINE, {"size": (2, 2)}, ValueError, "Input and output must have the same number of spatial dimensions"),
    (LINE, {"scale_factor": (2, 2)}, ValueError, "Input and scale_factor must have the same number of spatial dimensions"),
    (LINE, {"size": 2, "mode": "bilinear"}, NotImplementedError, "Got 3D input, but bilinear mode needs 4D input"),
    (SQUARE, {"size": 2, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
    (LINE, {"size": 2, "mode": "bicubic"}, NotImplementedError, r"Input Error: Only 3D, 4D and 5D input Tensors supported \(got 3D\)"),
    (LINE, {"size": 2, "mode": "x"}, NotImplementedError, r"Input Error: .*\(got x\)"),
    (LINE, {"size": 2, "mode": None}, NotImplementedError, r"Input Error: .*\(got None\)"),
    (LINE, {"size": 2, "align_corners": True}, ValueError, "align_corners option can only be set with the interpolating modes"),
    (cg.ones(1, 4), {"size": 2}, NotImplementedError, r"Input Error: Only 3D, 4D and 5D input Tensors supported \(got 2D\)"),
    (LINE, {"size": 0}, RuntimeError, r"Input and output sizes should be greater than 0, but got input \(W: 4\) and output \(W: 0\)"),
    (LINE, {"scale_factor": 0.1}, RuntimeError, r"Input and output sizes should be greater than 0, but got input \(W: 4\) and output \("),
    (LINE, {"scale_factor": -1.0}, RuntimeError, "Input and output sizes should be greater than 0"),
    (LINE, {"scale_factor": math.nan}, ValueError, "argument 'scale_factor' must be finite"),
    (LINE[:, :0], {"size": 2}, RuntimeError, "Non-empty 3D data tensor expected but got a tensor with sizes"),
    (LINE, {"size": 2, "recompute_scale_factor": True}, ValueError, "recompute_scale_factor is not meaningful with an explicit size"),
    (LINE, {"size": 2.5}, TypeError, "argument 'size' must be int"),
    (LINE, {"scale_factor": "a"}, TypeError, "argument 'scale_factor' must be float"),
    (LINE, {"size": 2, "antialias": True}, ValueError, "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes"),
    (SQUARE, {"size": 2, "mode": "lanczos"}, ValueError, "Lanczos mode requires antialias=True"),
    (LINE.long(), {"size": 2}, NotImplementedError, "\"compute_indices_weights_nearest\" not implemented for 'Long'"),
    (LINE * 1j, {"size": 2, "mode": "linear"}, NotImplementedError, "\"compute_indices_weights_linear\" not implemented for 'ComplexFl"),
])
def test_arguments_that_do_not_fit(x, options, error, words):
    with pytest.raises(error, match=words):
        F.interpolate(x, **options)
