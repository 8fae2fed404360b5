# cython: cdivision=True, initializedcheck=False
"""The reduction driver (see reduction.pxd for the contract).

One scheme for all layouts: every output (or row of neighbouring outputs) has `blocks` partial results, each a fold of a fixed
number of elements; partial results of one output are combined pairwise, then finished.
"""
from cython.parallel cimport prange
from libc.stdlib cimport free, malloc

from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, CG_DTYPES, CG_LARGEST, cg_itemsize, cg_number, cg_stream_end, pack
from cygrad._kernels.drivers.program cimport end_of_pass, run_part, run_pass, streams
from cygrad._kernels.system.isa cimport choose_isa
from cygrad._kernels.system.threads cimport note_threads, thread_limit, threads_for

cdef enum:
    ROWS = 256          # rows of a block folded across
    COLUMNS = 512       # neighbouring outputs that one task folds
    ON_STACK = 64       # partial results that need no allocation
    VECTOR = 64         # bytes of the largest one: loops may run over the end by less

cdef extern from "drivers/tables.h" nogil:
    ctypedef struct Row "cg_reduction":
        void (*fill[CG_DTYPES])(char* acc, intptr_t n) noexcept nogil
        void (*dense[CG_DTYPES])(const char* x, intptr_t n, char* acc) noexcept nogil
        void (*across[CG_DTYPES])(char* acc, const char* x, intptr_t n) noexcept nogil
        void (*combine[CG_DTYPES])(char* acc, const char* other, intptr_t n) noexcept nogil
        void (*finish[CG_DTYPES])(const char* acc, char* y, intptr_t n, double count) noexcept nogil
        void (*scan[CG_DTYPES])(const char* x, intptr_t x_stride, char* y, intptr_t y_stride, intptr_t n) noexcept nogil
        intptr_t (*find[CG_DTYPES])(const char* x, intptr_t stride, intptr_t n, const char* value) noexcept nogil
    const cg_reduction* cg_find_reduction(int level, const char* name)
    int cg_team_size()

cdef int level = choose_isa()


cdef const cg_reduction* reduction(str name) except NULL:
    cdef const cg_reduction* found = cg_find_reduction(level, name.encode())
    if found is NULL:
        raise RuntimeError(f"the compiled loops have no reduction named {name!r}: they are older than the tables; build again")
    return found


cdef struct Dims:
    int ndim
    intptr_t size
    intptr_t shape[MAX_DIMS]
    intptr_t strides[MAX_DIMS]


cdef struct Made:
    const Program* program
    int first, last     # steps of the pass that makes it
    int slot
    bint stream


cdef struct Plan:
    const Row* row
    int dtype
    int acc_size
    int item_size
    bint across         # neighbouring outputs lie dense: fold rows into rows
    Dims outer          # outputs, less the dense ones of an `across` plan
    Dims folded
    intptr_t columns    # dense neighbouring outputs (1 unless across)
    intptr_t blocks     # partial results of an output
    intptr_t length     # elements (or rows) of a block
    intptr_t strips     # tasks a row of columns is cut into
    Operand source      # the folded dims as an operand, for gathering
    const Made* made    # what is folded, if it has no memory yet
    char* partials


cdef void add_dim(Dims* dims, intptr_t size, intptr_t stride) noexcept nogil:
    """Append an inner dim, joined with the one before where they lie as one."""
    dims.size *= size
    if size == 1:
        return
    if dims.ndim and dims.strides[dims.ndim - 1] == stride * size:
        dims.shape[dims.ndim - 1] *= size
        dims.strides[dims.ndim - 1] = stride
        return
    dims.shape[dims.ndim] = size
    dims.strides[dims.ndim] = stride
    dims.ndim += 1


cdef void add_folded_dims(Dims* dims, const Operand* x, int ndim, const intptr_t* shape, const char* reduced) noexcept nogil:
    """Append the folded dims by falling stride: a fold may take its elements in the order of memory."""
    cdef int order[MAX_DIMS]
    cdef int d, e, kept = 0
    for d in range(ndim):
        if reduced[d]:
            e = kept
            while e > 0 and x.strides[order[e - 1]] < x.strides[d]:
                order[e] = order[e - 1]
                e -= 1
            order[e] = d
            kept += 1
    for d in range(kept):
        add_dim(dims, shape[order[d]], x.strides[order[d]])


cdef intptr_t offset_of(const Dims* dims, intptr_t index) noexcept nogil:
    cdef intptr_t offset = 0
    cdef int d
    for d in range(dims.ndim - 1, -1, -1):
        offset += index % dims.shape[d] * dims.strides[d]
        index = index // dims.shape[d]
    return offset


