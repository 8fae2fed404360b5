# cython: cdivision=True
"""Rows of elementwise operators (see rows.pxd for the contract)."""
cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from cygrad._core.graph.node cimport RESULT
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.memory.upward cimport upward
from cygrad._core.operands.operands cimport to_number, to_value
from cygrad._kernels.drivers.elementwise cimport (CG_DTYPES, MAX_PARAMS, cg_is_complex, cg_is_differentiable, cg_itemsize, cg_loops_of,
                                                  elementwise_kernel)

from cygrad.ops import formula
from cygrad.ops.dtypes import DTYPES, NUMBER, result_dtype

PUBLIC_NAMES = {"x": "input", "a": "input", "b": "other"}


@cython.binding(False)
cdef class Row:
    """An elementwise operator of the table: its kernels, and the values that the gradients of its operands read."""

    def __cinit__(self, row):
        cdef int k
        self.row, self.name = row, row.name
        self.title = row.name if row.method else next((alias for alias in row.aliases if alias.startswith("special_")), row.name)
        self.node_name = (row.node or "".join(word.capitalize() for word in row.name.split("_"))) + "Backward0"
        self.kernel = elementwise_kernel(row.name)
        self.arity, self.params, self.cost = len(row.operands), len(row.params), row.cost
        self.converts = "f" in row.kinds and "i" not in row.kinds and not row.no_integers
        self.bool_result, self.checks_integers, self.refuses_bools = row.result == "bool", row.integers is not None, row.no_bools
        self.counts_bools, self.checks_params = row.counts_bools, row.bad_params is not None
        self.simple = self.arity <= 2 and not self.params and not row.masks and not self.checks_integers
        self.differentiable, self.defaults = bool(row.partials), tuple(row.params.values())
        for k in range(CG_DTYPES):
            self.computes[k] = dtypes[k].kind in row.kinds
            self.results[k] = NUMBER[result_dtype(DTYPES[k], row.result).name]
        self.arguments = tuple([PUBLIC_NAMES.get(name, name) for name in row.operands]) + tuple(row.params)
        self.partial_readings = [None] * (3 * OPERANDS)
        for k, operand in enumerate(row.operands):
            if operand in row.masks:
                self.masks |= 1 << k
            if operand in row.bounds:
                self.bounds |= 1 << k
            if operand in row.tensors:
                self.tensors |= 1 << k
            if operand not in row.partials:
                continue
            self.partial_form[k] = IDENTITY if row.partials[operand] == "1" else KERNEL
            self.partial_kernel[k] = elementwise_kernel(f"{row.name}_d{operand}")
            saved = row.saved(operand)
            for j, name in enumerate(row.operands):
                self.partial_reads[k] |= (name in saved) << j
            self.partial_reads[k] |= ("y" in saved) << RESULT

    cdef object reading(self, int k, int form):
        """Return the tensor reading of `g * partial`, compiled at its first use."""
        cdef int number = k + OPERANDS * form
        if self.partial_readings[number] is None:
            row, operand = self.row, self.row.operands[k]
            saved = row.saved(operand)
            arguments = ["g", *(name for name in (*row.operands, "y") if name in saved), *row.params]
            tree = row.tangent(operand) if form == OF_TANGENT else row.backward(operand)
            for j, name in enumerate(row.operands):
                self.takes_numbers[k] |= formula.takes_number(tree, name) << j
            self.partial_readings[number] = formula.to_tensor_function(tree, arguments, upward.functions, row.name, form != OF_REAL)
        return self.partial_readings[number]


cdef bint reads_operand(Row op, int operand) noexcept:
    cdef int k
    for k in range(op.arity):
        if op.partial_form[k] == KERNEL and op.partial_reads[k] >> operand & 1:
            return True
    return False


cdef bint read_param(object argument, Value* value) except -1:
    """Read a parameter: a number, or a tensor of a single element. False: it is another object, which may override operators."""
    alive = to_value(argument, value)
    if alive is not NotImplemented and value.tensor is not NULL:
        to_value((<object>value.tensor).item(), value)
    return alive is not NotImplemented


cdef object factor_error(Row op, int k, str kind):
    from cygrad.ops.refusals import refused_factor
    return refused_factor(op.arguments[op.arity + k], kind)


cdef int pack_params(Row op, const Value* params, int dtype, cg_number* packed) except -1:
    """Lay the parameters out as an array of the dtype that is computed in, and 0 behind it."""
    cdef Value value
    cdef int k
    dtype = cg_loops_of[dtype]
    memset(packed, 0, MAX_PARAMS * sizeof(cg_number))
    for k in range(op.params):
        value = params[k]
        if not cg_is_complex[dtype] and value.kind == b"c":
            raise factor_error(op, k, "c")
        if not cg_is_differentiable[dtype] and value.kind == b"f" and value.real != <double><int64_t>value.real:
            raise factor_error(op, k, "f")
        to_number(&value, dtype)
        memcpy(<char*>packed + k * cg_itemsize[dtype], &value.number, cg_itemsize[dtype])
    return 0
