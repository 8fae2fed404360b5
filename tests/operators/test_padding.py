"""Padding: counts below 0, every dtype, and arguments that do not fit. Values of all modes are compared with NumPy's by the samples."""

import math

import numpy as np
import pytest

import cygrad as cg
from samples import array_of

F = cg.nn.functional


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(-1, 2), (2, -1), (-2, -1), (0, 1), (-1, 0)])
def test_counts_below_zero_cut_first_where_elements_are_not_mirrored(mode, pad):
    """Of a mirror and of copies of the ends elements that are cut are seen, from the other end they are not."""
    x = np.arange(5.0)
    before, behind = (max(count, 0) for count in pad)
    cut = (max(-pad[0], 0), 5 - max(-pad[1], 0))
    if mode == "circular":
        expected = np.pad(x[slice(*cut)], (before, behind), "wrap")
    else:
        whole = np.pad(x, (before, behind), "reflect" if mode == "reflect" else "edge")
        expected = whole[cut[0]:len(whole) - (5 - cut[1])]
    np.testing.assert_array_equal(array_of(F.pad(cg.tensor(x)[None], pad, mode))[0], expected)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_dtypes(dtype):
    x = cg.ones(2, dtype=getattr(cg, dtype))
    for value, number in ((1, 1), (-0.0, 0.0), (2, True if dtype == "bool" else 2)):
        result = F.pad(x, (1, 2), value=value)
        assert result.dtype == x.dtype
        assert result.tolist() == [number, 1, 1, number, number]
    if x.is_floating_point():
        assert math.copysign(1, F.pad(x, (1, 0), value=-0.0)[0].item()) == -1
        assert math.isnan(F.pad(x, (1, 0), value=math.nan)[0].item())
    if dtype != "bool":
        assert F.pad(x.reshape(1, 2), (1, 0), "reflect").dtype == x.dtype


def test_the_value_is_a_number():
    x = cg.ones(2)
    assert F.pad(x, (1, 0), value=cg.tensor(3)).tolist() == [3, 1, 1]
    for value in (cg.tensor(3.0, requires_grad=True), cg.ones(1)):
        with pytest.raises(TypeError, match="argument 'value' must be Number, not Tensor"):
            F.pad(x, (1, 0), value=value)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        F.pad(x.to(cg.uint8), (1, 0), value=300)
    with pytest.raises(TypeError, match="argument 'value' must be Number, not str"):
        F.pad(x, (1, 0), value="a")


def test_out_and_empty_tensors():
    out = cg.empty(3)
    assert cg.constant_pad_nd(cg.tensor([1.0]), (1, 1), 5, out=out) is out
    assert out.tolist() == [5, 1, 5]
    assert F.pad(cg.zeros(2, 0), (1, 2), value=3).equal(cg.full((2, 3), 3.0))
    assert F.pad(cg.ones(2, 3), (-4, 5)).equal(cg.zeros(2, 4))
    x = cg.ones(2)
    assert F.pad(x, ()) is not x and F.pad(x[None], (0, 0), "reflect").data_ptr() != x.data_ptr()


@pytest.mark.parametrize(("arguments", "error", "words"), [
    (((2, 3), (1,)), RuntimeError, "Padding length must be divisible by 2"),
    (((2, 3), (1,) * 6), RuntimeError, "Padding length should be less than or equal to two times the input dimension but got padding len"),
    (((2, 3), (-2, -2)), RuntimeError, r"narrow\(\): length must be non-negative"),
    (((2, 3), (1, 1), "x"), NotImplementedError, "Unrecognised padding mode x"),
    (((2, 3), (1, 1), "reflect", 1.0), RuntimeError, 'Padding mode "reflect" doesn\'t take in value argument'),
    (((2, 3), (3, 1), "reflect"), RuntimeError, "Argument #4: Padding size should be less than the corresponding input dimension, but "),
    (((3,), (1, 1), "reflect"), NotImplementedError, "Padding size 2 is not supported for 1D input tensor."),
    (((2, 3, 4), (1, 1, 1), "replicate"), RuntimeError, "Padding length must be divisible by 2"),
    (((2, 3), (4, 1), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
    (((2, 3), (-2, -2), "circular"), RuntimeError, "Negative padding value is resulting in an empty dimension"),
    (((2, 3), (-2, -2), "replicate"), RuntimeError, r"input \(W: 3\) is too small. Calculated output W: -1"),
    (((2, 0), (1, 1), "replicate"), RuntimeError, r"Expected 2D or 3D \(batch mode\) tensor with possibly 0 batch size"),
    (((2, 3), (1.5, 1)), TypeError, "argument 'pad' .*must be tuple of ints"),
    (((2, 3), 1), TypeError, "argument 'pad' .*must be tuple of ints, not int"),
    (((2, 3), (2**62, 2**62)), TypeError, "argument 'size'"),
])
def test_arguments_that_do_not_fit(arguments, error, words):
    shape, *rest = arguments
    with pytest.raises(error, match=words):
        F.pad(cg.ones(*shape), *rest)
    with pytest.raises(NotImplementedError, match="\"reflection_pad1d\" not implemented for 'Bool'"):
        F.pad(cg.ones(2, 3).bool(), (1, 1), "reflect")
