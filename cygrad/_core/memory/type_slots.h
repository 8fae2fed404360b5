/* Type slots that Cython does not set: objects made untracked, destructors without the exception dance, operators inherited.
 *
 * Each is set once, when a module is imported; the GIL is held. A slot with data of its own is a macro that defines the function
 * that sets it, cg_recycle_node() by CG_RECYCLE(node): a name serves one type of a file, and twice it does not compile.
 */
#ifndef CG_TYPE_SLOTS_H
#define CG_TYPE_SLOTS_H
#include <Python.h>
#include <string.h>

/* Small data inside a Storage: the object is aligned to 16 bytes, and so are they. */
typedef struct { char bytes[128]; } __attribute__((aligned(16))) cg_small;

/* Objects without their C fields would crash, so calling a class and __new__ are refused; the core calls Cython's function itself. */
static int cg_refuse(PyTypeObject *type) {
    PyErr_Format(PyExc_TypeError, "cannot create '%s' objects by their class: tensors come from cygrad.tensor(), cygrad.zeros() and the "
                 "other factories, nodes from recorded operations", type->tp_name);
    return -1;
}
static PyObject *cg_refused_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)arguments; (void)keywords; (void)cg_refuse(type);
    return NULL;
}
static int cg_refused_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    (void)arguments; (void)keywords;
    return cg_refuse(Py_TYPE(object));
}
/* tp_new stays, since Cython's subclasses call it. */
static inline void cg_refuse_new(PyTypeObject *type) {
    PyTypeObject *kind = type;
    if (PyDict_DelItemString(kind->tp_dict, "__new__") < 0) PyErr_Clear();
    kind->tp_vectorcall = NULL;
    kind->tp_init = cg_refused_init;
    PyType_Modified(kind);
}

/* The tp_new that a class in Python inherited, as cg_new_NAME(): the way through type.__new__ costs 40 ns. */
#define CG_KEEP_NEW(name) \
    static newfunc cg_inherited_new_##name; \
    static inline PyObject *cg_new_##name(PyTypeObject *type, PyObject *no_arguments) { \
        return cg_inherited_new_##name(type, no_arguments, NULL); \
    } \
    static inline void cg_keep_new_##name(PyTypeObject *type) { \
        PyTypeObject *kind = type; \
        cg_inherited_new_##name = kind->tp_new; \
        kind->tp_new = cg_refused_new; \
        for (; kind != &PyBaseObject_Type; kind = kind->tp_base) cg_refuse_new(kind); \
    }

/* Objects are made untracked by the garbage collector; track_reachable() hands them over. Subclasses in Python are tracked. */
static PyObject *cg_alloc_untracked(PyTypeObject *type, Py_ssize_t items) {
    PyObject *object = PyObject_GC_New(PyObject, type);
    (void)items;
    if (object) memset(object + 1, 0, type->tp_basicsize - sizeof(PyObject));
    return object;
}
static inline void cg_make_untracked(PyTypeObject *type) { type->tp_alloc = cg_alloc_untracked; }

/* Dead objects of a type are kept for the next ones, linked by the first word after their head: a graph of many nodes that
   is made again and again would otherwise have Python give its pages back and fault them in each time (100 ns a node). */
enum { CG_RECYCLED = 131072 };
#define CG_RECYCLE(name) \
    static PyTypeObject *cg_recycled_type_##name; \
    static void *cg_recycled_##name; \
    static Py_ssize_t cg_recycled_count_##name; \
    static PyObject *cg_alloc_recycled_##name(PyTypeObject *type, Py_ssize_t items) { \
        PyObject *object = (PyObject *)cg_recycled_##name; \
        if (!object || type != cg_recycled_type_##name) return cg_alloc_untracked(type, items); \
        cg_recycled_##name = *(void **)(object + 1); \
        cg_recycled_count_##name--; \
        memset(object + 1, 0, type->tp_basicsize - sizeof(PyObject)); \
        if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_INCREF(type); \
        _Py_NewReference(object); /* its type is there still */ \
        return object; \
    } \
    static void cg_free_recycled_##name(void *object) { \
        if (Py_TYPE(object) != cg_recycled_type_##name || cg_recycled_count_##name == CG_RECYCLED) { \
            PyObject_GC_Del(object); \
            return; \
        } \
        *(void **)((PyObject *)object + 1) = cg_recycled_##name; \
        cg_recycled_##name = object; \
        cg_recycled_count_##name++; \
    } \
    static inline void cg_recycle_##name(PyTypeObject *type) { \
        cg_recycled_type_##name = type; \
        type->tp_alloc = cg_alloc_recycled_##name; \
        type->tp_free = cg_free_recycled_##name; \
    }

