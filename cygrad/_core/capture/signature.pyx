"""The kind of the arguments of a call, and the plain tensors behind them (see signature.pxd for the contract)."""
cimport cython

from cygrad._core.capture.kinds cimport (has_pattern, is_plain_value, kind_of, owners_overlap, pattern_kind, plain_kind, result_settings,
                                         shared_memory, shared_objects, tensor_of_float)
from cygrad._core.graph.modes cimport grad_mode, is_inference_mode
from cygrad._core.graph.rule_nodes cimport needs_node, record
from cygrad._core.graph.rules cimport rule_op
from cygrad._core.graph.tensor cimport BATCHED, DUAL, SPARSE, SPECIAL, TensorImpl, VIEW, needs_grad, shallow_copy, tensor_type
from cygrad._core.levels.batches cimport Batch
from cygrad._core.levels.fronts cimport innermost
from cygrad._core.levels.level cimport Level, active_levels
from cygrad._core.levels.sparse cimport Sparse
from cygrad._core.levels.tangents cimport Dual, arranged_tangent, tangent_at, visible_dual, whole_tangent
from cygrad._core.memory.storage cimport Storage, is_foreign, owner_of
from cygrad._kernels.system.recursion cimport enter_container, leave_container

from collections import OrderedDict, defaultdict
from functools import partial
from inspect import CO_NESTED
from sys import modules
from types import CellType, FunctionType, MethodType

from numpy import float64, generic, ndarray, void

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.capture.kinds import Uncommon
from cygrad._core.levels.tangents import without_tangent
from cygrad._core.memory.sizes import Size

cdef enum:
    DEEPEST = 8         # local functions that lead to one another; tuples in tuples

MOST_FUNCTIONS = DEEPEST
cdef object EMPTY_CELL = CellType()
cdef int IS_NESTED = CO_NESTED
# Attributes that the package gives to functions that are steps of loops: the step compiled, and the step that is made of a body.
COMPILED_STEP, MADE_STEP = "__captured__", "__step__"
cdef set KEPT = {COMPILED_STEP, MADE_STEP}
cdef Py_ssize_t PLAIN_SIZE = type("Plain", (), {}).__basicsize__


cdef int number_of(Level level, tuple levels) except -1:
    cdef int number
    for number in range(len(levels)):
        if levels[number] is level:
            return number
    raise Uncommon("a tensor of a level that has ended, or is out of sight")


cdef TensorImpl plain_copy(TensorImpl tensor):
    """Return a tensor with the memory and the history of another one, and without tangents."""
    cdef TensorImpl copy = shallow_copy(tensor)
    if needs_node(tensor, None):
        record(rule_op("alias"), tensor, None, copy, ())
    return copy


cdef object take_parts(TensorImpl tensor, list parts, tuple levels, bint is_constant=False):
    """Append the plain tensors behind a tensor, and return its form. The tangent of a constant will not be laid out otherwise later."""
    cdef Batch batch
    cdef Dual dual
    cdef Level level
    cdef int number
    if type(tensor) is not tensor_type or tensor.flags & SPARSE:
        raise Uncommon("a tensor that is sparse, inside of a transform, or of a subclass")
    if tensor.flags & BATCHED:
        batch = <Batch>tensor.special
        number = number_of(batch.level, levels)
        return number, take_parts(batch.inner, parts, levels, is_constant)
    dual = visible_dual(tensor) if tensor.flags & (DUAL | VIEW) else None
    if dual is None:
        parts.append(plain_copy(tensor) if tensor.flags & DUAL else tensor)
        return None
    level = dual.level
    tangent = arranged_tangent(tensor, level) if is_constant else tangent_at(tensor, level)
    if tangent is None:
        raise Uncommon("a tensor whose tangent is recorded and has other strides")
    return number_of(level, levels), take_parts(without_tangent(tensor, level), parts, levels), take_parts(tangent, parts, levels)


