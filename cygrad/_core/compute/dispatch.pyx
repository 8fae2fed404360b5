# cython: cdivision=True
"""Elementwise operators, called (see dispatch.pxd for the contract)."""
cimport cython
from cpython.float cimport PyFloat_AsDouble
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t

from cygrad._core.compute.inplace cimport as_before, check_in_place, cut_history, rebase, take_history
from cygrad._core.compute.mapping cimport AT_ONCE, WAITS, is_simple, map_kernel, map_simple
from cygrad._core.compute.recording cimport any_needs_grad, elementwise_node
from cygrad._core.compute.rows cimport NO_PARTIAL, OPERANDS, Row, pack_params, read_param, reads_operand
from cygrad._core.graph.constants cimport tensor_of_number
from cygrad._core.graph.history cimport attach
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.tensor cimport (INFERENCE, REQUIRES_GRAD, TensorImpl, VIEW, count_change, needs_grad, overriding, place_of,
                                        special_active)
from cygrad._core.levels.batches cimport is_special
from cygrad._core.levels.observers cimport begin_event, end_event, next_sequence_nr, profiling_threads, observes_operands
from cygrad._core.levels.overrides cimport ask, is_asked
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport default_dtype
from cygrad._core.memory.upward cimport upward
from cygrad._core.operands.operands cimport (Value, any_followed, broadcast, check_cast, check_no_bools, check_out, copy_of, holding_all,
                                             out_argument, out_shape_error, overlaps, promoted, python_number, refused, shape_is,
                                             to_number, to_value)
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT64, CG_INT64, MAX_DIMS, MAX_PARAMS, cg_complex, cg_is_complex,
                                                  cg_is_differentiable, cg_is_floating_point, cg_is_integer, cg_loops_of, cg_number)

from cygrad.ops import ELEMENTWISE


cdef int result_dtype(Row op, const Value* values, TensorImpl target) except -1:
    """Return the common dtype of the operands to compute in; kinds that the row lacks are converted or refused.

    Torch's first error is about a target that could not take the result either.
    """
    cdef int k, numbers = 0, dtype
    for k in range(op.arity if op.bounds else 0):
        if op.bounds >> k & 1 and values[k].tensor is NULL:
            numbers = op.bounds
    dtype = promoted(op.arity, values, op.masks, numbers)
    if op.refuses_bools:
        check_no_bools(op.name, op.arity, values)
    if op.bool_result and cg_is_integer[dtype]:
        dtype = holding_all(op.arity, values, dtype)        # so that comparisons are exact
    if op.computes[dtype]:
        return dtype
    if op.converts and not cg_is_differentiable[dtype]:
        return CG_FLOAT64 if op.bool_result else default_dtype()
    if op.counts_bools and dtype == CG_BOOL:
        return CG_INT64
    if target is not None and not op.bool_result:
        check_cast(dtype, target.dtype_nr)
    raise refused(op.name, dtype, op.row.kinds)


cdef inline bint joins(char kind, int dtype) noexcept:
    """Return True if a number of a kind, beside a tensor of a dtype of floating-point numbers, is one of that dtype."""
    return cg_is_differentiable[dtype] and kind != b"b" and (kind != b"c" or cg_is_complex[dtype])


cdef object elementwise(Row op, Value* values, const Value* params, TensorImpl target, bint in_place):
    """Compute an operator, into `target` if given, and record it if a gradient is asked for."""
    if special_active:
        return observed(op, values, params, target, in_place)
    return compute_ordinary(op, values, params, target, in_place)


cdef object observed(Row op, Value* values, const Value* params, TensorImpl target, bint in_place):
    """Compute an operator in a profile, or with a special tensor, or have a class or a mode compute it."""
    cdef Py_ssize_t event = 0
    cdef int k
    cdef dict keywords
    if profiling_threads:
        event = begin_event(op.name + "_" if in_place else op.name, operands_of(op, values) if observes_operands() else None,
                            next_sequence_nr())
    try:
        if overriding and asks_others(op, values, target):
            keywords = keywords_of(op, params)
            if target is not None and not in_place:
                keywords["out"] = target
            result = ask(op.name + "_" if in_place else op.name, operands_of(op, values), keywords)
            if result is not NotImplemented:
                return result
        if target is not None and is_special(target):
            return upward.special_elementwise(op, values, params, target, in_place)
        for k in range(op.arity):
            if values[k].tensor is not NULL and is_special(<TensorImpl>values[k].tensor):
                return upward.special_elementwise(op, values, params, target, in_place)
        return compute_ordinary(op, values, params, target, in_place)
    finally:
        end_event(event)


cdef TensorImpl tensor_of_value(Value* number):
    """Make an operand that is a number a 0-d tensor, of the dtype that the number alone has."""
    cdef int dtype = CG_BOOL if number.kind == b"b" else CG_INT64 if number.kind == b"i" else default_dtype()
    cdef Value written = number[0]
    cdef TensorImpl result
    if number.kind == b"c":
        dtype = cg_complex[dtype]
    to_number(&written, cg_loops_of[dtype])
    result = tensor_of_number(&written.number, cg_loops_of[dtype])
    if cg_loops_of[dtype] != dtype:
        result = copy_of(result, dtype)
    number.tensor = <PyObject*>result
    return result


