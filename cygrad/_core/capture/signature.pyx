"""The kind of the arguments of a call, and the plain tensors behind them (see signature.pxd for the contract)."""

from libc.stdint cimport intptr_t

from cygrad._core.graph.modes cimport grad_mode, is_inference_mode
from cygrad._core.graph.node cimport Hooks
from cygrad._core.graph.rule_nodes cimport needs_node, record
from cygrad._core.graph.rules cimport rule_op
from cygrad._core.graph.tensor cimport (BATCHED, DUAL, INFERENCE, RETAINS_GRAD, SPARSE, SPECIAL, TensorImpl, VIEW, needs_grad, new_address,
                                        shallow_copy, tensor_type)
from cygrad._core.levels.batches cimport Batch
from cygrad._core.levels.fronts cimport innermost
from cygrad._core.levels.level cimport Level, active_levels
from cygrad._core.levels.sparse cimport Sparse
from cygrad._core.levels.tangents cimport Dual, arranged_tangent, tangent_at, visible_dual, whole_tangent
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport DType, Storage, default_dtype, is_foreign, owner_of, visible_version
from cygrad._kernels.system.recursion cimport enter_container, leave_container

from collections import OrderedDict, defaultdict
from functools import partial
from inspect import CO_NESTED
from struct import pack
from sys import modules
from types import CellType, FunctionType, MethodType

from numpy import float64, generic, ndarray, void

from cygrad._core.capture.captured import Uncapturable
from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.levels.tangents import without_tangent
from cygrad._core.memory.sizes import Size
from cygrad._core.memory.storage import dtype_by_name

cdef enum:
    FEW = 8         # tensors that are compared with each other
    NEEDS_GRAD = 1
    IS_INFERENCE = 2
    IS_PADDED = 4
    IS_READ_ONLY = 8
    IS_LEAF = 16
    IS_VIEW = 32
    HAS_LEAF_HOOKS = 64


cdef DType FLOAT64 = dtype_by_name["float64"]
cdef object EMPTY_CELL = CellType()
cdef int IS_NESTED = CO_NESTED
cdef set KEPT = {"__captured__", "__step__"}    # by the package
cdef Py_ssize_t PLAIN_SIZE = type("Plain", (), {}).__basicsize__


class Uncommon(Exception):
    """Arguments that no program is captured for."""


cdef bint has_hooks(TensorImpl tensor):
    cdef Hooks hooks = tensor.extra if tensor.node is None else tensor.node.hooks
    return hooks is not None and bool(hooks.tensor.get(tensor.output_nr if tensor.node is not None else 0)) or tensor.flags & RETAINS_GRAD


cpdef bint has_leaf_hooks(TensorImpl tensor) except -1:
    """Return True for a leaf with hooks that run where its gradient is added to."""
    cdef Hooks hooks = tensor.extra if tensor.node is None else tensor.node.hooks
    return hooks is not None and tensor.is_leaf and bool(hooks.accumulated or hooks.pre or hooks.post)


cdef int marks_of(TensorImpl tensor, bint may_have_hooks) except -1:
    """Return all that the kind of a tensor has besides dtype, sizes and strides; Uncommon for one that stands for others, or has hooks."""
    cdef int bits = 0
    if type(tensor) is not tensor_type or tensor.flags & SPECIAL:
        raise Uncommon("a tensor of a subclass, with a tangent, or inside of vmap")
    if needs_grad(tensor):
        bits |= NEEDS_GRAD
        if not may_have_hooks and has_hooks(tensor):
            raise Uncommon("a tensor with hooks")
        bits |= HAS_LEAF_HOOKS if has_leaf_hooks(tensor) else 0
    bits |= (IS_INFERENCE if tensor.flags & INFERENCE else 0) | (IS_VIEW if tensor.flags & VIEW else 0)
    bits |= (IS_PADDED if tensor.storage.padded else 0) | (IS_READ_ONLY if tensor.storage.readonly else 0)
    return bits | (IS_LEAF if tensor.node is None else 0)


cdef object kind_of(TensorImpl tensor, bint may_have_hooks=False):
    """Return the kind of a tensor."""
    return (tensor.dtype_nr, marks_of(tensor, may_have_hooks), sizes_tuple(tensor.ndim, tensor.sizes),
            sizes_tuple(tensor.ndim, tensor.strides))