def parts_of(TensorImpl tensor not None, tuple levels not None):
    """Return the form of a tensor, and the plain tensors behind it."""
    cdef list parts = []
    return take_parts(tensor, parts, levels), parts


def tensors_behind(TensorImpl tensor not None, tuple levels not None):
    """Return the tensors that gradients of the plain tensors behind a tensor, which are views of them, go to.

    Uncapturable for a recorded tangent of a base, or of a second level.
    """
    cdef list parts = []
    cdef TensorImpl part, inner = innermost(tensor), tangent = None
    cdef Dual dual = visible_dual(inner)
    if has_pattern(tensor):
        return [inner]
    take_parts(tensor, parts, levels)
    if inner.flags & DUAL:
        parts[0] = inner
    if len(parts) == 2:
        tangent = whole_tangent(inner, dual.level)
    if tangent is not None:
        parts[1] = innermost(tangent)
    elif any([needs_grad(part) for part in parts[1:]]):
        raise Uncapturable("it uses a part of a tensor, or one of two levels of forward mode, whose tangent requires a gradient")
    return parts


cdef bint stands_for_itself(TensorImpl tensor):
    """Return True for a tensor without tangents that is the same in all examples."""
    return not tensor.flags & SPECIAL and (not tensor.flags & VIEW or visible_dual(tensor) is None)


cdef object kind_of_parts(TensorImpl tensor, list tensors, tuple levels, bint may_have_hooks=False):
    """Return the kind of a tensor, and append the plain ones behind it. levels: None to append the tensor as it is, of any kind."""
    cdef Py_ssize_t first = len(tensors)
    cdef TensorImpl part
    if levels is None:
        tensors.append((<Sparse>tensor.special).inner if has_pattern(tensor) else tensor)
        return None
    if has_pattern(tensor) and (not levels or stands_for_itself((<Sparse>tensor.special).inner)):
        return pattern_kind(tensor), kind_of_parts((<Sparse>tensor.special).inner, tensors, (), may_have_hooks)
    if not levels:
        tensors.append(tensor)
        return kind_of(tensor, may_have_hooks)
    form = take_parts(tensor, tensors, levels, True)
    if form is None:
        return kind_of(tensors[first], may_have_hooks)
    return form, *[kind_of(part, may_have_hooks) for part in tensors[first:]]


@cython.final
@cython.binding(False)
cdef class Parts:
    """The values among the arguments of a call that a program may have others of: `tensors`; `objects`, which code distinguishes by
    identity, such as lists and local functions; and `others`, which the key of the call has by identity."""

    def __cinit__(self):
        self.tensors, self.objects, self.others, self.known = [], [], [], {}


cdef object kind_of_value(object value, Parts parts, tuple levels, bint has_inputs=False):
    """Return the kind of a value. has_inputs: floats, but for keys, are tensors."""
    if isinstance(value, TensorImpl):
        return kind_of_parts(value, parts.tensors, levels)
    if has_inputs and (type(value) is float or type(value) is float64):
        return type(value), kind_of_parts(tensor_of_float(value), parts.tensors, levels)
    if is_plain_value(value):
        if type(value) is str and "{" in value:     # perhaps a format, with names of attributes
            parts.others.append(value)
        return plain_kind(value)
    enter_container(" while arguments of a compiled function are read")
    try:
        return kind_of_object(value, parts, levels, has_inputs)
    finally:
        leave_container()


cdef object kind_of_object(object value, Parts parts, tuple levels, bint has_inputs, tuple outer=()):
    """Return the kind of a container, or of a function to which others (outer) lead; one that is met again has the same tensors in place of
    floats."""
    cdef Py_ssize_t tensors = len(parts.tensors), objects = len(parts.objects)
    if has_inputs and id(value) in parts.known:
        kind, of_tensors, of_objects = parts.known[id(value)]
        parts.tensors += parts.tensors[of_tensors]
        parts.objects += parts.objects[of_objects]
        return kind
    if outer:
        parts.objects.append(value)
        kind = kind_of_function(value, parts, levels, has_inputs, outer)
    else:
        kind = kind_of_container(value, parts, levels, has_inputs)
    if has_inputs:
        parts.known[id(value)] = kind, slice(tensors, len(parts.tensors)), slice(objects, len(parts.objects))
    return kind


