"""Complex numbers exchanged with NumPy's arrays and functions, buffers, pickles, files, storages."""

import copy
import io
import pickle

import numpy as np
import pytest

import cygrad as cg

DTYPES = {"complex64": "float32", "complex128": "float64"}
VALUES = [[1 + 2j, 3], [4j, -1]]


def same(tensor, array):
    assert tensor.dtype is getattr(cg, str(array.dtype))
    np.testing.assert_array_equal(tensor.detach().numpy(), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_share_memory(dtype):
    array = np.array(VALUES, dtype)
    x = cg.from_numpy(array.T)
    x.mul_(1j)
    same(x, array.T)
    assert array[0, 0] == -2 + 1j and x.stride() == (1, 2) and x.numpy().ctypes.data == array.ctypes.data
    x.numpy()[0, 0] = 7
    assert array[0, 0] == x[0, 0].item() == 7
    same(cg.asarray(array), array)
    same(cg.tensor(memoryview(array)), array)
    same(cg.frombuffer(array.tobytes(), dtype=getattr(cg, dtype)), array.reshape(-1))
    np.testing.assert_array_equal(np.asarray(x.imag), array.T.imag)


@pytest.mark.parametrize("dtype, part", DTYPES.items())
def test_memory_is_aligned_to_the_parts(dtype, part):
    parts = np.arange(9, dtype=part)
    array = parts[1:].view(dtype)       # NumPy needs no larger alignment
    x = cg.from_numpy(array)
    np.testing.assert_allclose((x * 2).exp().numpy(), np.exp(array * 2), rtol=1e-5)
    same(x.view_as_real(), array.view(part).reshape(-1, 2))
    unaligned = np.zeros(4 * array.itemsize + 1, np.uint8)[1:].view(dtype)
    with pytest.raises(ValueError, match="not aligned"):
        cg.from_numpy(unaligned)


@pytest.mark.parametrize("dtype, code", [("complex64", "Zf"), ("complex128", "Zd")])
def test_buffers(dtype, code):
    x = cg.tensor(VALUES, dtype=getattr(cg, dtype))
    view = memoryview(x)
    assert (view.format, view.itemsize, view.shape, view.strides) == (code, x.itemsize, (2, 2), (2 * x.itemsize, x.itemsize))
    same(x, np.asarray(view))
    assert memoryview(x.real).format == code[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickles_copies_and_files(dtype):
    x = cg.tensor(VALUES, dtype=getattr(cg, dtype), requires_grad=True)
    for result in pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x):
        same(result, x.detach().numpy())
        assert result.requires_grad
    file = io.BytesIO()
    plain = x.detach()
    cg.save({"leaf": x, "whole": plain, "parts": plain.view_as_real(), "real": plain.real, "turned": plain.t()}, file)
    file.seek(0)
    loaded = cg.load(file)
    assert loaded["leaf"].requires_grad and not loaded["whole"].requires_grad
    same(loaded["turned"], plain.t().numpy())
    loaded["parts"].mul_(2)     # they still share memory
    same(loaded["whole"], 2 * plain.numpy())
    same(loaded["real"], 2 * plain.numpy().real)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_numpy(dtype):
    x = cg.tensor(VALUES, dtype=getattr(cg, dtype), requires_grad=True)
    array = x.detach().numpy()
    for function in np.exp, np.conjugate, np.square, np.absolute, np.sin:
        result = function(x)
        assert result.grad_fn is not None
        np.testing.assert_allclose(result.detach().numpy(), function(array), rtol=1e-5)
    for result, expected in ((np.add(x, 1j), array + 1j), (np.complex64(1j) * x, array * np.complex64(1j)), (array * x, array * array),
                             (x.detach() / np.float64(2), array / 2)):
        same(result, expected)


def test_membership_and_storages():
    x = cg.tensor(VALUES)
    assert 1 + 2j in x and -1 in x and 2j not in x and 1j not in cg.ones(2) and 1 + 0j in cg.ones(2)
    assert x.untyped_storage().nbytes() == 32 and x.real.untyped_storage().data_ptr() == x.data_ptr() and x.imag.storage_offset() == 1
    assert cg.ComplexFloatTensor([1j]).tolist() == [1j] and x.type() == "cygrad.ComplexFloatTensor"
    assert x.cdouble().dtype is cg.complex128
