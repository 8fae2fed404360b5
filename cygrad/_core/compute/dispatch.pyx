# cython: cdivision=True
"""Elementwise operators (see dispatch.pxd for the contract)."""
cimport cython
from cpython.float cimport PyFloat_AsDouble
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.compute.deferred cimport defer, note_thread
from cygrad._core.compute.inplace cimport as_before, check_in_place, cut_history, rebase, take_history
from cygrad._core.graph.node cimport (NODE_PACKED, NODE_RELEASED, RESULT, Node, attach, connect, finish_node_type, grad_mode, init_node,
                                      with_own_history)
from cygrad._core.graph.saved cimport released_error, saved_name
from cygrad._core.graph.tensor cimport (CONTIGUOUS, INFERENCE, REQUIRES_GRAD, TENSOR_TRACKED, VIEW, TensorImpl, address, count_change,
                                        empty, empty_like, is_unique, needs_grad, place_of, settled_address, special_active)
from cygrad._core.graph.tracking cimport track_reachable
from cygrad._core.levels.levels cimport Batch, is_special, leave, plain_batch, private_examples
from cygrad._core.levels.observers cimport begin_event, end_event, next_sequence_nr, profiling_threads, special_tensors, wants_operands
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport default_dtype, dtypes
from cygrad._core.memory.upward cimport upward
from cygrad._core.operands.operands cimport (RELEASE_GIL, Value, any_followed, broadcast, check_cast, check_no_bools, check_out, copy_of,
                                             empty_for, fill_operand, holding_all, number_of, out_argument, out_shape_error, overlaps,
                                             promoted, same_shape, shape_is, to_value)
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_DTYPES, CG_FLOAT32, CG_FLOAT64, CG_INT64, MAX_DIMS, MAX_OPERANDS, MAX_PARAMS,
                                                  Operand, cg_itemsize, cg_kernel, cg_kind)
from cygrad._kernels.drivers.elementwise cimport kernel as find_kernel
from cygrad._kernels.drivers.elementwise cimport run as run_kernel

from cygrad.ops import ELEMENTWISE, formula

cdef extern from *:
    """
    #include "memory/type_slots.h"
    CG_RECYCLE(node)
    """
    void cg_recycle_node(type kind) noexcept

cdef enum:
    SMALL_COUNT = 1 << 11   # elements up to which no kernel is worth a thread

functions = {}          # public functions by name: what the tensor readings of formulas call


# ----- Computing -----
cdef inline bint is_simple(const cg_kernel* kernel, int dtype, int count, const Value* values) noexcept:
    """Say whether operands are few, small, dense and of one shape and dtype: no broadcasting, no driver."""
    cdef PyObject* first = values[0].tensor
    cdef PyObject* second = values[1].tensor if count == 2 else first
    if first is NULL or count > 2:
        return False
    if second is NULL:
        if kernel.blocked:
            return False
        second = first
    return ((<TensorImpl>first).flags & (<TensorImpl>second).flags & CONTIGUOUS and (<TensorImpl>first).dtype_nr == dtype
            and (<TensorImpl>second).dtype_nr == dtype and (<TensorImpl>first).count < SMALL_COUNT
            and (<TensorImpl>first).storage.padded and (<TensorImpl>second).storage.padded
            and (first == second or same_shape(<TensorImpl>first, <TensorImpl>second)))


cdef inline TensorImpl map_simple(const cg_kernel* kernel, int dtype, int out_dtype, int count, Value* values, const void* params,
                                  TensorImpl target):
    """Run a kernel over operands that `is_simple` has passed, into a target of their shape if given."""
    cdef TensorImpl result = empty_like(<TensorImpl>values[0].tensor, out_dtype) if target is None else target
    cdef char* pointers[3]
    cdef intptr_t strides[2]
    strides[0] = strides[1] = cg_itemsize[dtype]
    pointers[0] = address(<TensorImpl>values[0].tensor)
    if count == 2:
        if values[1].tensor is not NULL:
            pointers[1] = settled_address(<TensorImpl>values[1].tensor)
        else:
            pointers[1], strides[1] = <char*>&values[1].number, 0
    pointers[count] = settled_address(result)
    kernel.loops[dtype](pointers, strides, result.count, params)
    return result


