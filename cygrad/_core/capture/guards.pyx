"""Guards (see guards.pxd for the contract)."""
cimport cython
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.dict cimport PyDict_Contains, PyDict_GetItemWithError, PyDict_Next
from cpython.object cimport PyObject, PyObject_GenericGetAttr
from cpython.set cimport PySet_Contains

from cygrad._core.capture.kinds cimport is_of_kind, is_plain_value, plain_kind
from cygrad._core.capture.signature cimport kind_of_parts
from cygrad._core.graph.history cimport gradient_edge, lead_to_each_other
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.levels.level cimport active_levels
from cygrad._core.memory.storage cimport visible_version

from collections import OrderedDict, deque

from numpy import ndarray

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.kinds import Uncommon

cdef extern from "Python.h":
    PyObject* PyCell_GET(object cell)
    ctypedef struct PyTypeObject:
        unsigned int tp_version_tag     # another one after each change of a class; 0: unknown
        PyObject* tp_dict               # of a class that is not Python's own

cdef object MISSING = object()
cdef tuple ADDED_BY_PYTHON = ("__annotations__", "__annotations_cache__", "__slotnames__")     # to a class, when they are first asked for

cdef enum:
    MOST_BYTES = 1 << 16    # of an array that is compared at each call


cdef object size_of(object container):
    """Return the length of a list, tuple or deque, the names of a class, or the keys or bytes of another container."""
    if isinstance(container, (dict, set, frozenset)):
        return tuple(plain_iterator(container))
    if isinstance(container, type):
        return frozenset([name for name in container.__dict__ if name not in ADDED_BY_PYTHON])
    if not PyObject_CheckBuffer(container):
        return plain_length(container)
    view = memoryview(container)
    check_bytes(view.nbytes)
    return view.tobytes()


cpdef type base_of(object container):
    """Return the class in C of a container: a class of the user may override how it is read."""
    cdef type kind
    for kind in (list, tuple, OrderedDict, dict, set, frozenset, deque):
        if isinstance(container, kind):
            return kind
    return type(container)


cpdef Py_ssize_t plain_length(object container) except -1:
    if isinstance(container, dict):
        return len(<dict>container)
    if isinstance(container, list):
        return len(<list>container)
    return base_of(container).__len__(container)


cpdef object plain_iterator(object container):
    return base_of(container).__iter__(container)


cdef object plain_item(object container, Py_ssize_t place):
    if isinstance(container, list):
        return (<list>container)[place] if place < len(<list>container) else MISSING
    return base_of(container).__getitem__(container, place) if place < plain_length(container) else MISSING


cdef Py_ssize_t count_names(object names) except -1:
    """Return the count of the names of a class, but for those that Python adds."""
    cdef Py_ssize_t count = len(names)
    for name in ADDED_BY_PYTHON:
        count -= name in names
    return count


cdef bint has_keys(object container, tuple keys) except -1:
    """Return True if a dict or a set has these keys in this order; 2 and 2.0 are two keys."""
    cdef Py_ssize_t place = 0
    if plain_length(container) != len(keys):
        return False
    for key in plain_iterator(container):
        other = keys[place]
        if key is not other and not (is_plain_value(key) and plain_kind(key) == plain_kind(other)):
            return False
        place += 1
    return True


cdef bint has_names(object kind, frozenset names) except -1:
    """Return True if a class has some names and no others, but for those that Python adds."""
    cdef PyObject* key
    cdef Py_ssize_t place = 0, count = 0
    while PyDict_Next(<object>(<PyTypeObject*><PyObject*>kind).tp_dict, &place, &key, NULL):
        if PySet_Contains(names, <object>key):
            count += 1
        elif <object>key not in ADDED_BY_PYTHON:
            return False
    return count == len(names)


cdef bint has_none_of(object container, set names) except -1:
    """Return True if a dict has none of some names."""
    cdef PyObject* key
    cdef Py_ssize_t place = 0
    if len(names) < len(<dict>container):
        for name in names:
            if PyDict_Contains(container, name):
                return False
        return True
    while PyDict_Next(container, &place, &key, NULL):
        if PySet_Contains(names, <object>key):
            return False
    return True


cdef unsigned int version_of(object kind) noexcept:
    return (<PyTypeObject*><PyObject*>kind).tp_version_tag


