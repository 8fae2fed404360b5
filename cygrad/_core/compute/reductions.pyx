# cython: cdivision=True
"""Reductions, scans and the places of extrema: from arguments to the driver and the graph."""
cimport cython
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cython cimport floating
from libc.math cimport isnan
from libc.stdint cimport int64_t, intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.compute.contraction cimport contract
from cygrad._core.graph.launches cimport (STEADY, LargeTraits, Launch, Traits, add_input, add_output, begin_launch, clear_arguments,
                                          kernel_function, run_decision, run_launch)
from cygrad._core.graph.notes cimport NUMBER
from cygrad._core.graph.rule_nodes cimport record, needs_node
from cygrad._core.graph.rules cimport RuleOp
from cygrad._core.graph.tensor cimport (CONTIGUOUS, TensorImpl, empty, is_dense, new_address, new_tensor, shallow_copy, stand_alone,
                                        value_address)
from cygrad._core.levels.observers cimport profiling_threads
from cygrad._core.memory.looks cimport note_lasting_look
from cygrad._core.memory.sizes cimport dim_bits, integer, read_dims, sizes_tuple, wrap_dim
from cygrad._core.memory.storage cimport dtype_number, dtypes
from cygrad._core.operands.arrays cimport array_of
from cygrad._core.operands.operands cimport (RELEASE_GIL, check_cast, check_out, copy_of, describe_operand, may_cast,
                                             refused, tensor_of_operand, write_out)
from cygrad._core.programs.pending_reductions cimport is_alone, reduce_pending
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT32, CG_FLOAT64, CG_INT64, MAX_DIMS, Operand, cast, cg_is_floating_point,
                                                  cg_is_index, cg_itemsize, cg_loops_of)
from cygrad._kernels.drivers.packing cimport load_operand, operand_words, row_major_count, store_operand
from cygrad._kernels.drivers.reduction cimport BLOCK, cg_reduction, find_extrema, reduction, run_reduction, run_small, scan
from cygrad._kernels.programs.settings cimport large, noted

from cygrad._core.graph.rules import declare_rule
from cygrad.ops import REDUCTIONS
from cygrad.ops.dtypes import DTYPES


cdef enum:
    UNDECIDED = 0x7fffffff  # of a number that is no outcome

cdef enum Param:
    SHAPE       # of the input
    DIM         # the dims, or None
    COUNT       # of the elements that are reduced to one
    PARAMS

PARAM_NAMES = ("shape", "dim", "count")


@cython.final
cdef class ReductionOp:
    """A reduction of the table, ready to be called."""
    cdef readonly str name
    cdef readonly object row
    cdef const cg_reduction* kernel
    cdef RuleOp rule
    cdef Param params[PARAMS]   # of the rule, in its order
    cdef int param_count
    cdef object decide_nan      # computes a result that came out as NaN in another way
    cdef bint is_sum            # of the elements themselves
    cdef bint takes_dim, takes_count, needs_elements, accumulates, truth, reads_nan

    def __cinit__(self, row):
        self.row, self.name, self.kernel = row, row.name, reduction(row.name)
        self.is_sum = row.name == "sum"
        self.needs_elements, self.decide_nan = not row.empty, row.nan
        self.accumulates, self.truth, self.reads_nan = row.result == "widest", row.result == "truth", "isnan" in row.step
        if row.gradient is not None:
            self.rule = declare_rule(row.name, dinput=row.gradient)
            self.param_count = <int>len(self.rule.params)
            for k, name in enumerate(self.rule.params):
                self.params[k] = PARAM_NAMES.index(name)

    def __repr__(self):
        return f"<cygrad reduction {self.name}>"


ops = {name: ReductionOp(row) for name, row in REDUCTIONS.items()}


cdef int fill_mask(tuple dims, int ndim, char* mask) except -1:
    """Mark the dims to reduce: None means all of them."""
    cdef unsigned long long bits = dim_bits(dims, ndim)
    cdef int d
    for d in range(ndim):
        mask[d] = bits >> d & 1
    return 0


