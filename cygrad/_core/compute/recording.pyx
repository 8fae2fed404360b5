# cython: cdivision=True
"""Elementwise operators in the graph (see recording.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

from cygrad._core.compute.mapping cimport PARTS, WAITS, map_kernel
from cygrad._core.compute.rows cimport IDENTITY, KERNEL, NO_PARTIAL, OF_COMPLEX, OF_REAL, Row
from cygrad._core.graph.constants cimport tensor_of_number, zero
from cygrad._core.graph.history cimport connect, with_own_history
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport NODE_PACKED, NODE_RELEASED, Node, RESULT, finish_node_type, has_edge, init_node
from cygrad._core.graph.saved cimport released_error, saved_name
from cygrad._core.graph.tensor cimport TENSOR_TRACKED, TensorImpl, empty_like, is_unique, needs_grad
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.levels.batches cimport Batch, is_special, kernel_batch, leave, private_examples
from cygrad._core.levels.observers cimport special_tensors
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport Storage, dtypes
from cygrad._core.operands.operands cimport Value, number_from, same_shape
from cygrad._kernels.drivers.elementwise cimport CG_BOOL, CG_NEGATIVE, MAX_OPERANDS, cg_itemsize, cg_loops_of, cg_real

cdef extern from *:
    """
    #include "memory/type_slots.h"
    CG_RECYCLE(node)
    """
    void cg_recycle_node(type kind) noexcept


cdef ElementwiseNode elementwise_node(Row op, int dtype, Value* values, TensorImpl result, const cg_number* params, bint one_shape):
    """Return the node of a result: edges to the operands, and the values that the partials read. `one_shape`: nothing was broadcast."""
    cdef ElementwiseNode node = ElementwiseNode.__new__(ElementwiseNode)
    cdef PyObject* tensor
    cdef int k, reads = 0
    cdef unsigned flags = 0
    cdef bint broadcast_input = False
    init_node(node, 1)
    node.op, node.dtype = op, dtype
    if params is not NULL:
        memcpy(node.constants, params, sizeof(node.constants))
    for k in range(op.arity):
        tensor = values[k].tensor
        if tensor is NULL:
            node.scalars[k] = values[k].number
            continue
        flags |= (<TensorImpl>tensor).flags
        if needs_grad(<TensorImpl>tensor) and op.partial_form[k] != NO_PARTIAL:
            connect(node, k, <TensorImpl>tensor)
            node.input_dtypes[k] = (<TensorImpl>tensor).dtype_nr
            if op.partial_form[k] == KERNEL:
                reads |= op.partial_reads[k]
        broadcast_input = broadcast_input or not one_shape and not same_shape(<TensorImpl>tensor, result)
    node.edges = op.arity
    for k in range(op.arity):
        if reads >> k & 1 and values[k].tensor is not NULL:
            node.save(k, <TensorImpl>values[k].tensor)
    if reads >> RESULT & 1:
        node.save(RESULT, result)
    if flags & TENSOR_TRACKED:
        track_reachable(node)
    if broadcast_input:
        node.params = shapes_of(op.arity, values)
    return node


cdef tuple shapes_of(int count, const Value* values):
    return tuple([None if values[k].tensor is NULL else
                  sizes_tuple((<TensorImpl>values[k].tensor).ndim, (<TensorImpl>values[k].tensor).sizes) for k in range(count)])


cdef TensorImpl in_dtype(TensorImpl tensor, int dtype):
    """Return a tensor in the dtype that an operator computed in: its formula must not compute in another."""
    return tensor if tensor.dtype_nr == dtype else <TensorImpl>(<object>tensor)._convert(dtypes[dtype])


cdef class ElementwiseNode(Node):
    """A recorded elementwise operator."""

    cdef str node_name(self):
        return (<Row>self.op).node_name

    cdef dict saved_places(self):
        cdef Row op = <Row>self.op
        cdef int j, k, reads = 0
        for k in range(op.arity):
            reads |= op.partial_reads[k]
        names = [saved_name(name) for name in op.arguments[:op.arity]] + ["result"]
        return {name: j if j < op.arity else RESULT for j, name in enumerate(names) if reads >> (j if j < op.arity else RESULT) & 1}

    cdef dict saved_params(self):
        cdef Row op = <Row>self.op
        cdef int k, dtype = cg_loops_of[self.dtype]
        cdef const char* packed = <const char*>self.constants
        return {op.arguments[op.arity + k]: number_from(packed + k * cg_itemsize[dtype], dtype) for k in range(op.params)}

    cdef object scalar(self, int number):
        cdef Row op = <Row>self.op
        cdef int k
        for k in range(op.arity):
            if has_edge(self, k) and op.partial_reads[k] >> number & 1:
                return self.scalar_tensor(number)
        return None

    cdef TensorImpl scalar_tensor(self, int number):
        """Return an operand that was a number as a tensor."""
        return tensor_of_number(&self.scalars[number], self.scalar_dtype(number))

    cdef int scalar_dtype(self, int number) noexcept:
        return CG_BOOL if (<Row>self.op).masks >> number & 1 else cg_loops_of[self.dtype]

    def __getattr__(self, str name):
        return self.saved_attribute(name)

    cdef int read_saved(self, int k, Value* value, list unpacked) except -1:
        """Give operand k, or the result (k = RESULT), as a value of the fused kernel."""
        cdef TensorImpl tensor = self.unpack(k) if unpacked is None else unpacked[k]
        if tensor is None:
            value.tensor, value.number = NULL, self.scalars[k]
        else:
            value.tensor = <PyObject*>tensor     # the node keeps it, or `unpacked`
        return 0

    cdef TensorImpl fused(self, Row op, int k, TensorImpl g, TensorImpl target, list unpacked):
        """Return g * partial for operand k, in one pass; into `target`, which may be g itself, if given and not pending."""
        cdef Value values[MAX_OPERANDS - 1]
        cdef int j, count = 1, reads = op.partial_reads[k], masks = 0
        cdef bint real_result = op.results[self.dtype] != self.dtype
        values[0].tensor = <PyObject*>g
        masks |= real_result << PARTS
        for j in range(RESULT + 1):
            if reads >> j & 1:
                self.read_saved(j, &values[count], unpacked)
                masks |= (op.masks >> j & 1) << count | (real_result and j == RESULT) << (count + PARTS)
                count += 1
        return map_kernel(op.partial_kernel[k], self.dtype, self.dtype, masks, count, values, self.constants if op.params else NULL,
                          op.cost, target, True, WAITS)

    cdef TensorImpl differentiable(self, Row op, int k, TensorImpl g, list unpacked):
        """Return g * partial for operand k as operations on tensors, which are recorded."""
        cdef TensorImpl tensor
        cdef int j, reads = op.partial_reads[k]
        cdef list arguments = [g]
        cdef object reading = op.reading(k, OF_REAL if cg_real[self.dtype] == self.dtype else OF_COMPLEX)
        for j in range(RESULT + 1):
            if not reads >> j & 1:
                continue
            tensor = self.unpack(j) if unpacked is None else unpacked[j]
            if tensor is None:
                if op.takes_numbers[k] >> j & 1:        # hooks on saved tensors are not to see constants
                    arguments.append(number_from(<const char*>&self.scalars[j], self.scalar_dtype(j)))
                    continue
                tensor = self.scalar_tensor(j)
            elif j == RESULT and grad_mode()[0]:
                tensor = with_own_history(tensor, self, 0)
            arguments.append(tensor if op.masks >> j & 1 else in_dtype(tensor, op.results[self.dtype] if j == RESULT else self.dtype))
        arguments.extend(self.saved_params().values())
        result = reading(*arguments)
        if isinstance(result, TensorImpl):
            return result
        # A partial that is a number is 0: 1 is IDENTITY.
        tensor = empty_like(g, self.dtype)
        zero(tensor)
        return tensor

    cdef bint saved_special(self):
        """Return True if a saved tensor has tangents, or is one example of many."""
        cdef object saved
        for saved in (self.saved0, self.saved1, self.saved2, self.result):
            if saved is not None and (not isinstance(saved, TensorImpl) or is_special(<TensorImpl>saved)):
                return True
        return False

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef Row op = <Row>self.op
        cdef TensorImpl g, part, target = None
        cdef Batch batch = None
        cdef list unpacked = None
        cdef Storage _held = None       # the memory of a gradient that further edges read: while it is pending, a sum is not its only use
        cdef int k, last = -1, edges = 0
        cdef bint by_formula = grad_mode()[0] != 0, negated
        if self.flags & NODE_RELEASED:
            raise released_error()
        if grads[0] is NULL:
            return 0
        if special_tensors() and not by_formula and (self.saved_special() or is_special(<TensorImpl>grads[0])):
            # Gradients of many examples at once are one gradient that broadcasts to the saved tensors.
            target = private_examples(grads[0])
            batch = kernel_batch(<TensorImpl>grads[0])
            by_formula = batch is None or self.saved_special()
        elif is_unique(grads[0]):
            target = <TensorImpl>grads[0]
        # The last partial may be written over the gradient where nothing else refers to it: it is in the cache already.
        if target is not None and self.params is None and target.dtype_nr == self.dtype:
            for k in range(op.arity):
                if has_edge(self, k):
                    if op.partial_form[k] != KERNEL:
                        last = -1
                        break
                    last = k
        if self.flags & NODE_PACKED:
            unpacked = self.unpack_all()
        g = <TensorImpl>grads[0]
        for k in range(op.arity):
            edges += has_edge(self, k)
        for k in range(op.arity):
            if not has_edge(self, k):
                continue
            edges -= 1
            _held = g.storage if edges else None
            # Of a sum there are fewer elements to negate. One that is 0 is +0 in either order.
            negated = (self.params is not None and not by_formula and batch is None and op.partial_form[k] == KERNEL
                       and op.partial_kernel[k].form == CG_NEGATIVE)
            if op.partial_form[k] == IDENTITY or negated:
                part = g
            elif by_formula:
                part = self.differentiable(op, k, g, unpacked)
            elif batch is not None:
                part = leave(self.fused(op, k, batch.inner, target if k == last else None, unpacked), batch.level)
            else:
                part = self.fused(op, k, g, target if k == last else None, unpacked)
            if self.params is not None:
                part = (<object>part).sum_to_size(self.params[k])
            if negated:
                part = self.fused(op, k, g, None, unpacked) if part is g else 0 - <object>part
            if self.input_dtypes[k] != part.dtype_nr:
                part = (<object>part)._convert(dtypes[self.input_dtypes[k]])
            Py_INCREF(part)
            results[k] = <PyObject*>part
        return 0


finish_node_type(ElementwiseNode)
cg_recycle_node(ElementwiseNode)