cdef TensorImpl map_kernel(const cg_kernel* kernel, int dtype, int out_dtype, int masks, int count, Value* values,
                           const void* params, int cost, TensorImpl target, bint private=False):
    """Run a kernel over operands that broadcast; scalars are in the dtype of the loop. `masks` are read as bool (bits).

    Others may see a target that is not `private`, so it is written with the GIL held: that is the lock of `.grad`.
    """
    cdef Operand operands[MAX_OPERANDS]
    cdef intptr_t shape[MAX_DIMS]
    cdef int ndim, k
    cdef bint fresh
    if not masks and is_simple(kernel, dtype, count, values) and (target is None or (
            not kernel.blocked and target.flags & CONTIGUOUS and target.dtype_nr == out_dtype
            and same_shape(target, <TensorImpl>values[0].tensor))):
        return map_simple(kernel, dtype, out_dtype, count, values, params, target)
    ndim = broadcast(count, values, shape)
    fresh = target is None
    if fresh:
        target = empty_for(out_dtype, ndim, shape, count, values)
    for k in range(count):
        if values[k].tensor is not NULL:
            fill_operand(&operands[k], <TensorImpl>values[k].tensor, CG_BOOL if masks >> k & 1 else dtype, ndim, shape)
        else:
            operands[k].data, operands[k].padded = <char*>&values[k].number, False
            operands[k].dtype = operands[k].loop_dtype = CG_BOOL if masks >> k & 1 else dtype
            memset(operands[k].strides, 0, ndim * sizeof(intptr_t))
    fill_operand(&operands[count], target, out_dtype, ndim, shape)
    if (fresh or private) and target.count >= RELEASE_GIL:
        # Other threads may give an operand other memory meanwhile.
        note_thread()
        _held = [(<TensorImpl>values[k].tensor).storage for k in range(count) if values[k].tensor is not NULL]
        with nogil:
            run_kernel(kernel, dtype, count + 1, operands, ndim, shape, params, cost, fresh)
    else:
        run_kernel(kernel, dtype, count + 1, operands, ndim, shape, params, cost, fresh)
    return target


cdef int result_dtype(Op op, const Value* values) except -1:
    """Return the dtype to compute in: that of all operands; kinds the row lacks are converted or refused."""
    cdef int k, numbers = 0, dtype
    for k in range(op.arity if op.bounds else 0):
        if op.bounds >> k & 1 and values[k].tensor is NULL:
            numbers = op.bounds
    dtype = promoted(op.arity, values, op.masks, numbers)
    if op.refuses_bools:
        check_no_bools(op.arity, values, op.row.refusals)
    if op.bool_result and cg_kind[dtype] == b"i":
        dtype = holding_all(op.arity, values, dtype)        # so that comparisons are exact
    if cg_kind[dtype] == b"f" and op.floats or cg_kind[dtype] == b"i" and op.integers or cg_kind[dtype] == b"b" and op.bools:
        return dtype
    if op.floats and not op.integers:
        return CG_FLOAT64 if op.bool_result else default_dtype()
    if op.counts_bools and cg_kind[dtype] == b"b":
        return CG_INT64
    raise NotImplementedError(f"\"{op.name}\" not implemented for '{dtypes[dtype].name}'; it takes "
                              + " and ".join(word for word, there in (("bool", op.bools), ("integer", op.integers),
                                                                      ("floating-point", op.floats)) if there) + " tensors")


cdef TensorImpl elementwise(Op op, Value* values, const double* params, TensorImpl target, bint in_place):
    """Compute an operator, into `target` if given, and record it if a gradient is asked for."""
    if special_active:
        return observed(op, values, params, target, in_place)
    return plain(op, values, params, target, in_place)


cdef TensorImpl observed(Op op, Value* values, const double* params, TensorImpl target, bint in_place):
    """Compute an operator where somebody profiles or a tensor is special."""
    cdef Py_ssize_t event = 0
    cdef int k
    if profiling_threads:
        event = begin_event(op.name + "_" if in_place else op.name, operands_of(op, values) if wants_operands() else None,
                            next_sequence_nr())
    try:
        if target is not None and is_special(target):
            return upward.special_elementwise(op, values, params, target, in_place)
        for k in range(op.arity):
            if values[k].tensor is not NULL and is_special(<TensorImpl>values[k].tensor):
                return upward.special_elementwise(op, values, params, target, in_place)
        return plain(op, values, params, target, in_place)
    finally:
        end_event(event)