cdef void fold_task(const Plan* plan, intptr_t task) noexcept nogil:
    """Make one partial result: a dense block into one accumulator, or a block of rows into a strip of accumulators."""
    cdef char memory[BLOCK * CG_LARGEST + 2 * VECTOR]
    cdef char* scratch = memory + (-<size_t>memory) % VECTOR
    cdef intptr_t strip = task % plan.strips, block = task // plan.strips % plan.blocks, outer = task // plan.strips // plan.blocks
    cdef intptr_t start = block * plan.length, n = min(plan.length, plan.folded.size - start), column = strip * COLUMNS, i
    cdef char* data = plan.source.data + offset_of(&plan.outer, outer)
    cdef char* acc = plan.partials + ((outer * plan.blocks + block) * plan.columns + column) * plan.acc_size
    cdef Operand source
    if plan.across:
        data += column * plan.item_size
        column = min(COLUMNS, plan.columns - column)
        plan.row.fill[plan.dtype](acc, column)
        for i in range(start, start + n):
            plan.row.across[plan.dtype](acc, data + offset_of(&plan.folded, i), column)
    elif n <= 0:
        plan.row.fill[plan.dtype](acc, 1)
    elif plan.made is not NULL:
        run_part(plan.made.program, plan.made.first, plan.made.last, plan.made.stream, start, start + n, plan.made.slot, scratch)
        plan.row.dense[plan.dtype](scratch, n, acc)
    elif plan.folded.ndim == 0 or plan.folded.ndim == 1 and plan.folded.strides[0] == plan.item_size:
        plan.row.dense[plan.dtype](data + start * plan.item_size, n, acc)
    else:
        source = plan.source
        source.data = data
        pack(&source, plan.folded.ndim, plan.folded.shape, start, n, scratch)
        plan.row.dense[plan.dtype](scratch, n, acc)


cdef void combine_and_finish(const Plan* plan, intptr_t outer, char* output, int out_size) noexcept nogil:
    """Fold the partial results of one output row pairwise, in an order that depends on their number alone."""
    cdef char* partials = plan.partials + outer * plan.blocks * plan.columns * plan.acc_size
    cdef intptr_t row = plan.columns * plan.acc_size, step = 1, i
    while step < plan.blocks:
        i = 0
        while i + step < plan.blocks:
            plan.row.combine[plan.dtype](partials + i * row, partials + (i + step) * row, plan.columns)
            i += 2 * step
        step *= 2
    plan.row.finish[plan.dtype](partials, output + outer * plan.columns * out_size, plan.columns, <double>plan.folded.size)


cdef int run(const cg_reduction* reduction, Operand* x, int ndim, const intptr_t* shape, const char* reduced, char* output) noexcept nogil:
    return fold(reduction, x, ndim, shape, reduced, output, NULL, 0)


cdef int fold_program(const cg_reduction* reduction, const Program* program, int slot, char* output) noexcept nogil:
    cdef Operand x
    cdef Made made
    cdef char reduced = True
    cdef int threads = threads_for(program.total, program.cost), first = 0, last
    x.data, x.dtype, x.loop_dtype, x.strides[0] = NULL, program.dtype, program.dtype, cg_itemsize[program.dtype]
    made.program, made.slot, made.stream = program, slot, streams(program, threads)
    while first < program.step_count:
        last = end_of_pass(program, first, made.stream, slot)
        if is_made(program, first, last, slot):
            made.first, made.last = first, last
            if fold(reduction, &x, 1, &program.total, &reduced, output, &made, program.cost):
                return -1
        else:
            run_pass(program, first, last, threads)
        first = last
    return 0


cdef bint is_made(const Program* program, int first, int last, int slot) noexcept nogil:
    cdef int k
    for k in range(first, last):
        if program.steps[k].slots[program.steps[k].inputs] == slot:
            return True
    return False


