# cython: cdivision=True, initializedcheck=False
"""The reduction driver (see reduction.pxd for the contract).

One scheme for all layouts: a task reduces one block of elements of each of a strip of neighbouring outputs. Where an output has one
block it is finished there; partial results of more blocks are combined pairwise, then finished. Four ways to reduce a task:

- rows: the elements of an output lie dense;
- columns: outputs have few elements, wherever they lie: element k of all of them at once;
- across: neighbouring outputs lie dense: rows of memory are reduced into a row, some side by side where rows are short;
- gathered: other layouts are copied to a dense row.
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cygrad._kernels.drivers.elementwise cimport (MAX_DIMS, CG_DTYPES, CG_LARGEST, CG_WIDENED, cast, cg_cast, cg_itemsize, cg_loops_of,
                                                  cg_number, cg_stream_end, pack)
from cygrad._kernels.system.isa cimport choose_isa
from cygrad._kernels.system.threads cimport COST_TRANSCENDENTAL, job_part, run_in_parts, threads_for

cdef enum:
    BLOCK_ROWS = 256    # rows of a block reduced across
    TASK = 16384        # elements of a task of several outputs
    FEW = 8             # dense elements from which on a row is better reduced by itself
    NARROW = 32         # neighbouring outputs up to which they are a group, in short reductions
    TOGETHER = 8        # rows that are reduced across together, at most
    SIDE = 128          # accumulators of rows side by side, at most
    FEW_ROWS = 1024     # whose partial results one thread combines
    ON_STACK = 64       # partial results that need no allocation
    VECTOR = 64         # bytes of the largest one: loops may run over the end by less

ctypedef void (*Across)(char* acc, const char* x, intptr_t n, intptr_t rows, intptr_t stride) noexcept nogil

cdef extern from "drivers/tables.h" nogil:
    enum:
        SHORTEST "CG_REDUCTION_SHORTEST"
    ctypedef struct Row "cg_reduction":
        void (*fill[CG_DTYPES])(char* acc, intptr_t n) noexcept nogil
        void (*rows[CG_DTYPES])(const char* x, intptr_t stride, intptr_t n, intptr_t count, char* acc) noexcept nogil
        void (*products[CG_DTYPES])(const char* x, const char* other, intptr_t stride, intptr_t n, intptr_t count, char* acc) noexcept nogil
        void (*columns[CG_DTYPES])(const char* x, intptr_t stride, const intptr_t* offsets, intptr_t n, intptr_t count, char* acc,
                                   intptr_t step) noexcept nogil
        Across across[CG_DTYPES]
        Across across_wide[CG_DTYPES]
        int (*finite[CG_DTYPES])(const char* acc, intptr_t n) noexcept nogil
        void (*combine[CG_DTYPES])(char* acc, const char* other, intptr_t n) noexcept nogil
        void (*finish[CG_DTYPES])(const char* acc, char* y, intptr_t n, double count) noexcept nogil
        void (*scan[CG_DTYPES])(const char* x, intptr_t x_stride, char* y, intptr_t y_stride, intptr_t n) noexcept nogil
        intptr_t (*find[CG_DTYPES])(const char* x, intptr_t stride, intptr_t n, const char* value) noexcept nogil
    const cg_reduction* cg_find_reduction(int level, const char* name)

cdef int level = choose_isa()


cdef const cg_reduction* reduction(str name) except NULL:
    cdef const cg_reduction* row = cg_find_reduction(level, name.encode())
    if row is NULL:
        raise RuntimeError(f"the compiled loops have no reduction named {name!r}: they are older than the tables; build again")
    return row


cdef struct Dims:
    int ndim
    intptr_t size
    intptr_t shape[MAX_DIMS]
    intptr_t strides[MAX_DIMS]


cdef enum ReductionOrder:
    ROWS, COLUMNS, ACROSS, GATHERED


cdef struct Plan:
    const Row* row
    int dtype           # that is computed in
    int acc_size, item_size, loop_size, out_size
    cg_cast widen       # of elements that are stored only; else NULL
    cg_cast round       # of results in another dtype than the loops'; else NULL
    ReductionOrder order
    Dims outer          # outputs, less the neighbouring ones
    Dims inner
    intptr_t width      # neighbouring outputs, or groups of them
    intptr_t stride     # bytes from one to the next
    intptr_t group      # outputs of a group: more than one where few are neighbours, and reductions are short
    intptr_t group_stride
    intptr_t blocks     # partial results of an output
    intptr_t length     # elements of a block
    intptr_t strip      # outputs of a task
    intptr_t strips     # tasks the neighbouring outputs are cut into
    intptr_t side       # rows that are reduced across side by side, a power of two
    intptr_t offsets[SHORT]     # of the elements of a short reduction
    Operand source      # the reduced dims as an operand, for gathering
    const Producer* producer    # of an input without memory, else NULL
    char* partials
    char* output


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


cdef void add_inner_dims(Dims* dims, const Operand* x, int ndim, const intptr_t* shape, const char* reduced) noexcept nogil:
    """Append the reduced dims by falling stride: a reduction may take its elements in the order of memory."""
    cdef int order[MAX_DIMS]
    cdef int d, e, dims_left = 0
    for d in range(ndim):
        if reduced[d]:
            e = dims_left
            while e > 0 and x.strides[order[e - 1]] < x.strides[d]:
                order[e] = order[e - 1]
                e -= 1
            order[e] = d
            dims_left += 1
    for d in range(dims_left):
        add_dim(dims, shape[order[d]], x.strides[order[d]])


cdef void take_dim(Dims* dims, intptr_t* size, intptr_t* stride) noexcept nogil:
    """Move the inner dim out of the others."""
    dims.ndim -= 1
    size[0], stride[0] = dims.shape[dims.ndim], dims.strides[dims.ndim]
    dims.size //= size[0]


cdef intptr_t offset_at(const Dims* dims, intptr_t index) noexcept nogil:
    cdef intptr_t offset = 0
    cdef int d
    for d in range(dims.ndim - 1, -1, -1):
        offset += index % dims.shape[d] * dims.strides[d]
        index = index // dims.shape[d]
    return offset


cdef void reduction_task(const Plan* plan, intptr_t task) noexcept nogil:
    """Reduce one block of each output of a strip; finish them if it is their only one."""
    cdef char memory[STRIP * CG_LARGEST + VECTOR]
    cdef char* acc = memory + (-<size_t>memory) % VECTOR
    cdef intptr_t strip = task % plan.strips, block = task // plan.strips % plan.blocks, outer = task // plan.strips // plan.blocks
    cdef intptr_t start = block * plan.length, n = min(plan.length, plan.inner.size - start)
    cdef intptr_t first = strip * plan.strip, count = min(plan.strip, plan.width - first)
    cdef intptr_t k, outputs = count * plan.group
    cdef const char* data = plan.source.data + offset_at(&plan.outer, outer) + first * plan.stride
    if plan.order == ROWS:
        reduce_plan_rows(plan, data + start * plan.item_size, plan.stride if count > 1 else n * plan.item_size, n, count, acc)
    elif plan.order == COLUMNS:
        for k in range(plan.group):
            reduce_columns(plan, data + k * plan.group_stride, n, count, acc + k * plan.acc_size)
    elif plan.order == ACROSS:
        reduce_across(plan, plan.row.across[plan.dtype], data, start, n, count, acc)
        if plan.row.finite[plan.dtype] is not NULL and not plan.row.finite[plan.dtype](acc, count):
            reduce_across(plan, plan.row.across_wide[plan.dtype], data, start, n, count, acc)
    else:
        reduce_gathered(plan, data, start, n, count, acc)
    if plan.blocks == 1:
        finish(plan, acc, plan.output + (outer * plan.width + first) * plan.group * plan.out_size, outputs, <double>n)
    else:
        memcpy(plan.partials + ((outer * plan.blocks + block) * plan.width + first) * plan.acc_size, acc, count * plan.acc_size)


# 16-bit floats and large unsigned integers become dense blocks of the loop's dtype, and are reduced as these are: with the same bits.
cdef void reduce_plan_rows(const Plan* plan, const char* data, intptr_t stride, intptr_t n, intptr_t count, char* acc) noexcept nogil:
    cdef char memory[BLOCK * CG_WIDENED + VECTOR]
    cdef char* scratch = memory + (-<size_t>memory) % VECTOR
    cdef intptr_t length = n * plan.loop_size, part, i
    if plan.widen is NULL or n == BLOCK and plan.row.rows[plan.source.dtype] is not NULL:
        plan.row.rows[plan.source.dtype](data, stride, n, count, acc)
        return
    while count > 0:
        part = min(count, BLOCK // n) if n else count
        for i in range(part):
            plan.widen(scratch + i * length, plan.loop_size, data + i * stride, plan.item_size, n)
        plan.row.rows[plan.dtype](scratch, length if part > 1 else 0, n, part, acc)
        data += part * stride
        acc += part * plan.acc_size
        count -= part


cdef void reduce_columns(const Plan* plan, const char* data, intptr_t n, intptr_t count, char* acc) noexcept nogil:
    cdef char memory[BLOCK * CG_WIDENED]
    cdef intptr_t offsets[SHORT]
    cdef intptr_t part, k
    if plan.widen is NULL:
        plan.row.columns[plan.dtype](data, plan.stride, plan.offsets, n, count, acc, plan.group)
        return
    while count > 0:
        part = min(count, BLOCK // SHORT)
        for k in range(n):
            offsets[k] = k * part * plan.loop_size
            plan.widen(memory + offsets[k], plan.loop_size, data + plan.offsets[k], plan.stride, part)
        plan.row.columns[plan.dtype](memory, plan.loop_size, offsets, n, part, acc, plan.group)
        data += part * plan.stride
        acc += part * plan.group * plan.acc_size
        count -= part


cdef void reduce_run(const Plan* plan, Across across, char* acc, const char* data, intptr_t n, intptr_t rows, intptr_t stride
                     ) noexcept nogil:
    """Reduce rows that are `stride` apart into one; as many at a time as the loops take together."""
    cdef char memory[TOGETHER * STRIP * CG_WIDENED]
    cdef intptr_t length = n * plan.loop_size, part, i
    if plan.widen is NULL:
        across(acc, data, n, rows, stride)
        return
    while rows > 0:
        part = min(rows, TOGETHER)
        for i in range(part):
            plan.widen(memory + i * length, plan.loop_size, data + i * stride, plan.item_size, n)
        across(acc, memory, n, part, length)
        data += part * stride
        rows -= part


cdef void finish(const Plan* plan, const char* acc, char* y, intptr_t n, double count) noexcept nogil:
    cdef char memory[STRIP * CG_LARGEST]
    cdef intptr_t part
    if plan.round is NULL:
        plan.row.finish[plan.dtype](acc, y, n, count)
        return
    while n > 0:
        part = min(n, STRIP)
        plan.row.finish[plan.dtype](acc, memory, part, count)
        plan.round(y, plan.out_size, memory, cg_itemsize[(<const cg_reduction*>plan.row).out_dtype[plan.dtype]], part)
        acc += part * plan.acc_size
        y += part * plan.out_size
        n -= part


cdef void reduce_across(const Plan* plan, Across across, const char* data, intptr_t start, intptr_t n, intptr_t count, char* acc
                        ) noexcept nogil:
    """Reduce rows into a row. Rows that follow each other make longer rows, whose parts are combined pairwise; the rest is shorter."""
    cdef intptr_t side = plan.side, length = count * side, rows = n, stride = 0, run
    if plan.inner.ndim:
        rows, stride = plan.inner.shape[plan.inner.ndim - 1], plan.inner.strides[plan.inner.ndim - 1]
    plan.row.fill[plan.dtype](acc, length)
    if side > 1:
        data += start * stride
        reduce_run(plan, across, acc, data, length, n // side, length * plan.item_size)
        reduce_run(plan, across, acc, data + n // side * length * plan.item_size, n % side * count, 1, 0)
        while side > 1:
            side //= 2
            plan.row.combine[plan.dtype](acc, acc + side * count * plan.acc_size, side * count)
        return
    while n > 0:
        run = min(n, rows - start % rows)
        reduce_run(plan, across, acc, data + offset_at(&plan.inner, start), count, run, stride)
        start += run
        n -= run


cdef void reduce_gathered(const Plan* plan, const char* data, intptr_t start, intptr_t n, intptr_t count, char* acc) noexcept nogil:
    """Copy or make the elements of one output after the other in a dense row."""
    cdef char memory[BLOCK * CG_LARGEST + 2 * VECTOR]
    cdef char* scratch = memory + (-<size_t>memory) % VECTOR
    cdef Operand source = plan.source
    cdef intptr_t i
    for i in range(count):
        if plan.producer is not NULL:
            plan.producer.make(plan.producer, start, start + n, scratch)
        else:
            source.data = <char*>data + i * plan.stride
            pack(&source, plan.inner.ndim, plan.inner.shape, start, n, scratch)
        plan.row.rows[plan.dtype](scratch, 0, n, 1, acc + i * plan.acc_size)


cdef void combine_and_finish(const Plan* plan, intptr_t outer) noexcept nogil:
    """Combine the partial results of one output row pairwise, in an order that depends on their number alone."""
    cdef char* partials = plan.partials + outer * plan.blocks * plan.width * plan.acc_size
    cdef intptr_t row = plan.width * plan.acc_size, step = 1, i
    while step < plan.blocks:
        i = 0
        while i + step < plan.blocks:
            plan.row.combine[plan.dtype](partials + i * row, partials + (i + step) * row, plan.width)
            i += 2 * step
        step *= 2
    finish(plan, partials, plan.output + outer * plan.width * plan.out_size, plan.width, <double>plan.inner.size)


cdef void run_tasks(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const Plan* plan = <const Plan*>job
    cdef intptr_t task
    for task in range(first, last):
        reduction_task(plan, task)
    if plan.producer is not NULL and plan.producer.streams:
        cg_stream_end()


cdef void combine_rows(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef intptr_t outer
    for outer in range(first, last):
        combine_and_finish(<const Plan*>job, outer)


cdef int run_reduction(const cg_reduction* reduction, Operand* x, int ndim, const intptr_t* shape, const char* reduced, char* output,
                       int out_dtype) noexcept nogil:
    return reduce_elements(reduction, x, ndim, shape, reduced, output, out_dtype, NULL, 0)


cdef intptr_t partial_bytes(intptr_t total) noexcept nogil:
    return (total + BLOCK - 1) // BLOCK * CG_LARGEST


cdef void reduce_produced(const cg_reduction* reduction, const Producer* producer, char* output) noexcept nogil:
    cdef Operand x
    cdef char reduced = True
    x.data, x.padded, x.dtype, x.loop_dtype, x.strides[0] = NULL, False, producer.dtype, producer.dtype, cg_itemsize[producer.dtype]
    reduce_elements(reduction, &x, 1, &producer.total, &reduced, output, reduction.out_dtype[producer.dtype], producer, producer.cost)


cdef void choose_way(Plan* plan) noexcept nogil:
    """Decide, from shape and strides alone, how outputs are reduced, and cut them into tasks.

    The reduced dims and their neighbours decide the order of elements, not how many outer dims or outputs there are: a part of the outer
    dims has the bits of the whole.
    """
    cdef Dims* outer = &plan.outer
    cdef intptr_t n = plan.inner.size, i
    cdef bint dense = plan.inner.ndim == 0 or plan.inner.ndim == 1 and plan.inner.strides[0] == plan.item_size
    plan.width, plan.stride, plan.group, plan.group_stride, plan.side = 1, 0, 1, 0, 1
    cdef bint beside = outer.ndim > 0 and outer.strides[outer.ndim - 1] == plan.item_size and not (dense and plan.inner.ndim)
    cdef bint narrow = beside and outer.shape[outer.ndim - 1] < NARROW
    if plan.producer is not NULL:
        plan.order = GATHERED
    elif beside and not (narrow and n < SHORT):
        plan.order = ACROSS
    elif (dense and not beside and outer.ndim and outer.strides[outer.ndim - 1] == n * plan.item_size
            and takes_short_rows(<const cg_reduction*>plan.row, plan.source.dtype, n)):
        plan.order = ROWS
    elif n < (FEW if dense and not beside else SHORT):
        plan.order = COLUMNS
        if narrow and outer.ndim > 1:
            take_dim(outer, &plan.group, &plan.group_stride)
    else:
        plan.order = ROWS if dense else GATHERED
    if outer.ndim and (plan.order == ACROSS or n <= BLOCK):
        take_dim(outer, &plan.width, &plan.stride)
    plan.length = BLOCK
    plan.strip = max(1, min(STRIP // plan.group, TASK // max(n, 1)))
    if plan.order == COLUMNS:
        for i in range(n):
            plan.offsets[i] = offset_at(&plan.inner, i)
    elif plan.order == ACROSS:
        plan.strip = STRIP
        if plan.inner.ndim == 1 and plan.inner.strides[0] == plan.width * plan.item_size:
            while 2 * plan.side * plan.width <= SIDE and 2 * plan.side <= n:
                plan.side *= 2
        plan.length = BLOCK_ROWS * plan.side
    plan.blocks = max(1, (n + plan.length - 1) // plan.length)
    plan.strips = (plan.width + plan.strip - 1) // plan.strip


cdef int reduce_elements(const cg_reduction* reduction, Operand* x, int ndim, const intptr_t* shape, const char* reduced, char* output,
                         int out_dtype, const Producer* producer, int cost) noexcept nogil:
    cdef Plan plan
    cdef char stack[ON_STACK * CG_LARGEST]
    cdef int d, threads
    cdef intptr_t tasks
    plan.row, plan.dtype, plan.producer, plan.output = <const Row*>reduction, x.loop_dtype, producer, output
    plan.source.data, plan.source.dtype, plan.source.loop_dtype, plan.source.padded = x.data, x.dtype, x.loop_dtype, x.padded
    plan.acc_size, plan.out_size = cg_itemsize[reduction.acc_dtype[plan.dtype]], cg_itemsize[out_dtype]
    plan.item_size, plan.loop_size = cg_itemsize[x.dtype], cg_itemsize[plan.dtype]
    plan.widen = NULL if x.dtype == plan.dtype else cast(x.dtype, plan.dtype)
    plan.round = NULL if out_dtype == reduction.out_dtype[plan.dtype] else cast(reduction.out_dtype[plan.dtype], out_dtype)
    plan.outer.ndim = plan.inner.ndim = 0
    plan.outer.size = plan.inner.size = 1
    for d in range(ndim):
        if not reduced[d]:
            add_dim(&plan.outer, shape[d], x.strides[d])
    if plan.outer.size == 0:
        return 0
    add_inner_dims(&plan.inner, x, ndim, shape, reduced)
    for d in range(plan.inner.ndim):
        plan.source.strides[d] = plan.inner.strides[d]
    choose_way(&plan)
    plan.partials = stack
    if producer is not NULL:
        plan.partials = producer.partials
    elif plan.blocks > 1 and plan.outer.size * plan.blocks * plan.width > ON_STACK:
        plan.partials = <char*>malloc(<size_t>(plan.outer.size * plan.blocks * plan.width * plan.acc_size))
        if plan.partials is NULL:
            return -1
    tasks = plan.outer.size * plan.blocks * plan.strips
    if producer is NULL and plan.order in (COLUMNS, GATHERED):        # strided: as much as a transcendental function of each element
        cost = max(cost, COST_TRANSCENDENTAL)
    threads = threads_for(plan.outer.size * plan.width * plan.group * plan.inner.size, cost) if tasks > 1 else 1
    run_in_parts(run_tasks, &plan, tasks, (tasks + threads - 1) // threads, threads)
    if plan.blocks > 1:
        if plan.outer.size <= FEW_ROWS:
            threads = 1
        run_in_parts(combine_rows, &plan, plan.outer.size, (plan.outer.size + threads - 1) // threads, threads)
    if producer is NULL and plan.partials != stack:
        free(plan.partials)
    return 0


cdef void run_small(const cg_reduction* reduction, int dtype, const char* x, intptr_t n, char* output) noexcept nogil:
    """Reduce at most BLOCK dense elements into one."""
    cdef cg_number acc, rounded
    cdef char memory[BLOCK * CG_WIDENED]
    cdef int widened = cg_loops_of[dtype]
    if widened != dtype:
        cast(dtype, widened)(memory, cg_itemsize[widened], x, cg_itemsize[dtype], n)
        run_small(reduction, widened, memory, n, <char*>&rounded)
        cast(reduction.out_dtype[widened], reduction.out_dtype[dtype])(output, 0, <char*>&rounded, 0, 1)
        return
    if n:
        (<const Row*>reduction).rows[dtype](x, 0, n, 1, <char*>&acc)
    else:
        (<const Row*>reduction).fill[dtype](<char*>&acc, 1)
    (<const Row*>reduction).finish[dtype](<char*>&acc, output, 1, <double>n)


cdef bint takes_short_rows(const cg_reduction* reduction, int dtype, intptr_t n) noexcept nogil:
    return 1 < n <= SHORTEST and (<const Row*>reduction).products[dtype] is not NULL


cdef void reduce_rows(const cg_reduction* reduction, int dtype, const char* x, const char* other, intptr_t n, intptr_t count,
                      char* output) noexcept nogil:
    cdef char acc[STRIP * CG_LARGEST]
    if other is NULL:
        (<const Row*>reduction).rows[dtype](x, n * cg_itemsize[dtype], n, count, acc)
    else:
        (<const Row*>reduction).products[dtype](x, other, n * cg_itemsize[dtype], n, count, acc)
    (<const Row*>reduction).finish[dtype](acc, output, count, <double>n)


# Operands along one dim, line by line.
cdef struct Lines:
    const Row* row
    const Operand* operands[3]
    Dims dims[3]                # the other dims of each
    intptr_t strides[3]         # along the line
    intptr_t length
    bint reverse


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


cdef void begin_lines(Lines* along, const cg_reduction* reduction, const Operand* x, const Operand* y, const Operand* z, int ndim,
                      const intptr_t* shape, int dim) noexcept nogil:
    cdef int k
    along.row, along.length, along.reverse = <const Row*>reduction, shape[dim] if ndim else 1, False
    along.operands[0], along.operands[1], along.operands[2] = x, y, z
    for k in range(3):
        lines(along.operands[k], ndim, shape, dim, &along.dims[k])
        along.strides[k] = along.operands[k].strides[dim] if ndim else 0


cdef void run_lines(job_part part, const Lines* along) noexcept nogil:
    cdef intptr_t count = along.dims[0].size
    cdef int threads = threads_for(count * along.length, COST_TRANSCENDENTAL)
    run_in_parts(part, along, count, (count + threads - 1) // threads, threads)


cdef inline char* line_of(const Lines* along, int k, intptr_t line) noexcept nogil:
    """Return the first element of a line that is taken: its last one in reverse."""
    return (along.operands[k].data + offset_at(&along.dims[k], line)
            + (along.strides[k] * (along.length - 1) if along.reverse else 0))


cdef void scan_lines(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const Lines* along = <const Lines*>job
    cdef intptr_t sign = -1 if along.reverse else 1, line
    for line in range(first, last):
        along.row.scan[along.operands[0].dtype](line_of(along, 0, line), sign * along.strides[0], line_of(along, 1, line),
                                                sign * along.strides[1], along.length)


cdef void find_in_lines(const void* job, intptr_t first, intptr_t last) noexcept nogil:
    cdef const Lines* along = <const Lines*>job
    cdef intptr_t line
    for line in range(first, last):
        (<long long*>line_of(along, 2, line))[0] = along.row.find[along.operands[0].dtype](
            line_of(along, 0, line), along.strides[0], along.length, line_of(along, 1, line))


cdef void scan(const cg_reduction* reduction, Operand* x, Operand* y, int ndim, const intptr_t* shape, int dim,
               bint reverse) noexcept nogil:
    cdef Lines along
    begin_lines(&along, reduction, x, y, y, ndim, shape, dim)
    along.reverse = reverse
    run_lines(scan_lines, &along)


cdef void find_extrema(const cg_reduction* reduction, Operand* x, Operand* values, Operand* indices, int ndim, const intptr_t* shape,
                       int dim) noexcept nogil:
    cdef Lines along
    begin_lines(&along, reduction, x, values, indices, ndim, shape, dim)
    run_lines(find_in_lines, &along)
