# cython: cdivision=True
"""Gathering (see gathering.pxd for the contract)."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport intptr_t

from cygrad._core.graph.launches cimport STEADY, Launch, add_changed, add_input, add_output, begin_launch, run_launch
from cygrad._core.graph.tensor cimport BATCHED, CONTIGUOUS, count_change, offset_of
from cygrad._core.operands.operands cimport RELEASE_GIL
from cygrad._kernels.drivers.boxes cimport BOX_DIMS, Box, add_boxes, has_loop
from cygrad._kernels.drivers.elementwise cimport SMALL_COUNT


cdef class Gathering:

    cdef void begin(self, Py_ssize_t target, TensorImpl whole, bint fresh) noexcept:
        cdef int d
        self.target, self.whole = target, <PyObject*>whole
        self.boxes.dtype, self.boxes.ndim = whole.dtype_nr, whole.ndim
        self.boxes.count, self.boxes.fresh = 0, fresh
        for d in range(whole.ndim):
            self.boxes.sizes[d] = whole.sizes[d]


cdef bint find_box(Box* box, TensorImpl whole, TensorImpl place) noexcept:
    """Find the box that a view is in a row-major tensor; False if it is none."""
    cdef intptr_t offset = offset_of(place) - offset_of(whole)
    cdef int d
    if place.ndim != whole.ndim or not 0 < whole.ndim <= BOX_DIMS or not place.count:
        return False
    box.factor = 1
    for d in range(whole.ndim):
        if place.strides[d] != whole.strides[d] and place.sizes[d] != 1:
            return False
        box.starts[d], box.sizes[d] = offset // whole.strides[d], place.sizes[d]
        offset -= box.starts[d] * whole.strides[d]
    return True


cdef bint keep_part(Run* run, Py_ssize_t target, TensorImpl whole, TensorImpl place, TensorImpl part, bint fresh) except -1:
    cdef Gathering gathering
    cdef Box box
    cdef bint is_first = not gathers(run, target) or (<Gathering>run.gathering).whole is not <PyObject*>whole
    if (is_first and (whole if fresh else part).count < SMALL_COUNT or not whole.flags & part.flags & CONTIGUOUS
            or (whole.flags | part.flags) & BATCHED or part.dtype_nr != whole.dtype_nr or not has_loop(part.dtype_nr)
            or not find_box(&box, whole, place)):
        return False
    if run.gathering is NULL:
        gathering = Gathering.__new__(Gathering)
        gathering.parts, gathering.target = [], NONE
        Py_INCREF(gathering)
        run.gathering = <PyObject*>gathering
    gathering = <Gathering>run.gathering
    if is_first or gathering.boxes.count == MAX_BOXES:
        add_parts(run)
        gathering.begin(target, whole, fresh)
    gathering.boxes.boxes[gathering.boxes.count] = box
    gathering.boxes.count += 1
    gathering.parts.append(part)
    return True


cdef int add_parts(Run* run) except -1:
    cdef Gathering gathering
    cdef Launch launch
    cdef TensorImpl whole, part
    cdef list parts
    if run.gathering is NULL or (<Gathering>run.gathering).target == NONE:
        return 0
    gathering = <Gathering>run.gathering
    whole, parts = <TensorImpl>gathering.whole, gathering.parts
    gathering.target, gathering.parts = NONE, []
    begin_launch(&launch, "add_parts", add_boxes, &gathering.boxes, sizeof(gathering.boxes))
    launch.traits = &STEADY
    if gathering.boxes.fresh:
        add_output(&launch, whole)
    else:
        add_changed(&launch, whole)
    for part in parts:
        add_input(&launch, part)
        count_change(whole)
    run_launch(&launch, whole.count >= RELEASE_GIL)
    return 0
