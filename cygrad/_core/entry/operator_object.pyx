"""The operators that are made of functions: their declarations, which of their parameters are flags, and other names of keywords.

`operator_object.h` has their type, which forwards calls; the functions here serve calls that are not ordinary.
"""
from cpython.object cimport PyObject, PyTypeObject

from cygrad._core.compute.dispatch cimport explained_error
from cygrad._core.entry.special cimport any_special, call_special
from cygrad._core.graph.tensor cimport TensorImpl, special_active
from cygrad._core.levels.observers cimport begin_event, end_event, next_sequence_nr, profiling_threads, observes_operands
from cygrad._core.levels.overrides cimport ask

import sys
from inspect import Signature, signature, unwrap
from typing import NamedTuple

import numpy as np

cdef extern from "entry/operator_object.h":
    int cg_prepare_operators(PyTypeObject* tensor_type, const int* special_active, int (*any_special)(PyObject**, Py_ssize_t) except -1,
                             object (*call_special)(object, object, object),
                             Py_ssize_t (*begin)(object, PyObject**, Py_ssize_t) except -1,
                             int (*end)(Py_ssize_t) except -1,
                             object (*explain)(object, object, object, object),
                             object (*renamed)(object, Py_ssize_t, object),
                             int (*check_argument)(object, Py_ssize_t, PyObject*, object) except -1,
                             object (*foreign)(object, object, object), tuple other_names) except -1
    object cg_new_operator(object function, object described, object name, object declaration, tuple flags, unsigned long long flag_places,
                           tuple tensors, unsigned long long tensor_places)


cdef Py_ssize_t begin_operator(object name, PyObject** arguments, Py_ssize_t count) except -1:
    """Begin the event of an operator where this thread is profiled."""
    if not profiling_threads:
        return 0
    return begin_event(name, tuple([<object>arguments[k] for k in range(count)]) if observes_operands() else None, next_sequence_nr())


class Declaration(NamedTuple):
    """How an operator treats special tensors, and its gradients.

    ``rule``: its gradients, or None.
    ``forward``: the tangent of the result from (tangent_of, operator, result, *arguments); or the name of one of `forward_rules`;
    ``batch``: the result from (level, operator, *arguments), computed over all examples, which `level.enter` puts along dim 0;
    ``parts``: the operator composed of others, which stands for it where an argument is special; NotImplemented where it does not
    apply;
    ``flops``: the floating-point operations that a profile counts, from the shapes of its arguments.

    These functions call operators, so that they nest. One that has none of them is composed of others: it passes special
    tensors on.
    """

    rule: object = None
    forward: object = None
    batch: object = None
    parts: object = None
    flops: object = None


COMPOSED = Declaration()


def make_operator(str name not None, function, declaration=None, described=None):
    """Return an operator: calls its function where no tensor is special; binds as a method; has the signature and text of `described`."""
    described = function if described is None else described
    flags, tensors = parameters_of_type(described, FLAGS), parameters_of_type(described, TENSORS)
    return cg_new_operator(function, described, name, declaration, flags, places_of(described, flags),
                           tensors, places_of(described, tensors))


class LazySignature(Signature):
    """The signature that `read` returns, read when it is first asked for: neither an import nor a call pays for it."""

    __slots__ = ("_read", "_signature")

    def __init__(self, read):
        self._read, self._signature = read, None

    def _resolved(self):
        if self._signature is None:
            self._signature = self._read()
        return self._signature

    @property
    def _parameters(self):
        return self._resolved().parameters

    @property
    def _return_annotation(self):
        return self._resolved().return_annotation

    def replace(self, **parts):
        return self._resolved().replace(**parts)

    def __reduce__(self):
        return self._resolved().__reduce__()


def signature_without_out(function):
    """Return the signature of the in-place form of a function: the function's own, less `out`."""
    whole = signature(function)
    return whole.replace(parameters=[each for name, each in whole.parameters.items() if name != "out"])