cdef tuple reduction_params(ReductionOp op, TensorImpl x, tuple dims, intptr_t count):
    """Return the parameters that the rule of a reduction names."""
    cdef tuple params = PyTuple_New(op.param_count)
    cdef object param
    cdef int k
    for k in range(op.param_count):
        param = sizes_tuple(x.ndim, x.sizes) if op.params[k] == SHAPE else count if op.params[k] == COUNT else dims
        Py_INCREF(param)
        PyTuple_SET_ITEM(params, k, param)
    return params


cdef struct Elements:
    int dtype
    intptr_t count


cdef bint any_is_nan(const char* data, int dtype, intptr_t count) noexcept nogil:
    cdef double element
    cdef intptr_t i
    for i in range(count):
        cast(dtype, CG_FLOAT64)(<char*>&element, 0, data + i * cg_itemsize[dtype], 0, 1)
        if isnan(element):
            return True
    return False


cdef int find_nan(void* arguments, char** data) noexcept nogil:
    """Return 1 if one of dense elements is a NaN."""
    cdef Elements* elements = <Elements*>arguments
    return any_is_nan(data[0], elements.dtype, elements.count)


cdef bint holds_nan(TensorImpl x) noexcept:
    """Return True if there is a NaN among the elements of a result that was just computed."""
    cdef Elements elements
    clear_arguments(&elements, sizeof(elements))
    if not cg_is_floating_point[x.dtype_nr]:
        return False
    elements.dtype, elements.count = x.dtype_nr, x.count
    return run_decision("nan", find_nan, &elements, sizeof(elements), x)


cdef int find_truth(void* arguments, char** data) noexcept nogil:
    cdef char truth
    cast((<Elements*>arguments).dtype, CG_BOOL)(&truth, 0, data[0], 0, 1)
    return truth


cdef bint is_true(TensorImpl x) noexcept:
    """Return True if the one element of a tensor is not 0."""
    cdef Elements elements
    clear_arguments(&elements, sizeof(elements))
    elements.dtype, elements.count = x.dtype_nr, 1
    return run_decision("bool", find_truth, &elements, sizeof(elements), x)


cdef int find_number(void* arguments, char** data) noexcept nogil:
    """Return twice the integer, or twice its negative less one: no less than 0; UNDECIDED for one that is too large."""
    cdef int64_t number
    cast((<Elements*>arguments).dtype, CG_INT64)(<char*>&number, 0, data[0], 0, 1)
    return <int>(2 * number if number >= 0 else -2 * number - 1) if -UNDECIDED // 2 < number < UNDECIDED // 2 else UNDECIDED


cdef object decided_number(TensorImpl x):
    cdef Elements elements
    cdef int outcome = UNDECIDED
    if noted and cg_is_index[x.dtype_nr]:
        clear_arguments(&elements, sizeof(elements))
        elements.dtype, elements.count = x.dtype_nr, 1
        outcome = run_decision(NUMBER, find_number, &elements, sizeof(elements), x)
    if outcome != UNDECIDED:
        return -(outcome + 1) // 2 if outcome & 1 else outcome // 2
    note_lasting_look("its value is an index, or a number of an operator")
    return array_of(x).item()


cdef struct Range:
    int dtype
    intptr_t count
    double least, most


cdef bint leaves(const floating* numbers, intptr_t count, double least, double most) noexcept nogil:
    cdef bint outside = False
    cdef intptr_t k
    for k in range(count):
        outside |= not (numbers[k] >= least and numbers[k] <= most)
    return outside


cdef int find_beyond(void* arguments, char** data) noexcept nogil:
    cdef Range* limits = <Range*>arguments
    if limits.dtype == CG_FLOAT64:
        return leaves[double](<const double*>data[0], limits.count, limits.least, limits.most)
    return leaves[float](<const float*>data[0], limits.count, limits.least, limits.most)


