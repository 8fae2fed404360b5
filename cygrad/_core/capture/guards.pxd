"""Guards: values outside of a function that its code can name; a captured program holds while they are as they were."""

cpdef enum GuardRole:
    ABSENT          # there is no such value
    IDENTICAL       # it is this object
    OTHER           # it is none of the objects with these ids
    DISTINCT        # of several: these, or no other ones that code reaches
    PLAIN           # it has this value
    TENSOR          # a tensor of this kind: an input of the program
    LENGTH          # of a list or deque; the keys or bytes of another container; the count of the names of a class
    CONTENT         # an array of NumPy's with these bytes
    UNCHANGED       # a class, or a module, with these names and their values

cpdef enum GuardSource:
    KEY             # holder[name] of a dict
    ITEM            # of a list or tuple
    NAMES           # of a dict that has none of them: `name` is a set
    CELL            # of a closure
    ATTRIBUTE
    CLASS_KEY       # in the dict of a class
    SIZE
    GRADIENT        # of a tensor among the inputs: `holder` is its number
    INPUT           # a tensor itself, as code may ask for it by identity
    OBJECTS         # those among the arguments that code distinguishes by identity
    VERSION         # of a tensor among the inputs: how often it was changed
    HISTORIES       # whether no tensor among the inputs, of some numbers, has another one in its history
    RESULT          # of a call of `holder`, which takes no arguments
    CLASS           # all names of the class `holder`
    MODULE          # of the module `holder`, but for those that it loads later

cdef class Guard:
    cdef readonly int source, role
    cdef readonly object holder, name, value
    cdef readonly list versions         # of a tensor, when the guard was made
    cdef unsigned int version_tag       # of a class, when its names were last compared
    cdef object current(self, list tensors)
    cdef bint has_class_names(self) except -1
    cdef bint is_class_unchanged(self) except -1
    cdef bint is_module_unchanged(self) except -1
    cdef bint are_distinct(self, list objects) except -1
    cdef bint holds(self, list tensors, tuple levels, bint may_have_hooks, list objects) except -1
