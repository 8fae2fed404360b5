# cython: cdivision=True, initializedcheck=False
"""Traversals (see traversal.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._kernels.drivers.packing cimport LONG_ROW, gather, lay, seek


cdef void lay_operand(OperandState* state, const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t lanes,
                      bint is_output, bint takes_scalar) noexcept nogil:
    """Choose the way of an operand whose dims may not lie as one."""
    cdef cg_cursor* cursor = &state.cursor
    cdef int last, d
    lay(cursor, operand, ndim, shape)
    last = cursor.ndim - 1
    if operand.dtype == operand.loop_dtype and cursor.strides[last] == state.itemsize:
        state.traversal, state.outer, state.row = IN_PLACE, last, cursor.shape[last]
        if last == 0 or state.row >= LONG_ROW and state.row % lanes == 0:
            go_to(state, start)
            return
    d = last if cursor.strides[last] == 0 else last - 1
    if d >= 0 and cursor.strides[d] == 0 and not is_output:
        state.period = 1 if d == last else cursor.shape[last]
        state.traversal, state.outer, state.row, state.stale = REPEATED, d, cursor.shape[d] * state.period, True
        state.scalar = takes_scalar and state.period == 1
        # From two pieces on a period is worth a block of its own.
        if state.period <= min(<intptr_t>LONGEST_PERIOD, state.length) and (
                d == 0 or state.row >= (LONG_ROW if state.scalar else 2 * state.length) and state.row % lanes == 0):
            go_to(state, start)
            return
    pack_operand(state, operand, ndim, shape, start)


cdef void pack_operand(OperandState* state, const Operand* operand, int ndim, const intptr_t* shape, intptr_t start) noexcept nogil:
    lay(&state.cursor, operand, ndim, shape)
    state.traversal, state.scalar = PACKED, False
    if start:
        seek(&state.cursor, state.cursor.ndim, start)


cdef void go_to(OperandState* state, intptr_t start) noexcept nogil:
    """Go to the row of an element."""
    state.column = start
    if state.outer and start:
        state.column = start % state.row
        seek(&state.cursor, state.outer, start // state.row)


cdef char* packed_piece(OperandState* state, const Operand* operand, intptr_t n, intptr_t lanes, bint is_output) noexcept nogil:
    """Return a block of the next n elements, or the place in a block of a period."""
    cdef cg_cursor pattern
    if state.traversal == PACKED:
        if not is_output:
            gather(operand, &state.cursor, n, state.block)
            while lanes > 1 and n % lanes:      # repeat an element, since other values may be slow
                memcpy(state.block + n * state.itemsize, state.block + (n - 1) * state.itemsize, state.itemsize)
                n += 1
        return state.block
    if state.stale:
        state.stale = False
        pattern.address, pattern.ndim = state.cursor.address, 1 if state.period == 1 else 2
        pattern.shape[0], pattern.strides[0], pattern.index[0] = state.row // state.period, 0, 0
        pattern.shape[1], pattern.strides[1], pattern.index[1] = state.period, state.cursor.strides[state.cursor.ndim - 1], 0
        gather(operand, &pattern, 1 if state.scalar else min(state.row, state.length + state.period), state.block)
    return state.block if state.period == 1 else state.block + state.column % state.period * state.itemsize