def lie_between(TensorImpl x not None, double least, double most):
    """Return True if all numbers of a result in float32 or float64 lie in a range, which NaN does not."""
    cdef Range limits
    clear_arguments(&limits, sizeof(limits))
    if x.dtype_nr not in (CG_FLOAT32, CG_FLOAT64) or not x.flags & CONTIGUOUS:
        raise RuntimeError(f"row-major floats are compared with limits, not {dtypes[x.dtype_nr].name}")
    limits.dtype, limits.count, limits.least, limits.most = x.dtype_nr, x.count, least, most
    return not run_decision("range", find_beyond, &limits, sizeof(limits), x)


cdef int check_taken(ReductionOp op, TensorImpl x) except -1:
    """Refuse a dtype without a loop."""
    if op.kernel.out_dtype[x.dtype_nr] < 0:
        raise refused(op.name, x.dtype_nr, op.row.kinds)
    return 0


cdef struct Few:
    const cg_reduction* kernel
    int dtype
    intptr_t count


cdef int run_few(void* arguments, char** data) noexcept nogil:
    cdef Few* few = <Few*>arguments
    run_small(few.kernel, few.dtype, data[0], few.count, data[1])
    return 0


cdef void reduce_few(const cg_reduction* kernel, TensorImpl x, TensorImpl result) noexcept:
    """Reduce all of a few dense elements."""
    cdef Few few
    cdef Launch launch
    clear_arguments(&few, sizeof(few))
    if not noted:
        run_small(kernel, x.dtype_nr, value_address(x), x.count, new_address(result))
        return
    few.kernel, few.dtype, few.count = kernel, x.dtype_nr, x.count
    begin_launch(&launch, kernel.name, run_few, &few, sizeof(few))
    launch.traits = &STEADY
    add_input(&launch, x)
    add_output(&launch, result)
    run_launch(&launch, False)


cdef struct Reduce:
    const cg_reduction* kernel
    int ndim, out_dtype
    bint is_sum, alone          # the operand was, as of `is_alone`
    intptr_t shape[MAX_DIMS]
    char is_reduced[MAX_DIMS]
    Operand x


cdef int run_reduce(void* arguments, char** data) noexcept nogil:
    cdef Reduce* reduce = <Reduce*>arguments
    reduce.x.data = data[0]
    return run_reduction(reduce.kernel, &reduce.x, reduce.ndim, reduce.shape, reduce.is_reduced, data[1], reduce.out_dtype)


cdef size_t store_reduce(const void* arguments, intptr_t* words) noexcept:
    cdef const Reduce* reduce = <const Reduce*>arguments
    cdef int ndim = reduce.ndim
    if words is NULL:
        return 3 + 2 * ndim + operand_words(ndim)
    words[0], words[1], words[2] = <intptr_t>reduce.kernel, ndim, reduce.out_dtype
    memcpy(&words[3], reduce.shape, ndim * sizeof(intptr_t))
    memset(&words[3 + ndim], 0, ndim * sizeof(intptr_t))
    memcpy(&words[3 + ndim], reduce.is_reduced, ndim)
    return store_operand(&reduce.x, ndim, words + 3 + 2 * ndim) - words


cdef int run_stored_reduce(void* arguments, char** data) noexcept nogil:
    cdef const intptr_t* words = <const intptr_t*>arguments
    cdef int ndim = <int>words[1]
    cdef Operand x
    load_operand(&x, ndim, words + 3 + 2 * ndim)
    x.data = data[0]
    return run_reduction(<const cg_reduction*>words[0], &x, ndim, words + 3, <const char*>&words[3 + ndim], data[1], <int>words[2])