cdef tuple parameters_of(described):
    """Return the names of the parameters that can be given by position, and the names of the others."""
    code = getattr(unwrap(described), "__code__", None)
    if code is None:
        return (), ()
    return code.co_varnames[:code.co_argcount], code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]


FLAGS = {"bool": False, "bool | None": True}    # annotations of parameters that are True or False, and whether they may be None
TENSORS = {"Tensor"}


cdef tuple parameters_of_type(described, annotations):
    """Return the names of the parameters that have one of some annotations."""
    return tuple([sys.intern(name) for name, kind in getattr(unwrap(described), "__annotations__", {}).items()
                  if kind in annotations and name != "return" and name in sum(parameters_of(described), ())])


cdef unsigned long long places_of(described, tuple names):
    """Return a bit for each of some parameters that can be given by position."""
    cdef unsigned long long tensor_positions = 0
    for position, parameter in enumerate(parameters_of(described)[0]):
        if parameter in names:
            tensor_positions |= 1ULL << <int>position
    return tensor_positions


def name_in_messages(str name not None):
    """Return the name of an operator as torch's messages have it: with `linalg_`, `fft_` and `special_`, without `nn_functional_`."""
    return name.removeprefix("nn_functional_")


cdef int check_argument(object op, Py_ssize_t position, PyObject* name, object value) except -1:
    """Refuse an argument, at a position or by its name, that is no tensor, or that Python would only read as True or False."""
    described = unwrap(op)
    parameter = <object>name if name is not NULL else parameters_of(described)[0][position]
    annotation = described.__annotations__[parameter]
    if annotation in FLAGS and (isinstance(value, np.bool_) or value is None and FLAGS[annotation]):
        return 0
    where = "" if name is not NULL else f" (position {position + 1})"
    raise TypeError(f"{name_in_messages(op.name)}(): argument '{parameter}'{where} must be {annotation.partition(' ')[0]}, not "
                    f"{type(value).__name__}")


cdef object explain_failure(object name, object error, object arguments, object keywords):
    return explained_error(name, error, arguments, keywords)


cdef object ask_foreign(object op, object arguments, object keywords):
    """Return the answer of a foreign class among the arguments of a call that has failed, as a tuple; None if there is none."""
    result = ask(op, arguments, keywords)
    return None if result is NotImplemented else (result,)


# NumPy's names, the names of matrices in torch's older functions, and of the tensor that its `split` cuts: the parameters they stand for.
OTHER_NAMES = {"axis": ("dim",), "keepdims": ("keepdim",), "axes": ("dims",), "input": ("A", "L"), "input2": ("tau", "L"),
               "input3": ("other",), "tensor": ("input",)}


cdef dict renamings = {}     # results of `renamed_keywords` for names that are all parameters: these are few


cdef object renamed_keywords(object described, Py_ssize_t positional, object names):
    """Return the names of a call's keywords with other names replaced, where the function has the parameters that they stand for."""
    cdef tuple call = (described, positional, names)
    cdef tuple replaced = renamings.get(call)
    if replaced is None:
        replaced = replaced_names(described, positional, names)
        if set(replaced) <= set(sum(parameters_of(described), ())):
            renamings[call] = replaced
    return replaced


cdef tuple replaced_names(object described, Py_ssize_t positional, object names):
    by_position, others = parameters_of(described)
    cdef tuple parameters = by_position + others
    cdef list new_names = []
    for name in names:
        ours = next((parameter for parameter in OTHER_NAMES.get(name, ()) if parameter in parameters), None)
        if ours is not None and name not in parameters:
            if ours in names or ours in by_position[:positional]:
                raise TypeError(f"{described.__name__}() got both '{ours}' and '{name}': they mean the same")
            name = ours
        new_names.append(name)
    return tuple(new_names)


cg_prepare_operators(<PyTypeObject*>TensorImpl, &special_active, any_special, call_special, begin_operator, end_event, explain_failure,
                     renamed_keywords, check_argument, ask_foreign, tuple([sys.intern(name) for name in OTHER_NAMES]))
