"""Views of the parts of complex numbers, and of memory as another dtype."""

import numpy as np
import pytest

import cygrad as cg
from cygrad.autograd import gradcheck, gradgradcheck

Z = np.array([[1 + 2j, 3 - 1j, 2j], [0.5, -1j, 4 + 4j]])


def values(tensor):
    return tensor.detach().numpy()


def leaf(dtype=cg.complex128):
    return cg.tensor(Z, dtype=dtype, requires_grad=True)


# ----- Views of parts -----
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[1], lambda x: x[1, 2],
                                    lambda x: x[:1].expand(4, 3), lambda x: x[:0]])
def test_parts_are_views(dtype, layout):
    base = cg.tensor(Z, dtype=getattr(cg, dtype))
    x, array = layout(base), layout(base).numpy()
    pairs = x.view_as_real()
    np.testing.assert_array_equal(values(pairs), np.stack((array.real, array.imag), -1))
    assert x.real.dtype is pairs.dtype and pairs._base is x.real._base is base
    np.testing.assert_array_equal(values(x.real), array.real)
    np.testing.assert_array_equal(values(cg.imag(x)), array.imag)
    back = cg.view_as_complex(pairs)
    assert back.dtype is x.dtype and back.stride() == x.stride() and back.data_ptr() == x.data_ptr()
    version = base._version
    if 0 not in x.stride() and x.numel():
        x.imag.add_(1)
        assert base._version == x.real._version == version + 1
        np.testing.assert_array_equal(values(x), array)
        assert (values(x).imag == array.imag).all()


def test_real_parts_of_real_numbers():
    x = cg.ones(2)
    assert x.real is x and cg.real(x) is x
    x.real = 3.0
    assert x.tolist() == [3.0, 3.0]
    for call in lambda: x.imag, lambda: cg.imag(x), lambda: setattr(x, "imag", 1):
        with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
            call()


def test_parts_are_assigned():
    x = cg.tensor(Z)
    x.real, x.imag = cg.arange(3.0), 7
    np.testing.assert_array_equal(values(x), np.broadcast_to(np.arange(3.0) + 7j, (2, 3)))


@pytest.mark.parametrize("make, message", [
    (lambda: cg.ones(2).view_as_real(), "view_as_real is only supported for complex tensors"),
    (lambda: cg.ones(3, 2, dtype=cg.int32).view_as_complex(), "view_as_complex is only supported for half, float and double tensors"),
    (lambda: cg.tensor(1.0).view_as_complex(), "Input tensor must have one or more dimensions"),
    (lambda: cg.ones(3).view_as_complex(), "Tensor must have a last dimension of size 2"),
    (lambda: cg.ones(3, 4)[:, ::2].view_as_complex(), "Tensor must have a last dimension with stride 1"),
    (lambda: cg.ones(1).expand(2).view_as_complex(), "Tensor must have a last dimension with stride 1"),
    (lambda: cg.ones(3, 5)[:, 1:3].view_as_complex(), "Tensor must have a stride divisible by 2 for all but last dimension"),
    (lambda: cg.ones(5)[1:3].view_as_complex(), "Tensor must have a storage_offset divisible by 2"),
    (lambda: leaf().real.mul_(2), "a view of a leaf Variable that requires grad is being used in an in-place operation"),
    (lambda: cg.complex(cg.ones(2), cg.ones(2).double()), "Expected object of scalar type Float but got scalar type Double for second"),
    (lambda: cg.complex(cg.ones(2).int(), cg.ones(2).int()), "Expected both inputs to be Half, Float or Double tensors"),
    (lambda: cg.ones(3, 2, dtype=cg.float16).view_as_complex(), "complex32 is not supported"),
    (lambda: cg.complex(cg.ones(2).half(), cg.ones(2).half()), "complex32 is not supported"),
    (lambda: cg.complex(cg.ones(2).int(), cg.ones(2).float()), "inputs to be Half, Float or Double tensors but got Int and Float"),
    (lambda: cg.complex(cg.ones(2).bfloat16(), cg.ones(2).bfloat16()), "Double tensors but got BFloat16 and BFloat16"),
    (lambda: cg.polar(cg.ones(2).half(), cg.ones(2).bfloat16()), "Double tensors but got Half and BFloat16"),
    (lambda: cg.ones(*[1] * 64, dtype=cg.complex64).view_as_real(), "at most 64 dim"),
])
def test_refused(make, message):
    with pytest.raises(RuntimeError, match=message):
        make()


def _real_changed(z):
    z = z * 1
    z.real.mul_(3)
    return z


