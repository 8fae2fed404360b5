"""Operators on special tensors: batches are unfolded first, then tangents are handed on, level by level; sparse ones go to their rules.

Elementwise operators come here from `dispatch`, all others are `Operator`s, whose ways with batches and tangents are rows of
`ops/transforms`. The value at a level of forward mode is computed with that level and all higher ones out of sight (`hide`), and so
is its tangent, which carries its own tangents of lower levels.
"""
from cpython.object cimport PyObject

from cygrad._core.compute.dispatch cimport elementwise, keywords_of, operands_of, result_dtype
from cygrad._core.compute.mapping cimport map_kernel
from cygrad._core.compute.recording cimport any_needs_grad, in_dtype
from cygrad._core.compute.rows cimport IDENTITY, NO_PARTIAL, OF_REAL, OF_TANGENT, Row, pack_params
from cygrad._core.graph.constants cimport tensor_of_number, zero
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.node cimport RESULT
from cygrad._core.graph.noted_calls cimport noted_call
from cygrad._core.graph.notes cimport is_noting
from cygrad._core.graph.tensor cimport BATCHED, FRONT, TensorImpl, VIEW, empty_like, needs_grad, overriding
from cygrad._core.levels.batches cimport Batch, batch_of, enter, is_special, kernel_batch, leave
from cygrad._core.levels.level cimport Hidden, Level, hide, show
from cygrad._core.levels.overrides cimport ask, is_asked, sparse_result
from cygrad._core.levels.sparse cimport any_sparse
from cygrad._core.levels.tangents cimport Dual, add_tangent, visible_dual
from cygrad._core.memory.upward cimport special_function, upward
from cygrad._core.operands.operands cimport Value, python_number, to_number
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, MAX_OPERANDS, MAX_PARAMS, cg_is_differentiable, cg_loops_of,
                                                  cg_number, cg_real)
from cygrad._kernels.system.recursion cimport enter_container, leave_container

from inspect import unwrap

import numpy as np

from cygrad._core.levels.tangents import tangent_of

# ----- Elementwise operators -----
cdef TensorImpl special_elementwise(Row op, Value* values, const Value* params, TensorImpl target, bint in_place):
    """Compute an elementwise operator of which an operand or the target is special."""
    cdef Level level = None, other
    cdef TensorImpl before
    cdef Dual dual
    cdef int k
    if any_sparse([target] if target is not None else []) or any_sparse(tensors_of(operands_of(op, values))):
        return of_sparse(op, values, params, target, in_place)
    if in_place:
        before = <TensorImpl>(<object>target).clone()       # the graph may save this
        values[0].tensor = <PyObject*>before
        return write_result(target, elementwise(op, values, params, None, False))
    for k in range(op.arity):
        if values[k].tensor is not NULL and (<TensorImpl>values[k].tensor).flags & BATCHED:
            other = batch_of(<TensorImpl>values[k].tensor).level
            if level is None or other.number > level.number:
                level = other
    if target is not None:
        raise out_error(op.name, batch_of(target).level if target.flags & BATCHED else level)
    if level is not None:
        return batched_elementwise(op, values, params, level)
    for k in range(op.arity):
        dual = None if values[k].tensor is NULL else visible_dual(<TensorImpl>values[k].tensor)
        if dual is not None and (level is None or dual.level.number > level.number):
            level = dual.level
    return dual_elementwise(op, values, params, level)


cdef TensorImpl of_sparse(Row op, Value* values, const Value* params, TensorImpl target, bint in_place):
    """Compute an elementwise operator of which an operand or the target is a sparse tensor."""
    cdef dict keywords = keywords_of(op, params)
    if target is not None and not in_place:
        keywords["out"] = target
    return sparse_result(op.name + "_" if in_place else op.name, operands_of(op, values), keywords)


cdef TensorImpl write_result(TensorImpl target, TensorImpl result):
    """Write the result of an operator on a special tensor into that tensor."""
    from cygrad._core.compute.inplace import check_replacement
    check_replacement(target, result)
    return (<object>target).copy_(result)