cdef bint asks_others(Row op, const Value* values, TensorImpl target):
    """Return True if a class of the operands, or a mode of this thread, has a say in the result."""
    cdef int k
    if is_asked(target):
        return True
    for k in range(op.arity):
        if values[k].tensor is not NULL and is_asked(<TensorImpl>values[k].tensor):
            return True
    return False


cdef dict keywords_of(Row op, const Value* params):
    """Return the parameters as Python's numbers, by their names."""
    return {op.arguments[op.arity + k]: python_number(&params[k]) for k in range(op.params)}


cdef tuple operands_of(Row op, const Value* values):
    """Return the operands as Python objects."""
    return tuple([<object>values[k].tensor if values[k].tensor is not NULL else python_number(&values[k]) for k in range(op.arity)])


cdef TensorImpl compute_ordinary(Row op, Value* values, const Value* params, TensorImpl target, bint in_place):
    """Compute an operator of which nothing is special."""
    cdef int dtype, out_dtype, k, j
    cdef unsigned flags = 0
    cdef bint recorded = False
    cdef cg_number converted_params[MAX_PARAMS]
    cdef const void* loop_params = NULL
    cdef TensorImpl result, tensor, snapshot
    cdef intptr_t shape[MAX_DIMS]
    cdef list copies
    # The common case first: tensors of one dtype that the row computes in, and results of their own.
    if target is None and op.simple and values[0].tensor is not NULL:
        dtype = (<TensorImpl>values[0].tensor).dtype_nr
        if ((op.arity == 1 or values[1].tensor is not NULL or joins(values[1].kind, dtype))
                and is_simple(op.kernel, dtype, op.arity, values)):
            if op.arity == 2 and values[1].tensor is NULL:
                to_number(&values[1], cg_loops_of[dtype])
            result = map_simple(op.kernel, dtype, op.results[dtype], op.arity, values, NULL, None)
            flags = (<TensorImpl>values[0].tensor).flags
            if op.arity == 2 and values[1].tensor is not NULL:
                flags |= (<TensorImpl>values[1].tensor).flags
            if flags & (REQUIRES_GRAD | VIEW) and op.differentiable and grad_mode()[0] and any_needs_grad(op.arity, values):
                attach(result, elementwise_node(op, dtype, values, result, NULL, True), 0)
            return result
    for k in range(op.arity):
        if values[k].tensor is not NULL and not op.masks >> k & 1:
            flags |= (<TensorImpl>values[k].tensor).flags
    dtype = result_dtype(op, values, target)
    for k in range(op.arity):
        if values[k].tensor is NULL:
            to_number(&values[k], CG_BOOL if op.masks >> k & 1 else cg_loops_of[dtype])
    out_dtype = op.results[dtype]
    if flags & (REQUIRES_GRAD | VIEW) and grad_mode()[0] and cg_is_differentiable[dtype]:
        for k in range(op.arity):
            recorded = recorded or (op.partial_form[k] != NO_PARTIAL and values[k].tensor is not NULL
                                    and needs_grad(<TensorImpl>values[k].tensor))
        if flags & INFERENCE:
            recorded = recorded and any_followed(op.arity, values)
    if op.checks_integers and cg_is_integer[dtype]:
        check_integers(op, &values[1])
    if op.params:
        pack_params(op, params, dtype, converted_params)
        loop_params = converted_params
    if target is None:
        result = map_kernel(op.kernel, dtype, out_dtype, op.masks, op.arity, values, loop_params, op.cost, None, False,
                            WAITS if recorded else AT_ONCE)
        if recorded:
            attach(result, elementwise_node(op, dtype, values, result, converted_params if op.params else NULL, False), 0)
        return result

    # Into a target: in place, or out=.
    if in_place and cg_is_complex[dtype] and cg_is_floating_point[out_dtype]:
        raise RuntimeError(f"In-place {op.name} is not supported for complex tensors.")
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
            snapshot = copy_of(tensor, tensor.dtype_nr)
            if recorded:
                take_history(snapshot, tensor)
        elif recorded and tensor is not target:
            snapshot = as_before(tensor, target)
        else:
            continue
        copies.append(snapshot)
        values[k].tensor = <PyObject*>snapshot
    map_kernel(op.kernel, dtype, out_dtype, op.masks, op.arity, values, loop_params, op.cost, target)
    count_change(target)
    if recorded:
        rebase(target, elementwise_node(op, dtype, values, target, converted_params if op.params else NULL, False))
    elif in_place and grad_mode()[0] and needs_grad(target):
        cut_history(target)
    return target


cdef int check_integers(Row op, const Value* second) except -1:
    """Refuse an integer division by zero, and a negative number as exponent of integers, as torch does."""
    if op.row.integers == "divisor":
        if second.integer == 0 if second.tensor is NULL else not bool((<object>second.tensor).all()):
            raise RuntimeError("ZeroDivisionError: integer division by zero; divide floats instead, or mask the zeros")
    elif second.tensor is NULL and second.integer < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed. Convert the base first, e.g. with .float()")
    return 0