cdef object kind_of_container(object value, Parts parts, tuple levels, bint has_inputs):
    """Return the kind of a value of several, or of an object, which is compared by identity."""
    cdef type kind = type(value)
    if hasattr(kind, "__of_tensors__"):         # an object in place of a number
        return value.kind, kind_of_parts(value._tensor, parts.tensors, levels)
    if isinstance(value, ndarray):
        if hasattr(kind, "__tensor__"):     # an object in place of an array
            return kind, kind_of_parts(value._tensor, parts.tensors, levels)
        raise Uncommon("an array of NumPy's that is no operand of tensors")
    if isinstance(value, generic) and not isinstance(value, void):
        return kind, value.dtype, value.tobytes()
    parts.objects.append(value)
    if kind is tuple or kind is list or kind is Size:
        return kind, *[kind_of_value(item, parts, levels, has_inputs) for item in value]
    if kind is dict:
        return kind_of_dict(value, parts, levels, has_inputs)
    if kind is OrderedDict or kind is defaultdict:
        parts.others.append(getattr(value, "default_factory", None))
        return (kind, getattr(value, "default_factory", None), kind_of_dict(dict(value), parts, levels, has_inputs),
                kind_of_value(getattr(value, "__dict__", None), parts, levels))
    if isinstance(value, tuple) and hasattr(value, "_fields") and not getattr(value, "__dict__", None):
        parts.others.append(kind)
        return kind, *[kind_of_value(item, parts, levels, has_inputs) for item in value]
    if kind is slice:
        return kind, *[kind_of_value(each, parts, levels) for each in (value.start, value.stop, value.step)]
    if kind is range:
        return kind, value.start, value.stop, value.step
    if kind is MethodType:
        return kind, kind_of_value(value.__func__, parts, levels), kind_of_value(value.__self__, parts, levels)
    if kind is partial and not value.__dict__:
        return kind, *[kind_of_value(each, parts, levels, has_inputs) for each in (value.func, value.args, value.keywords)]
    if is_local_function(value):
        return kind_of_function(value, parts, levels, has_inputs)
    if is_record(value):
        parts.others.append(kind)     # whose methods and other attributes are guarded
        return kind, *[(key, kind_of_value(item, parts, levels, has_inputs)) for key, item in (<dict>value.__dict__).items()]
    parts.objects.pop()
    parts.others.append(value)
    return kind, id(value)


cdef object kind_of_dict(dict values, Parts parts, tuple levels, bint has_inputs):
    return dict, *[(key if type(key) is str else kind_of_value(key, parts, levels), kind_of_value(item, parts, levels, has_inputs))
                   for key, item in values.items()]


cpdef bint is_local_function(object value) except -1:
    """Return True for a function that code makes anew each time, as it makes a container: a lambda, or a `def` in another function.

    Not for one with annotations that were evaluated.
    """
    return (type(value) is FunctionType and (value.__code__.co_flags & IS_NESTED or value.__code__.co_name == "<lambda>")
            and not value.__kwdefaults__
            and getattr(modules.get(value.__globals__.get("__name__")), "__dict__", None) is value.__globals__
            and all([type(each) is str for each in value.__annotations__.values()]))


cpdef list attributes_of(object function):
    """Return the names of the attributes of a local function, but for those that the package gives to steps of loops."""
    return [name for name in function.__dict__ if name not in KEPT]


cpdef list variables_of(object function):
    """Return the values that a local function has besides its code: defaults, variables from outside, attributes."""
    return [*(function.__defaults__ or ()), *[cell.cell_contents for cell in function.__closure__ or () if cell != EMPTY_CELL],
            *[function.__dict__[name] for name in attributes_of(function)]]


