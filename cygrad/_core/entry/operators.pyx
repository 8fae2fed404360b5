# cython: c_api_binop_methods=True
"""The entries into dispatch for Python's operators and the elementwise functions, made from rows.

TensorBase has the operators as C slots; the factories make functions that bind as methods and cost no Python frame.
"""
cimport cython
from cpython.object cimport Py_EQ, Py_GT, Py_LE, Py_LT, Py_NE, PyObject

from cygrad._core.compute.dispatch cimport Op, elementwise, tensor_of_value, with_wrong_operand
from cygrad._core.compute.indexing cimport get_item, set_item
from cygrad._core.compute.reductions cimport decided_number, is_true
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.tensor cimport BATCHED, SPECIAL, TensorImpl, needs_grad, refuse_front, special_active
from cygrad._core.levels.observers cimport begin_event, end_event, next_sequence_nr, profiling_threads
from cygrad._core.levels.overrides cimport ask, is_asked
from cygrad._core.memory.looks cimport note_lasting_look
from cygrad._core.memory.storage cimport dtypes
from cygrad._core.operands.arrays cimport is_sparse, values_of
from cygrad._core.operands.operands cimport Value, out_argument, to_value
from cygrad._core.programs.pending cimport compute_memory
from cygrad._kernels.drivers.elementwise cimport cg_is_complex, cg_is_differentiable

import numpy

from cygrad._core.compute.dispatch import operand_error, ops
from cygrad._core.compute.products import matmul as matmul_function
from cygrad._core.memory.storage import OutOfMemoryError
from cygrad._core.entry.operator_object import make_operator

cdef Op ADD = ops["add"], SUB = ops["sub"], MUL = ops["mul"], DIV = ops["div"], FLOOR_DIVIDE = ops["floor_divide"]
cdef Op REMAINDER = ops["remainder"], POW = ops["pow"], NEG = ops["neg"], ABS = ops["abs"]
cdef Op AND = ops["bitwise_and"], OR = ops["bitwise_or"], XOR = ops["bitwise_xor"], NOT = ops["bitwise_not"]
cdef Op LEFT_SHIFT = ops["bitwise_left_shift"], RIGHT_SHIFT = ops["bitwise_right_shift"]
cdef Op LT = ops["lt"], LE = ops["le"], EQ = ops["eq"], NE = ops["ne"], GT = ops["gt"], GE = ops["ge"]


cdef enum:
    MOST_NUMBERS = 1 << 30      # in a list: more would be 32 GiB, and a tensor that repeats its elements may have any number


cdef object matmul = make_operator("matmul", matmul_function)


cdef inline object unary(Op op, TensorImpl x, TensorImpl out):
    cdef Value value
    value.tensor = <PyObject*>x
    return elementwise(op, &value, NULL, out, False)


cdef object binary(Op op, object a, object b):
    """Apply an operator to two operands, of which one is a tensor; NotImplemented for values that are no operands."""
    cdef Value values[2]
    left = to_value(a, &values[0])
    if left is NotImplemented:
        return foreign(op.name, a, b)
    right = to_value(b, &values[1])
    if right is NotImplemented:
        return foreign(op.name, a, b)
    return elementwise(op, values, NULL, None, False)


cdef object foreign(str name, object a, object b):
    """Return the answer of a class of an operand that overrides; NotImplemented if there is none."""
    try:
        return ask(name, (a, b), {})
    except TypeError:       # none of them computes it: Python asks the other operand
        return NotImplemented


cdef object in_place(Op op, TensorImpl a, object b):
    cdef Value values[2]
    values[0].tensor = <PyObject*>a
    right = to_value(b, &values[1])
    if right is NotImplemented or values[1].tensor is NULL and op.tensors & 2:
        return foreign(op.name + "_", a, b)
    return elementwise(op, values, NULL, a, True)


# Exponents whose powers another operator computes, as torch has it: quicker, and exact or correctly rounded.
cdef dict POWERS = {2: ops["square"], 0.5: ops["sqrt"], -0.5: ops["rsqrt"], -1: ops["reciprocal"]}


cdef object power(object a, object b):
    """Apply `**`, which is one operator in a profile, whichever computes it."""
    cdef Op op = POWERS.get(b) if isinstance(a, TensorImpl) and (type(b) is int or type(b) is float) else None
    if op is not None and is_asked(<TensorImpl>a):
        op = None       # the class is asked for the power
    cdef Py_ssize_t event = begin_event("pow", (a, b), next_sequence_nr()) if profiling_threads else 0
    try:
        if op is not None and op.computes[(<TensorImpl>a).dtype_nr] and (type(b) is int or cg_is_differentiable[(<TensorImpl>a).dtype_nr]):
            return unary(op, <TensorImpl>a, None)
        if isinstance(a, TensorImpl) and cg_is_complex[(<TensorImpl>a).dtype_nr] and type(b) in (int, float, complex) and b == 0:
            return binary(POW, unary(ABS, <TensorImpl>a, None), 0)._convert(a.dtype)       # 1 where a is 0, too
        return binary(POW, a, b)
    finally:
        end_event(event)


