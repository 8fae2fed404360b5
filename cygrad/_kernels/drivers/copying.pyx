"""Copies as launches (see copying.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._kernels.drivers.packing cimport cg_itemsize, copy, load_operand, operand_words, store_operand


cdef size_t move_bytes(const void* arguments) noexcept nogil:
    return (<const Move*>arguments).count * cg_itemsize[(<const Move*>arguments).dtype]


cdef int run_move(void* arguments, char** data) noexcept nogil:
    memcpy(data[1], data[0], move_bytes(arguments))
    return 0


cdef int run_copy(void* arguments, char** data) noexcept nogil:
    cdef Copy* elements = <Copy*>arguments
    elements.source.data, elements.target.data = data[0], data[1]
    copy(&elements.target, &elements.source, elements.ndim, elements.shape)
    return 0


cdef size_t store_copy(const void* arguments, intptr_t* words) noexcept:
    cdef const Copy* elements = <const Copy*>arguments
    if words is NULL:
        return 1 + elements.ndim + 2 * operand_words(elements.ndim)
    words[0] = elements.ndim
    memcpy(&words[1], elements.shape, elements.ndim * sizeof(intptr_t))
    return store_operand(&elements.target, elements.ndim,
                         store_operand(&elements.source, elements.ndim, words + 1 + elements.ndim)) - words


cdef void load_copy(Copy* elements, const void* arguments) noexcept nogil:
    cdef const intptr_t* words = <const intptr_t*>arguments
    elements.ndim = <int>words[0]
    memcpy(elements.shape, &words[1], elements.ndim * sizeof(intptr_t))
    load_operand(&elements.target, elements.ndim, load_operand(&elements.source, elements.ndim, words + 1 + elements.ndim))


cdef int run_stored_copy(void* arguments, char** data) noexcept nogil:
    cdef Copy elements
    load_copy(&elements, arguments)
    return run_copy(&elements, data)
