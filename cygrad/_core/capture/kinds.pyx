"""Kinds of tensors and of plain values (see kinds.pxd for the contract)."""
from libc.stdint cimport intptr_t

from cygrad._core.compute.contraction cimport contracts
from cygrad._core.compute.matrices cimport planner_number
from cygrad._core.graph.modes cimport grad_mode, is_inference_mode
from cygrad._core.graph.node cimport Hooks, Node
from cygrad._core.graph.tensor cimport (CREATED, INFERENCE, RETAINS_GRAD, SPARSE, SPECIAL, TensorImpl, VIEW, needs_grad, new_address,
                                        tensor_type)
from cygrad._core.levels.sparse cimport Sparse
from cygrad._core.memory.sizes cimport sizes_tuple
from cygrad._core.memory.storage cimport DType, Storage, default_dtype, is_foreign, owner_of, visible_version
from cygrad._kernels.system.recursion cimport enter_container, leave_container

from struct import pack

from cygrad._core.compute.creation import scalar_tensor
from cygrad._core.memory.storage import dtype_by_name

cdef enum:
    MOST_COMPARED = 8       # tensors that are compared with each other,
    MOST_OBJECTS = 32       # and objects
    NEEDS_GRAD = 1
    IS_INFERENCE = 2
    IS_PADDED = 4
    IS_READ_ONLY = 8
    IS_LEAF = 16
    IS_VIEW = 32
    HAS_LEAF_HOOKS = 64
    IS_PART_OF_LEAF = 128   # and the leaf requires a gradient; the bits of CREATED follow

cdef DType FLOAT64 = dtype_by_name["float64"]


cdef int result_settings() noexcept:
    return default_dtype() | contracts << 8 | planner_number << 9


cdef TensorImpl tensor_of_float(object value):
    return scalar_tensor(value, FLOAT64)


class Uncommon(Exception):
    """Arguments that no program is captured for."""


cdef inline bint gets_hooks(TensorImpl tensor) except -1:
    cdef Hooks hooks = tensor.extra if tensor.node is None else tensor.node.hooks
    if tensor.flags & RETAINS_GRAD:
        return True
    return hooks is not None and bool(hooks.tensor.get(0) if tensor.node is None else hooks.tensor.get(tensor.output_nr) or hooks.pre)


cdef inline bint runs_leaf_hooks(TensorImpl tensor) except -1:
    cdef Hooks own = tensor.extra, of_node = None if tensor.accumulator is NULL else (<Node>tensor.accumulator).hooks
    return tensor.node is None and bool(own is not None and own.accumulated or of_node is not None and (of_node.pre or of_node.post))


def has_hooks(TensorImpl tensor not None):
    """Return True for a tensor whose gradient is kept, or goes to hooks of the tensor or to hooks before its node."""
    return gets_hooks(tensor)


def has_leaf_hooks(TensorImpl tensor not None):
    """Return True for a leaf with hooks that run before or after its gradient is added to, of the leaf or of its AccumulateGrad."""
    return runs_leaf_hooks(tensor)


cdef int marks_of(TensorImpl tensor, bint may_have_hooks) except -1:
    """Return all that the kind of a tensor has besides dtype, sizes and strides; Uncommon for one that stands for others, or has hooks."""
    cdef int bits = 0
    if type(tensor) is not tensor_type or tensor.flags & SPECIAL:
        raise Uncommon("a tensor of a subclass, with a tangent, or inside of vmap")
    if needs_grad(tensor):
        bits |= NEEDS_GRAD
        if not may_have_hooks and gets_hooks(tensor):
            raise Uncommon("a tensor with hooks")
        bits |= HAS_LEAF_HOOKS if runs_leaf_hooks(tensor) else 0
    bits |= IS_INFERENCE if tensor.flags & INFERENCE else 0
    if tensor.flags & VIEW:
        bits |= IS_VIEW | tensor.flags & CREATED | (IS_PART_OF_LEAF if tensor.base.node is None and needs_grad(tensor.base) else 0)
    bits |= (IS_PADDED if tensor.storage.padded else 0) | (IS_READ_ONLY if tensor.storage.readonly else 0)
    return bits | (IS_LEAF if tensor.node is None else 0)


cdef object kind_of(TensorImpl tensor, bint may_have_hooks):
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


# ----- Plain values -----
cdef bint is_plain_value(object value):
    cdef type kind = type(value)
    return value is None or kind is int or kind is float or kind is bool or kind is str or kind is complex or kind is bytes or kind is DType


cdef object plain_kind(object value):
    """Return a key of a plain value: equal if the types are and nothing distinguishes the values."""
    if type(value) is float or type(value) is complex:
        return type(value), pack("dd", value.real, value.imag) if value == 0 or value != value or type(value) is complex else value
    return type(value), value


