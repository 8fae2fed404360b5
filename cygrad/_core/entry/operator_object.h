/* A public operator: calls its function, or the door for special tensors; an event in a profile.
 *
 * It binds as a method. Forwarding a call costs a few nanoseconds, which a wrapper in Python or Cython would not.
 */
#ifndef CG_OPERATOR_OBJECT_H
#define CG_OPERATOR_OBJECT_H
#include <Python.h>
#include <structmember.h>

/* The parameters of one kind: their names, interned, and a bit for each of them that can be given by position. */
typedef struct {
    PyObject *names;
    unsigned long long tensor_positions;
} cg_parameters;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;             /* called by it */
    PyObject *described;            /* the function that has the signature and the documentation */
    PyObject *name;
    PyObject *declaration;          /* how it treats tangents and batches */
    cg_parameters flags;            /* those that are True or False */
    cg_parameters tensors;
    PyObject *weak_references;
} cg_operator;

static PyTypeObject *cg_tensor_type;
static const int *cg_special_active;
static int (*cg_any_special)(PyObject **arguments, Py_ssize_t count);
static PyObject *(*cg_call_special)(PyObject *op, PyObject *arguments, PyObject *keywords);
static Py_ssize_t (*cg_begin_event)(PyObject *name, PyObject **arguments, Py_ssize_t count);
static int (*cg_end_event)(Py_ssize_t event);
static PyObject *(*cg_explain)(PyObject *name, PyObject *error, PyObject *arguments, PyObject *keywords);
static PyObject *(*cg_renamed)(PyObject *described, Py_ssize_t positional, PyObject *names);
static int (*cg_check_argument)(PyObject *op, Py_ssize_t position, PyObject *name, PyObject *value);
static PyObject *(*cg_foreign)(PyObject *op, PyObject *arguments, PyObject *keywords);
static PyObject *cg_other_names; /* of parameters, that stand for our own: a tuple of interned strings */

/* The arguments of a call as a tuple and a dict; 0 if that worked, and both are the caller's to release in any case. */
static int cg_operator_arguments(PyObject *const *arguments, Py_ssize_t count, PyObject *names, PyObject **positional,
                                 PyObject **keywords) {
    *positional = PyTuple_New(count);
    *keywords = PyDict_New();
    if (!*positional || !*keywords) return -1;
    for (Py_ssize_t k = 0; k < count; k++) {
        Py_INCREF(arguments[k]);
        PyTuple_SET_ITEM(*positional, k, arguments[k]);
    }
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (PyDict_SetItem(*keywords, PyTuple_GET_ITEM(names, k), arguments[count + k]) < 0) return -1;
    return 0;
}

static PyObject *cg_operator_special(PyObject *op, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *result = NULL, *positional, *keywords;
    if (cg_operator_arguments(arguments, count, names, &positional, &keywords) == 0) result = cg_call_special(op, positional, keywords);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

static inline int cg_may_come_of_an_argument(void) {
    return PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_AttributeError)
           || PyErr_ExceptionMatches(PyExc_OverflowError) || PyErr_ExceptionMatches(PyExc_SystemError);
}

/* The result that a foreign class among the arguments of a call that failed has for it; NULL with the call's error if there is none. */
static PyObject *cg_operator_foreign(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *type, *error, *traceback, *positional, *keywords, *answer = NULL, *result = NULL;
    if (!cg_may_come_of_an_argument()) return NULL;
    PyErr_Fetch(&type, &error, &traceback);
    if (cg_operator_arguments(arguments, count, names, &positional, &keywords) == 0)
        answer = cg_foreign(self, positional, keywords); /* None, or a tuple of the result */
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    if (answer == Py_None) {
        PyErr_Restore(type, error, traceback);
    } else {
        result = answer ? Py_NewRef(PyTuple_GET_ITEM(answer, 0)) : NULL;
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(answer);
    return result;
}

/* Else an error that may come of a wrong argument is replaced by one that names the argument, where that was wrong. */
static PyObject *cg_operator_failed(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    PyObject *type, *error, *traceback, *positional, *keywords, *better = NULL, *result = cg_operator_foreign(self, arguments, count, names);
    if (result || !cg_may_come_of_an_argument()) return result;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (cg_operator_arguments(arguments, count, names, &positional, &keywords) == 0)
        better = cg_explain(((cg_operator *)self)->name, error, positional, keywords);
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    if (better && better != Py_None) {
        PyErr_SetObject((PyObject *)Py_TYPE(better), better);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, error, traceback);
    }
    Py_XDECREF(better);
    return NULL;
}