cdef TensorImpl batched_elementwise(Row op, Value* values, const Value* params, Level level):
    """Compute all examples at once: their dim in front, dims that an example has less than others behind that."""
    cdef list alive = []
    cdef TensorImpl tensor
    cdef int k, ndim = 0, dtype = result_dtype(op, values, None)
    for k in range(op.arity):
        if values[k].tensor is not NULL:
            ndim = max(ndim, (<TensorImpl>values[k].tensor).ndim)
    for k in range(op.arity):
        if values[k].tensor is NULL:
            continue
        tensor = <TensorImpl>values[k].tensor
        if tensor.ndim == 0 and not op.masks >> k & 1:
            tensor = in_dtype(tensor, dtype)        # the dim of examples would give it a say in the dtype
            alive.append(tensor)
            values[k].tensor = <PyObject*>tensor
        # Tensors that are the same for all examples broadcast.
        if level.varies(tensor):
            tensor = enter(tensor, level)
            if tensor.ndim <= ndim:
                tensor = (<object>tensor)[(slice(None),) + (None,) * (ndim + 1 - tensor.ndim)]
            alive.append(tensor)
            values[k].tensor = <PyObject*>tensor
    return leave(elementwise(op, values, params, None, False), level)


cdef TensorImpl dual_elementwise(Row op, Value* values, const Value* params, Level level):
    """Compute the value, then the sum of each operand's partial times its tangent."""
    cdef Hidden hidden
    cdef TensorImpl result, part, tangent = None
    cdef int k, dtype
    hide(&hidden, level)
    try:
        result = elementwise(op, values, params, None, False)
        if op.differentiable and cg_is_differentiable[result.dtype_nr]:
            dtype = result_dtype(op, values, None)
            for k in range(op.arity):
                if values[k].tensor is NULL or op.partial_form[k] == NO_PARTIAL or op.masks >> k & 1:
                    continue
                part = tangent_of(<TensorImpl>values[k].tensor, level)
                if part is None:
                    continue
                part = in_dtype(part, dtype)
                if op.partial_form[k] != IDENTITY:
                    part = partial_product(op, k, part, values, params, dtype, result)
                tangent = part if tangent is None else <TensorImpl>(<object>tangent + <object>part)
            if tangent is not None:
                if (<object>tangent).shape != (<object>result).shape:
                    tangent = (<object>tangent).expand((<object>result).shape)
                add_tangent(result, level, tangent)
    finally:
        show(&hidden)
    return result


cdef TensorImpl partial_product(Row op, int k, TensorImpl tangent, Value* values, const Value* params, int dtype, TensorImpl result):
    """Return tangent * partial for operand k: by the fused kernel of the backward, or by the formula, where that must be differentiable
    or the product with a complex tangent is another one.
    """
    cdef int reads = op.partial_reads[k], masks = 0, count = 1, j
    cdef Value operands[MAX_OPERANDS - 1]
    cdef cg_number packed[MAX_PARAMS]
    cdef TensorImpl tensor
    cdef list arguments
    cdef Batch batch = kernel_batch(tangent) if is_special(tangent) else None
    cdef TensorImpl inner = tangent if batch is None else batch.inner
    cdef int form = OF_REAL if cg_real[dtype] == dtype else OF_TANGENT
    cdef bint by_formula = (form == OF_TANGENT or is_special(inner)
                            or grad_mode()[0] != 0 and (needs_grad(inner) or any_needs_grad(op.arity, values)))
    for j in range(op.arity):
        if reads >> j & 1 and values[j].tensor is not NULL:
            tensor = <TensorImpl>values[j].tensor
            by_formula = by_formula or is_special(tensor) or batch is not None and tensor.ndim > tangent.ndim
    if reads >> RESULT & 1:
        by_formula = by_formula or is_special(result) or batch is not None and result.ndim > tangent.ndim
    if by_formula:
        arguments = [tangent]
        for j in range(op.arity):
            if reads >> j & 1:
                arguments.append(scalar(&values[j], CG_BOOL if op.masks >> j & 1 else dtype) if values[j].tensor is NULL
                                 else <TensorImpl>values[j].tensor if op.masks >> j & 1
                                 else in_dtype(<TensorImpl>values[j].tensor, dtype))
        if reads >> RESULT & 1:
            arguments.append(result)
        for j in range(op.params):
            arguments.append(python_number(&params[j]))
        product = op.reading(k, form)(*arguments)
        return product if isinstance(product, TensorImpl) else (<object>result).new_zeros((<object>result).shape)
    operands[0].tensor = <PyObject*>inner
    for j in range(op.arity):
        if reads >> j & 1:
            operands[count] = values[j]
            if operands[count].tensor is NULL:
                to_number(&operands[count], CG_BOOL if op.masks >> j & 1 else cg_loops_of[dtype])
            masks |= (op.masks >> j & 1) << count
            count += 1
    if reads >> RESULT & 1:
        operands[count].tensor = <PyObject*>result
        count += 1
    if op.params:
        pack_params(op, params, dtype, packed)
    tensor = map_kernel(op.partial_kernel[k], dtype, dtype, masks, count, operands, packed if op.params else NULL, op.cost, None)
    return tensor if batch is None else leave(tensor, batch.level)