cdef bint are_sizes(tuple sizes, const intptr_t* numbers, int ndim) except -1:
    cdef int d
    if len(sizes) != ndim:
        return False
    for d in range(ndim):
        if <Py_ssize_t>sizes[d] != numbers[d]:
            return False
    return True


cdef bint is_of_kind(TensorImpl tensor, tuple kind, list tensors, bint may_have_hooks) except -1:
    """Return True if a tensor outside of levels is of a kind, without making its own; the plain one behind it is appended."""
    cdef int marks
    if has_pattern(tensor):
        return kind[0] == pattern_kind(tensor) and is_of_kind((<Sparse>tensor.special).inner, kind[1], tensors, may_have_hooks)
    tensors.append(tensor)
    if type(kind[0]) is not int:
        return False
    marks = marks_of(tensor, may_have_hooks) ^ <int>kind[1]
    return (kind[0] == tensor.dtype_nr and not (marks & ~HAS_LEAF_HOOKS if may_have_hooks else marks)
            and are_sizes(<tuple>kind[2], tensor.sizes, tensor.ndim) and are_sizes(<tuple>kind[3], tensor.strides, tensor.ndim))


# ----- Sparse tensors: a program holds for one pattern, with any values -----
cdef bint has_pattern(TensorImpl tensor) noexcept:
    return tensor.flags & SPARSE and type(tensor) is tensor_type


cdef tuple pattern_kind(TensorImpl tensor):
    """Return the pattern of a sparse tensor, and how often its index tensors were changed: the first half of its kind."""
    pattern = (<Sparse>tensor.special).pattern
    return pattern, *[visible_version((<TensorImpl>index).storage.version) for index in pattern.indices]


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


cdef object kind_of_parts(TensorImpl tensor, list tensors, tuple levels, bint may_have_hooks=False):
    """Return the kind of a tensor, and append the plain ones behind it."""
    cdef Py_ssize_t first = len(tensors)
    cdef TensorImpl part
    if not levels and has_pattern(tensor):
        return pattern_kind(tensor), kind_of_parts((<Sparse>tensor.special).inner, tensors, levels, may_have_hooks)
    if not levels:
        tensors.append(tensor)
        return kind_of(tensor, may_have_hooks)
    form = take_parts(tensor, tensors, levels, True)
    if form is None:
        return kind_of(tensors[first], may_have_hooks)
    return form, *[kind_of(part, may_have_hooks) for part in tensors[first:]]


cdef bint is_plain_value(object value):
    cdef type kind = type(value)
    return value is None or kind is int or kind is float or kind is bool or kind is str or kind is complex or kind is bytes or kind is DType


cdef object plain_kind(object value):
    """Return a key of a plain value: equal if the types are and nothing distinguishes the values."""
    if type(value) is float or type(value) is complex:
        return type(value), pack("dd", value.real, value.imag) if value == 0 or value != value or type(value) is complex else value
    return type(value), value


cdef object kind_of_value(object value, list tensors, list others, tuple levels, bint has_inputs=False):
    """Return the kind of a value. has_inputs: floats, but for keys, are tensors."""
    if isinstance(value, TensorImpl):
        return kind_of_parts(value, tensors, levels)
    if has_inputs and (type(value) is float or type(value) is float64):
        kind = kind_of_parts(scalar_tensor(value, FLOAT64), tensors, levels)
        return kind if type(value) is float else (float64, kind)
    if is_plain_value(value):
        return plain_kind(value)
    enter_container(" while arguments of a compiled function are read")
    try:
        return kind_of_container(value, tensors, others, levels, has_inputs)
    finally:
        leave_container()


