# cython: cdivision=True, initializedcheck=False
"""Maps and folds, tile by tile (see tiles.pxd for the contract)."""
from cython.parallel cimport prange

from cygrad._kernels.drivers.elementwise cimport CG_BOOL, STREAM_BYTES, cg_itemsize, cg_loops_of, cg_team_size
from cygrad._kernels.drivers.elementwise cimport run_part as run_map
from cygrad._kernels.drivers.reduction cimport run as run_fold
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

cdef enum:
    TILE = 8192         # elements: a handful of slots fit the second-level cache
    LARGEST_TILE = 65536
    VECTOR = 64


cdef bint cut(Tiles* tiles) noexcept nogil:
    cdef intptr_t elements = 1, total = 1
    cdef int d, first = 0
    while first < tiles.ndim and not tiles.folded[first]:
        first += 1
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
    tiles.slot_bytes = (elements * tiles.itemsize + 2 * VECTOR) // VECTOR * VECTOR
    tiles.threads = threads_for(total, tiles.cost) if tiles.count > 1 else 1
    tiles.streamed = STREAM_BYTES * max(tiles.threads, 1) // max(total, 1)
    return elements <= LARGEST_TILE


cdef bint run_tile(const Tiles* tiles, intptr_t tile, char* memory) noexcept nogil:
    cdef intptr_t shapes[2][MAX_DIMS]   # of the tile, and of what is reduced there
    cdef intptr_t index[MAX_DIMS]       # where the tile begins
    cdef Operand operands[MAX_OPERANDS]
    cdef intptr_t rest = tile // tiles.along
    cdef const Step* step
    cdef int d, j, k
    for d in range(tiles.ndim - 1, -1, -1):
        shapes[0][d], index[d] = tiles.shape[d], 0
        if d == tiles.dim:
            index[d] = tile % tiles.along * tiles.size
            shapes[0][d] = min(tiles.size, tiles.shape[d] - index[d])
        elif d < tiles.dim:
            index[d], shapes[0][d] = rest % tiles.shape[d], 1
            rest = rest // tiles.shape[d]
        shapes[1][d] = 1 if tiles.folded[d] else shapes[0][d]
    for k in range(tiles.step_count):
        step = &tiles.steps[k]
        for j in range(step.inputs + 1):
            place(tiles, step.slots[j], shapes[tiles.slots[step.slots[j]].reduced], index, memory, &operands[j])
            operands[j].loop_dtype = CG_BOOL if step.masks >> j & 1 else step.dtype if j < step.inputs else cg_loops_of[operands[j].dtype]
        j = step.slots[step.inputs]
        if step.kernel is not NULL:
            run_map(step.kernel, step.dtype, step.inputs + 1, operands, tiles.ndim, shapes[tiles.slots[j].reduced], NULL,
                    tiles.slots[j].array.data is NULL, tiles.slots[j].array.data is not NULL and cg_itemsize[step.dtype] > tiles.streamed)
        elif run_fold(step.reduction, operands, tiles.ndim, shapes[0], tiles.folded, operands[1].data, operands[1].dtype):
            return False
    return True


cdef void place(const Tiles* tiles, int slot, const intptr_t* shape, const intptr_t* index, char* memory, Operand* operand) noexcept nogil:
    """Find the part of an array that belongs to a tile; what has no array has dense memory of the tile."""
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
        operand.strides[d] = 0 if tiles.slots[slot].reduced and tiles.folded[d] else stride
        stride *= shape[d]


cdef bint run_tiles(const Tiles* tiles, char* memory) noexcept nogil:
    cdef intptr_t chunk, tile, c, bytes = tiles.slot_count * tiles.slot_bytes
    cdef int threads = tiles.threads, failed = 0
    if threads <= 1:
        for tile in range(tiles.count):
            if not run_tile(tiles, tile, memory):
                return False
        return True
    chunk = (tiles.count + threads - 1) // threads
    for c in prange(threads, schedule="static", chunksize=1, num_threads=thread_limit()):
        note_threads(cg_team_size())
        for tile in range(c * chunk, min(tiles.count, (c + 1) * chunk)):
            if not run_tile(tiles, tile, memory + c * bytes):
                failed += 1
    return failed == 0