/* Ends an event; an error of the operator comes before one of that. */
static PyObject *cg_operator_ended(Py_ssize_t event, PyObject *result) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    if (cg_end_event(event) < 0) {
        Py_CLEAR(result);
        if (type) PyErr_Clear();
    }
    if (type) PyErr_Restore(type, error, traceback);
    return result;
}

/* Names in calls are interned, almost always: then equal names are one object. */
static inline int cg_is_one_of(PyObject *name, PyObject *names) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++)
        if (name == PyTuple_GET_ITEM(names, k)) return 1;
    if (__builtin_expect(PyUnicode_CHECK_INTERNED(name) != 0, 1)) return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++)
        if (PyUnicode_Compare(name, PyTuple_GET_ITEM(names, k)) == 0) return 1;
    return 0;
}

/* Whether a value is of a type or of a class below it, by the bases that decide the layout: without a call. */
static inline int cg_is_of_type(PyObject *value, PyTypeObject *type) {
    for (PyTypeObject *base = Py_TYPE(value); base; base = base->tp_base)
        if (base == type) return 1;
    return 0;
}

/* 0 where all parameters of a kind have values of its type; -1, with an error, where one has not. */
static inline int cg_check_type(cg_operator *op, const cg_parameters *parameters, PyTypeObject *type, PyObject *const *arguments,
                                Py_ssize_t count, PyObject *names) {
    unsigned long long tensor_positions = count < 64 ? parameters->tensor_positions & ((1ULL << count) - 1) : parameters->tensor_positions;
    for (; tensor_positions; tensor_positions &= tensor_positions - 1) {
        int k = __builtin_ctzll(tensor_positions);
        if (!cg_is_of_type(arguments[k], type) && cg_check_argument((PyObject *)op, k, NULL, arguments[k]) < 0) return -1;
    }
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
        PyObject *value = arguments[count + k], *name = PyTuple_GET_ITEM(names, k);
        if (cg_is_one_of(name, parameters->names) && !cg_is_of_type(value, type)
            && cg_check_argument((PyObject *)op, -1, name, value) < 0) return -1;
    }
    return 0;
}

static inline int cg_check_arguments(cg_operator *op, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
    if (cg_check_type(op, &op->flags, &PyBool_Type, arguments, count, names) < 0) return -1;
    return cg_check_type(op, &op->tensors, cg_tensor_type, arguments, count, names);
}

static PyObject *cg_operator_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names) {
    cg_operator *op = (cg_operator *)self;
    if (__builtin_expect(cg_check_arguments(op, arguments, PyVectorcall_NARGS(flags), names), 0) < 0)
        return cg_operator_failed(self, arguments, PyVectorcall_NARGS(flags), names);
    if (__builtin_expect(*cg_special_active, 0)) {
        Py_ssize_t count = PyVectorcall_NARGS(flags), event = cg_begin_event(op->name, (PyObject **)arguments, count);
        int special = event < 0 ? -1 : cg_any_special((PyObject **)arguments, count + (names ? PyTuple_GET_SIZE(names) : 0));
        PyObject *result = special < 0 ? NULL : special ? cg_operator_special(self, arguments, count, names)
                                                        : PyObject_Vectorcall(op->function, arguments, flags, names);
        if (!result && special >= 0 && special != 2) result = cg_operator_failed(self, arguments, count, names);
        return event > 0 ? cg_operator_ended(event, result) : result;
    }
    PyObject *result = PyObject_Vectorcall(op->function, arguments, flags, names);
    return __builtin_expect(result != NULL, 1) ? result : cg_operator_failed(self, arguments, PyVectorcall_NARGS(flags), names);
}

/* Calls the operator, by the names of its own parameters. */
static PyObject *cg_operator_vectorcall(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names) {
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++)
        if (__builtin_expect(cg_is_one_of(PyTuple_GET_ITEM(names, k), cg_other_names), 0)) {
            PyObject *ours = cg_renamed(((cg_operator *)self)->described, PyVectorcall_NARGS(flags), names);
            PyObject *result = ours ? cg_operator_call(self, arguments, flags, ours) : NULL;
            Py_XDECREF(ours);
            return result;
        }
    return cg_operator_call(self, arguments, flags, names);
}

