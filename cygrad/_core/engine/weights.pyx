"""The weights that a backward begins with, where nothing about them has to be refused or converted."""
from cygrad._core.graph.tensor cimport TensorImpl, needs_grad
from cygrad._core.operands.operands cimport Value, number_tensor, same_shape, to_value
from cygrad._kernels.drivers.elementwise cimport cg_is_complex, cg_is_differentiable


cpdef tuple plain_weights(tuple outputs, tuple gradients):
    """Return the weights of outputs that are tensors: those that are given in their shape and dtype, and 1 of a 0-d one without.

    None where one is of another kind: code in Python reads them all then, with torch's errors.
    """
    cdef TensorImpl output
    cdef Value value
    cdef Py_ssize_t k
    cdef list weights = []
    if outputs is None or gradients is None or len(outputs) != len(gradients):
        return None
    for k in range(len(outputs)):
        if not isinstance(outputs[k], TensorImpl):
            return None
        output, gradient = outputs[k], gradients[k]
        if gradient is None:
            if output.ndim or not needs_grad(output) or cg_is_complex[output.dtype_nr] or not cg_is_differentiable[output.dtype_nr]:
                return None
            to_value(1, &value)
            gradient = number_tensor(&value, output.dtype_nr)
        elif (not isinstance(gradient, TensorImpl) or (<TensorImpl>gradient).dtype_nr != output.dtype_nr
                or not same_shape(<TensorImpl>gradient, output)):
            return None
        weights.append(gradient)
    return tuple(weights)