cdef object kind_of_container(object value, list tensors, list others, tuple levels, bint has_inputs):
    """Return the kind of a value of several, or of an object, which is compared by identity."""
    cdef type kind = type(value)
    if kind is tuple or kind is list or kind is Size:
        return kind, *[kind_of_value(item, tensors, others, levels, has_inputs) for item in value]
    if kind is dict:
        return kind, *[(key if type(key) is str else kind_of_value(key, tensors, others, levels),
                        kind_of_value(item, tensors, others, levels, has_inputs)) for key, item in (<dict>value).items()]
    if kind is OrderedDict or kind is defaultdict:
        others.append(getattr(value, "default_factory", None))
        return kind, getattr(value, "default_factory", None), kind_of_container(dict(value), tensors, others, levels, has_inputs)
    if isinstance(value, tuple) and hasattr(value, "_fields") and not getattr(value, "__dict__", None):
        others.append(kind)
        return kind, *[kind_of_value(item, tensors, others, levels, has_inputs) for item in value]
    if kind is slice:
        return kind, *[kind_of_value(each, tensors, others, levels) for each in (value.start, value.stop, value.step)]
    if hasattr(kind, "__of_tensors__"):         # an object in place of a number
        form = kind_of_parts(value._tensor, tensors, levels)
        return form if value.kind is float else (value.kind, form)
    if kind is range or isinstance(value, generic) and not isinstance(value, void):
        return (kind, value.start, value.stop, value.step) if kind is range else (kind, value.dtype, value.tobytes())
    if kind is MethodType:
        return kind, kind_of_value(value.__func__, tensors, others, levels), kind_of_value(value.__self__, tensors, others, levels)
    if kind is partial and not value.__dict__:
        return kind, *[kind_of_value(each, tensors, others, levels, has_inputs) for each in (value.func, value.args, value.keywords)]
    if is_local_function(value):
        return kind_of_function(value, tensors, others, levels, has_inputs)
    if is_record(value):
        others.append(kind)     # whose methods and other attributes are guarded
        return kind, *[(key, kind_of_value(item, tensors, others, levels, has_inputs)) for key, item in (<dict>value.__dict__).items()]
    if isinstance(value, ndarray):
        if hasattr(kind, "__tensor__"):     # an object in place of an array
            return kind, kind_of_parts(value._tensor, tensors, levels)
        raise Uncommon("an array of NumPy's among the arguments")
    others.append(value)
    return kind, id(value)


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


cdef object kind_of_function(object function, list tensors, list others, tuple levels, bint has_inputs, tuple outer=()):
    """Return the kind of a local function: its code, and the kinds of its values; outer: the functions that lead to it.

    Floats are tensors in the first of these alone. Objects that are neither plain nor local functions are compared by identity.
    """
    cdef tuple path = (*outer, function)
    cdef list kinds = [function.__name__, function.__qualname__, function.__doc__, function.__module__, function.__globals__["__name__"],
                       *sorted(function.__annotations__.items()), *attributes_of(function),
                       *[cell == EMPTY_CELL for cell in function.__closure__ or ()]]
    others.append(function.__code__)
    for value in variables_of(function):
        if isinstance(value, (TensorImpl, generic)) or is_plain_value(value) or hasattr(type(value), "__of_tensors__"):
            kinds.append(kind_of_value(value, tensors, others, levels, has_inputs and not outer))
        elif is_local_function(value) and value in path:
            kinds.append(path.index(value))
        elif is_local_function(value) and len(path) < FEW:
            kinds.append(kind_of_function(value, tensors, others, levels, has_inputs, path))
        else:
            others.append((value,))
            kinds.append(id(value))
    return FunctionType, id(function.__code__), *kinds


cpdef bint is_record(object value) except -1:
    """Return True for a container by name: an instance of a dataclass, whose attributes are in its dict alone, without compiled methods."""
    cdef type kind = type(value)
    return (hasattr(kind, "__dataclass_fields__") and kind.__basicsize__ == PLAIN_SIZE
            and kind.__eq__ is not object.__eq__ and not hasattr(kind, "__has_compiled_methods__")
            and not any([base.__dict__.get("__slots__") for base in kind.__mro__]))


cdef bint owners_overlap(Storage a, Storage b):
    """Return True if two owners of memory are one, or both have memory of NumPy or another library that overlaps."""
    return a is b or is_foreign(a) and is_foreign(b) and a.data < b.data + b.nbytes and b.data < a.data + a.nbytes