cdef TensorImpl scalar(Value* value, int dtype):
    """Return an operand that is a number as a tensor."""
    dtype = cg_loops_of[dtype]
    to_number(value, dtype)
    return tensor_of_number(&value.number, dtype)


upward.special_elementwise = <special_function>special_elementwise


# ----- All other operators -----
cdef enum:
    EXPLAINED = 1000                # examples that an error is looked for in


cdef int any_special(PyObject** arguments, Py_ssize_t count) except -1:
    """Return True if an argument, or an item of a list or tuple among them, is a special tensor (1), or of a class that overrides (2).

    4 more where calls are noted.
    """
    cdef Py_ssize_t k
    cdef int result = 0
    cdef object argument, item
    if overriding and is_asked(None):
        return 2
    if is_noting():
        result = 4
    for k in range(count):
        argument = <object>arguments[k]
        if isinstance(argument, TensorImpl):
            if is_asked(<TensorImpl>argument):
                return 2
            result |= is_special(<TensorImpl>argument)
        elif isinstance(argument, (tuple, list)):
            for item in argument:
                if isinstance(item, TensorImpl):
                    if is_asked(<TensorImpl>item):
                        return 2
                    result |= is_special(<TensorImpl>item)
    return result


cpdef list tensors_of(object arguments):
    """Return the tensors among arguments and in lists and tuples among them."""
    cdef list tensors = []
    cdef object argument
    for argument in arguments:
        if isinstance(argument, TensorImpl):
            tensors.append(argument)
        elif isinstance(argument, (tuple, list)):
            tensors.extend([item for item in argument if isinstance(item, TensorImpl)])
    return tensors


def over_tensors(function, value):
    """Return a value with a function applied to the tensors in it: itself, or those in a tuple or list, named ones included."""
    if isinstance(value, TensorImpl):
        return function(value)
    if isinstance(value, (tuple, list)):
        enter_container(" while arguments are read")
        try:
            items = [over_tensors(function, item) for item in value]
        finally:
            leave_container()
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


cdef bint any_special_of(tuple arguments, dict keywords):
    """Return True if an argument of a call is a special tensor."""
    cdef TensorImpl tensor
    for tensor in tensors_of(arguments) + tensors_of(keywords.values()):
        if is_special(tensor):
            return True
    return False


cdef object call_special(object op, object arguments, object keywords):
    """Call an operator of which an argument is special, or of a class that overrides, or whose calls are noted."""
    if overriding:
        result = ask(op, arguments, keywords)
        if result is not NotImplemented:
            return result
    if is_noting() and not any_special_of(arguments, keywords):
        return noted_call(op.function, arguments, keywords, False, FRONT)      # tangents are out of sight
    return call_on_special(op, arguments, keywords)


cdef tuple taken_first(object op, dict keywords):
    """Return the first parameter's argument, taken out of the keywords: the functions of declarations may have another name for it."""
    code = getattr(unwrap(op), "__code__", None)
    first = code.co_varnames[0] if code is not None and code.co_argcount else None
    return (keywords.pop(first),) if first in keywords else ()


