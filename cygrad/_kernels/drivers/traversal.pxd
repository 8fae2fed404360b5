"""Traversals: how loops reach an operand, a piece at a time: in place, from a repeated period, or packed into a block.

Drivers of one loop ask for pieces here, and so do programs of several. There are no tensors. All code that runs per element is
`noexcept nogil`.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.packing cimport Operand, cg_advance, cg_cursor, cg_itemsize, scatter

cdef enum:
    PADDING = 64        # bytes that a blocked loop may run over the end
    LONGEST_PERIOD = 128

cdef enum Traversal:
    IN_PLACE        # as it lies: all of it, or row by row
    REPEATED        # a period of a few elements, or one, that is repeated until a row ends
    PACKED          # block by block

cdef struct OperandState:
    Traversal traversal
    bint scalar             # REPEATED: one number, which the loop takes as such
    bint stale              # REPEATED: the block has not been made for this row
    int itemsize, outer     # dims outside of a row
    intptr_t length         # elements of a piece that is not in place, at most
    intptr_t row, column    # elements of a row, and the next of them
    intptr_t period
    cg_cursor cursor        # the row, or the next element (PACKED)
    char* block             # of `length` elements, as many again or LONGEST_PERIOD, and PADDING

cdef void lay_operand(OperandState* state, const Operand* operand, int ndim, const intptr_t* shape, intptr_t start, intptr_t lanes,
                      bint is_output, bint takes_scalar) noexcept nogil
# Give an operand pieces of any length.
cdef void pack_operand(OperandState* state, const Operand* operand, int ndim, const intptr_t* shape, intptr_t start) noexcept nogil
cdef char* packed_piece(OperandState* state, const Operand* operand, intptr_t n, intptr_t lanes, bint is_output) noexcept nogil

cdef inline void begin_operand(OperandState* state, const Operand* operand, int ndim, const intptr_t* shape, intptr_t start,
                               intptr_t length, intptr_t lanes, bint is_output, bint takes_scalar) noexcept nogil:
    """Choose the way of an operand, and go to element `start`. A row may end after whole multiples of `lanes` only."""
    state.itemsize, state.length, state.scalar = cg_itemsize[operand.loop_dtype], length, False
    if operand.dtype == operand.loop_dtype and ndim == 1 and (
            operand.strides[0] == state.itemsize or takes_scalar and operand.strides[0] == 0):
        # Small operands first.
        state.scalar = operand.strides[0] == 0
        state.traversal, state.outer, state.row, state.column = REPEATED if state.scalar else IN_PLACE, 0, shape[0], start
        state.cursor.address = operand.data
        return
    lay_operand(state, operand, ndim, shape, start, lanes, is_output, takes_scalar)

cdef inline intptr_t room(const OperandState* state) noexcept nogil:
    """Return how many elements can be reached at once."""
    cdef intptr_t rest = state.row - state.column
    if state.traversal == REPEATED and not state.scalar:
        return min(rest, state.length)
    return state.length if state.traversal == PACKED else rest

cdef inline char* piece(OperandState* state, const Operand* operand, intptr_t n, intptr_t lanes, bint is_output) noexcept nogil:
    """Return where the next n elements are, packed if need be. A loop reads whole multiples of `lanes`."""
    if state.traversal == IN_PLACE:
        return state.cursor.address + state.column * state.itemsize
    if state.scalar and operand.dtype == operand.loop_dtype:
        return state.cursor.address
    return packed_piece(state, operand, n, lanes, is_output)

cdef inline void advance(OperandState* state, const Operand* operand, intptr_t n, bint is_output) noexcept nogil:
    """Go on by n elements; the block of an output is written."""
    if state.traversal == PACKED:
        if is_output:
            scatter(operand, &state.cursor, n, state.block)
        return
    state.column += n
    if state.outer and state.column == state.row:
        state.column, state.stale = 0, True
        cg_advance(&state.cursor, state.outer - 1, 1)
