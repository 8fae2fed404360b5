# cython: cdivision=True
"""Checks of kernels: each runs a second time on other memory, from a copy of its arguments, and bits are compared.

Arguments that lack something, a tensor that is not in the launch, or one that is written though it is an input, are faults of bits here.
The other memory has copies of the values that are read; an output is full of NaN before. With the GIL.
"""
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from cygrad._core.graph.launches cimport Launch
from cygrad._core.graph.tensor cimport TensorImpl
from cygrad._core.memory.sizes cimport bytes_between
from cygrad._kernels.drivers.elementwise cimport cg_itemsize
from cygrad._kernels.programs.checking cimport count_kernel
from cygrad._kernels.programs.kernel cimport MAX_TENSORS

cdef enum:
    VECTOR = 64
    NAN_BYTE = 0xff

# Bytes that tensors of a launch share, or lie side by side in.
cdef struct Region:
    char* first
    char* end
    char* other     # the same bytes in other memory
    bint written

cdef struct Shadow:
    int count
    Region regions[MAX_TENSORS]
    char* memory
    void* arguments
    char* data[MAX_TENSORS]     # the other places of the tensors


cdef void find_ends(TensorImpl tensor, char* data, Region* region) noexcept:
    """Write the first byte of a tensor's elements and the end of them."""
    cdef intptr_t first = 0, end = 0
    if tensor.count:
        bytes_between(tensor.ndim, tensor.sizes, tensor.strides, cg_itemsize[tensor.dtype_nr], &first, &end)
    region.first, region.end, region.other = data + first, data + end, NULL


cdef void add_region(Shadow* shadow, const Region* region) noexcept:
    """Add bytes, joined with all regions that they overlap."""
    cdef Region joined = region[0]
    cdef int k, count = 0
    for k in range(shadow.count):
        if shadow.regions[k].first < joined.end and joined.first < shadow.regions[k].end:
            joined.first, joined.end = min(joined.first, shadow.regions[k].first), max(joined.end, shadow.regions[k].end)
            joined.written |= shadow.regions[k].written
        else:
            shadow.regions[count] = shadow.regions[k]
            count += 1
    shadow.regions[count] = joined
    shadow.count = count + 1


cdef char* other_place(const Shadow* shadow, char* place) noexcept:
    cdef int k
    for k in range(shadow.count):
        if shadow.regions[k].first <= place < shadow.regions[k].end:
            return shadow.regions[k].other + (place - shadow.regions[k].first)
    return place        # of a tensor without elements


cdef void fill_elements(char* data, int ndim, const intptr_t* sizes, const intptr_t* strides, intptr_t itemsize) noexcept:
    """Set each byte of the elements of a tensor."""
    cdef intptr_t k
    if ndim == 0:
        memset(data, NAN_BYTE, itemsize)
        return
    for k in range(sizes[0]):
        fill_elements(data + k * strides[0] * itemsize, ndim - 1, sizes + 1, strides + 1, itemsize)


cdef bint begin_shadow(Shadow* shadow, const Launch* launch, char** data) noexcept:
    """Copy the arguments and all memory, before the kernel changes it; False: there is no memory for it."""
    cdef Region region
    cdef TensorImpl tensor
    cdef size_t needed = launch.argument_bytes + VECTOR
    cdef char* place
    cdef int k
    shadow.count = 0
    for k in range(launch.count):
        find_ends(<TensorImpl>launch.tensors[k], data[k], &region)
        region.written = launch.written >> k & 1
        if region.first != region.end:
            add_region(shadow, &region)
    for k in range(shadow.count):
        needed += shadow.regions[k].end - shadow.regions[k].first + 4 * VECTOR
    shadow.memory = <char*>malloc(needed)
    if shadow.memory is NULL:
        return False
    shadow.arguments = shadow.memory
    memcpy(shadow.arguments, launch.arguments, launch.argument_bytes)
    place = shadow.memory + launch.argument_bytes
    for k in range(shadow.count):       # as far from a whole vector as the memory itself, and with bytes to read behind
        place += VECTOR + (<size_t>shadow.regions[k].first - <size_t>place) % VECTOR
        shadow.regions[k].other = place
        memcpy(place, shadow.regions[k].first, shadow.regions[k].end - shadow.regions[k].first)
        place += shadow.regions[k].end - shadow.regions[k].first
        memset(place, 0, VECTOR)
        place += VECTOR
    for k in range(launch.count):
        shadow.data[k] = other_place(shadow, data[k])
    for k in range(launch.count):
        tensor = <TensorImpl>launch.tensors[k]
        if not launch.read >> k & 1 and not is_read(launch, data, k):
            fill_elements(shadow.data[k], tensor.ndim, tensor.sizes, tensor.strides, cg_itemsize[tensor.dtype_nr])
    return True


cdef bint is_read(const Launch* launch, char** data, int output) noexcept:
    """Return True if an output may be read as another argument: in place."""
    cdef Region mine, other
    cdef int k
    find_ends(<TensorImpl>launch.tensors[output], data[output], &mine)
    for k in range(launch.count):
        if launch.read >> k & 1:
            find_ends(<TensorImpl>launch.tensors[k], data[k], &other)
            if other.first < mine.end and mine.first < other.end:
                return True
    return False


cdef bint is_same(const Shadow* shadow, bint written) noexcept:
    """Return True if memory that the kernel may write, or all other memory, has the bytes of the copy."""
    cdef int k
    for k in range(shadow.count):
        if shadow.regions[k].written == written and memcmp(shadow.regions[k].first, shadow.regions[k].other,
                                                           shadow.regions[k].end - shadow.regions[k].first):
            return False
    return True


cdef int run_twice(Launch* launch, char** data) noexcept:
    cdef Shadow shadow
    cdef bint begun = begin_shadow(&shadow, launch, data)
    cdef int failed = launch.run(launch.arguments, data)
    cdef bint same
    if begun:
        same = is_same(&shadow, False)
        memset(launch.arguments, NAN_BYTE, launch.argument_bytes)     # the copy must not point there
        if not failed and not launch.run(shadow.arguments, shadow.data):
            count_kernel(launch.name, same and is_same(&shadow, True))
        free(shadow.memory)
    return failed
