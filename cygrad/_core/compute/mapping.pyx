# cython: cdivision=True
"""Kernels over operands (see mapping.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.graph.launches cimport LargeTraits, Launch, Traits, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport CONTIGUOUS, TensorImpl, byte_offset, has_own_memory
from cygrad._core.levels.observers cimport profiling_threads
from cygrad._core.operands.operands cimport (RELEASE_GIL, Value, broadcast, describe_number, describe_operand, empty_for,
                                             lies_as_operands, same_shape, tensor_of_operand)
from cygrad._core.programs.deferred cimport DeferredMap, any_pending, compute_operands, defer_map, defer_number
from cygrad._kernels.drivers.elementwise cimport (MAX_DIMS, MAX_OPERANDS, MAX_PARAMS, Operand, cg_itemsize, cg_kernel, cg_loops_of,
                                                  cg_number, run_elementwise)
from cygrad._kernels.drivers.packing cimport count_elements, lies_row_major, load_operand, operand_words, row_major_count, store_operand
from cygrad._kernels.programs.groups cimport fuse_elementwise, fuse_loop
from cygrad._kernels.programs.linked cimport Loop, run_loop
from cygrad._kernels.programs.steps cimport Program, dtype_of
from cygrad._kernels.system.threads cimport COST_ARITHMETIC

cdef enum:
    NUMBER_WORDS = sizeof(cg_number) // sizeof(intptr_t)
    HEAD = 8 + MAX_PARAMS * NUMBER_WORDS        # words before the shape

cdef struct Map:
    const cg_kernel* kernel
    int dtype, count, ndim, cost        # operands, the result among them
    int common_dtype, out_dtype, masks, waits   # as of `map_kernel`
    bint fresh, has_params
    bint is_number[MAX_OPERANDS]        # else the next tensor of the launch
    intptr_t shape[MAX_DIMS]
    cg_number params[MAX_PARAMS]
    cg_number numbers[MAX_OPERANDS]
    Operand operands[MAX_OPERANDS]


cdef int run_map(void* arguments, char** data) noexcept nogil:
    cdef Map* map = <Map*>arguments
    cdef int k, tensors = 0
    for k in range(map.count):
        if map.is_number[k]:
            map.operands[k].data = <char*>&map.numbers[k]
        else:
            map.operands[k].data = data[tensors]
            tensors += 1
    run_elementwise(map.kernel, map.dtype, map.count, map.operands, map.ndim, map.shape, map.params if map.has_params else NULL, map.cost,
                    map.fresh)
    return 0


# ----- One loop -----
cdef Traits OF_LOOPS = Traits(steady=True, safe=True, large=NULL, store=NULL, run_stored=NULL, fuse=fuse_loop)


cdef TensorImpl launch_loop(const cg_kernel* kernel, int dtype, int count, const Value* values, const void* params, TensorImpl result):
    """Do as `map_simple`, by a launch."""
    cdef Loop each
    cdef Launch launch
    cdef int k
    clear_arguments(&each, sizeof(each))
    each.loop, each.n, each.number_at = kernel.loops[dtype], result.count, -1
    each.kernel, each.dtype, each.out_dtype, each.inputs, each.has_params = kernel, dtype, result.dtype_nr, count, params is not NULL
    each.strides[0] = each.strides[1] = cg_itemsize[dtype]
    if params is not NULL:
        memcpy(each.params, params, MAX_PARAMS * sizeof(cg_number))
    begin_launch(&launch, kernel.name, run_loop, &each, sizeof(each))
    launch.traits = &OF_LOOPS
    for k in range(count):
        if values[k].tensor is NULL:
            each.number_at, each.number, each.strides[k] = k, values[k].number, 0
        else:
            add_input(&launch, <TensorImpl>values[k].tensor)
    add_output(&launch, result)
    run_launch(&launch, False)
    return result


# ----- Any operands -----
cdef bint is_whole(TensorImpl tensor) noexcept:
    """Return True if a dense tensor is all of its memory."""
    return byte_offset(tensor) == 0 and <size_t>(tensor.count * cg_itemsize[tensor.dtype_nr]) == tensor.storage.nbytes


cdef size_t store_map(const void* arguments, intptr_t* words) noexcept:
    cdef const Map* map = <const Map*>arguments
    cdef intptr_t* place
    cdef int k, d
    if words is NULL:
        return HEAD + map.ndim + map.count * (1 + NUMBER_WORDS + operand_words(map.ndim))
    words[0], words[1], words[2], words[3], words[4] = <intptr_t>map.kernel, map.dtype, map.count, map.ndim, map.cost
    words[5], words[6], words[7] = map.fresh, map.masks, map.has_params
    memset(&words[8], 0, sizeof(map.params))
    if map.has_params:
        memcpy(&words[8], map.params, sizeof(map.params))
    place = words + HEAD
    for d in range(map.ndim):
        place[d] = map.shape[d]
    place += map.ndim
    for k in range(map.count):
        place[0] = map.is_number[k]
        memset(&place[1], 0, sizeof(cg_number))
        if map.is_number[k]:
            memcpy(&place[1], &map.numbers[k], sizeof(cg_number))
        place = store_operand(&map.operands[k], map.ndim, place + 1 + NUMBER_WORDS)
    return place - words


cdef inline void load_operands(Operand* operands, const intptr_t* words, char** data) noexcept nogil:
    cdef int ndim = <int>words[3], k, tensors = 0
    cdef const intptr_t* place = words + HEAD + ndim
    for k in range(words[2]):
        if place[0]:
            operands[k].data = <char*>&place[1]
        else:
            operands[k].data = data[tensors]
            tensors += 1
        place = load_operand(&operands[k], ndim, place + 1 + NUMBER_WORDS)


cdef int run_stored_map(void* arguments, char** data) noexcept nogil:
    cdef const intptr_t* words = <const intptr_t*>arguments
    cdef Operand operands[MAX_OPERANDS]
    load_operands(operands, words, data)
    run_elementwise(<const cg_kernel*>words[0], <int>words[1], <int>words[2], operands, <int>words[3], words + HEAD,
                    &words[8] if words[7] else NULL, <int>words[4], words[5])
    return 0


cdef bint fuse_map(Program* program, const void* arguments, char** places) noexcept:
    cdef const intptr_t* words = <const intptr_t*>arguments
    cdef Operand operands[MAX_OPERANDS]
    load_operands(operands, words, places)
    return fuse_elementwise(program, <const cg_kernel*>words[0], <int>words[1], <int>words[6], &words[8] if words[7] else NULL,
                            <int>words[4], <int>words[2] - 1, operands, words[5], <int>words[3], words + HEAD)


cdef object map_again(void* arguments, list storages, const intptr_t* starts):
    """Return the result of a map of other operands, pending if it may be; None if it would lie as operands do, not row-major."""
    cdef Map* map = <Map*>arguments
    cdef Value values[MAX_OPERANDS]
    cdef list tensors = []
    cdef TensorImpl tensor
    cdef intptr_t strides[MAX_DIMS]
    cdef int k
    for k in range(map.count - 1):
        if map.is_number[k]:
            values[k].tensor, values[k].number = NULL, map.numbers[k]
            continue
        tensor = tensor_of_operand(&map.operands[k], map.ndim, map.shape, storages[len(tensors)], starts[len(tensors)])
        tensors.append(tensor)
        values[k].tensor = <PyObject*>tensor
    if lies_as_operands(map.ndim, map.shape, map.count - 1, values, strides) and not lies_row_major(strides, 1, map.ndim, map.shape):
        return None
    return map_kernel(map.kernel, map.common_dtype, map.out_dtype, map.masks, map.count - 1, values,
                      map.params if map.has_params else NULL, map.cost, None, False, WAITS if map.waits == WAITS else WAITS_UNCONTRACTED)


cdef intptr_t space_of_map(const void* arguments, int tensor) noexcept:
    cdef const Map* map = <const Map*>arguments
    cdef int k, tensors = -1
    for k in range(map.count):
        tensors += not map.is_number[k]
        if tensors == tensor:
            return row_major_count(&map.operands[k], map.ndim, map.shape)
    return 0


cdef void repeat_map(void* arguments) noexcept:
    """Have sums over dims go by elements, as they do over a product that other steps have read before."""
    (<Map*>arguments).waits = WAITS_UNCONTRACTED


cdef Traits OF_MAPS = Traits(steady=True, safe=True, large=NULL, store=store_map, run_stored=run_stored_map, fuse=fuse_map)
cdef LargeTraits LARGE = LargeTraits(again=map_again, space_of=space_of_map, makes=True, repeat=NULL)
cdef LargeTraits LARGE_AND_CHEAP = LargeTraits(again=map_again, space_of=space_of_map, makes=True, repeat=repeat_map)
cdef Traits OF_LARGE_MAPS = Traits(steady=False, safe=True, large=&LARGE, store=NULL, run_stored=NULL, fuse=NULL)
cdef Traits OF_LARGE_CHEAP_MAPS = Traits(steady=False, safe=True, large=&LARGE_AND_CHEAP, store=NULL, run_stored=NULL, fuse=NULL)


cdef int loop_dtype_of(const cg_kernel* kernel, int dtype, int count, const Value* values) noexcept:
    """Return the dtype of the loop: of a 16-bit float its own where the row needs it, or has one and all operands are of that dtype."""
    cdef int k
    for k in range(count):
        if not kernel.stored and (values[k].tensor is NULL or (<TensorImpl>values[k].tensor).dtype_nr != dtype):
            return cg_loops_of[dtype]
    return dtype if kernel.loops[dtype] is not NULL else cg_loops_of[dtype]


cdef TensorImpl map_kernel(const cg_kernel* kernel, int dtype, int out_dtype, int masks, int count, Value* values,
                           const void* params, int cost, TensorImpl target, bint private=False, int waits=AT_ONCE):
    """Run a kernel over operands that broadcast; scalars are in the dtype that is computed in. `masks` are read as bool (bits); those
    from bit PARTS on are real beside complex numbers.

    Others may see a target that is not `private`, so it is written with the GIL held: that is the lock of `.grad`. A result that `waits`
    may be pending; then it is not the target, which must be private.
    """
    cdef Map map
    cdef Launch launch
    cdef int ndim, k, loop_dtype = dtype if cg_loops_of[dtype] == dtype else loop_dtype_of(kernel, dtype, count, values)
    cdef int loop_out_dtype = out_dtype if loop_dtype == dtype else cg_loops_of[out_dtype]
    cdef DeferredMap deferred
    cdef TensorImpl result
    cdef bint pending, may_wait
    if not masks and is_simple(kernel, dtype, count, values) and (target is None or (
            values[0].tensor is not NULL
            and (not kernel.blocked[dtype] or private and <PyObject*>target is values[0].tensor and has_own_memory(target))
            and target.flags & CONTIGUOUS and target.dtype_nr == out_dtype and same_shape(target, <TensorImpl>values[0].tensor))):
        return map_simple(kernel, dtype, out_dtype, count, values, params, target)
    ndim = broadcast(count, values, map.shape)
    pending = any_pending(count, values)
    may_wait = count_elements(ndim, map.shape) * cg_itemsize[dtype] >= settings.large
    if (waits and may_wait or target is None and pending and (may_wait or not ndim)) and not profiling_threads:
        deferred.kernel, deferred.params, deferred.cost, deferred.masks = kernel, params, cost, masks
        deferred.dtype, deferred.number_dtype, deferred.out_dtype = loop_dtype, cg_loops_of[dtype], out_dtype
        deferred.loop_out_dtype, deferred.contracts = loop_out_dtype, waits == WAITS
        result = defer_number(&deferred, count, values) if pending and not ndim else None
        if result is None and may_wait:
            result = defer_map(&deferred, count, values, ndim, map.shape)
        if result is not None:
            return result
    if pending:
        compute_operands(count, values)
        ndim = broadcast(count, values, map.shape)      # other threads may have changed them
    map.kernel, map.dtype, map.count, map.ndim, map.cost = kernel, loop_dtype, count + 1, ndim, cost
    map.fresh, map.has_params = target is None, params is not NULL
    if map.has_params:
        memcpy(map.params, params, sizeof(map.params))
    if map.fresh:
        target = empty_for(out_dtype, ndim, map.shape, count, values)
    begin_launch(&launch, kernel.name, run_map, &map, sizeof(map))
    launch.traits = &OF_MAPS
    map.common_dtype, map.out_dtype, map.masks, map.waits = dtype, out_dtype, masks, waits
    if noted and target.flags & CONTIGUOUS and (map.fresh or waits and is_whole(target)) and target.count >= settings.large:
        launch.traits = &OF_LARGE_CHEAP_MAPS if cost == COST_ARITHMETIC else &OF_LARGE_MAPS
    for k in range(count):
        map.is_number[k] = values[k].tensor is NULL
        if map.is_number[k]:
            map.numbers[k] = values[k].number
            describe_number(&map.operands[k], &map.numbers[k], dtype_of(k, masks, cg_loops_of[dtype]), dtype_of(k, masks, loop_dtype), ndim)
        else:
            describe_operand(&map.operands[k], <TensorImpl>values[k].tensor, dtype_of(k, masks, loop_dtype), ndim)
            add_input(&launch, <TensorImpl>values[k].tensor)
    map.is_number[count] = False
    describe_operand(&map.operands[count], target, loop_out_dtype, ndim)
    add_output(&launch, target)
    run_launch(&launch, (map.fresh or private) and target.count >= RELEASE_GIL)
    return target
