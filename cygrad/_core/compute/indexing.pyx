# cython: cdivision=True
"""Indexing: views of parts, look-up and assignment.

Basic indices (int, slice, None, ...) give views; tensors of integers, arrays, lists and masks are looked up by kernels (`lookups`). NumPy
has the rest: other dtypes, more tensors than a launch takes, and the errors.
The functions are the methods of Tensor too: their first argument is the tensor.
"""
from cpython.bool cimport PyBool_Check
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_Check
from libc.stdint cimport intptr_t

from cygrad._core.compute.creation cimport check_held
from cygrad._core.compute.inplace cimport as_before, check_in_place, cut_history, record_copy, record_in_place, write_values
from cygrad._core.compute.lookups cimport (fill_where, fits_mask, is_index, is_mask, keeps_places, look_up, names_part,
                                           part_sizes, put_at, with_tensors)
from cygrad._core.compute.parts cimport Cuts, basic_view, record_part, zero_outside
from cygrad._core.compute.places cimport dense, in_order
from cygrad._core.compute.reductions cimport decided_number
from cygrad._core.graph.constants cimport zero
from cygrad._core.graph.notes cimport part_copies_of_notes
from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, count_change, empty, needs_grad, tensor_type, view_of
from cygrad._core.memory.looks cimport note_lasting_look
from cygrad._core.memory.sizes cimport integer, parse_sizes, sizes_tuple, wrap_dim
from cygrad._core.memory.storage cimport dtypes, owner_of
from cygrad._core.memory.writes cimport add_part_copy
from cygrad._core.operands.arrays cimport array_of, bits_of, tensor_of_array, tensor_of_bits, values_of
from cygrad._core.operands.operands cimport Value, copy_into, copy_of, number_tensor, to_value
from cygrad._core.operands.strided cimport overlaps_itself
from cygrad._core.programs.deferred cimport copy_later
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT64, CG_INT64, MAX_DIMS, cg_is_complex, cg_is_differentiable, cg_is_index,
                                                  cg_is_opaque, cg_loops_of)
from cygrad._kernels.system.recursion cimport enter_container, leave_container

import numpy
import warnings

from cygrad._core.compute.copies import warn_of_parts

cdef extern from "Python.h":
    bint PyIndex_Check(object value)
    object PyNumber_Index(object value)     # an exact int
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step


cdef enum:
    FEW = 1024      # elements, of which a gradient is soon made

# ----- Indexing -----
cdef RuleOp INDEX_PUT = rule_op("index_put", ("key", "accumulate", "values_shape", "values_dtype"))
cdef RuleOp INDEX = rule_op("index", ("shape", "key")), SCATTER_KEY = rule_op("scatter_key", ("key",))


cdef inline bint is_exact(PyObject* number) noexcept:
    return <object>number is None or type(<object>number) is int


cdef inline bint is_exact_item(object item, bint keeps) noexcept:
    """Return True if looking at an item of an index runs no code of the user. `keeps`: 0-d tensors stay."""
    cdef PySliceObject* part = <PySliceObject*><PyObject*>item
    if PySlice_Check(item):
        return is_exact(part.start) and is_exact(part.stop) and is_exact(part.step)
    return (type(item) is int or item is None or item is Ellipsis or keeps and is_index(item)
            or type(item) is tensor_type and ((<TensorImpl>item).ndim or not cg_is_index[(<TensorImpl>item).dtype_nr]))


cdef object bound(object end):
    """Return an end of a slice, or its step, as an exact int or None."""
    if end is None:
        return None
    if not PyIndex_Check(end):
        raise TypeError(f"slice indices must be integers or None or have an __index__ method, not {type(end).__name__}")
    return PyNumber_Index(end)