cdef object reduce_again(void* arguments, list storages, const intptr_t* starts):
    """Reduce another tensor, which may be pending, into the memory of a result."""
    cdef Reduce* reduce = <Reduce*>arguments
    cdef TensorImpl x, result
    cdef intptr_t sizes[MAX_DIMS]
    cdef int d, ndim = 0
    for d in range(reduce.ndim):
        if not reduce.is_reduced[d]:
            sizes[ndim] = reduce.shape[d]
            ndim += 1
    result = new_tensor(storages.pop(), starts[1], reduce.out_dtype, ndim, sizes, NULL)
    x = tensor_of_operand(&reduce.x, reduce.ndim, reduce.shape, storages.pop(), starts[0])      # its only reference perhaps
    reduce_any(reduce.kernel, reduce.is_sum, x, reduce.is_reduced, result, reduce.alone)
    return None


cdef intptr_t space_of_reduction(const void* arguments, int tensor) noexcept:
    """Return 0 for sums of rows into a row, too: they read memory, since the parts of their results have no parts of the operand."""
    cdef const Reduce* reduce = <const Reduce*>arguments
    cdef int d, first = 0
    while first < reduce.ndim and reduce.shape[first] == 1:
        first += 1
    for d in range(first, reduce.ndim):
        if reduce.is_reduced[first] and not reduce.is_reduced[d]:
            return 0
    return 0 if tensor else row_major_count(&reduce.x, reduce.ndim, reduce.shape)


cdef Traits OF_REDUCTIONS = Traits(steady=True, safe=False, large=NULL, store=store_reduce, run_stored=run_stored_reduce,
                                   fuse=NULL)
cdef LargeTraits LARGE = LargeTraits(again=reduce_again, space_of=space_of_reduction, makes=False, repeat=NULL)
cdef Traits OF_LARGE_REDUCTIONS = Traits(steady=False, safe=False, large=&LARGE, store=NULL, run_stored=NULL, fuse=NULL)


cdef int reduce_any(const cg_reduction* kernel, bint is_sum, TensorImpl x, const char* mask, TensorImpl result, bint alone) except -1:
    """Reduce dims of a tensor into a new, dense one: block by block where it is pending. alone: a product may be a contraction."""
    if x.storage.program is not NULL and is_dense(x) and (is_sum and alone and x.count >= large and contract(x, mask, result)
                                                          or reduce_pending(kernel, x, mask, result, not profiling_threads)):
        return 0
    if run_driver(kernel, is_sum, x, mask, result):
        raise MemoryError(f"{kernel.name.decode()}(): no memory for partial results")
    return 0


cdef int run_driver(const cg_reduction* kernel, bint is_sum, TensorImpl x, const char* is_reduced, TensorImpl result) noexcept:
    """Reduce dims of a tensor into a new, dense one. -1: there is no memory."""
    cdef Reduce reduce
    cdef Launch launch
    reduce.kernel, reduce.ndim, reduce.out_dtype, reduce.is_sum, reduce.alone = kernel, x.ndim, result.dtype_nr, is_sum, is_alone(x, 0)
    memcpy(reduce.shape, x.sizes, x.ndim * sizeof(intptr_t))
    memcpy(reduce.is_reduced, is_reduced, x.ndim)
    describe_operand(&reduce.x, x, cg_loops_of[x.dtype_nr], x.ndim)
    begin_launch(&launch, kernel.name, run_reduce, &reduce, sizeof(reduce))
    launch.traits = &OF_LARGE_REDUCTIONS if x.count >= large else &OF_REDUCTIONS
    add_input(&launch, x)
    add_output(&launch, result)
    return run_launch(&launch, x.count >= RELEASE_GIL)


