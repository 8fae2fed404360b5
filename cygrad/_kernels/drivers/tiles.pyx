# cython: cdivision=True, initializedcheck=False
"""Maps and reductions, tile by tile (see tiles.pxd for the contract)."""
from cython.parallel cimport prange
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, MAX_DIMS, MAX_OPERANDS, Operand, cg_itemsize, cg_loops_of, cg_stream_end,
                                                  cg_team_size)
from cygrad._kernels.drivers.elementwise cimport run_elementwise_part
from cygrad._kernels.drivers.passes cimport cut_passes, run_passes
from cygrad._kernels.drivers.reduction cimport run_reduction
from cygrad._kernels.drivers.row_tiles cimport cut_rows, repeat_numbers, run_tile_rows
from cygrad._kernels.drivers.tile_steps cimport Step, provide, streamed_above
from cygrad._kernels.system.threads cimport note_threads, thread_limit

cdef enum:
    TILE = 8192         # elements: a handful of slots fit the second-level cache
    LARGEST_TILE = 65536


cdef bint choose_tile_size(Tiles* tiles) noexcept nogil:
    cdef intptr_t elements = 1, total = 1
    cdef int d, first = 0
    tiles.passes = False
    while first < tiles.ndim and not tiles.is_reduced[first]:
        first += 1
    if cut_rows(tiles):
        return True
    tiles.dim, tiles.size, tiles.along, tiles.count = -1, 1, 1, 1
    for d in range(tiles.ndim - 1, -1, -1):
        total *= tiles.shape[d]
        if tiles.dim >= 0:
            tiles.count *= tiles.shape[d]
        elif d >= first or elements * tiles.shape[d] <= TILE:
            elements *= tiles.shape[d]
        else:
            tiles.dim, tiles.size = d, max(1, TILE // elements)
            tiles.along = tiles.count = (tiles.shape[d] + tiles.size - 1) // tiles.size
            elements *= tiles.size
    provide(tiles, elements, total)
    tiles.streamed = streamed_above(tiles, total)
    return elements <= LARGEST_TILE or cut_passes(tiles)


# ----- Tiles -----
cdef bint run_tile(const Tiles* tiles, intptr_t tile, char* memory) noexcept nogil:
    cdef intptr_t shapes[2][MAX_DIMS]   # of the tile, and of its reduced slots
    cdef intptr_t index[MAX_DIMS]       # where the tile begins
    cdef Operand operands[MAX_OPERANDS]
    cdef intptr_t rest
    cdef const Step* step
    cdef int d, j, k
    if tiles.row:
        run_tile_rows(tiles, tile, memory)
        return True
    rest = tile // tiles.along
    for d in range(tiles.ndim - 1, -1, -1):
        shapes[0][d], index[d] = tiles.shape[d], 0
        if d == tiles.dim:
            index[d] = tile % tiles.along * tiles.size
            shapes[0][d] = min(tiles.size, tiles.shape[d] - index[d])
        elif d < tiles.dim:
            index[d], shapes[0][d] = rest % tiles.shape[d], 1
            rest = rest // tiles.shape[d]
        shapes[1][d] = 1 if tiles.is_reduced[d] else shapes[0][d]
    for k in range(tiles.step_count):
        step = &tiles.steps[k]
        for j in range(step.inputs + 1):
            take_part(tiles, step.slots[j], shapes[tiles.slots[step.slots[j]].reduced], index, memory, &operands[j])
            operands[j].loop_dtype = CG_BOOL if step.masks >> j & 1 else step.dtype if j < step.inputs else cg_loops_of[operands[j].dtype]
        j = step.slots[step.inputs]
        if step.kernel is not NULL:
            run_elementwise_part(step.kernel, step.dtype, step.inputs + 1, operands, tiles.ndim, shapes[tiles.slots[j].reduced], NULL,
                                 tiles.slots[j].array.data is NULL,
                                 tiles.slots[j].array.data is not NULL and cg_itemsize[step.dtype] > tiles.streamed)
        elif run_reduction(step.reduction, operands, tiles.ndim, shapes[0], tiles.is_reduced, operands[1].data, operands[1].dtype):
            return False
    return True


cdef void take_part(const Tiles* tiles, int slot, const intptr_t* shape, const intptr_t* index, char* memory,
                    Operand* operand) noexcept nogil:
    """Find the part of an array that belongs to a tile; a slot without an array has dense memory of the tile."""
    cdef const Operand* array = &tiles.slots[slot].array
    cdef intptr_t stride
    cdef int d
    operand.dtype, operand.data, operand.padded = array.dtype, array.data, array.padded
    if array.data is not NULL:
        for d in range(tiles.ndim):
            operand.strides[d] = array.strides[d]
            operand.data += index[d] * array.strides[d]
        return
    operand.data, operand.padded, stride = memory + slot * tiles.slot_bytes, True, cg_itemsize[array.dtype]
    for d in range(tiles.ndim - 1, -1, -1):
        operand.strides[d] = 0 if tiles.slots[slot].reduced and tiles.is_reduced[d] else stride
        stride *= shape[d]


cdef bint run_tiles(const Tiles* tiles, char* memory) noexcept nogil:
    cdef intptr_t chunk, tile, c, bytes = tiles.slot_count * tiles.slot_bytes
    cdef int threads = tiles.threads, failed = 0
    if tiles.passes:
        return run_passes(tiles, memory)
    if threads <= 1:
        repeat_numbers(tiles, memory)
        for tile in range(tiles.count):
            if not run_tile(tiles, tile, memory):
                return False
        cg_stream_end()
        return True
    chunk = (tiles.count + threads - 1) // threads
    for c in prange(threads, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        repeat_numbers(tiles, memory + c * bytes)
        for tile in range(c * chunk, min(tiles.count, (c + 1) * chunk)):
            if not run_tile(tiles, tile, memory + c * bytes):
                failed += 1
        cg_stream_end()
    return failed == 0