cdef object exact_item(object item, bint keeps=False):
    """Return an item of an index: one that selects one place, an int or an integer scalar, as an exact int, or as a 0-d tensor."""
    if PySlice_Check(item):
        return slice(bound(item.start), bound(item.stop), bound(item.step))
    if isinstance(item, TensorImpl):
        if not (keeps and is_index(item)) and (<TensorImpl>item).ndim == 0 and cg_is_index[(<TensorImpl>item).dtype_nr]:
            return decided_number(<TensorImpl>item)
        return item
    if isinstance(item, (tuple, list)):
        return exact_parts(item)
    if isinstance(item, numpy.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        note_lasting_look("an array of NumPy's is an index")
        return int(item)
    if item is None or item is Ellipsis or PyBool_Check(item) or isinstance(item, (numpy.ndarray, numpy.bool_, str, bytes)):
        return item
    if keeps and hasattr(item, "__place__"):        # the number of a step of a loop
        return item.__place__()
    if PyIndex_Check(item):
        return PyNumber_Index(item)
    return numpy.asarray(item) if hasattr(item, "__array__") else item


cdef object exact_parts(object items):
    """Return the items of an index in place of an array."""
    enter_container(" while an index is read")
    try:
        parts = [exact_item(part) for part in tuple(items)]
    finally:
        leave_container()
    return parts if isinstance(items, list) else tuple(parts)


def is_several_indices(list key not None):
    """Return True if a list stands for a tuple of indices, as it does in torch where it holds more than numbers."""
    return len(key) < 32 and any([item is None or item is Ellipsis or isinstance(item, (slice, TensorImpl)) or hasattr(item, "__len__")
                                  for item in key])


cdef tuple items_of(object key):
    """Return the indices of the dims: a tuple has one for each, and so has, with a warning, a list that holds more than numbers."""
    if type(key) is list:
        if is_several_indices(key):
            warnings.warn("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed; use x[tuple(seq)] "
                          "instead of x[seq], or x[tensor(seq)] where it stands for one index.", UserWarning, stacklevel=1)
            return tuple(key)
    return tuple(key) if isinstance(key, tuple) else (key,)


cdef tuple read_key(object key, bint keeps=False):
    """Return an index as a tuple of plain items: before anything of a tensor is read."""
    cdef tuple items = key if type(key) is tuple else items_of(key)
    for item in items:
        if not is_exact_item(item, keeps):
            return tuple([exact_item(item, keeps) for item in items])
    return items


cdef object numpy_key(object key):
    """Return an index with tensors replaced by the arrays they hold."""
    if isinstance(key, tuple):
        enter_container(" while an index is read")
        try:
            return tuple([numpy_key(item) for item in <tuple>key])
        finally:
            leave_container()
    if isinstance(key, TensorImpl):
        if not cg_is_index[(<TensorImpl>key).dtype_nr] and (<TensorImpl>key).dtype_nr != CG_BOOL:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        # A copy, since backward uses the index again; uint8 is a mask, as in torch.
        return array_of(key).astype(bool if (<object>key).dtype.name == "uint8" else (<object>key).dtype.name)
    if isinstance(key, numpy.ndarray):
        return key.copy()
    return list(key) if isinstance(key, list) else key


cdef object index_error(TensorImpl x, object key, object error):
    """Return NumPy's error about an index in torch's words."""
    from cygrad.ops.index_errors import refused_index
    items = key if isinstance(key, tuple) else (key,)
    return refused_index(list(sizes_tuple(x.ndim, x.sizes)), tuple([numpy.asarray(item) if isinstance(item, list) else item
                                                                    for item in items]), str(error))


cdef tuple saved_key(tuple items, tuple looked):
    """Return an index for a node, as it was looked up: with copies of the user's tensors, which programs follow, arrays and lists."""
    return tuple([numpy_key(item) if not isinstance(item, TensorImpl) else copy_of(item, (<TensorImpl>item).dtype_nr)
                  if any([item is each for each in items]) else item for item in looked])


def checked_key(TensorImpl x not None, key):
    """Return an index as a node keeps it, and the sizes of the part at it; IndexError where it does not fit x."""
    cdef tuple items = read_key(key, keeps_places(key, True)), looked = with_tensors(x, items)
    sizes = part_sizes(x, looked)
    if sizes is not None:
        return saved_key(items, looked), sizes
    numpy_index = numpy_key(items)
    try:
        return numpy_index, bits_of(x)[numpy_index].shape
    except IndexError as error:
        raise index_error(x, numpy_index, error) from None


cdef bint may_be_copied(TensorImpl x, tuple items) except -1:
    """Return True if notes follow places, and a copy of a part at places that 0-d tensors name lies as the view does, and its gradient
    takes about as long.
    """
    cdef Cuts cuts
    return (part_copies_of_notes() is not None and (x.count <= FEW or not needs_node(x, None))
            and basic_view(x, tuple([0 if is_index(item) else item for item in items]), &cuts).flags & CONTIGUOUS)


cdef object get_item(TensorImpl x, object key):
    cdef Cuts cuts
    cdef tuple items = read_key(key, keeps_places(key, False)), looked
    cdef TensorImpl result = basic_view(x, items, &cuts)
    if result is not None:
        if needs_node(x, None):
            record_part(x, result, items, &cuts)
        return result
    if names_part(items) and not may_be_copied(x, items):
        return get_item(x, tuple([exact_item(item) for item in items]))
    looked = with_tensors(x, items)
    result = look_up(x, looked)
    if result is not None:
        if names_part(items):
            add_part_copy(part_copies_of_notes(), result.storage, owner_of(x.storage))
        if needs_node(x, None):
            record(INDEX, x, None, result, (sizes_tuple(x.ndim, x.sizes), saved_key(items, looked)))
        return result
    numpy_index = numpy_key(items)
    try:
        array = bits_of(x)[numpy_index]
    except IndexError as error:
        raise index_error(x, numpy_index, error) from None
    result = tensor_of_bits(array.copy() if array.base is not None else array, x.dtype_nr)
    if needs_node(x, None):
        record(INDEX, x, None, result, (sizes_tuple(x.ndim, x.sizes), saved_key(items, items)))
    return result


cdef bint fill_masked(TensorImpl x, tuple items, TensorImpl number) except -1:
    """Write a number where an index, a mask of the first dims, holds. False: it is another index."""
    cdef intptr_t[MAX_DIMS] sizes, strides
    cdef TensorImpl mask
    cdef int d
    if len(items) != 1 or not is_mask(items[0]) or not fits_mask(x, 0, items[0]):
        return False
    mask = items[0]
    for d in range(x.ndim):
        sizes[d] = mask.sizes[d] if d < mask.ndim else 1
        strides[d] = mask.strides[d] if d < mask.ndim else 0
    fill_where(x, view_of(mask, 0, x.ndim, sizes, strides), number)
    return True


cdef int set_item(TensorImpl x, object key, object value) except -1:
    cdef Cuts cuts
    cdef tuple items = read_key(key, keeps_places(key, True)), looked
    cdef TensorImpl source = value if isinstance(value, TensorImpl) else scalar_like(x, value), part
    cdef bint recorded = cg_is_differentiable[x.dtype_nr] and needs_node(x, source), whole = len(items) == 1 and items[0] is Ellipsis
    part = x if whole else basic_view(x, items, &cuts)
    if recorded and part is not None and not whole and needs_grad(x):
        record_part(x, part, items, &cuts)
    try:
        check_in_place(x if part is None else part, recorded)
    except RuntimeError:
        if part is not None or not names_part(items):
            raise
        return set_item(x, tuple([exact_item(item) for item in items]), value)      # the part may be written, or has another error
    if part is None and source.ndim == 0:      # taken for its number, where a view takes on a copy
        check_held(source, x.dtype_nr)
    elif cg_is_complex[source.dtype_nr] and not cg_is_complex[x.dtype_nr]:
        warn_of_parts(dtypes[source.dtype_nr], dtypes[x.dtype_nr])
    if recorded and source is value:
        source = as_before(source, x)
    if part is None and source.ndim == 0 and fill_masked(x, items, source):
        items = saved_key(items, items) if recorded else items
    elif part is None and put_at(x, looked := with_tensors(x, items), source, False):
        items = saved_key(items, looked) if recorded else items
    elif part is None:
        numpy_index = numpy_key(items)
        items = saved_key(items, items) if recorded else items
        try:
            # NumPy would warn of imaginary parts once more.
            if cg_is_opaque[x.dtype_nr] or cg_is_complex[source.dtype_nr]:
                bits_of(x)[numpy_index] = bits_of(copy_of(source, x.dtype_nr))
            else:
                bits_of(x)[numpy_index] = values_of(source)
        except IndexError as error:
            raise index_error(x, numpy_index, error) from None
        except (ValueError, TypeError) as error:
            sizes = part_sizes(x, with_tensors(x, read_key(key)))
            if sizes is None:
                raise RuntimeError(f"shape mismatch: {error}") from None
            raise RuntimeError(f"shape mismatch: value tensor of shape {list(sizes_tuple(source.ndim, source.sizes))} cannot be broadcast "
                               f"to indexing result of shape {list(sizes)}") from None
    else:
        # As NumPy and torch: leading dims of size 1 may be dropped from the value.
        while source.ndim > part.ndim and source.sizes[0] == 1:
            source = get_item(source, 0)
        copy_later(part, source, False)
    count_change(x if part is None else part)
    if not recorded:
        return 0
    if part is None:
        return record_in_place(INDEX_PUT, x, source, (items, False, sizes_tuple(source.ndim, source.sizes),
                                                      dtypes[source.dtype_nr]))
    return record_copy(part, source) if needs_grad(source) else cut_history(part)


cdef TensorImpl scalar_like(TensorImpl x, object value):
    """Return a number or an array as a tensor that can be written into x."""
    cdef Value read
    alive = to_value(value, &read)
    if alive is NotImplemented:
        if hasattr(value, "__operand__"):       # a number that is an input of a program
            return value.__operand__() if x.dtype_nr == CG_FLOAT64 else scalar_like(x, value.number)
        if isinstance(value, (list, tuple)):
            return tensor_of_array(numpy.array(value, dtype=dtypes[cg_loops_of[x.dtype_nr]].name))
        raise TypeError(f"can't assign a {type(value).__name__} to a cygrad.{dtypes[x.dtype_nr].name} tensor; assign a tensor or a number")
    if read.tensor is not NULL:
        return <TensorImpl>read.tensor
    return number_tensor(&read, x.dtype_nr)


def _scatter_key(TensorImpl input not None, shape, key, bint accumulate):
    """Return zeros of a shape with `input` at an index, summed there where the index repeats; the transpose of indexing."""
    cdef intptr_t sizes[MAX_DIMS]
    cdef int ndim = parse_sizes(shape, sizes)
    cdef TensorImpl result = empty(input.dtype_nr, ndim, sizes), part
    cdef Cuts cuts
    key = read_key(key)
    if accumulate:
        zero(result)
        put_values(result, key, input, True)
    else:
        part = basic_view(result, key, &cuts)
        zero_outside(result, part)
        copy_later(part, input, False)
    if needs_node(input, None):
        record(SCATTER_KEY, input, None, result, (key,))
    return result


cdef tuple arrays_of(tuple key):
    """Return an index as a node has it with arrays in place of tensors."""
    return tuple([numpy_key(item) if isinstance(item, TensorImpl) else item for item in key])


def put_values(TensorImpl whole not None, tuple key not None, TensorImpl source not None, bint adds):
    """Put values, broadcast, at an index as a node keeps it, or add them as often as it names each element; the change is not counted."""
    if put_at(whole, key, source, adds):
        return
    if adds:
        write_values(whole, lambda array: numpy.add.at(array, arrays_of(key), values_of(source)))
    else:
        write_values(whole, lambda array: array.__setitem__(arrays_of(key), values_of(source)))


def put_in_order(TensorImpl whole not None, TensorImpl places not None, TensorImpl source not None, bint adds):
    """Put values at checked places in the order of elements, or add them; the change is not counted."""
    cdef TensorImpl target, values = in_order(dense(source, source.dtype_nr))
    if overlaps_itself(whole.ndim, whole.sizes, whole.strides):     # a dense copy would be written back whole
        key = numpy.unravel_index(array_of(places).reshape(-1) % whole.count, sizes_tuple(whole.ndim, whole.sizes))
        put_values(whole, key, values, adds)
        return
    target = dense(whole, whole.dtype_nr)
    put_values(in_order(target), (in_order(dense(places, CG_INT64)),), values, adds)
    if target is not whole:
        copy_into(whole, target)


def add_at(TensorImpl whole not None, key, TensorImpl source not None):
    """Add values at an index, as `put_values` does, and count the change."""
    put_values(whole, key, source, True)
    count_change(whole)


# ----- Parts along a dim -----
def narrow(TensorImpl input not None, dim, start, length):
    """Return the view of `length` elements from `start` on along a dim; `start` is an int, or a 0-d tensor of one."""
    if isinstance(start, TensorImpl) and ((<TensorImpl>start).ndim or not cg_is_index[(<TensorImpl>start).dtype_nr]):
        raise RuntimeError("start must be an 0-dim integral Tensor, or an int; the one given has dtype "
                           f"{start.dtype} and {(<TensorImpl>start).ndim} dims")
    cdef intptr_t along = integer(dim, "dim"), first = integer(start, "start"), count = integer(length, "length")
    cdef int d = wrap_dim(along, input.ndim)
    if input.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if count < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {count}.")
    if first < -input.sizes[d] or first > input.sizes[d]:
        raise IndexError(f"start out of range (expected to be in range of [{-input.sizes[d]}, {input.sizes[d]}], but got {first})")
    first += input.sizes[d] if first < 0 else 0
    if count > input.sizes[d] - first:
        raise RuntimeError(f"start ({first}) + length ({count}) exceeds dimension size ({input.sizes[d]}).")
    return get_item(input, (slice(None),) * d + (slice(first, first + count),))


def select(TensorImpl input not None, dim, index):
    """Return the view at one index of a dim, which is dropped."""
    cdef intptr_t along = integer(dim, "dim"), position = integer(index, "index")
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    cdef int d = wrap_dim(along, input.ndim)
    if position < -input.sizes[d] or position >= input.sizes[d]:
        raise IndexError(f"select(): index {position} out of range for tensor of size {list(sizes_tuple(input.ndim, input.sizes))} at "
                         f"dimension {along}")
    return get_item(input, (slice(None),) * d + (position,))