# ----- Memory that is shared -----
cdef bint owners_overlap(Storage a, Storage b):
    """Return True if two owners of memory are one, or both have memory of NumPy or another library that overlaps."""
    return a is b or is_foreign(a) and is_foreign(b) and a.data < b.data + b.nbytes and b.data < a.data + a.nbytes


cdef bint lie_apart(list tensors):
    """Return True if a few tensors have memory of their own."""
    cdef Py_ssize_t count = len(tensors), k, j
    if count > MOST_COMPARED:
        return False
    for k in range(1, count):
        for j in range(k):
            if owners_overlap(owner_of((<TensorImpl>tensors[k]).storage), owner_of((<TensorImpl>tensors[j]).storage)):
                return False
    return True


cpdef object shared_memory(list tensors):
    """Return which tensors lie in the memory of others, how far from them, and of which they share a base."""
    cdef dict first, bases
    cdef list layout, foreign       # foreign: owners, and the first tensors in their memory
    cdef TensorImpl tensor
    cdef Storage owner
    cdef int k
    if lie_apart(tensors):
        return ()
    first, bases, layout, foreign = {}, {}, [], []
    for k, tensor in enumerate(tensors):
        owner = owner_of(tensor.storage)
        of_base = bases.setdefault(id(tensor if tensor.base is None else tensor.base), k)
        earlier = first.setdefault(id(owner), k)
        if is_foreign(owner):
            earlier = min([earlier] + [number for other, number in foreign if owners_overlap(owner, other)])
            foreign.append((owner, earlier))
        if earlier != k:
            same = first.setdefault(id(tensor), k)      # the first place of this tensor: the gradient of another one is another
            layout.append((k, earlier, same, of_base, new_address(tensor) - new_address(<TensorImpl>tensors[earlier])))
        else:
            first[id(tensor)] = k
    return tuple(layout)


# ----- Calls -----
cdef bint are_different(list objects):
    """Return True if a few objects are all different ones."""
    cdef Py_ssize_t count = len(objects), k, j
    for k in range(1, count):
        for j in range(k):
            if objects[k] is objects[j]:
                return False
    return True


cdef object shared_objects(list objects):
    cdef dict first = {}
    cdef Py_ssize_t count = len(objects), k
    if count <= MOST_OBJECTS and are_different(objects):
        return ()
    for k in range(count):
        first.setdefault(id(objects[k]), k)
    return () if len(first) == count else tuple([first[id(each)] for each in objects])


cdef bint is_value_of(object value, tuple kind, list tensors, list objects, bint has_inputs) except -1:
    """Return True if a value has a kind, which must be of a tensor, a plain value, or such values in tuples, lists and dicts."""
    cdef object form = type(value)
    if form is tensor_type:
        return is_of_kind(value, kind, tensors, False)
    if form is not kind[0]:
        return False
    if has_inputs and form is float and type(kind[1]) is tuple:
        return is_of_kind(tensor_of_float(value), kind[1], tensors, False)
    if is_plain_value(value):
        return value is kind[1] or plain_kind(value) == kind
    if not (form is tuple or form is list or form is dict) or len(value) != len(kind) - 1:
        return False
    objects.append(value)
    enter_container(" while arguments of a compiled function are read")
    try:
        return are_items_of(value, kind, tensors, objects, has_inputs)
    finally:
        leave_container()


cdef bint are_items_of(object values, tuple kind, list tensors, list objects, bint has_inputs) except -1:
    """Return True if the items of a container have the kinds of the items of another one, of as many."""
    cdef bint is_dict = type(values) is dict
    cdef Py_ssize_t place = 0
    for key in values:
        place += 1
        value, item = key, kind[place]
        if is_dict:
            if type(key) is not str or key != item[0]:
                return False
            value, item = (<dict>values)[key], item[1]
        if not is_value_of(value, <tuple>item, tensors, objects, has_inputs):
            return False
    return True


def has_signature(tuple args not None, dict kwargs not None, tuple signature not None, list tensors not None, list objects not None,
                  bint has_inputs=False):
    """Return True if a call outside of levels has a signature, without making its own; False, too, for arguments of rare classes.

    `tensors` gets the tensors, `objects` the containers. has_inputs: with a new 0-d tensor in place of each float.
    """
    kinds, memory, mode, is_inference, settings, shared = signature
    if <int>mode != grad_mode()[0] or <bint>is_inference != is_inference_mode() or <int>settings != result_settings():
        return False
    if len(args) != len(<tuple>kinds[0]) - 1 or len(kwargs) != len(<tuple>kinds[1]) - 1:
        return False
    try:
        if not (are_items_of(args, kinds[0], tensors, objects, has_inputs)
                and are_items_of(kwargs, kinds[1], tensors, objects, has_inputs)):
            return False
    except Uncommon:
        return False
    return memory == shared_memory(tensors) and shared == shared_objects(objects)
