# cython: cdivision=True, initializedcheck=False
"""Maps and folds, tile by tile (see tiles.pxd for the contract)."""
from cython.parallel cimport prange
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport CG_BOOL, STREAM_BYTES, cg_itemsize, cg_loops_of, cg_stream_end, cg_team_size
from cygrad._kernels.drivers.elementwise cimport run_part as run_map
from cygrad._kernels.drivers.packing cimport LONG_ROW
from cygrad._kernels.drivers.passes cimport cut_passes, find_rows, is_number, run_passes
from cygrad._kernels.drivers.reduction cimport BLOCK, STRIP
from cygrad._kernels.drivers.reduction cimport run as run_fold
from cygrad._kernels.drivers.reduction cimport run_rows as fold_rows
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

cdef extern from "drivers/fetch.h" nogil:
    void fetch(const char* place, intptr_t nbytes) noexcept

cdef enum:
    TILE = 8192         # elements: a handful of slots fit the second-level cache
    LARGEST_TILE = 65536
    FEW_ROWS = 4        # short rows that are sooner computed one by one than by a driver for each step
    NEAR = 1 << 15      # bytes that some rows and the next ones take in all slots: the first-level cache holds them
    FAR = 1 << 18       # bytes of an array from which on it is fetched ahead
    AHEAD = 4096        # bytes from what is read to what is fetched: more would leave the first-level cache again
    PIECE = 256         # elements of a step between parts that are fetched
    VECTOR = 64


cdef bint cut(Tiles* tiles) noexcept nogil:
    cdef intptr_t elements = 1, total = 1
    cdef int d, first = 0
    tiles.passes = False
    while first < tiles.ndim and not tiles.folded[first]:
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


cdef intptr_t streamed_above(const Tiles* tiles, intptr_t total) noexcept nogil:
    return STREAM_BYTES * max(threads_for(total, tiles.cost), 1) // max(total, 1)


cdef void provide(Tiles* tiles, intptr_t elements, intptr_t total) noexcept nogil:
    """Decide about threads, and the memory of each for a tile of some elements."""
    tiles.slot_bytes = (elements * tiles.itemsize + 2 * VECTOR) // VECTOR * VECTOR
    tiles.threads = threads_for(total, tiles.cost) if tiles.count > 1 else 1