cdef bint lie_apart(list tensors):
    """Return True if a few tensors have memory of their own."""
    cdef Py_ssize_t count = len(tensors), k, j
    if count > FEW:
        return False
    for k in range(1, count):
        for j in range(k):
            if owners_overlap(owner_of((<TensorImpl>tensors[k]).storage), owner_of((<TensorImpl>tensors[j]).storage)):
                return False
    return True


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


cpdef object shared_memory(list tensors):
    """Return which tensors lie in the memory of others, and how far from them."""
    cdef dict first = {}
    cdef list layout = [], foreign = []     # foreign: owners, and the first tensors in their memory
    cdef TensorImpl tensor
    cdef Storage owner
    cdef int k
    if lie_apart(tensors):
        return ()
    for k, tensor in enumerate(tensors):
        owner = owner_of(tensor.storage)
        earlier = first.setdefault(id(owner), k)
        if is_foreign(owner):
            earlier = min([earlier] + [number for other, number in foreign if owners_overlap(owner, other)])
            foreign.append((owner, earlier))
        if earlier != k:
            same = first.setdefault(id(tensor), k)      # the first place of this tensor: the gradient of another one is another
            layout.append((k, earlier, same, new_address(tensor) - new_address(<TensorImpl>tensors[earlier])))
        else:
            first[id(tensor)] = k
    return tuple(layout)


def signature_of(tuple args not None, dict kwargs not None, list tensors not None, list others not None, bint has_inputs=False):
    """Return the kind of a call: of its arguments, of the memory that they share, and of the modes of this thread.

    `tensors` gets the tensors, `others` the values that are compared by identity. has_inputs: with a new 0-d tensor in place of each float.
    """
    cdef tuple levels = active_levels()
    cdef Level level
    try:
        kinds = (kind_of_value(args, tensors, others, levels, has_inputs),
                 kind_of_value(kwargs, tensors, others, levels, has_inputs))
    except RecursionError:
        raise Uncommon("containers that are nested too deep, or contain themselves") from None
    if levels:
        kinds = *kinds, *[(level.size, level.randomness, level.recorded) for level in levels]
    return kinds, shared_memory(tensors), grad_mode()[0], is_inference_mode(), default_dtype()


cdef bint is_value_of(object value, tuple kind, list tensors, bint has_inputs) except -1:
    """Return True if a value has a kind, which must be of a tensor, a plain value, or such values in tuples, lists and dicts."""
    cdef object form = type(value)
    if form is tensor_type or has_inputs and form is float:
        return is_of_kind(value if form is tensor_type else scalar_tensor(value, FLOAT64), kind, tensors, False)
    if form is not kind[0]:
        return False
    if is_plain_value(value):
        return value is kind[1] or plain_kind(value) == kind
    if not (form is tuple or form is list or form is dict) or len(value) != len(kind) - 1:
        return False
    enter_container(" while arguments of a compiled function are read")
    try:
        return are_items_of(value, kind, tensors, has_inputs)
    finally:
        leave_container()


cdef bint are_items_of(object values, tuple kind, list tensors, bint has_inputs) except -1:
    """Return True if the items of a container have the kinds of the items of another one."""
    cdef bint is_dict = type(values) is dict
    cdef Py_ssize_t place = 0
    for key in values:
        place += 1
        value, item = key, kind[place]
        if is_dict:
            if type(key) is not str or key != item[0]:
                return False
            value, item = (<dict>values)[key], item[1]
        if not is_value_of(value, <tuple>item, tensors, has_inputs):
            return False
    return True


def has_signature(tuple args not None, dict kwargs not None, tuple signature not None, list tensors not None, bint has_inputs=False):
    """Return True if a call outside of levels has a signature, without making its own; False, too, for arguments of rare classes.

    `tensors` gets the tensors. has_inputs: with a new 0-d tensor in place of each float.
    """
    kinds, memory, mode, is_inference, dtype = signature
    if <int>mode != grad_mode()[0] or <bint>is_inference != is_inference_mode() or <int>dtype != default_dtype():
        return False
    try:
        if not is_value_of(args, kinds[0], tensors, has_inputs) or not is_value_of(kwargs, kinds[1], tensors, has_inputs):
            return False
    except Uncommon:
        return False
    return memory == shared_memory(tensors)
