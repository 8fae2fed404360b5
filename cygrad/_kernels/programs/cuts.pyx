# cython: cdivision=True, initializedcheck=False
"""Decisions that tiles, rows and passes share (see cuts.pxd for the contract)."""
from cygrad._kernels.drivers.elementwise cimport STREAM_BYTES, cg_itemsize, cg_loops_of
from cygrad._kernels.system.threads cimport threads_for

cdef enum:
    VECTOR = 64


cdef bint find_rows(const Program* program, intptr_t* row, intptr_t* rows) noexcept nogil:
    cdef bint seen = False
    cdef int d
    row[0] = rows[0] = 1
    if program.geometry_count:
        return False
    for d in range(program.ndim):
        seen = seen or program.is_reduced[d]
        if not seen:
            rows[0] *= program.shape[d]
        elif program.is_reduced[d] or program.shape[d] == 1:
            row[0] *= program.shape[d]
        else:
            return False
    return seen


cdef void begin_cut(Cut* cut, const Program* program, int result) noexcept nogil:
    cut.program, cut.result, cut.passes, cut.row = program, result, False, 0
    cut.streamed = STREAM_BYTES * max(threads_for(program.total, program.cost), 1) // max(program.total, 1)


cdef void provide(Cut* cut, intptr_t elements) noexcept nogil:
    cdef int k, itemsize = 0
    for k in range(cut.program.slot_count):
        itemsize = max(itemsize, cg_itemsize[cg_loops_of[cut.program.slots[k].dtype]])
    cut.slot_bytes = (elements * itemsize + 2 * VECTOR) // VECTOR * VECTOR
    cut.threads = threads_for(cut.program.total, cut.program.cost) if cut.count > 1 else 1