static PyObject *cg_operator_bind(PyObject *self, PyObject *instance, PyObject *owner) {
    (void)owner;
    if (!instance || instance == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyMethod_New(self, instance);
}

/* Other attributes of functions: __signature__, __defaults__, ... */
static PyObject *cg_operator_getattr(PyObject *self, PyObject *name) {
    PyObject *attribute = PyObject_GenericGetAttr(self, name);
    if (attribute || !PyErr_ExceptionMatches(PyExc_AttributeError)) return attribute;
    PyErr_Clear();
    return PyObject_GetAttr(((cg_operator *)self)->described, name);
}

static PyObject *cg_operator_of_function(PyObject *self, void *name) {
    return PyObject_GetAttrString(((cg_operator *)self)->described, (const char *)name);
}
static PyObject *cg_operator_repr(PyObject *self) { return PyUnicode_FromFormat("<cygrad operator %U>", ((cg_operator *)self)->name); }
static PyObject *cg_operator_reduce(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyObject_GetAttrString(self, "__qualname__");
}
static void cg_operator_dealloc(PyObject *self) {
    cg_operator *op = (cg_operator *)self;
    if (op->weak_references) PyObject_ClearWeakRefs(self);
    Py_XDECREF(op->function);
    Py_XDECREF(op->described);
    Py_XDECREF(op->name);
    Py_XDECREF(op->declaration);
    Py_XDECREF(op->flags.names);
    Py_XDECREF(op->tensors.names);
    Py_TYPE(self)->tp_free(self);
}

static PyGetSetDef cg_operator_getset[] = {
    {"__doc__", cg_operator_of_function, NULL, NULL, "__doc__"},
    {"__module__", cg_operator_of_function, NULL, NULL, "__module__"},
    {"__qualname__", cg_operator_of_function, NULL, NULL, "__qualname__"},
    {"__name__", cg_operator_of_function, NULL, NULL, "__qualname__"},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef cg_operator_members[] = {
    {"function", T_OBJECT, offsetof(cg_operator, function), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(cg_operator, described), READONLY, NULL},
    {"declaration", T_OBJECT, offsetof(cg_operator, declaration), READONLY, NULL},
    {"name", T_OBJECT, offsetof(cg_operator, name), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyMethodDef cg_operator_methods[] = {
    {"__reduce__", cg_operator_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject cg_operator_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cygrad.Operator",
    .tp_basicsize = sizeof(cg_operator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(cg_operator, vectorcall),
    .tp_weaklistoffset = offsetof(cg_operator, weak_references),
    .tp_dealloc = cg_operator_dealloc,
    .tp_repr = cg_operator_repr,
    .tp_getattro = cg_operator_getattr,
    .tp_descr_get = cg_operator_bind,
    .tp_getset = cg_operator_getset,
    .tp_members = cg_operator_members,
    .tp_methods = cg_operator_methods,
};

static inline int cg_prepare_operators(PyTypeObject *tensor_type, const int *special_active, int (*any_special)(PyObject **, Py_ssize_t),
                                       PyObject *(*call_special)(PyObject *, PyObject *, PyObject *),
                                       Py_ssize_t (*begin_event)(PyObject *, PyObject **, Py_ssize_t), int (*end_event)(Py_ssize_t),
                                       PyObject *(*explain)(PyObject *, PyObject *, PyObject *, PyObject *),
                                       PyObject *(*renamed)(PyObject *, Py_ssize_t, PyObject *),
                                       int (*check_argument)(PyObject *, Py_ssize_t, PyObject *, PyObject *),
                                       PyObject *(*foreign)(PyObject *, PyObject *, PyObject *), PyObject *other_names) {
    cg_tensor_type = tensor_type;
    cg_special_active = special_active;
    cg_any_special = any_special;
    cg_call_special = call_special;
    cg_begin_event = begin_event;
    cg_end_event = end_event;
    cg_explain = explain;
    cg_renamed = renamed;
    cg_check_argument = check_argument;
    cg_foreign = foreign;
    cg_other_names = Py_NewRef(other_names);
    return PyType_Ready(&cg_operator_type);
}

static inline PyObject *cg_new_operator(PyObject *function, PyObject *described, PyObject *name, PyObject *declaration,
                                        PyObject *flags, unsigned long long flag_places, PyObject *tensors,
                                        unsigned long long tensor_places) {
    cg_operator *op = PyObject_New(cg_operator, &cg_operator_type);
    if (!op) return NULL;
    op->vectorcall = cg_operator_vectorcall;
    op->weak_references = NULL;
    Py_INCREF(function);
    op->function = function;
    Py_INCREF(described);
    op->described = described;
    Py_INCREF(name);
    op->name = name;
    Py_INCREF(declaration);
    op->declaration = declaration;
    op->flags = (cg_parameters){Py_NewRef(flags), flag_places};
    op->tensors = (cg_parameters){Py_NewRef(tensors), tensor_places};
    return (PyObject *)op;
}
#endif