cdef object call_on_special(object op, tuple arguments, dict keywords):
    cdef str name = op.name
    cdef Level level = None
    cdef TensorImpl tensor
    cdef Dual dual
    cdef list tensors
    if keywords and not arguments:
        arguments = taken_first(op, keywords)
    tensors = tensors_of(arguments)
    if keywords:
        tensors += tensors_of(keywords.values())
    if any_sparse(tensors):
        return sparse_result(op, arguments, keywords)
    for tensor in tensors:
        if tensor.flags & BATCHED and (level is None or batch_of(tensor).level.number > level.number):
            level = batch_of(tensor).level
    if keywords.pop("out", None) is not None:
        raise out_error(name, level)
    transform = op.declaration
    if transform is None:
        transform = upward.declaration_of(name)
    if transform is None:
        raise NotImplementedError(f"{name}() takes no tensors with tangents of forward mode, nor those inside of vmap")
    if transform.forward is None and transform.batch is None and transform.parts is None:       # composed of others
        return op.function(*arguments, **keywords)
    if transform.parts is not None or level is not None:
        try:
            result = NotImplemented if transform.parts is None else transform.parts(*arguments, **keywords)
            if result is NotImplemented and level is not None and transform.batch is not None:
                return transform.batch(level, op, *arguments, **keywords)
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            if not str(error).startswith("vmap: ") and not isinstance(error, np.linalg.LinAlgError):     # which names the example
                explain(op, arguments, keywords, level)
            raise
        if result is not NotImplemented:
            return result
    for tensor in tensors if level is None else ():
        dual = visible_dual(tensor)
        if dual is not None and (level is None or dual.level.number > level.number):
            level = dual.level
    if level is None:
        return op.function(*arguments, **keywords)
    if level.size >= 0 or transform.forward is None:
        explain(op, arguments, keywords, level)
        raise NotImplementedError(f"{name}() has no rule for these arguments where one has a tangent of forward mode, or is inside of vmap")
    return dual_call(level, op, transform.forward, arguments, keywords)


cdef object out_error(str name, Level level):
    """Return the error of a call with out= of which an argument is special; `level`: of its batch."""
    if level is None:
        return NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an out= function. Use "
                                   "the result instead of out=.")
    return RuntimeError(f"Batching rule not implemented for {name}.out; the fallback path doesn't work on out= or view ops. Use the result "
                        "instead of out=.")


def zeros_of(TensorImpl tensor):
    """Return zeros of the shape and dtype of a tensor, nothing special about them."""
    cdef TensorImpl result = empty_like(tensor, tensor.dtype_nr)
    zero(result)
    return result


def example_of(Level level not None, Py_ssize_t number):
    """Return a function that gives a copy of one example of a tensor."""
    return lambda tensor: level.enter(tensor).select(0, number).clone()


cdef object explain(object op, tuple arguments, dict keywords, Level level):
    """Raise the error that an operator has for one of the first examples; return if it has none."""
    if level is None or level.size < 0:
        op.function(*over_tensors(zeros_of, arguments), **{name: over_tensors(zeros_of, value) for name, value in keywords.items()})
        return
    for number in range(min(level.size, EXPLAINED)):
        example = example_of(level, number)
        op(*over_tensors(example, arguments), **{name: over_tensors(example, value) for name, value in keywords.items()})


cdef object dual_call(Level level, object op, object forward, tuple arguments, dict keywords):
    """Compute values, then tangents, with the level out of sight, and join them."""
    cdef Hidden hidden
    hide(&hidden, level)
    try:
        result = op(*arguments, **keywords)     # lower levels first
        if shares_memory(result, arguments):
            return result       # and with that, tangents
        if isinstance(forward, str):
            tangents = upward.forward_rules[forward](level, op, result, *arguments, **keywords)
        else:
            tangents = forward(lambda tensor: tangent_of(tensor, level), op, result, *arguments, **keywords)
        join(level, result, tangents, arguments)
    finally:
        show(&hidden)
    return result


cdef bint shares_memory(object result, tuple arguments):
    """Return True if results are views of an argument."""
    cdef list views = tensors_of((result,))
    if not views or not (<TensorImpl>views[0]).flags & VIEW:
        return False
    for argument in arguments:
        if isinstance(argument, TensorImpl) and (<TensorImpl>argument).storage is (<TensorImpl>views[0]).storage:
            return True
    return False


cdef int join(Level level, object result, object tangents, tuple arguments) except -1:
    """Give each result its tangent; an argument that is returned as it is has its own."""
    cdef object item
    if isinstance(result, TensorImpl):
        if tangents is not None and cg_is_differentiable[(<TensorImpl>result).dtype_nr]:
            for item in arguments:
                if item is result:
                    return 0
            add_tangent(result, level, tangents)
    elif isinstance(result, (tuple, list)) and tangents is not None:
        enter_container(" while results get their tangents")
        try:
            for item, tangent in zip(result, tangents):
                join(level, item, tangent, arguments)
        finally:
            leave_container()
    return 0