cdef object check_bytes(Py_ssize_t count):
    """Refuse memory with more bytes than are compared at each call."""
    if count > MOST_BYTES:
        raise Uncapturable(f"its code names {count} bytes of memory, which may change between calls: make a tensor of it before")


cdef object content_of(object values):
    """Return a key of the numbers of an array, which change in place."""
    check_bytes(values.nbytes)
    if values.dtype.hasobject:
        raise Uncapturable("its code names an array of objects, which may change between calls: make a list of it before")
    layout = values.dtype, values.shape, values.strides, values.flags.num
    return type(values), None if type(values) is ndarray else id(values), layout, values.tobytes()


cdef bint are_independent(list tensors) except -1:
    """Return True if no tensor has another one in its history; they are no leaves."""
    cdef TensorImpl tensor
    cdef int output_nr
    try:
        return not lead_to_each_other([gradient_edge(tensor, &output_nr) for tensor in tensors])
    except RuntimeError:        # of a view of changed memory
        return False


@cython.final
@cython.binding(False)
cdef class Guard:
    """A place that code can name, and the value that must be there."""

    def __cinit__(self, int source, object holder, object name, object value=MISSING):
        self.source, self.holder, self.name = source, holder, name
        if source == SIZE:
            self.role, self.value = LENGTH, size_of(holder)
            return
        if source == NAMES:
            self.role = ABSENT
            return
        if source == CLASS:
            self.role, self.version_tag, self.value = UNCHANGED, version_of(holder), dict(vars(holder))
            return
        if source == MODULE:
            self.role, self.value = UNCHANGED, tuple(vars(holder).values())
            return
        if source == HISTORIES:
            self.role, self.value = PLAIN, True
            return
        if source == INPUT:
            self.role, self.value = (IDENTICAL if isinstance(value, TensorImpl) else OTHER), value
            return
        if source == OBJECTS:       # holder: the objects, None for one that code does not reach; value: all that it reaches, by id
            self.role, self.value = DISTINCT, value
            return
        if value is MISSING:
            value = self.current([])
        if value is MISSING:
            self.role = ABSENT
        elif isinstance(value, TensorImpl):
            self.role, parts = TENSOR, []
            self.value = kind_of_parts(value, parts, active_levels())
            self.versions = [visible_version((<TensorImpl>part).storage.version) for part in parts]
        elif is_plain_value(value):
            self.role, self.value = PLAIN, value
        elif isinstance(value, ndarray):
            self.role, self.value = CONTENT, content_of(value)
        else:
            self.role, self.value = IDENTICAL, value

    def __repr__(self):
        names = {KEY: "{name}", NAMES: "one of {name}", ITEM: "item {name}", CELL: "{name}", ATTRIBUTE: "{kind}.{name}",
                 CLASS_KEY: "{holder.__name__}.{name}", SIZE: "the items of a {kind}", GRADIENT: "the gradient of a tensor",
                 INPUT: "{name}", OBJECTS: "{name}", VERSION: "{name}", HISTORIES: "the history of arguments", RESULT: "{name}",
                 CLASS: "a method of {holder.__name__}", MODULE: "a value in {holder.__name__}"}
        return names[self.source].format(name=self.name, kind=type(self.holder).__name__, holder=self.holder)

    cdef object current(self, list tensors):
        cdef PyObject* item
        if self.source == KEY:
            item = PyDict_GetItemWithError(self.holder, self.name)
            return MISSING if item is NULL else <object>item
        if self.source == CELL:
            item = PyCell_GET(self.holder)
            return MISSING if item is NULL else <object>item
        if self.source == ITEM:
            return plain_item(self.holder, self.name)
        if self.source == GRADIENT:
            return (<TensorImpl>tensors[self.holder]).gradient
        if self.source == INPUT:
            return tensors[self.holder]
        if self.source == VERSION:
            return visible_version((<TensorImpl>tensors[self.holder]).storage.version)
        if self.source == HISTORIES:
            return are_independent([tensors[number] for number in self.holder])
        if self.source == RESULT:
            return self.holder()
        if self.source == CLASS_KEY:
            return self.holder.__dict__.get(self.name, MISSING)
        try:
            return PyObject_GenericGetAttr(self.holder, self.name)
        except AttributeError:
            return MISSING

    def take_loaded_names(self):
        """Take on the values of a module that were loaded since."""
        if self.is_module_unchanged():
            self.value = tuple(vars(self.holder).values())

    def value_now(self):
        """Return the value that is there; None for an absent one."""
        value = self.current([])
        return None if value is MISSING else value

    cdef bint has_class_names(self) except -1:
        """Compare the names of a class, with any values, if it may have changed."""
        if self.version_tag and version_of(self.holder) == self.version_tag:
            return True
        if not has_names(self.holder, <frozenset>self.value):
            return False
        self.version_tag = version_of(self.holder)
        return True

    cdef bint is_class_unchanged(self) except -1:
        """Compare the names of a class if it may have changed: it may have loaded a method meanwhile."""
        if self.version_tag and version_of(self.holder) == self.version_tag:
            return True
        names = vars(self.holder)
        if count_names(names) != count_names(self.value):
            return False
        for name, before in self.value.items():
            value = names.get(name, MISSING)
            if value is not before and (value is MISSING or getattr(before, "loaded", MISSING) is not value):
                return False
        self.version_tag = version_of(self.holder)
        return True

    cdef bint is_module_unchanged(self) except -1:
        """Compare the values of a module. A module that loads names when they are first asked for may have got more."""
        cdef dict names = vars(self.holder)
        cdef PyObject* value
        cdef Py_ssize_t place = 0, number = 0, count = len(<tuple>self.value)
        if len(names) != count and not (len(names) > count and "__getattr__" in names):
            return False
        while number < count and PyDict_Next(names, &place, NULL, &value):
            if value != <PyObject*>(<tuple>self.value)[number]:
                return False
            number += 1
        return True

    cdef bint are_distinct(self, list objects) except -1:
        """Return True if those objects that code reaches otherwise, too, are the same ones in the same places."""
        cdef Py_ssize_t k
        for k in range(len(objects)):
            known = (<list>self.holder)[k]
            if objects[k] is not known if known is not None else id(objects[k]) in <dict>self.value:
                return False
        return True

    cdef bint holds(self, list tensors, tuple levels, bint may_have_hooks, list objects) except -1:
        """Return True if the value is as it was; a tensor, or the plain ones behind it, is appended to the inputs in any case."""
        cdef object value
        if self.role == DISTINCT:
            return objects is None or self.are_distinct(objects)
        if self.role == LENGTH and isinstance(self.holder, type):
            return self.has_class_names()
        if self.role == LENGTH:
            try:
                return has_keys(self.holder, self.value) if isinstance(self.value, tuple) else size_of(self.holder) == self.value
            except Exception:       # of more bytes, or released
                return False
        if self.role == UNCHANGED:
            return self.is_module_unchanged() if self.source == MODULE else self.is_class_unchanged()
        if self.source == NAMES:
            return has_none_of(self.holder, <set>self.name)
        value = self.current(tensors)
        if self.role == IDENTICAL:
            return value is self.value
        if self.role == OTHER:
            return id(value) not in self.value
        if self.role == CONTENT:
            try:
                return isinstance(value, ndarray) and content_of(value) == self.value
            except Uncapturable:
                return False
        if self.role == PLAIN:
            return value is self.value or is_plain_value(value) and plain_kind(value) == plain_kind(self.value)
        if self.role == ABSENT:
            return value is MISSING
        try:
            if isinstance(value, TensorImpl) and not levels:
                return is_of_kind(value, self.value, tensors, may_have_hooks)
            return isinstance(value, TensorImpl) and kind_of_parts(value, tensors, levels, may_have_hooks) == self.value
        except Uncommon:
            return False


def first_broken(list guards not None, list tensors not None, tuple levels=None, bint may_have_hooks=False, list objects=None):
    """Return the first guard that does not hold, or None; the tensors that guards name are appended to `tensors`.

    levels: that tensors may belong to, in place of the levels of this thread. may_have_hooks: tensors are as they were with hooks, too.
    objects: among the arguments; None where they are as at the capture.
    """
    cdef Guard guard
    if levels is None:
        levels = active_levels()
    for guard in guards:
        if not guard.holds(tensors, levels, may_have_hooks, objects):
            return guard
    return None