cdef tuple operands_of(Op op, const Value* values):
    """Return the operands as Python objects."""
    return tuple([<object>values[k].tensor if values[k].tensor is not NULL else values[k].real if values[k].kind == b"f" else
                  values[k].integer for k in range(op.arity)])


cdef TensorImpl plain(Op op, Value* values, const double* params, TensorImpl target, bint in_place):
    """Compute an operator of which nothing is special."""
    cdef int dtype, out_dtype, k, j
    cdef unsigned flags = 0
    cdef bint recorded = False
    cdef double converted_params[MAX_PARAMS]
    cdef const void* loop_params = NULL
    cdef TensorImpl result, tensor, kept
    cdef intptr_t shape[MAX_DIMS]
    cdef list copies
    # The common case first: tensors of one dtype that the row computes in, and results of their own.
    if target is None and op.plain and values[0].tensor is not NULL:
        dtype = (<TensorImpl>values[0].tensor).dtype_nr
        if (op.computes[dtype]
                and (op.arity == 1 or values[1].tensor is not NULL or cg_kind[dtype] == b"f" and values[1].kind != b"b")
                and is_simple(op.kernel, dtype, op.arity, values)):
            if op.arity == 2 and values[1].tensor is NULL:
                values[1].number = number_of(&values[1], dtype)
            result = map_simple(op.kernel, dtype, CG_BOOL if op.bool_result else dtype, op.arity, values, NULL, None)
            flags = (<TensorImpl>values[0].tensor).flags
            if op.arity == 2 and values[1].tensor is not NULL:
                flags |= (<TensorImpl>values[1].tensor).flags
            if flags & (REQUIRES_GRAD | VIEW) and op.differentiable and grad_mode()[0] and any_needs_grad(op.arity, values):
                attach(result, node_of(op, dtype, values, result, NULL, True), 0)
            return result
    for k in range(op.arity):
        if values[k].tensor is not NULL and not op.masks >> k & 1:
            flags |= (<TensorImpl>values[k].tensor).flags
    dtype = result_dtype(op, values)
    for k in range(op.arity):
        if values[k].tensor is NULL:
            values[k].number = number_of(&values[k], CG_BOOL if op.masks >> k & 1 else dtype)
    out_dtype = CG_BOOL if op.bool_result else dtype
    if flags & (REQUIRES_GRAD | VIEW) and grad_mode()[0] and cg_kind[dtype] == b"f":
        for k in range(op.arity):
            recorded = recorded or (op.partial_form[k] != NO_PARTIAL and values[k].tensor is not NULL
                                    and needs_grad(<TensorImpl>values[k].tensor))
        if flags & INFERENCE:
            recorded = recorded and any_followed(op.arity, values)
    if op.checks_integers and cg_kind[dtype] == b"i":
        check_integers(op, &values[1])
    if op.params:
        for k in range(op.params):
            if cg_kind[dtype] != b"f" and params[k] != <double><int64_t>params[k]:
                raise RuntimeError(f"For integral input tensors, argument {op.arguments[op.arity + k]} must not be a floating point "
                                   "number.")
        pack_params(op, params, dtype, converted_params)
        loop_params = converted_params
    if target is None:
        result = None
        if recorded and not op.masks and not op.bool_result and not profiling_threads:
            result = defer(op.kernel, dtype, op.arity, values, loop_params, op.cost)
        if result is None:
            result = map_kernel(op.kernel, dtype, out_dtype, op.masks, op.arity, values, loop_params, op.cost, None)
        if recorded:
            attach(result, node_of(op, dtype, values, result, converted_params if op.params else NULL, False), 0)
        return result

    # Into a target: in place, or out=.
    if in_place:
        check_in_place(target, recorded)
    else:
        check_out(target, recorded)
    check_cast(out_dtype, target.dtype_nr)
    j = broadcast(op.arity, values, shape)
    if not shape_is(target, j, shape):
        if in_place:
            raise RuntimeError(f"output with shape {list(sizes_tuple(target.ndim, target.sizes))} doesn't match the broadcast shape "
                               f"{list(sizes_tuple(j, shape))}")
        raise out_shape_error(target, j, shape)
    copies = []
    for k in range(op.arity):
        if values[k].tensor is NULL:
            continue
        tensor = <TensorImpl>values[k].tensor
        if overlaps(target, tensor) or recorded and in_place and place_of(tensor) == place_of(target) and reads_operand(op, k):
            kept = copy_of(tensor, tensor.dtype_nr)
            if recorded:
                take_history(kept, tensor)
        elif recorded and tensor is not target:
            kept = as_before(tensor, target)
        else:
            continue
        copies.append(kept)
        values[k].tensor = <PyObject*>kept
    map_kernel(op.kernel, dtype, out_dtype, op.masks, op.arity, values, loop_params, op.cost, target)
    count_change(target)
    if recorded:
        rebase(target, node_of(op, dtype, values, target, converted_params if op.params else NULL, False))
    elif in_place and grad_mode()[0] and needs_grad(target):
        cut_history(target)
    return target


