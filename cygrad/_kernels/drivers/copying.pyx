"""Copies as launches (see copying.pxd for the contract)."""
from libc.string cimport memcpy

from cygrad._kernels.drivers.packing cimport copy, load_operand, operand_words, store_operand


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


cdef int run_stored_copy(void* arguments, char** data) noexcept nogil:
    cdef const intptr_t* words = <const intptr_t*>arguments
    cdef Operand source, target
    load_operand(&target, <int>words[0], load_operand(&source, <int>words[0], words + 1 + words[0]))
    source.data, target.data = data[0], data[1]
    copy(&target, &source, <int>words[0], words + 1)
    return 0