cpdef bint is_plain_tuple(object value, int depth=DEEPEST) except -1:
    """Return True for a tuple of tensors, plain values and such tuples."""
    return type(value) is tuple and depth > 0 and all([is_variable(each, depth) for each in value])


cpdef bint is_variable(object value, int depth=DEEPEST + 1) except -1:
    """Return True for a value that a local function has by its kind: no other object."""
    return (isinstance(value, (TensorImpl, generic)) or is_plain_value(value) or is_plain_tuple(value, depth - 1)
            or hasattr(type(value), "__of_tensors__"))


cdef object kind_of_function(object function, Parts parts, tuple levels, bint has_inputs, tuple outer=()):
    """Return the kind of a local function: its code, and the kinds of its values; outer: the functions that lead to it.

    Objects that are neither plain, nor tuples of plain ones, nor local functions are compared by identity.
    """
    cdef tuple path = (*outer, function)
    cdef list kinds = [function.__name__, function.__qualname__, function.__doc__, function.__module__, id(function.__globals__),
                       *sorted(function.__annotations__.items()), *attributes_of(function),
                       *[cell == EMPTY_CELL for cell in function.__closure__ or ()]]
    parts.others.append(function.__code__)
    for value in variables_of(function):
        if is_variable(value):
            kinds.append(kind_of_value(value, parts, levels, has_inputs))
        elif is_local_function(value) and value in path:
            kinds.append(path.index(value))
        elif is_local_function(value) and len(path) < DEEPEST:
            kinds.append(kind_of_object(value, parts, levels, has_inputs, path))
        else:
            parts.others.append((value,))
            kinds.append(id(value))
    return FunctionType, id(function.__code__), *kinds


cpdef bint is_record(object value) except -1:
    """Return True for a container by name: an instance of a dataclass, whose attributes are in its dict alone, without compiled methods."""
    cdef type kind = type(value)
    return (hasattr(kind, "__dataclass_fields__") and kind.__basicsize__ == PLAIN_SIZE
            and kind.__eq__ is not object.__eq__ and not hasattr(kind, "__has_compiled_methods__")
            and not any([base.__dict__.get("__slots__") for base in kind.__mro__]))


def are_unseen_views(list tensors not None):
    """Return True if tensors of different storages overlap: in memory of NumPy or another library."""
    cdef list foreign = []
    cdef Storage owner
    for tensor in tensors:
        owner = owner_of((<TensorImpl>tensor).storage)
        if is_foreign(owner) and any([other is not owner and owners_overlap(owner, other) for other in foreign]):
            return True
        foreign.append(owner)
    return False


def argument_parts(tuple args not None, dict kwargs not None):
    """Return the values among the arguments of a call, in the order in which `signature_of` has them."""
    cdef Parts parts = Parts()
    kinds_of_call(args, kwargs, parts, None, False)
    return parts


cdef tuple kinds_of_call(tuple args, dict kwargs, Parts parts, tuple levels, bint has_inputs):
    return (tuple, *[kind_of_value(item, parts, levels, has_inputs) for item in args]), kind_of_dict(kwargs, parts, levels, has_inputs)


def signature_of(tuple args not None, dict kwargs not None, Parts parts not None, bint has_inputs=False):
    """Return the kind of a call: of its arguments, of the memory and the objects that they share, and of the modes of this thread.

    `parts` gets the values. has_inputs: with a new 0-d tensor in place of each float.
    """
    cdef tuple levels = active_levels(), kinds
    cdef Level level
    try:
        kinds = kinds_of_call(args, kwargs, parts, levels, has_inputs)
    except RecursionError:
        raise Uncommon("a container that is nested too deep, or contains itself") from None
    if levels:
        kinds = *kinds, *[(level.size, level.randomness, level.recorded) for level in levels]
    return kinds, shared_memory(parts.tensors), grad_mode()[0], is_inference_mode(), result_settings(), shared_objects(parts.objects)
