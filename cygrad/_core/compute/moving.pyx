# cython: cdivision=True
"""Elements moved at places (see moving.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._core.graph.launches cimport STEADY, Launch, add_changed, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64

cdef enum:
    LONG_BLOCK = 16     # numbers from which a call of memcpy pays


# ----- Elements -----
cdef inline intptr_t checked_place(int64_t place, intptr_t length) noexcept nogil:
    """Return a place from the start of a dim; it was checked, but another thread may have changed it since."""
    if <size_t>place < <size_t>length:
        return place
    place += length
    return place if 0 <= place < length else 0


cdef inline void move_element(element* target, element* part, Change change) noexcept nogil:
    if change == TAKE:
        part[0] = target[0]
    elif change == PUT:
        target[0] = part[0]
    elif change == ADD:
        target[0] = <element>(target[0] + part[0])
    elif change == SUBTRACT:
        target[0] = <element>(target[0] - part[0])
    elif part[0]:
        target[0] = 1


cdef inline void move_block(element* target, element* part, intptr_t count, Change change) noexcept nogil:
    """Move or add numbers that lie side by side."""
    cdef intptr_t k
    if change == TAKE and count >= LONG_BLOCK:
        memcpy(part, target, count * sizeof(element))
    elif change == PUT and count >= LONG_BLOCK:
        memcpy(target, part, count * sizeof(element))
    else:
        for k in range(count):
            move_element(target + k, part + k, change)


cdef inline void move_strided(element* target, element* part, const Axis* axis, Change change) noexcept nogil:
    """Move or add numbers that lie with strides."""
    cdef intptr_t size = axis.size, step = axis.step, own = axis.own, j
    cdef element number
    if change == TAKE and step == -1 and own == 1:
        for j in range(size):
            part[j] = target[-j]
    elif change == PUT and step == 1 and own == 0:
        number = part[0]
        for j in range(size):
            target[j] = number
    else:
        for j in range(size):
            move_element(target + j * step, part + j * own, change)


cdef inline void move_named(element* whole, element* part, const Moves* moves, const int64_t* index, int k) noexcept nogil:
    """Move or add the elements along the last dim that one index names."""
    cdef const Axis* axis = &moves.axes[moves.ndim - 1]
    cdef intptr_t length = moves.lengths[k], along = moves.along[k], size = axis.size, step = axis.step, own = axis.own
    cdef intptr_t next = axis.places[k], j
    cdef Change change = moves.change
    for j in range(size):
        move_element(whole + checked_place(index[j * next], length) * along + j * step, part + j * own, change)


cdef void move_row(element* whole, element* part, const Moves* moves, const int64_t** indices) noexcept nogil:
    """Move or add the elements along the last dim of the part."""
    cdef const Axis* axis = &moves.axes[moves.ndim - 1]
    cdef int[MOST_INDICES] vary
    cdef int varying = 0, k
    cdef intptr_t j
    cdef element* target
    for k in range(moves.indices):
        if axis.places[k]:
            vary[varying] = k
            varying += 1
        else:
            whole += checked_place(indices[k][0], moves.lengths[k]) * moves.along[k]
    if varying == 0 and moves.block == 1:
        move_strided(whole, part, axis, moves.change)
    elif varying == 1 and moves.block == 1:
        move_named(whole, part, moves, indices[vary[0]], vary[0])
    else:
        for j in range(axis.size):
            target = whole + j * axis.step
            for k in range(varying):
                target += checked_place(indices[vary[k]][j * axis.places[vary[k]]], moves.lengths[vary[k]]) * moves.along[vary[k]]
            move_block(target, part + j * axis.own, moves.block, moves.change)


cdef void move_row_of(char* whole, char* part, const Moves* moves, const int64_t** indices) noexcept nogil:
    cdef int dtype = cg_real[moves.dtype], width = cg_itemsize[dtype]
    cdef bint computes = moves.change == ADD or moves.change == SUBTRACT
    if computes and dtype == CG_FLOAT64:
        move_row[double](<double*>whole, <double*>part, moves, indices)
    elif computes and dtype == CG_FLOAT32:
        move_row[float](<float*>whole, <float*>part, moves, indices)
    elif width == 8:
        move_row[int64_t](<int64_t*>whole, <int64_t*>part, moves, indices)
    elif width == 4:
        move_row[int32_t](<int32_t*>whole, <int32_t*>part, moves, indices)
    elif width == 2:
        move_row[int16_t](<int16_t*>whole, <int16_t*>part, moves, indices)
    else:
        move_row[int8_t](<int8_t*>whole, <int8_t*>part, moves, indices)


# ----- Moves -----
cdef inline void advance_along(char** whole, char** part, const int64_t** indices, const Moves* moves, int d, intptr_t count,
                               int width) noexcept nogil:
    """Advance all addresses along a dim of the part."""
    cdef const Axis* axis = &moves.axes[d]
    cdef int k
    whole[0] += count * axis.step * width
    part[0] += count * axis.own * width
    for k in range(moves.indices):
        indices[k] += count * axis.places[k]


cdef int run_moves(void* arguments, char** data) noexcept nogil:
    """Run with the whole, the part and the indices."""
    cdef const Moves* moves = <const Moves*>arguments
    cdef const int64_t* indices[MOST_INDICES]
    cdef intptr_t[MAX_DIMS] at
    cdef int width = cg_itemsize[cg_real[moves.dtype]], d, k
    cdef char* whole = data[0] + moves.start * width
    cdef char* part = data[1]
    for k in range(moves.indices):
        indices[k] = <const int64_t*>data[2 + k]
    for d in range(moves.ndim):
        at[d] = 0
    while True:
        move_row_of(whole, part, moves, indices)
        d = moves.ndim - 2
        while d >= 0:
            at[d] += 1
            advance_along(&whole, &part, indices, moves, d, 1, width)
            if at[d] < moves.axes[d].size:
                break
            advance_along(&whole, &part, indices, moves, d, -at[d], width)
            at[d] = 0
            d -= 1
        if d < 0:
            return 0


cdef void begin_moves(Moves* moves, int dtype, int ndim, Change change) noexcept:
    clear_arguments(moves, <char*>&moves.axes[ndim] - <char*>moves)
    moves.dtype, moves.ndim, moves.change = dtype, ndim, change
    moves.indices, moves.start, moves.block = 0, 0, parts_of_element(dtype)


cdef bint extends_block(const Moves* moves, const Axis* axis) noexcept:
    """Return True if the blocks along a dim lie side by side in the whole and in the part, or there is one."""
    cdef int k
    if axis.size == 1:
        return True
    for k in range(moves.indices):
        if axis.places[k]:
            return False
    return axis.step == moves.block and axis.own == moves.block


cdef void launch_moves(const char* name, Moves* moves, TensorImpl whole, TensorImpl part, list indices, bint release) noexcept:
    cdef Launch launch
    cdef TensorImpl index
    cdef int d
    for d in range(moves.ndim):
        if not moves.axes[d].size:
            return
    while moves.ndim > 1 and extends_block(moves, &moves.axes[moves.ndim - 1]):
        moves.ndim -= 1
        moves.block *= moves.axes[moves.ndim].size
    begin_launch(&launch, name, run_moves, moves, <char*>&moves.axes[moves.ndim] - <char*>moves)
    launch.traits = &STEADY
    if moves.change == TAKE:
        add_input(&launch, whole)
        add_output(&launch, part)
    else:
        add_changed(&launch, whole)
        add_input(&launch, part)
    for index in indices:
        add_input(&launch, index)
    run_launch(&launch, release)
