"""Memory that is set to zero, a number or other memory (see constants.pxd for the contract)."""
from libc.stdint cimport intptr_t
from libc.string cimport memcpy

from cygrad._core.graph.launches cimport STEADY, Launch, Traits, add_input, add_output, begin_launch, clear_arguments, run_launch
from cygrad._core.graph.tensor cimport TensorImpl, empty
from cygrad._kernels.drivers.copying cimport Copy, Move, run_copy, run_move, run_stored_copy, store_copy
from cygrad._kernels.drivers.elementwise cimport cg_itemsize, cg_number
from cygrad._kernels.drivers.packing cimport zero_dense
from cygrad._kernels.programs.groups cimport fuse_copy, fuse_move

cdef struct Zeros:
    intptr_t count
    int itemsize


cdef int run_zeros(void* arguments, char** data) noexcept nogil:
    cdef Zeros* zeros = <Zeros*>arguments
    zero_dense(data[0], zeros.count, zeros.itemsize)
    return 0


cdef void zero(TensorImpl tensor) noexcept:
    cdef Zeros zeros
    cdef Launch launch
    clear_arguments(&zeros, sizeof(zeros))
    zeros.count, zeros.itemsize = tensor.count, cg_itemsize[tensor.dtype_nr]
    begin_launch(&launch, "zeros", run_zeros, &zeros, sizeof(zeros))
    launch.traits = &STEADY
    add_output(&launch, tensor)
    run_launch(&launch, False)


cdef struct Number:
    int itemsize
    cg_number number


cdef int write_number(void* arguments, char** data) noexcept nogil:
    memcpy(data[0], &(<Number*>arguments).number, (<Number*>arguments).itemsize)
    return 0


cdef TensorImpl tensor_of_number(const void* number, int dtype):
    cdef TensorImpl result = empty(dtype, 0, NULL)
    cdef Number arguments
    cdef Launch launch
    clear_arguments(&arguments, sizeof(arguments))
    arguments.itemsize = cg_itemsize[dtype]
    memcpy(&arguments.number, number, arguments.itemsize)
    begin_launch(&launch, "number", write_number, &arguments, sizeof(arguments))
    launch.traits = &STEADY
    add_output(&launch, result)
    run_launch(&launch, False)
    return result


cdef Traits OF_MOVES = Traits(steady=True, safe=True, large=NULL, store=NULL, run_stored=NULL, fuse=fuse_move)


cdef int move(TensorImpl target, TensorImpl source) noexcept:
    cdef Move moved
    cdef Launch launch
    clear_arguments(&moved, sizeof(moved))
    moved.count, moved.dtype = target.count, target.dtype_nr
    begin_launch(&launch, "move", run_move, &moved, sizeof(moved))
    launch.traits = &OF_MOVES
    add_input(&launch, source)
    add_output(&launch, target)
    return run_launch(&launch, False)


cdef Traits OF_COPIES = Traits(steady=True, safe=True, large=NULL, store=store_copy, run_stored=run_stored_copy,
                               fuse=fuse_copy)


cdef int copy_as_described(Copy* elements, TensorImpl target, TensorImpl source, bint release) noexcept:
    cdef Launch launch
    begin_launch(&launch, "copy", run_copy, elements, sizeof(elements[0]))
    launch.traits = &OF_COPIES
    add_input(&launch, source)
    add_output(&launch, target)
    return run_launch(&launch, release)