def _imag_assigned(z):
    z = z * 1
    z.imag[1] = z.real[0] * 2
    z.view_as_real()[0, 2].add_(z.imag[1, 0])
    return z


def _seen_through(z):
    z = z * 1
    parts, imaginary = z.view_as_real(), z.imag
    z.mul_(1j)
    z[0] *= 2 - 1j
    return parts.pow(3).sum(-1) + imaginary


def _complex_view_changed(z):
    pairs = z.view_as_real() * 1
    whole = pairs.view_as_complex()
    whole.mul_(2j)
    whole.t()[1].real.mul_(0.5)
    whole[1] = whole[0] * (1 + 1j)
    return pairs.pow(2) + pairs


def _part_of_part(z):
    z = z * 1
    z.t()[1:].view_as_real()[..., 0].mul_(4)
    z.view_as_real()[0, :, 1:].mul_(-2)
    return z


PROGRAMS = [_real_changed, _imag_assigned, _seen_through, _complex_view_changed, _part_of_part,
            lambda z: z.real * z.imag, lambda z: z.view_as_real().exp(), lambda z: z.imag.t()[1:] * 2j,
            lambda z: cg.complex(z.imag, z.real * 2), lambda z: cg.polar(z.abs(), z.imag), lambda z: z.H * z.t() * 1j]


@pytest.mark.parametrize("program", PROGRAMS)
def test_autograd_follows_parts(program):
    x = cg.tensor(Z + 0.3 - 0.1j, requires_grad=True)
    assert gradcheck(program, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(program, x, fast_mode=True, check_fwd_over_rev=True)


def test_parts_inside_of_vmap():
    x = cg.tensor(Z)
    for function in (lambda z: z.real * 2, lambda z: z.view_as_real().sum(-1), lambda z: z.imag.cos(),
                     lambda z: cg.complex(z.imag, z.real), lambda z: z.view_as_real().flip(-1).view_as_complex(), _real_changed):
        np.testing.assert_allclose(values(cg.func.vmap(function)(x)), np.stack([values(function(row)) for row in x]))


# ----- Other dtypes -----
def sizes(dtype):
    return getattr(cg, dtype).itemsize


DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("old", DTYPES)
@pytest.mark.parametrize("new", DTYPES)
def test_memory_is_read_as_another_dtype(old, new):
    x = cg.ones(3, 16, dtype=getattr(cg, old)).contiguous()
    for view in (x, x[1:], x[:, :16], x.t() if sizes(old) == sizes(new) else x, x[:0]):
        result, array = view.view(getattr(cg, new)), view.numpy()
        np.testing.assert_array_equal(values(result), array.view(new) if array.ndim else array)
        assert result.data_ptr() == view.data_ptr() and not result._is_view()
    version = x._version
    x.view(dtype=getattr(cg, new)).zero_()
    assert x._version == version + 1 and not x.any()


@pytest.mark.parametrize("make, message", [
    (lambda: cg.tensor(1.0).view(cg.int16), r"self.dim\(\) cannot be 0 to view"),
    (lambda: cg.arange(3.0).view(cg.float64), r"self.size\(-1\) must be divisible by 2 to view"),
    (lambda: cg.arange(4.0)[1:3].view(cg.float64), r"self.storage_offset\(\) must be divisible by 2 to view"),
    (lambda: cg.ones(3, 3)[:, :2].view(cg.float64), r"self.stride\(0\) must be divisible by 2 to view"),
    (lambda: cg.ones(3, 4).t().view(cg.float64), r"self.stride\(-1\) must be 1 to view"),
    (lambda: cg.ones(1).expand(4).view(cg.int8), r"self.stride\(-1\) must be 1 to view"),
    (lambda: cg.from_numpy(np.zeros(9, np.int32)[1:5] if np.zeros(9, np.int32).ctypes.data % 8 == 0 else np.zeros(8, np.int32)[:4]).view(
        cg.int64), "must be aligned"),
])
def test_memory_that_has_no_such_elements(make, message):
    with pytest.raises(RuntimeError, match=message):
        make()


def test_no_gradient_flows_through_another_dtype():
    x = cg.ones(4, requires_grad=True)
    assert not x.view(cg.int32).requires_grad and not (x * 1).view(cg.complex64).requires_grad
    assert cg.func.vmap(lambda row: row.view(cg.int32))(cg.ones(2, 4)).shape == (2, 4)
    _, tangent = cg.func.jvp(lambda y: y * y.view(cg.int32).view(cg.float32), (cg.ones(2),), (cg.ones(2),))
    assert tangent.tolist() == [1.0, 1.0]
