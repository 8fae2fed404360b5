"""Discrete Fourier transforms along dims, and their nodes: by the loops of NumPy's functions, or by the functions of a module.

NumPy's functions take longer to read their arguments than a small transform takes. Their loops are not public: where they are not of the
known form, the functions are called.
"""
cimport cython
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._core.compute.matrices cimport Call, RELEASE_GIL, begin_matrices, check_memory, numpy_loop
from cygrad._core.compute.places cimport dense
from cygrad._core.graph.launches cimport Launch, add_input, add_output, run_launch
from cygrad._core.graph.rules cimport RuleOp, needs_node, record, rule_op
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._core.memory.storage cimport dtypes
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_complex, cg_is_complex, cg_itemsize, cg_real
from cygrad._kernels.matrices.loops cimport matrix_loop

from functools import lru_cache

import numpy

from cygrad._core.graph.notes import fixed
from cygrad._core.operands.arrays import computed, to_array

cdef RuleOp FFT_C2C = rule_op("fft_c2c", ("input_dtype", "dim", "norm", "forward"))
cdef RuleOp FFT_R2C = rule_op("fft_r2c", ("dim", "norm", "size"))
cdef RuleOp FFT_C2R = rule_op("fft_c2r", ("input_dtype", "dim", "norm", "last_dim_size"))

cdef enum:
    WORK = 8            # multiplications by element of a vector

cdef object library = None      # a module whose functions compute; None: NumPy's loops do
cdef dict options = {}          # of its functions


def use_functions(module, **keywords):
    """Compute by the functions of a module, with some keywords."""
    global library, options
    library, options = module, keywords


def use_numpy():
    """Compute by NumPy's loops, or where they are not of the known form by its functions; say which."""
    has_loops = all([transform_loop(name, odd) is not None for name in ("fft", "ifft", "rfft", "irfft") for odd in (False, True)])
    use_functions(None if has_loops else numpy.fft)
    return has_loops


cdef object transform_loop(str name, bint odd):
    """Return NumPy's ufunc of a transform of so many numbers, None where there is none of the known form."""
    form = f"rfft_n_{'odd' if odd else 'even'}" if name == "rfft" else name
    ufunc = getattr(getattr(numpy.fft, "_pocketfft_umath", None), form, None)
    return ufunc if isinstance(ufunc, numpy.ufunc) and (ufunc.nin, ufunc.nout) == (2, 1) and ufunc.signature else None


# ----- Along one dim -----
@cython.final
cdef class Transform:
    """A transform of vectors of one size and dtype: its loop, and the factor that this takes."""
    cdef matrix_loop loop
    cdef void* data             # of the loop
    cdef TensorImpl factor
    cdef intptr_t size          # of the results
    cdef int dtype


@lru_cache(256)
def transform_of(str name not None, intptr_t count, str norm not None, int dtype):
    """Return the transform of `count` numbers; of half a spectrum, to so many."""
    cdef Transform transform = Transform()
    cdef int types[3]
    if count < 1:
        raise RuntimeError(f"a transform takes at least 1 number, not {count}")
    if not numpy_loop(transform_loop(name, count % 2), dtype, &transform.loop, &transform.data, types):
        raise RuntimeError(f"{name} takes no {dtypes[dtype].name}")
    real = dtypes[cg_real[dtype]].name
    whole = (norm == "backward") == (name in ("ifft", "irfft"))
    divisor = numpy.sqrt(count, dtype=real) if norm == "ortho" else count if whole else 1
    transform.factor = fixed(computed(numpy.asarray(numpy.reciprocal(divisor, dtype=real))))
    transform.size = count // 2 + 1 if name == "rfft" else count
    transform.dtype = types[2]
    return transform