cdef bint any_needs_grad(int count, const Value* values) noexcept:
    """Say whether an operator on these operands is to be recorded, in grad mode."""
    cdef int k
    for k in range(count):
        if values[k].tensor is not NULL and needs_grad(<TensorImpl>values[k].tensor):
            return not (<TensorImpl>values[k].tensor).flags & INFERENCE or any_followed(count, values)
    return False


cdef bint reads_operand(Op op, int operand) noexcept:
    cdef int k
    for k in range(op.arity):
        if op.partial_form[k] == KERNEL and op.partial_reads[k] >> operand & 1:
            return True
    return False


cdef int pack_params(Op op, const double* params, int dtype, double* packed) except -1:
    """Lay the parameters out as an array of the dtype of the loop."""
    cdef Value value
    cdef int k
    cdef double bytes
    value.kind = b"f"
    for k in range(op.params):
        value.real = params[k]
        bytes = number_of(&value, dtype)
        memcpy(<char*>packed + k * cg_itemsize[dtype], &bytes, cg_itemsize[dtype])
    return 0


cdef int check_integers(Op op, const Value* second) except -1:
    """Refuse an integer division by zero, and a negative number as exponent of integers, as torch does."""
    if op.row.integers == "divisor":
        if second.integer == 0 if second.tensor is NULL else not bool((<object>second.tensor).all()):
            raise RuntimeError("ZeroDivisionError: integer division by zero; divide floats instead, or mask the zeros")
    elif second.tensor is NULL and second.integer < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed. Convert the base first, e.g. with .float()")
    return 0


# ----- Recording -----
cdef ElementwiseNode node_of(Op op, int dtype, Value* values, TensorImpl result, const double* params, bint one_shape):
    """Return the node of a result: edges to the operands, and what the partials read. `one_shape`: nothing was broadcast."""
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
    return tensor if tensor.dtype_nr == dtype else <TensorImpl>(<object>tensor).to(dtypes[dtype])