# ----- Operators as objects -----
@cython.final
@cython.binding(False)
cdef class Op(Row):
    """An elementwise operator of the table, ready to be called."""

    def __repr__(self):
        return f"<cygrad operator {self.name}>"

    def __call__(self, *arguments, out=None, **keywords):
        """Call the operator with all its operands and parameters, by position or keyword."""
        return self.run(arguments, keywords, out, False, 0)

    def function(self, *arguments, out=None, **keywords):
        """Call the operator as torch's function: some of its operands are no numbers."""
        return self.run(arguments, keywords, out, False, self.tensors)

    def in_place(self, *arguments, **keywords):
        """Call the operator and write the result into its first operand."""
        return self.run(arguments, keywords, arguments[0], True, self.tensors)

    cdef object overridden(self, list call, object out, bint in_place):
        """Return the answer of a class that overrides; NotImplemented if there is none."""
        named = dict(zip(self.arguments[self.arity:], call[self.arity:], strict=True))
        return ask(self.name + "_" if in_place else self.name, tuple(call[:self.arity]),
                   named if out is None or in_place else {**named, "out": out})

    cdef object run(self, tuple arguments, dict keywords, object out, bint in_place, int tensors):
        """Call the operator; bits of `tensors` are operands that must not be numbers."""
        cdef Value values[OPERANDS]
        cdef Value params[MAX_PARAMS]
        cdef list call = list(arguments), alive = []
        cdef bint of_tensors = False, wrong
        cdef int k
        if len(call) > len(self.arguments):
            raise TypeError(f"{self.name}() takes {len(self.arguments)} arguments ({', '.join(self.arguments)}) but {len(call)} were "
                            "given")
        for k in range(<int>len(call), <int>len(self.arguments)):
            name = self.arguments[k]
            if name in keywords:
                call.append(keywords.pop(name))
            elif k < self.arity:
                raise TypeError(f"{self.name}() missing required argument: '{name}' (position {k + 1})")
            else:
                call.append(self.defaults[k - self.arity])
        if keywords:
            raise TypeError(f"{self.name}() got an unexpected keyword argument '{next(iter(keywords))}'; "
                            f"it takes {', '.join(self.arguments)}")
        for k in range(self.arity):
            alive.append(to_value(call[k], &values[k]))
            of_tensors |= alive[k] is not NotImplemented and values[k].tensor is not NULL
            wrong = alive[k] is NotImplemented or tensors >> k & 1 and values[k].tensor is NULL
            if wrong or k == self.arity - 1 and not of_tensors and not self.row.of_numbers:
                answer = self.overridden(call, out, in_place)
                if answer is NotImplemented:
                    raise operand_error(self, tuple(call[:self.arity]), k + 1 if wrong else 1)
                return answer
        if not of_tensors:
            alive[0] = tensor_of_value(&values[0])
        for k in range(self.params):
            if not read_param(call[self.arity + k], &params[k]):
                answer = self.overridden(call, out, in_place)
                if answer is not NotImplemented:
                    return answer
                params[k].tensor, params[k].kind, params[k].real = NULL, b"f", PyFloat_AsDouble(call[self.arity + k])
        if self.checks_params:
            check_params(self, params)
        return elementwise(self, values, params, out_argument(self.name, out), in_place)


cdef int check_params(Row op, const Value* params) except -1:
    """Refuse the parameters that the row refuses; complex ones are refused beside the operands."""
    cdef list numbers = [python_number(&params[k]) for k in range(op.params)]
    are_bad, error = op.row.bad_params
    if complex not in map(type, numbers) and are_bad(*numbers):
        words = [f"{name}={number}" for name, number in zip(op.arguments[op.arity:], numbers, strict=True)]
        raise type(error)(f"{error}, but found {', '.join(words)}")
    return 0


cdef object explained_error(str name, object error, tuple arguments, dict keywords):
    """Return the error of a call that says which argument was wrong; None where the given one says so, or no argument was wrong."""
    return None if upward.explain is None else upward.explain(name, error, arguments, keywords)


cdef object with_wrong_operand(Row op, str name, tuple operands, dict keywords, int position):
    """Return the answer of a class that overrides for a call with a wrong operand, the first of which is at a position; else raise."""
    result = ask(name, operands, keywords)
    if result is NotImplemented:
        raise operand_error(op, operands, position)
    return result


def operand_error(Row op not None, tuple operands not None, int position):
    """Return the TypeError for an operand that is neither a tensor nor (beside a tensor) a number."""
    error = TypeError(f"{op.title}(): argument '{op.arguments[position - 1]}' (position {position}) must be Tensor, not "
                      f"{type(operands[position - 1]).__name__}")
    return op.row.forms and explained_error(op.title, error, operands, {}) or error


ops = {name: Op(row) for name, row in ELEMENTWISE.items()}