cdef bint warned_of_scalars = False


def warn_of_scalar(TensorImpl tensor not None, int stacklevel=1):
    """Warn, the first time, that a number taken from a tensor has lost its history."""
    global warned_of_scalars
    if warned_of_scalars or not grad_mode()[0] or not needs_grad(tensor):
        return
    warned_of_scalars = True
    import warnings
    warnings.warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                  "Consider using tensor.detach() first.", UserWarning, stacklevel=stacklevel)


cdef object computed_values(TensorImpl tensor):
    """Return the values as an array of NumPy; pending ones are computed without the GIL."""
    compute_memory(tensor.storage)
    return values_of(tensor)


cdef object only_element(TensorImpl tensor):
    if tensor.count != 1:
        raise ValueError(f"only one element tensors can be converted to Python scalars; this one has {tensor.count}")
    return noted_number(tensor)


cdef object noted_number(TensorImpl tensor):
    number = computed_values(tensor).item()
    if grad_mode()[0]:      # the node of an operator may have it
        note_lasting_look("its value is a number of an operator")
    return number


cdef object real_number(object number, str name):
    """Return a number without an imaginary part."""
    if isinstance(number, complex):
        if number.imag:
            raise RuntimeError(f"value cannot be converted to type {name} without overflow: {number} is complex")
        return number.real
    return number


cdef inline bint is_factor(object operand):
    return isinstance(operand, TensorImpl) or isinstance(operand, numpy.ndarray)


@cython.binding(False)
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class TensorBase(TensorImpl):
    """A tensor with Python's operators.

    The C slots get the operands in either order (c_api_binop_methods), and subclasses in Python inherit them as they are.
    """

    def __add__(left, right): return binary(ADD, left, right)
    def __sub__(left, right): return binary(SUB, left, right)
    def __mul__(left, right): return binary(MUL, left, right)
    def __truediv__(left, right): return binary(DIV, left, right)
    def __floordiv__(left, right): return binary(FLOOR_DIVIDE, left, right)
    def __mod__(left, right): return binary(REMAINDER, left, right)
    def __divmod__(left, right): return binary(FLOOR_DIVIDE, left, right), binary(REMAINDER, left, right)
    def __pow__(left, right, modulo): return power(left, right) if modulo is None else NotImplemented
    def __and__(left, right): return binary(AND, left, right)
    def __or__(left, right): return binary(OR, left, right)
    def __xor__(left, right): return binary(XOR, left, right)
    def __lshift__(left, right): return binary(LEFT_SHIFT, left, right)
    def __rshift__(left, right): return binary(RIGHT_SHIFT, left, right)
    def __neg__(self): return unary(NEG, self, None)
    def __abs__(self): return unary(ABS, self, None)
    def __pos__(self): return self.positive()

    def __invert__(self):
        if cg_is_differentiable[self.dtype_nr]:
            raise TypeError(f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {dtypes[self.dtype_nr]}")
        return unary(NOT, self, None)

    def __iadd__(self, other): return in_place(ADD, self, other)
    def __isub__(self, other): return in_place(SUB, self, other)
    def __imul__(self, other): return in_place(MUL, self, other)
    def __itruediv__(self, other): return in_place(DIV, self, other)
    def __ifloordiv__(self, other): return in_place(FLOOR_DIVIDE, self, other)
    def __imod__(self, other): return in_place(REMAINDER, self, other)
    def __ipow__(self, other): return in_place(POW, self, other)
    def __iand__(self, other): return in_place(AND, self, other)
    def __ior__(self, other): return in_place(OR, self, other)
    def __ixor__(self, other): return in_place(XOR, self, other)
    def __ilshift__(self, other): return in_place(LEFT_SHIFT, self, other)
    def __irshift__(self, other): return in_place(RIGHT_SHIFT, self, other)

    def __matmul__(left, right):
        if is_factor(left) and is_factor(right):
            return matmul(left, right)
        if is_sparse(right):
            return left._times_sparse(right.T, -1)
        if is_sparse(left):
            return right._times_sparse(left, -min(right.ndim, 2))
        return foreign("matmul", left, right)

    def __richcmp__(self, other, int comparison):
        if comparison == Py_EQ:
            return binary(EQ, self, other)
        if comparison == Py_NE:
            return binary(NE, self, other)
        if comparison == Py_LT:
            return binary(LT, self, other)
        if comparison == Py_LE:
            return binary(LE, self, other)
        return binary(GT if comparison == Py_GT else GE, self, other)

    def __hash__(self):
        return <Py_hash_t>(<size_t><PyObject*>self >> 4)

    def __getitem__(self, key):
        if special_active:
            return get_item_operator(self, key)
        return get_item(self, key)

    def __setitem__(self, key, value):
        if special_active:
            set_item_operator(self, key, value)
        else:
            set_item(self, key, value)

    def __delitem__(self, key):
        raise TypeError("Tensor does not support deleting items; select the ones to keep")

    def __bool__(self):
        if self.flags & BATCHED:
            raise RuntimeError("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. Inside of vmap "
                               "a tensor has no values of its own: use cygrad.where() instead of `if`.")
        refuse_front(self, "bool()")
        if self.count != 1:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if self.count == 0 else
                               "Boolean value of Tensor with more than one value is ambiguous; use any() or all()")
        return is_true(self)

    def item(self):
        """Return the only element as a Python number."""
        if self.count != 1:
            raise RuntimeError(f"a Tensor with {self.count} elements cannot be converted to Scalar")
        return noted_number(self)

    def tolist(self):
        """Return the elements as nested lists, or as a number for 0-d."""
        if self.count > MOST_NUMBERS:
            raise OutOfMemoryError(f"tolist(): {self.count} Python numbers do not fit into memory: at most {MOST_NUMBERS} are listed")
        return computed_values(self).tolist()

    def __float__(self):
        warn_of_scalar(self)
        return float(real_number(only_element(self), "double"))

    def __int__(self):
        return int(real_number(only_element(self), "int64_t"))

    def __index__(self):
        if cg_is_differentiable[self.dtype_nr] or self.count != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item() if self.flags & SPECIAL else decided_number(self))

    def __complex__(self):
        warn_of_scalar(self)
        return complex(only_element(self))