cdef class ElementwiseNode(Node):
    """A recorded elementwise operator."""

    cdef str node_name(self):
        return (<Op>self.op).node_name

    cdef dict saved_places(self):
        cdef Op op = <Op>self.op
        cdef int j, k, reads = 0
        for k in range(op.arity):
            reads |= op.partial_reads[k]
        names = [saved_name(name) for name in op.arguments[:op.arity]] + ["result"]
        return {name: j if j < op.arity else RESULT for j, name in enumerate(names) if reads >> (j if j < op.arity else RESULT) & 1}

    cdef dict saved_params(self):
        cdef Op op = <Op>self.op
        cdef int k
        return {op.arguments[op.arity + k]: (<float*>self.constants)[k] if self.dtype == CG_FLOAT32 else self.constants[k]
                for k in range(op.params)}

    cdef object scalar(self, int place):
        cdef Op op = <Op>self.op
        cdef int k
        for k in range(op.arity):
            if (self.next0 if k == 0 else self.next1 if k == 1 else self.next2) is not None and op.partial_reads[k] >> place & 1:
                return self.scalar_tensor(place)
        return None

    cdef TensorImpl scalar_tensor(self, int place):
        """Return an operand that was a number as a tensor."""
        cdef TensorImpl tensor = empty(CG_BOOL if (<Op>self.op).masks >> place & 1 else self.dtype, 0, NULL)
        memcpy(settled_address(tensor), &self.scalars[place], cg_itemsize[tensor.dtype_nr])
        return tensor

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

    cdef TensorImpl fused(self, Op op, int k, TensorImpl g, TensorImpl target, list unpacked):
        """Return g * partial for operand k, in one pass; into `target`, which may be g itself, if given."""
        cdef Value values[MAX_OPERANDS - 1]
        cdef int j, count = 1, reads = op.partial_reads[k], masks = 0
        values[0].tensor = <PyObject*>g
        for j in range(RESULT + 1):
            if reads >> j & 1:
                self.read_saved(j, &values[count], unpacked)
                masks |= (op.masks >> j & 1) << count
                count += 1
        return map_kernel(op.partial_kernel[k], self.dtype, self.dtype, masks, count, values, self.constants if op.params else NULL,
                          op.cost, target, True)

    cdef TensorImpl differentiable(self, Op op, int k, TensorImpl g, list unpacked):
        """Return g * partial for operand k as operations on tensors, which are recorded."""
        cdef TensorImpl tensor
        cdef int j, reads = op.partial_reads[k]
        cdef list arguments = [g]
        cdef object reading = op.reading(k)
        for j in range(RESULT + 1):
            if not reads >> j & 1:
                continue
            tensor = self.unpack(j) if unpacked is None else unpacked[j]
            if tensor is None:
                tensor = self.scalar_tensor(j)
                if op.takes_numbers[k] >> j & 1:        # hooks on saved tensors are not to see constants
                    arguments.append((<object>tensor).item())
                    continue
            elif j == RESULT and grad_mode()[0]:
                tensor = with_own_history(tensor, self, 0)
            arguments.append(tensor if op.masks >> j & 1 else in_dtype(tensor, self.dtype))
        arguments.extend(self.saved_params().values())
        result = reading(*arguments)
        if isinstance(result, TensorImpl):
            return result
        # A partial that is a number is 0: 1 is IDENTITY.
        tensor = empty_like(g, self.dtype)
        memset(settled_address(tensor), 0, tensor.count * cg_itemsize[self.dtype])
        return tensor

    cdef bint saved_special(self):
        """Say whether what is saved has tangents, or is one example of many."""
        cdef object saved
        for saved in (self.saved0, self.saved1, self.saved2, self.result):
            if saved is not None and (not isinstance(saved, TensorImpl) or is_special(<TensorImpl>saved)):
                return True
        return False

    cdef int apply(self, PyObject** grads, PyObject** results) except -1:
        cdef Op op = <Op>self.op
        cdef TensorImpl g, part, target = None
        cdef Batch batch = None
        cdef list unpacked = None
        cdef int k, last = -1
        cdef bint by_formula = grad_mode()[0] != 0
        if self.flags & NODE_RELEASED:
            raise released_error()
        if grads[0] is NULL:
            return 0
        if special_tensors() and not by_formula and (self.saved_special() or is_special(<TensorImpl>grads[0])):
            # Gradients of many examples at once are one gradient that broadcasts to what is saved.
            target = private_examples(grads[0])
            batch = plain_batch(<TensorImpl>grads[0])
            by_formula = batch is None or self.saved_special()
        elif is_unique(grads[0]):
            target = <TensorImpl>grads[0]
        # The last partial may be written over the gradient where nobody else holds that or gets it: it is in the cache already.
        if target is not None and target.count >= SMALL_COUNT and self.params is None and target.dtype_nr == self.dtype:
            for k in range(op.arity):
                if (self.next0 if k == 0 else self.next1 if k == 1 else self.next2) is not None:
                    if op.partial_form[k] != KERNEL:
                        last = -1
                        break
                    last = k
        if self.flags & NODE_PACKED:
            unpacked = self.unpack_all()
        g = <TensorImpl>grads[0]
        for k in range(op.arity):
            if (self.next0 if k == 0 else self.next1 if k == 1 else self.next2) is None:
                continue
            if op.partial_form[k] == IDENTITY:
                part = g
            elif by_formula:
                part = self.differentiable(op, k, g, unpacked)
            elif batch is not None:
                part = leave(self.fused(op, k, batch.inner, target if k == last else None, unpacked), batch.level)
            else:
                part = self.fused(op, k, g, target if k == last else None, unpacked)
            if self.params is not None:
                part = (<object>part).sum_to_size(self.params[k])
            if self.input_dtypes[k] != part.dtype_nr:
                part = (<object>part).to(dtypes[self.input_dtypes[k]])
            Py_INCREF(part)
            results[k] = <PyObject*>part
        return 0


finish_node_type(ElementwiseNode)
cg_recycle_node(ElementwiseNode)


# ----- Operators -----
PUBLIC_NAMES = {"x": "input", "a": "input", "b": "other"}


