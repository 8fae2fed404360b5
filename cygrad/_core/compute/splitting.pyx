# cython: cdivision=True
"""Views of all parts along a dim.

The functions are the methods of Tensor too: their first argument is the tensor.
"""
from libc.stdint cimport intptr_t

from cygrad._core.compute.parts cimport view_along
from cygrad._core.graph.rule_nodes cimport record_outputs, needs_node
from cygrad._core.graph.rules cimport RuleOp, rule_op
from cygrad._core.graph.tensor cimport CREATED, CREATED_MULTIPLE, TensorImpl
from cygrad._core.memory.sizes cimport integer, sequence_items, sizes_tuple, wrap_dim

from cygrad._core.memory.storage import OutOfMemoryError

cdef enum:
    MOST_VIEWS = 1 << 26    # that one call makes: they take 16 GiB


cdef tuple PARTS = ("shape", "sections", "dim")
cdef RuleOp UNBIND = rule_op("unbind", ("shape", "dim")), SPLIT = rule_op("split", PARTS)
cdef RuleOp SPLIT_WITH_SIZES = rule_op("split_with_sizes", PARTS)


cpdef int check_views(count) except -1:
    """Refuse a number of views that only a tensor which repeats its elements has, or a senseless argument asks for."""
    if count > MOST_VIEWS:
        raise OutOfMemoryError(f"{count} views at once do not fit into memory: at most {MOST_VIEWS} are made; use larger parts")
    return 0


cdef tuple several_views(TensorImpl x, RuleOp op, list views, tuple sections, int d):
    """Record views that were made at once: none of them may be changed in place, since they have one node."""
    cdef TensorImpl view
    if not views:
        return ()
    if needs_node(x, None):
        shape = sizes_tuple(x.ndim, x.sizes)
        record_outputs(op, x, views, (shape, d) if sections is None else (shape, sections, d))
    for view in views:
        if not view.flags & CREATED:
            view.flags |= CREATED_MULTIPLE
    return tuple(views)


def unbind(TensorImpl input not None, dim=0):
    """Return the views at each index of a dim."""
    cdef intptr_t along = integer(dim, "dim")
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    cdef int d = wrap_dim(along, input.ndim)
    check_views(input.sizes[d])
    return several_views(input, UNBIND, [view_along(input, d, index, -1) for index in range(input.sizes[d])], None, d)


cdef tuple split_at(TensorImpl x, RuleOp op, list sections, int d):
    """Return the views of consecutive parts along a dim."""
    cdef list views = []
    cdef Py_ssize_t start = 0, section
    for section in sections:
        views.append(view_along(x, d, start, section))
        start += section
    return several_views(x, op, views, tuple(sections), d)


def split(TensorImpl input not None, split_size_or_sections=None, dim=0, *, split_size=None):
    """Return views of parts along a dim: of one size (the last may be smaller), or of the sizes listed."""
    split_size_or_sections = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(input, split_size_or_sections, dim)
    cdef intptr_t part = integer(split_size_or_sections, "split_size_or_sections"), along = integer(dim, "dim")
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    cdef int d = wrap_dim(along, input.ndim)
    cdef intptr_t size = input.sizes[d]
    if part == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    if part < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={part}")
    check_views((size - 1) // max(part, 1) + 1)
    return split_at(input, SPLIT, [min(part, size - first) for first in range(0, size, max(part, 1))] or [0], d)


def split_with_sizes(TensorImpl input not None, split_sizes, dim=0):
    """Return views of consecutive parts of the sizes listed."""
    cdef list sections = [integer(section, "split_sizes") for section in sequence_items(split_sizes, "split_sizes")]
    cdef intptr_t along = integer(dim, "dim"), section, total = 0
    cdef bint fits = True
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    cdef int d = wrap_dim(along, input.ndim)
    for section in sections:
        fits = fits and 0 <= section <= input.sizes[d] - total
        total += section if fits else 0
    if not fits or total != input.sizes[d]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {input.sizes[d]} (input tensor's size at dimension "
                           f"{d}), but got split_sizes={sections}")
    return split_at(input, SPLIT_WITH_SIZES, sections, d)


def chunk(TensorImpl input not None, chunks, dim=0):
    """Return at most `chunks` views of parts of equal size along a dim; the last may be smaller."""
    cdef intptr_t count = integer(chunks, "chunks"), along = integer(dim, "dim"), size
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if count <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {count}")
    cdef int d = wrap_dim(along, input.ndim)
    size = input.sizes[d]
    if size == 0:
        check_views(count)
        return split_at(input, SPLIT_WITH_SIZES, [0] * count, d)
    return split(input, (size - 1) // count + 1, d)