def _item_at(TensorImpl input not None, key):
    return get_item(input, key)


def _set_item_at(TensorImpl input not None, key, value):
    set_item(input, key, value)


cdef object get_item_operator = make_operator("__getitem__", _item_at), set_item_operator = make_operator("__setitem__", _set_item_at)


# ----- Factories of functions -----
cdef object argument_error(str name, int expected, int count, dict unknown):
    """Return the TypeError of a call with the wrong arguments, as Python words it; the compiled function has no public name."""
    if unknown:
        return TypeError(f"{name}() got an unexpected keyword argument '{next(iter(unknown))}'")
    if count < expected:
        return TypeError(f"{name}() missing {expected - count} required positional argument" + ("s" if expected - count > 1 else ""))
    return TypeError(f"{name}() takes {expected} positional argument{'s' if expected > 1 else ''} but {count} were given")


cdef object MISSING = object()


def make_unary(Op op not None):
    """Return the function, which is the method too, of an operator with one operand."""

    def function(input=MISSING, *extra, out=None, **unknown):
        if extra or unknown or input is MISSING:
            raise argument_error(op.title, 1, len(extra) + (input is not MISSING), unknown)
        if not isinstance(input, TensorImpl):
            return with_wrong_operand(op, op.name, (input,), {} if out is None else {"out": out}, 1)
        return unary(op, <TensorImpl>input, out_argument(op.name, out))

    return function


def make_unary_in_place(Op op not None):
    """Return the in-place method of an operator with one operand."""

    def method(self):
        cdef Value value
        value.tensor = <PyObject*><TensorImpl?>self
        return elementwise(op, &value, NULL, <TensorImpl>self, True)

    return method


def make_binary(Op op not None):
    """Return the function, which is the method too, of an operator with two operands; at least one is a tensor."""

    def function(input=MISSING, other=MISSING, *extra, out=None, **unknown):
        cdef Value values[2]
        cdef int numbers
        if extra or unknown or other is MISSING:
            raise argument_error(op.title, 2, len(extra) + (input is not MISSING) + (other is not MISSING), unknown)
        left = to_value(input, &values[0])
        right = to_value(other, &values[1])
        if left is None and right is None and op.row.of_numbers:
            left = tensor_of_value(&values[0])
        numbers = (values[0].tensor is NULL) | (values[1].tensor is NULL) << 1
        if left is NotImplemented or right is NotImplemented or numbers == 3 or numbers & op.tensors:
            first_is_wrong = left is NotImplemented or numbers & op.tensors & 1 or numbers == 3 and right is not NotImplemented
            return with_wrong_operand(op, op.name, (input, other), {} if out is None else {"out": out}, 1 if first_is_wrong else 2)
        return elementwise(op, values, NULL, out_argument(op.name, out), False)

    return function


def make_binary_in_place(Op op not None):
    """Return the in-place method of an operator with two operands."""

    def method(self, other):
        result = in_place(op, <TensorImpl?>self, other)
        if result is NotImplemented:
            raise operand_error(op, (self, other), 2)
        return result

    return method
