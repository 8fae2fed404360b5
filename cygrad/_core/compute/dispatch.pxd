"""Elementwise operators: from a row of the table and operands to a result and, if needed, a node.

`elementwise` is the one way in: it promotes, computes and records, and hands special tensors to `entry`.
"""
from cygrad._core.compute.rows cimport Row
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.operands.operands cimport Value

cdef class Op(Row):
    cdef object overridden(self, list call, object out, bint in_place)
    cdef object run(self, tuple arguments, dict keywords, object out, bint in_place, int tensors)

cdef int result_dtype(Row op, const Value* values, TensorImpl target) except -1
cdef tuple operands_of(Row op, const Value* values)
cdef dict keywords_of(Row op, const Value* params)
cdef TensorImpl tensor_of_value(Value* number)
cdef object explained_error(str name, object error, tuple arguments, dict keywords)
cdef object with_wrong_operand(Row op, str name, tuple operands, dict keywords, int position)
cdef object elementwise(Row op, Value* values, const Value* params, TensorImpl target, bint in_place)
