"""Sums of gradients (see accumulation.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad._core.compute.dispatch cimport Op, elementwise
from cygrad._core.compute.mapping cimport map_kernel
from cygrad._core.engine.hooks cimport refuse_many
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.notes cimport note_gradient
from cygrad._core.graph.tensor cimport CONTIGUOUS, SPARSE, TensorImpl, count_change, empty, empty_strided, is_dense, is_unique
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.levels.batches cimport Batch, is_special, kernel_batch, private_examples
from cygrad._core.levels.observers cimport special_tensors
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.memory.upward cimport accumulate_function, upward
from cygrad._core.operands.operands cimport Value, check_writable, copy_into, same_shape
from cygrad._kernels.programs.settings cimport noted


from cygrad._core.compute.dispatch import ops

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef Op add = ops["add"]


cdef TensorImpl sum_of(TensorImpl a, TensorImpl b, TensorImpl target, bint private=False, bint waits=False):
    cdef Value values[2]
    cdef TensorImpl result
    values[0].tensor, values[1].tensor = <PyObject*>a, <PyObject*>b
    if target is None and not waits:
        return elementwise(add, values, NULL, None, False)
    result = map_kernel(add.kernel, a.dtype_nr, a.dtype_nr, 0, 2, values, NULL, 0, target, private, waits)
    if result is target:
        count_change(target)
    return result


cdef int add_in_place(TensorImpl total, TensorImpl grad) except -1:
    """Add to a tensor that users can see."""
    cdef Value values[2]
    check_writable(total)
    if total.base is None and total.storage.padded and Py_REFCNT(<PyObject*>total.storage) == 1:
        sum_of(total, grad, total)      # the memory is its own
    else:
        values[0].tensor, values[1].tensor = <PyObject*>total, <PyObject*>grad
        elementwise(add, values, NULL, total, True)
    return 0


cdef TensorImpl target_of_sum(PyObject* old, PyObject* grad):
    """Return the memory for the sum of a buffer and a gradient, or None: new memory.

    Its strides, and so the order of later sums, do not depend on other references: row-major if one of both is, else the buffer's.
    """
    cdef bint old_is_own = is_unique(old), grad_is_own = is_unique(grad)
    cdef TensorImpl total = <TensorImpl>old, part = <TensorImpl>grad, like = part if part.flags & CONTIGUOUS else total
    if has_layout_of(total, part):
        return total if old_is_own else part if grad_is_own else None
    if not is_dense(like):
        return None
    if grad_is_own if like is part else old_is_own:
        return like
    return empty_strided(like.dtype_nr, like.ndim, like.sizes, like.strides)


cdef int collect(PyObject** reference, PyObject* grad) except -1:
    """Add a gradient to a buffer; takes over the reference to it."""
    cdef TensorImpl result, examples
    cdef Batch batch
    cdef PyObject* old = reference[0]
    if old is NULL:
        reference[0] = grad
        return 0
    try:
        if special_tensors() and not grad_mode()[0]:
            examples, batch = private_examples(old), kernel_batch(<TensorImpl>grad)
            if (examples is not None and batch is not None and batch.level is (<Batch>(<TensorImpl>old).special).level
                    and same_shape(examples, batch.inner) and examples.dtype_nr == batch.inner.dtype_nr):
                sum_of(examples, batch.inner, examples, True)
                return 0
        if (not grad_mode()[0] and not special_tensors() and same_shape(<TensorImpl>old, <TensorImpl>grad)
                and (<TensorImpl>old).dtype_nr == (<TensorImpl>grad).dtype_nr):
            result = sum_of(<TensorImpl>old, <TensorImpl>grad, target_of_sum(old, grad), True, True)
        else:
            result = sum_of(<TensorImpl>old, <TensorImpl>grad, None)
        Py_INCREF(result)
        reference[0] = <PyObject*>result
        Py_DECREF(<object>old)
    finally:
        Py_DECREF(<object>grad)
    return 0


cdef bint has_layout_of(TensorImpl grad, TensorImpl variable) noexcept:
    cdef int d
    if grad.flags & variable.flags & CONTIGUOUS:
        return True
    for d in range(grad.ndim):
        if grad.strides[d] != variable.strides[d] and grad.sizes[d] != 1:
            return False
    return True


cdef TensorImpl laid_out_as(TensorImpl variable, TensorImpl grad):
    """Return a copy of a gradient with the dtype, and the strides, of a dense parameter; anything else means row-major."""
    cdef TensorImpl copy = (empty_strided(variable.dtype_nr, variable.ndim, variable.sizes, variable.strides) if is_dense(variable)
                            else empty(variable.dtype_nr, variable.ndim, variable.sizes))
    if grad_mode()[0]:
        return (<object>copy).copy_(grad)
    copy_into(copy, grad)
    return copy


cdef int check_arrival(TensorImpl variable, TensorImpl grad) except -1:
    """Refuse a gradient that does not suit its leaf: `.data =` may have given that another shape, a GradientEdge any."""
    if not same_shape(variable, grad):
        raise RuntimeError(f"a gradient of shape {list(sizes_tuple(grad.ndim, grad.sizes))} and dtype {dtypes[grad.dtype_nr].name} arrived "
                           f"at a leaf of shape {list(sizes_tuple(variable.ndim, variable.sizes))} and dtype "
                           f"{dtypes[variable.dtype_nr].name}")
    return 0


cdef int accumulate(TensorImpl variable, PyObject* arrived) except -1:
    """Add to `.grad`: in place, or by a new tensor where a graph of the gradient is made."""
    cdef bint unique = is_unique(arrived)
    cdef bint create_graph = grad_mode()[0]
    cdef TensorImpl grad = <TensorImpl>arrived, old, total
    check_arrival(variable, grad)
    refuse_many(grad)
    if noted:
        note_gradient(variable)
    # A new tensor takes time, in which another thread may be quicker: then again.
    while True:
        old = variable.gradient
        if old is not None and not create_graph and grad.flags & SPARSE and (old.flags & SPARSE or not is_special(old)):
            (<object>old).add_(grad)
            return 0
        if special_tensors() and (is_special(grad) or old is not None and is_special(old)):
            total = (<object>grad).clone() if old is None else sum_of(old, grad, None)
            break
        if old is not None and not create_graph:
            return add_in_place(old, grad)
        if old is not None:
            total = sum_of(old, grad, None)
        elif unique and not create_graph and grad.dtype_nr == variable.dtype_nr and has_layout_of(grad, variable):
            total = grad
        else:
            total = laid_out_as(variable, grad)
        if variable.gradient is old:
            break
    variable.gradient = total
    if total.node is not None:
        track_reachable(variable)
    return 0


upward.accumulate = <accumulate_function>accumulate