cdef TensorImpl reduce_tensor(ReductionOp op, TensorImpl x, object dim, bint keepdim, object dtype, TensorImpl out):
    cdef char mask[MAX_DIMS]    # set for the dims there are
    cdef intptr_t shape[MAX_DIMS]
    cdef intptr_t count = 1
    cdef int d, ndim = 0, out_dtype
    cdef TensorImpl result
    cdef bint recorded
    cdef bint single = type(dim) is int         # then a tuple of it is made for the record alone
    cdef tuple dims = None if dim is None or single else read_dims(dim)
    if not dims and not op.truth:       # no dims are all, but for truth values, as in torch
        dims = None
    if out is not None:
        check_out(out, op.rule is not None and needs_node(x, None))
        if dtype is None and op.accumulates and out.dtype_nr != op.kernel.out_dtype[x.dtype_nr]:
            dtype = dtypes[out.dtype_nr]        # as torch: the dtype of out= decides
        if op.row.bad_out and not may_cast(x.dtype_nr, out.dtype_nr):
            raise RuntimeError(op.row.bad_out.format(input=DTYPES[x.dtype_nr].title, out=DTYPES[out.dtype_nr].title))
    if dtype is not None and dtype_number(dtype) != x.dtype_nr:
        if op.reads_nan and cg_is_floating_point[x.dtype_nr]:
            check_cast(x.dtype_nr, dtype_number(dtype))     # converted, a NaN is a number
        x = (<object>x).to(dtype)
    check_taken(op, x)
    # The common case first: all of a few elements.
    if (x.flags & CONTIGUOUS and 0 < x.count <= BLOCK and not keepdim and dtype is None and out is None
            and (dims is None and not single or single and x.ndim == 1 and (dim == 0 or dim == -1))):
        result = empty(op.kernel.out_dtype[x.dtype_nr], 0, NULL)
        reduce_few(op.kernel, x, result)
        if op.decide_nan is not None and holds_nan(result):
            result = op.decide_nan((<object>x).detach(), result, None, False)
        if op.rule is not None and needs_node(x, None):
            record(op.rule, x, None, result, reduction_params(op, x, (dim,) if single else dims, x.count))
        return result
    if single:
        memset(mask, 0, x.ndim)
        mask[wrap_dim(integer(dim, "dim"), x.ndim)] = x.ndim > 0
    else:
        fill_mask(dims, x.ndim, mask)
    if op.needs_elements and x.count == 0 and dims is None and not single:
        raise RuntimeError(f"{op.name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                           "the 'dim' argument.")
    for d in range(x.ndim):
        if mask[d]:
            count *= x.sizes[d]
            if op.needs_elements and x.sizes[d] == 0:
                raise IndexError(f"{op.name}(): Expected reduction dim {d} to have non-zero size.")
        if not mask[d] or keepdim:
            shape[ndim] = 1 if mask[d] else x.sizes[d]
            ndim += 1
    recorded = op.rule is not None and needs_node(x, None)
    out_dtype = CG_BOOL if op.truth and out is not None else op.kernel.out_dtype[x.dtype_nr]
    result = empty(out_dtype, ndim, shape)
    if x.flags & CONTIGUOUS and count == x.count <= BLOCK and result.count == 1:
        reduce_few(op.kernel, x, result)
    else:
        reduce_any(op.kernel, op.is_sum, x, mask, result, is_alone(x, 0))
    if op.decide_nan is not None and holds_nan(result):
        result = op.decide_nan((<object>x).detach(), result, (dim,) if single else dims, keepdim)
    if dtype is not None:
        result = (<object>result).to(dtype)
    if out is not None:
        return write_out(out, result, recorded)
    if recorded:
        record(op.rule, x, None, result, reduction_params(op, x, (dim,) if single else dims, count))
    return result


def make_reduction(ReductionOp op not None):
    """Return the function, which is the method too, of a reduction."""

    def function(input, dim=None, keepdim=False, *, dtype=None, out=None):
        if not isinstance(input, TensorImpl):
            raise TypeError(f"{op.name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return reduce_tensor(op, input, dim, keepdim, dtype, out)

    return function


cdef TensorImpl widened(ReductionOp op, TensorImpl x):
    """Return a tensor without its history, in the dtype that is computed in."""
    check_taken(op, x)
    return shallow_copy(x) if cg_loops_of[x.dtype_nr] == x.dtype_nr else copy_of(x, cg_loops_of[x.dtype_nr])


# ----- Along one dim -----
cdef struct Line:
    const cg_reduction* kernel
    int ndim, dim
    bint reverse
    intptr_t shape[MAX_DIMS]
    Operand x, values, indices


cdef int run_scan(void* arguments, char** data) noexcept nogil:
    cdef Line* line = <Line*>arguments
    line.x.data, line.values.data = data[0], data[1]
    scan(line.kernel, &line.x, &line.values, line.ndim, line.shape, line.dim, line.reverse)
    return 0


cdef int run_find(void* arguments, char** data) noexcept nogil:
    cdef Line* line = <Line*>arguments
    line.x.data, line.values.data, line.indices.data = data[0], data[1], data[2]
    find_extrema(line.kernel, &line.x, &line.values, &line.indices, line.ndim, line.shape, line.dim)
    return 0


cdef void describe_line(Operand* operand, TensorImpl tensor) noexcept:
    """Describe a tensor without its address."""
    describe_operand(operand, tensor, tensor.dtype_nr, tensor.ndim)
    operand.data = NULL


cdef void begin_line(Line* line, Launch* launch, kernel_function run, const cg_reduction* kernel, TensorImpl x, int dim) noexcept:
    line.kernel, line.ndim, line.dim, line.reverse = kernel, x.ndim, dim, False
    memcpy(line.shape, x.sizes, x.ndim * sizeof(intptr_t))
    describe_line(&line.x, x)
    begin_launch(launch, kernel.name, run, line, sizeof(Line))
    add_input(launch, x)


def cumulate(str name, TensorImpl input not None, dim, bint reverse=False):
    """Return the scan along a dim, from the end if `reverse`; not recorded."""
    cdef ReductionOp op = ops[name]
    cdef intptr_t along = integer(dim, "dim")
    cdef TensorImpl x = widened(op, input), result
    cdef Line line
    cdef Launch launch
    cdef int d = wrap_dim(along, x.ndim)
    clear_arguments(&line, sizeof(line))
    result = empty(op.kernel.out_dtype[x.dtype_nr], x.ndim, x.sizes)
    begin_line(&line, &launch, run_scan, op.kernel, x, d)
    line.reverse = reverse
    describe_line(&line.values, result)
    add_output(&launch, result)
    run_launch(&launch, x.count >= RELEASE_GIL)
    dtype = op.kernel.out_dtype[input.dtype_nr]
    return result if result.dtype_nr == dtype else copy_of(result, dtype)


def extremum(str name, TensorImpl input not None, dim, bint keepdim=False, str caller=None):
    """Return (values, indices) of the first largest or smallest elements along a dim; not recorded."""
    cdef ReductionOp op = ops[name]
    cdef intptr_t along = integer(dim, "dim")
    cdef TensorImpl values, indices, detached = widened(op, input)
    cdef int d = wrap_dim(along, detached.ndim)
    cdef Line line
    cdef Launch launch
    clear_arguments(&line, sizeof(line))
    if detached.ndim and detached.sizes[d] == 0:
        raise IndexError(f"{caller or name}(): Expected reduction dim {d} to have non-zero size.")
    values = reduce_tensor(op, detached, d, True, None, None)
    indices = empty(CG_INT64, values.ndim, values.sizes)
    begin_line(&line, &launch, run_find, op.kernel, detached, d)
    describe_line(&line.values, values)
    describe_line(&line.indices, indices)
    add_input(&launch, values)
    add_output(&launch, indices)
    run_launch(&launch, detached.count >= RELEASE_GIL)
    if values.dtype_nr != input.dtype_nr:
        values = copy_of(values, input.dtype_nr)
    if not keepdim and detached.ndim:
        shape = tuple((<object>values).shape)[:d] + tuple((<object>values).shape)[d + 1:]
        values, indices = (<object>values).reshape(shape), (<object>indices).reshape(shape)
        stand_alone(values)
        stand_alone(indices)
    return values, indices
