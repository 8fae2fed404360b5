# cython: cdivision=True, initializedcheck=False
"""Maps and reductions, tile by tile (see tiles.pxd for the contract)."""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport (MAX_DIMS, MAX_OPERANDS, STREAM_BYTES, Operand, cg_itemsize, cg_loops_of, cg_stream_end,
                                                  run_elementwise_part)
from cygrad._kernels.drivers.packing cimport copy
from cygrad._kernels.drivers.reduction cimport run_reduction
from cygrad._kernels.programs.planning cimport is_live
from cygrad._kernels.programs.steps cimport Program, Slot, Step, dtype_of, output_of, strides_of
from cygrad._kernels.system.threads cimport run_in_parts, threads_for

cdef enum:
    TILE = 8192         # elements: a handful of slots fit the second-level cache
    LARGEST_TILE = 65536
    VECTOR = 64


cdef bint cut_tiles(Tiles* tiles, const Program* program) noexcept nogil:
    cdef intptr_t elements = 1
    cdef int d, k, first = 0, itemsize = 0, threads = threads_for(program.total, program.cost)
    while first < program.ndim and not program.is_reduced[first]:
        first += 1
    tiles.program, tiles.dim, tiles.size, tiles.along, tiles.count = program, -1, 1, 1, 1
    for d in range(program.ndim - 1, -1, -1):
        if tiles.dim >= 0:
            tiles.count *= program.shape[d]
        elif d >= first or elements * program.shape[d] <= TILE:
            elements *= program.shape[d]
        else:
            tiles.dim, tiles.size = d, max(1, TILE // elements)
            tiles.along = tiles.count = (program.shape[d] + tiles.size - 1) // tiles.size
            elements *= tiles.size
    for k in range(program.slot_count):
        itemsize = max(itemsize, cg_itemsize[cg_loops_of[program.slots[k].dtype]])
    tiles.slot_bytes = (elements * itemsize + 2 * VECTOR) // VECTOR * VECTOR
    tiles.threads = threads if tiles.count > 1 else 1
    tiles.streamed = STREAM_BYTES * threads // max(program.total, 1)
    return elements <= LARGEST_TILE


cdef bint run_tile(const Tiles* tiles, intptr_t tile, char* memory) noexcept nogil:
    cdef const Program* program = tiles.program
    cdef intptr_t shapes[2][MAX_DIMS]   # of the tile, and of its reduced slots
    cdef intptr_t index[MAX_DIMS]       # where the tile begins
    cdef Operand operands[MAX_OPERANDS]
    cdef intptr_t rest
    cdef const Step* step
    cdef const Slot* output
    cdef bint stream
    cdef int d, j, k
    rest = tile // tiles.along
    for d in range(program.ndim - 1, -1, -1):
        shapes[0][d], index[d] = program.shape[d], 0
        if d == tiles.dim:
            index[d] = tile % tiles.along * tiles.size
            shapes[0][d] = min(tiles.size, program.shape[d] - index[d])
        elif d < tiles.dim:
            index[d], shapes[0][d] = rest % program.shape[d], 1
            rest = rest // program.shape[d]
        shapes[1][d] = 1 if program.is_reduced[d] else shapes[0][d]
    for k in range(program.step_count):
        step = &program.steps[k]
        for j in range(step.inputs + 1):
            take_part(tiles, step.slots[j], shapes[0], index, memory, &operands[j])
            operands[j].loop_dtype = dtype_of(j, step.masks, step.dtype) if j < step.inputs else program.slots[step.slots[j]].loop_dtype
        output = &program.slots[output_of(step)]
        if step.kernel is not NULL:
            stream = (output.data is not NULL and cg_itemsize[step.dtype] > tiles.streamed
                      and not is_live(program, output_of(step), k + 1, program.step_count))
            run_elementwise_part(step.kernel, step.dtype, step.inputs + 1, operands, program.ndim, shapes[output.reduced], step.params,
                                 output.data is NULL, stream)
        elif step.reduction is NULL:
            copy(&operands[1], &operands[0], program.ndim, shapes[output.reduced])
        elif run_reduction(step.reduction, operands, program.ndim, shapes[0], program.is_reduced, operands[1].data, operands[1].dtype):
            return False
    return True


cdef void take_part(const Tiles* tiles, int slot, const intptr_t* tile_shape, const intptr_t* index, char* memory,
                    Operand* operand) noexcept nogil:
    """Find the part of a slot that belongs to a tile; one without an array has dense memory of the tile."""
    cdef const Program* program = tiles.program
    cdef const Slot* source = &program.slots[slot]
    cdef bint whole = source.data is not NULL
    cdef int d
    operand.dtype, operand.data, operand.padded = source.dtype, source.data, source.padded
    if not whole:
        operand.data, operand.padded = memory + slot * tiles.slot_bytes, True
    strides_of(program, source, <const intptr_t*>program.shape if whole else tile_shape, operand.strides)
    for d in range(program.ndim if whole else 0):
        operand.data += index[d] * operand.strides[d]


cdef struct TileRun:
    const Tiles* tiles
    char* memory
    intptr_t chunk
    bint* failed


cdef void run_some(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const TileRun* run = <const TileRun*>job
    cdef char* memory = run.memory + first // run.chunk * run.tiles.program.slot_count * run.tiles.slot_bytes
    cdef intptr_t tile
    for tile in range(first, last):
        if not run_tile(run.tiles, tile, memory):
            run.failed[0] = True
    cg_stream_end()


cdef bint run_tiles(const Tiles* tiles, char* memory) noexcept nogil:
    cdef TileRun run
    cdef bint failed = False
    run.tiles, run.memory, run.failed = tiles, memory, &failed
    run.chunk = (tiles.count + tiles.threads - 1) // tiles.threads
    run_in_parts(run_some, &run, tiles.count, run.chunk, tiles.threads)
    return not failed