/* Cython's operators are methods too, so a class in Python gets slots that look them up by name: 60 ns an operator. */
static inline void cg_inherit_operators(PyTypeObject *type) {
    PyTypeObject *base = type->tp_base;
    if (base->tp_as_number) *type->tp_as_number = *base->tp_as_number;
}

/* Work before tp_dealloc: __dealloc__ would save and restore exceptions (10 ns). */
#define CG_PREPEND_DEALLOC(name) \
    static destructor cg_dealloc_##name; \
    static void (*cg_before_dealloc_##name)(PyObject *); \
    static void cg_dealloc_both_##name(PyObject *object) { \
        cg_before_dealloc_##name(object); \
        cg_dealloc_##name(object); \
    } \
    static inline void cg_prepend_dealloc_##name(PyTypeObject *type, void (*before)(PyObject *)) { \
        cg_before_dealloc_##name = before; \
        cg_dealloc_##name = type->tp_dealloc; \
        type->tp_dealloc = cg_dealloc_both_##name; \
    }

/* A chain of objects that die one inside the other's destructor takes constant stack: below some depth they are put off in a list,
   linked by a field that a dead object does not need, until the outermost one is done. CPython's trashcan does the same, but at
   a depth that grew to thousands of calls in 3.12, more than a small thread's stack holds. Per thread, since destructors may let
   others run. */
enum { CG_DYING_DEPTH = 16 };
typedef struct { int depth; PyObject *put_off; } cg_dying;
#define CG_BOUND_DEALLOC(name) \
    static __thread cg_dying cg_dying_##name; \
    static destructor cg_dealloc_one_##name; \
    static Py_ssize_t cg_link_offset_##name; \
    static void cg_dealloc_bounded_##name(PyObject *object) { \
        cg_dying *dying = &cg_dying_##name; \
        __asm__("" : "+r"(dying)); /* or the compiler asks for the address at every use, by a call */ \
        if (dying->depth == CG_DYING_DEPTH) { \
            PyObject_GC_UnTrack(object); \
            /* subtype_dealloc gives the type up now */ \
            if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_INCREF(Py_TYPE(object)); \
            *(PyObject **)((char *)object + cg_link_offset_##name) = dying->put_off; \
            dying->put_off = object; \
            return; \
        } \
        dying->depth++; \
        cg_dealloc_one_##name(object); \
        while (dying->depth == 1 && (object = dying->put_off)) { \
            PyTypeObject *type = Py_TYPE(object); \
            dying->put_off = *(PyObject **)((char *)object + cg_link_offset_##name); \
            cg_dealloc_one_##name(object); \
            if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) Py_DECREF(type); \
        } \
        dying->depth--; \
    } \
    static inline void cg_bound_dealloc_##name(PyTypeObject *type, Py_ssize_t link_offset) { \
        cg_link_offset_##name = link_offset; \
        cg_dealloc_one_##name = type->tp_dealloc; \
        type->tp_dealloc = cg_dealloc_bounded_##name; \
    }

/* subtype_dealloc without the parts for __slots__ and __del__. */
static void cg_dealloc_short(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyTypeObject *base = type->tp_base;
    while (base->tp_flags & Py_TPFLAGS_HEAPTYPE) base = base->tp_base;
    base->tp_dealloc(object);
    Py_DECREF(type);
}
static inline void cg_shorten_dealloc(PyTypeObject *type) { type->tp_dealloc = cg_dealloc_short; }

/* For a type without objects of its own: Cython's destructor would track and untrack once more, without a bound on depth. */
static inline void cg_inherit_dealloc(PyTypeObject *type) {
    type->tp_dealloc = type->tp_base->tp_dealloc;
}

/* The fields of such an object stay until it is freed; a cycle through it is broken at another one. */
static inline void cg_never_clear(PyTypeObject *type) { type->tp_clear = NULL; }

static inline int cg_traverse(PyObject *object, visitproc visit, void *argument) {
    return Py_TYPE(object)->tp_traverse(object, visit, argument);
}
#endif