cdef TensorImpl along(str name, TensorImpl x, int dim, str norm, intptr_t count=0):
    """Transform the vectors along a dim, half a spectrum to `count` numbers; the result is row-major."""
    cdef Transform transform = transform_of(name, count or x.sizes[dim], norm, x.dtype_nr)
    cdef TensorImpl result
    cdef Call call
    cdef Launch launch
    cdef intptr_t shape[MAX_DIMS]
    cdef int d
    memcpy(shape, x.sizes, x.ndim * sizeof(intptr_t))
    shape[dim] = transform.size
    result = empty(transform.dtype, x.ndim, shape)
    if not result.count:
        return result
    call.arguments, call.batch = 3, 0
    for d in range(x.ndim):
        if d != dim:
            call.shape[call.batch], call.steps[1][call.batch] = shape[d], 0
            call.steps[0][call.batch] = x.strides[d] * cg_itemsize[x.dtype_nr]
            call.steps[2][call.batch] = result.strides[d] * cg_itemsize[transform.dtype]
            call.batch += 1
    call.dims[1], call.dims[2] = x.sizes[dim], transform.size
    call.strides[3], call.strides[4] = x.strides[dim] * cg_itemsize[x.dtype_nr], result.strides[dim] * cg_itemsize[transform.dtype]
    begin_matrices(&launch, &call, transform.loop, transform.data)
    add_input(&launch, x)
    add_input(&launch, transform.factor)
    add_output(&launch, result)
    run_launch(&launch, WORK * max(x.count, result.count) >= RELEASE_GIL)
    check_memory()
    return result


# ----- Along dims that are not negative -----
cdef TensorImpl by_functions(str name, TensorImpl x, tuple dim, str norm, object size):
    """Transform by a function for one dim, which is quicker, or for several, whose name ends in n."""
    array = to_array(x)
    if len(dim) == 1:
        return computed(getattr(library, name)(array, size, dim[0], norm, **options))
    sizes = None if size is None else [array.shape[d] for d in dim[:len(dim) - 1]] + [size]
    return computed(getattr(library, f"{name}n")(array, sizes, dim, norm, **options))


cdef int last_of(TensorImpl x, tuple dim) except -1:
    """Check the dims of a transform, and return the last of them."""
    cdef int d, last = -1
    for d in dim:
        if not 0 <= d < x.ndim:
            raise IndexError(f"a tensor of {x.ndim} dims has no dim {d}")
        last = d
    if last < 0:
        raise RuntimeError("a transform must have at least one dim")
    return last


cdef TensorImpl complex_numbers(TensorImpl x):
    return x if cg_is_complex[x.dtype_nr] else dense(x, cg_complex[x.dtype_nr])


def fft_c2c(TensorImpl input not None, tuple dim not None, str norm not None, bint forward):
    """Transform numbers, real ones too, to complex numbers: by exp(-2 pi i jk / n) forward, by exp(2 pi i jk / n) backward."""
    cdef TensorImpl result
    cdef str name = "fft" if forward else "ifft"
    last_of(input, dim)
    if library is not None:
        result = by_functions(name, input, dim, norm, None)
    else:
        result = complex_numbers(input)
        for d in reversed(dim):
            result = along(name, result, d, norm)
    if needs_node(input, None):
        record(FFT_C2C, input, None, result, (dtypes[input.dtype_nr], dim, norm, forward))
    return result


def fft_r2c(TensorImpl input not None, tuple dim not None, str norm not None):
    """Transform real numbers forward, to the first half of their spectrum along the last of the dims."""
    cdef TensorImpl result
    cdef int last = last_of(input, dim)
    if library is not None:
        result = by_functions("rfft", input, dim, norm, None)
    else:
        result = along("rfft", input, last, norm)
        for d in reversed(dim[:len(dim) - 1]):
            result = along("fft", result, d, norm)
    if needs_node(input, None):
        record(FFT_R2C, input, None, result, (dim, norm, input.sizes[last]))
    return result


def fft_c2r(TensorImpl input not None, tuple dim not None, str norm not None, last_dim_size):
    """Transform the first half of a Hermitian spectrum backward, to real numbers, `last_dim_size` along the last of the dims."""
    cdef TensorImpl result
    cdef int last = last_of(input, dim)
    if library is not None:
        result = by_functions("irfft", input, dim, norm, last_dim_size)
    else:
        result = complex_numbers(input)
        for d in dim[:len(dim) - 1]:
            result = along("ifft", result, d, norm)
        result = along("irfft", result, last, norm, last_dim_size)
    if needs_node(input, None):
        record(FFT_C2R, input, None, result, (dtypes[input.dtype_nr], dim, norm, last_dim_size))
    return result