@cython.final
@cython.binding(False)
cdef class Op:
    """An elementwise operator of the table, ready to be called."""

    def __cinit__(self, row):
        cdef int k
        self.row, self.name = row, row.name
        self.node_name = (row.node or "".join(word.capitalize() for word in row.name.split("_"))) + "Backward0"
        self.kernel = find_kernel(row.name)
        self.arity, self.params, self.cost = len(row.operands), len(row.params), row.cost
        self.bools, self.integers, self.floats = "b" in row.kinds, "i" in row.kinds, "f" in row.kinds
        self.bool_result, self.checks_integers, self.refuses_bools = row.result == "bool", row.integers is not None, bool(row.refusals)
        self.counts_bools = row.counts_bools
        self.plain = self.arity <= 2 and not self.params and not row.masks and not self.checks_integers
        self.differentiable = bool(row.partials)
        for k in range(CG_DTYPES):
            self.computes[k] = dtypes[k].kind in row.kinds
        self.arguments = tuple([PUBLIC_NAMES.get(name, name) for name in row.operands]) + tuple(row.params)
        self.partial_readings = [None] * OPERANDS
        for k, value in enumerate(row.params.values()):
            self.defaults[k] = value
        for k, operand in enumerate(row.operands):
            if operand in row.masks:
                self.masks |= 1 << k
            if operand in row.bounds:
                self.bounds |= 1 << k
            if operand not in row.partials:
                continue
            self.partial_form[k] = IDENTITY if row.partials[operand] == "1" else KERNEL
            self.partial_kernel[k] = find_kernel(f"{row.name}_d{operand}")
            saved = row.saved(operand)
            for j, name in enumerate(row.operands):
                self.partial_reads[k] |= (name in saved) << j
            self.partial_reads[k] |= ("y" in saved) << RESULT

    cdef object reading(self, int k):
        """Return the tensor reading of `g * partial`, compiled at its first use."""
        if self.partial_readings[k] is None:
            row, operand = self.row, self.row.operands[k]
            saved = row.saved(operand)
            arguments = ["g", *(name for name in (*row.operands, "y") if name in saved), *row.params]
            tree = row.backward(operand)
            for j, name in enumerate(row.operands):
                self.takes_numbers[k] |= formula.takes_number(tree, name) << j
            self.partial_readings[k] = formula.to_tensor_function(tree, arguments, functions, row.name)
        return self.partial_readings[k]

    def __repr__(self):
        return f"<cygrad operator {self.name}>"

    def __call__(self, *arguments, out=None, **keywords):
        """Call the operator with all its operands and parameters, by position or keyword."""
        return self.run(arguments, keywords, out, False)

    def in_place(self, *arguments, **keywords):
        """Call the operator and write the result into its first operand."""
        return self.run(arguments, keywords, arguments[0], True)

    cdef object run(self, tuple arguments, dict keywords, object out, bint in_place):
        cdef Value values[OPERANDS]
        cdef double params[MAX_PARAMS]
        cdef list given = list(arguments), alive = []
        cdef int k
        if len(given) > len(self.arguments):
            raise TypeError(f"{self.name}() takes {len(self.arguments)} arguments ({', '.join(self.arguments)}) but {len(given)} were "
                            "given")
        for k in range(<int>len(given), <int>len(self.arguments)):
            name = self.arguments[k]
            if name in keywords:
                given.append(keywords.pop(name))
            elif k < self.arity:
                raise TypeError(f"{self.name}() missing required argument: '{name}' (position {k + 1})")
            else:
                given.append(self.defaults[k - self.arity])
        if keywords:
            raise TypeError(f"{self.name}() got an unexpected keyword argument '{next(iter(keywords))}'; "
                            f"it takes {', '.join(self.arguments)}")
        for k in range(self.arity):
            alive.append(to_value(given[k], &values[k]))
            if alive[k] is NotImplemented:
                raise operand_error(self.name, self.arguments[k], k + 1, given[k])
        for k in range(self.params):
            params[k] = PyFloat_AsDouble(given[self.arity + k])
        return elementwise(self, values, params, out_argument(self.name, out), in_place)


def operand_error(name, argument, position, value):
    """Return the TypeError for an operand that is neither a tensor nor (beside a tensor) a number."""
    return TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}")


ops = {name: Op(row) for name, row in ELEMENTWISE.items()}