cdef int fold(const cg_reduction* reduction, Operand* x, int ndim, const intptr_t* shape, const char* reduced, char* output,
              const Made* made, int cost) noexcept nogil:
    cdef Plan plan
    cdef char stack[ON_STACK * CG_LARGEST]
    cdef int d, threads, last = -1, out_size = cg_itemsize[reduction.out_dtype[x.dtype]]
    cdef intptr_t tasks, task, outer, chunk, c
    plan.row, plan.dtype, plan.source = <const Row*>reduction, x.dtype, x[0]
    plan.acc_size, plan.item_size = cg_itemsize[reduction.acc_dtype[x.dtype]], cg_itemsize[x.dtype]
    plan.outer.ndim = plan.folded.ndim = 0
    plan.outer.size = plan.folded.size = 1
    for d in range(ndim):
        if not reduced[d]:
            add_dim(&plan.outer, shape[d], x.strides[d])
    if plan.outer.size == 0:
        return 0
    add_folded_dims(&plan.folded, x, ndim, shape, reduced)
    last = plan.outer.ndim - 1
    plan.across = (last >= 0 and plan.outer.strides[last] == plan.item_size and plan.folded.ndim > 0
                   and plan.folded.strides[plan.folded.ndim - 1] != plan.item_size)
    plan.columns = 1
    if plan.across:
        plan.columns = plan.outer.shape[last]
        plan.outer.ndim -= 1
        plan.outer.size //= plan.columns
    plan.length = ROWS if plan.across else BLOCK
    plan.blocks = max(1, (plan.folded.size + plan.length - 1) // plan.length)
    plan.strips = (plan.columns + COLUMNS - 1) // COLUMNS
    for d in range(plan.folded.ndim):
        plan.source.strides[d] = plan.folded.strides[d]
    plan.partials = stack
    if plan.outer.size * plan.blocks * plan.columns > ON_STACK:
        plan.partials = <char*>malloc(<size_t>(plan.outer.size * plan.blocks * plan.columns * plan.acc_size))
        if plan.partials is NULL:
            return -1
    tasks = plan.outer.size * plan.blocks * plan.strips
    threads = threads_for(plan.outer.size * plan.columns * plan.folded.size, cost) if tasks > 1 else 1
    plan.made = made
    if threads <= 1:
        for task in range(tasks):
            fold_task(&plan, task)
        if made is not NULL and made.stream:
            cg_stream_end()
        for outer in range(plan.outer.size):
            combine_and_finish(&plan, outer, output, out_size)
    else:
        chunk = (tasks + threads - 1) // threads
        for c in prange(threads, schedule="static", chunksize=1, num_threads=thread_limit()):
            note_threads(cg_team_size())
            for task in range(c * chunk, min(tasks, (c + 1) * chunk)):
                fold_task(&plan, task)
            if made is not NULL and made.stream:
                cg_stream_end()
        for outer in prange(plan.outer.size, schedule="static", num_threads=thread_limit(), use_threads_if=plan.outer.size > 1024):
            combine_and_finish(&plan, outer, output, out_size)
    if plan.partials != stack:
        free(plan.partials)
    return 0


cdef void run_small(const cg_reduction* reduction, int dtype, const char* x, intptr_t n, char* output) noexcept nogil:
    """Fold at most BLOCK dense elements into one."""
    cdef cg_number acc
    if n:
        (<const Row*>reduction).dense[dtype](x, n, <char*>&acc)
    else:
        (<const Row*>reduction).fill[dtype](<char*>&acc, 1)
    (<const Row*>reduction).finish[dtype](<char*>&acc, output, 1, <double>n)


cdef void lines(const Operand* x, int ndim, const intptr_t* shape, int dim, Dims* dims) noexcept nogil:
    """Collect the dims other than `dim`, unmerged, so that several operands agree on the order of lines."""
    cdef int d
    dims.ndim, dims.size = 0, 1
    for d in range(ndim):
        if d != dim:
            dims.size *= shape[d]
            dims.shape[dims.ndim] = shape[d]
            dims.strides[dims.ndim] = x.strides[d]
            dims.ndim += 1


cdef void scan(const cg_reduction* reduction, Operand* x, Operand* y, int ndim, const intptr_t* shape, int dim,
               bint reverse) noexcept nogil:
    cdef Dims from_lines, to_lines
    cdef intptr_t n = shape[dim] if ndim else 1, line, x_stride, y_stride
    cdef char* source
    cdef char* target
    lines(x, ndim, shape, dim, &from_lines)
    lines(y, ndim, shape, dim, &to_lines)
    x_stride = x.strides[dim] if ndim else 0
    y_stride = y.strides[dim] if ndim else 0
    for line in prange(from_lines.size, schedule="static", num_threads=thread_limit(),
                       use_threads_if=threads_for(from_lines.size * n, 1) > 1 and from_lines.size > 1):
        source = x.data + offset_of(&from_lines, line) + (x_stride * (n - 1) if reverse else 0)
        target = y.data + offset_of(&to_lines, line) + (y_stride * (n - 1) if reverse else 0)
        (<const Row*>reduction).scan[x.dtype](
            source, -x_stride if reverse else x_stride, target, -y_stride if reverse else y_stride, n)


cdef void find(const cg_reduction* reduction, Operand* x, Operand* values, Operand* indices, int ndim, const intptr_t* shape,
               int dim) noexcept nogil:
    cdef Dims x_lines, value_lines, index_lines
    cdef intptr_t n = shape[dim] if ndim else 1, stride = x.strides[dim] if ndim else 0, line
    lines(x, ndim, shape, dim, &x_lines)
    lines(values, ndim, shape, dim, &value_lines)
    lines(indices, ndim, shape, dim, &index_lines)
    for line in prange(x_lines.size, schedule="static", num_threads=thread_limit(),
                       use_threads_if=threads_for(x_lines.size * n, 1) > 1 and x_lines.size > 1):
        (<long long*>(indices.data + offset_of(&index_lines, line)))[0] = (<const Row*>reduction).find[x.dtype](
            x.data + offset_of(&x_lines, line), stride, n, values.data + offset_of(&value_lines, line))