# ----- Rows -----
cdef bint cut_rows(Tiles* tiles) noexcept nogil:
    """Cut into rows, where the folded dims are one dense row and each step is a loop of rows: a driver for each step of
    a tile would take longer than few rows do, and many leave the first-level cache."""
    cdef Slot* slot
    cdef intptr_t row, rows, touched = 0
    cdef int k
    tiles.row = 0
    if not find_rows(tiles, &row, &rows) or row > BLOCK or row < LONG_ROW and rows > FEW_ROWS:
        return False
    tiles.streamed = streamed_above(tiles, rows * row)
    for k in range(tiles.slot_count):
        slot = &tiles.slots[k]
        slot.apart = cg_itemsize[slot.array.dtype] * (1 if slot.reduced else row)
        slot.repeated = slot.array.data is not NULL and is_number(tiles, slot)
        slot.fetched = slot.array.data is not NULL and not slot.reduced and not slot.repeated and rows * slot.apart >= FAR
    for k in range(tiles.step_count):
        slot = &tiles.slots[tiles.steps[k].slots[tiles.steps[k].inputs]]
        slot.repeated = False
        slot.fetched = slot.fetched and cg_itemsize[slot.array.dtype] <= tiles.streamed
    for k in range(tiles.slot_count):
        touched += tiles.slots[k].apart * (2 if tiles.slots[k].fetched else 1)
    tiles.size = max(1, min(rows, STRIP, NEAR // touched))
    tiles.count = (rows + tiles.size - 1) // tiles.size
    provide(tiles, tiles.size * row, rows * row)
    for k in range(tiles.step_count):
        if not make_loop(tiles, &tiles.steps[k], row):
            return False
    share_fetches(tiles)
    tiles.row, tiles.rows = row, rows
    return True


cdef bint is_long(const Step* step) noexcept nogil:
    """Say whether a step is a row of vector mathematics."""
    return step.kernel is not NULL and step.kernel.blocked[step.dtype] and step.elements > 1


cdef void share_fetches(Tiles* tiles) noexcept nogil:
    """Decide beside what the next rows are fetched: beside vector mathematics, where there is some, since what is written keeps memory
    busy beside the other steps. There, and beside the result, little at a time: a processor waits for a dozen lines at once."""
    cdef Step* step
    cdef bint fetched = False, has_long = False
    cdef intptr_t parts = 0
    cdef int k
    for k in range(tiles.slot_count):
        fetched = fetched or tiles.slots[k].fetched
    for k in range(tiles.step_count):
        has_long = has_long or is_long(&tiles.steps[k])
    for k in range(tiles.step_count):
        step = &tiles.steps[k]
        step.piece = tiles.size * step.elements
        step.fetches = fetched and (is_long(step) or not has_long)
        if step.fetches and step.kernel is not NULL and not step.each and (
                has_long or tiles.slots[step.slots[step.inputs]].array.data is not NULL):
            step.piece = min(step.piece, PIECE)
        if step.fetches:
            parts += (tiles.size * step.elements + step.piece - 1) // step.piece
    for k in range(tiles.slot_count):
        tiles.slots[k].part = tiles.size * tiles.slots[k].apart // max(parts, 1)


cdef bint make_loop(const Tiles* tiles, Step* step, intptr_t row) noexcept nogil:
    """Choose the loop of a step that reads and writes its operands where they are; False if there is none. Vector mathematics takes no
    scalars, and runs over the end of what is a thread's own only."""
    cdef const Slot* output = &tiles.slots[step.slots[step.inputs]]
    cdef const Slot* slot
    cdef int j, scalars = 0, itemsize = cg_itemsize[step.dtype]
    cdef bint own = output.array.data is NULL, whole = row * itemsize % VECTOR == 0 and not output.reduced
    step.each, step.elements = False, 1 if output.reduced else row
    step.strides[step.inputs] = cg_itemsize[output.array.dtype]
    for j in range(step.inputs):
        slot = &tiles.slots[step.slots[j]]
        if slot.array.dtype != (CG_BOOL if step.masks >> j & 1 else step.dtype):
            return False
        step.strides[j] = cg_itemsize[slot.array.dtype]
        if (slot.reduced or slot.repeated) and not output.reduced:
            step.strides[j] = 0
            step.each = step.each or not slot.repeated
            scalars += 1
        own = own and (slot.array.data is NULL or slot.repeated)
    if step.kernel is NULL:
        return not slot.reduced and not slot.repeated and output.array.dtype == step.reduction.out_dtype[step.dtype]
    if cg_loops_of[output.array.dtype] != output.array.dtype:
        return False
    step.loop = step.kernel.loops[step.dtype]
    if (output.array.data is not NULL and itemsize > tiles.streamed and step.kernel.streams[step.dtype] is not NULL and whole
            and <size_t>output.array.data % VECTOR == 0):
        step.loop = step.kernel.streams[step.dtype]
    if step.kernel.blocked[step.dtype]:
        return scalars == 0 and (own or whole)
    return scalars == 0 or scalars == 1 and step.inputs == 2


cdef void repeat_numbers(const Tiles* tiles, char* memory) noexcept nogil:
    """Give each row of a thread's memory what is one number everywhere."""
    cdef const Slot* slot
    cdef intptr_t i
    cdef int k, itemsize
    for k in range(tiles.slot_count if tiles.row else 0):
        slot = &tiles.slots[k]
        if slot.repeated:
            itemsize = cg_itemsize[slot.array.dtype]
            for i in range(tiles.size):
                memcpy(memory + k * tiles.slot_bytes + i * itemsize, slot.array.data, itemsize)


cdef inline void fetch_part(const Tiles* tiles, char** places, intptr_t number) noexcept nogil:
    """Fetch a part of the next rows."""
    cdef intptr_t part
    cdef int k
    for k in range(tiles.slot_count):
        if tiles.slots[k].fetched:
            part = tiles.slots[k].part
            fetch(places[k] + AHEAD + number * part, part)


cdef void run_rows(const Tiles* tiles, intptr_t tile, char* memory) noexcept nogil:
    """Run all steps on some rows. Parts of the next rows are fetched between: loops do not see misses beyond their end."""
    cdef intptr_t count = min(tiles.size, tiles.rows - tile * tiles.size), fetched = 0, left, _row
    cdef char* places[MAX_SLOTS]
    cdef char* pointers[MAX_OPERANDS]
    cdef const Slot* slot
    cdef const Step* step
    cdef int j, k
    for k in range(tiles.slot_count):
        slot = &tiles.slots[k]
        places[k] = memory + k * tiles.slot_bytes
        if slot.array.data is not NULL and not slot.repeated:
            places[k] = slot.array.data + tile * tiles.size * slot.apart
    for k in range(tiles.step_count):
        step = &tiles.steps[k]
        if step.fetches:
            fetch_part(tiles, places, fetched)
            fetched += 1
        if step.kernel is NULL:
            fold_rows(step.reduction, step.dtype, places[step.slots[0]], tiles.row, count, places[step.slots[1]])
            continue
        for j in range(step.inputs + 1):
            pointers[j] = places[step.slots[j]]
        if step.each:
            for _row in range(count):
                step.loop(pointers, step.strides, step.elements, NULL)
                for j in range(step.inputs + 1):
                    if not tiles.slots[step.slots[j]].repeated:
                        pointers[j] += tiles.slots[step.slots[j]].apart
            continue
        left = count * step.elements
        while left > step.piece:
            step.loop(pointers, step.strides, step.piece, NULL)
            left -= step.piece
            for j in range(step.inputs + 1):
                pointers[j] += step.piece * step.strides[j]
            fetch_part(tiles, places, fetched)
            fetched += 1
        step.loop(pointers, step.strides, left, NULL)


# ----- Tiles -----
cdef bint run_tile(const Tiles* tiles, intptr_t tile, char* memory) noexcept nogil:
    cdef intptr_t shapes[2][MAX_DIMS]   # of the tile, and of what is reduced there
    cdef intptr_t index[MAX_DIMS]       # where the tile begins
    cdef Operand operands[MAX_OPERANDS]
    cdef intptr_t rest
    cdef const Step* step
    cdef int d, j, k
    if tiles.row:
        run_rows(tiles, tile, memory)
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
