# cython: cdivision=True
"""Gradients of a loop (see loop_gradients.pxd for the contract)."""
cimport cython
from libc.stdint cimport intptr_t
from libc.string cimport memcpy, memset

from cygrad._core.capture.layouts cimport SAME, Layout, suits
from cygrad._core.capture.looped cimport CARRIED, PASSED, Frame, LoopedStep, StepValue, layout_bytes, tensor_like
from cygrad._core.capture.captured cimport FIRST_INPUT
from cygrad._core.compute.dispatch cimport Op
from cygrad._core.compute.reductions cimport any_is_nan
from cygrad._core.graph.tensor cimport TensorImpl, address, empty, value_address
from cygrad._kernels.drivers.elementwise cimport MAX_DIMS, cg_itemsize, cg_loop, cg_real

from cygrad._core.compute.dispatch import ops

cdef Op add = ops["add"]


cdef TensorImpl row_major_zeros(Layout layout, Py_ssize_t rows):
    """Return row-major zeros of a layout's dtype and sizes; `rows` of them, along a dim before, unless it is -1."""
    cdef intptr_t sizes[MAX_DIMS + 1]
    cdef TensorImpl result
    sizes[0] = rows
    memcpy(&sizes[1], layout.dims, layout.ndim * sizeof(intptr_t))
    result = empty(layout.dtype, layout.ndim, &sizes[1]) if rows < 0 else empty(layout.dtype, layout.ndim + 1, sizes)
    memset(address(result), 0, result.count * cg_itemsize[result.dtype_nr])
    return result


cdef void add_loop(char* total, char* part, size_t nbytes, size_t itemsize, cg_loop add) noexcept nogil:
    cdef char* pointers[3]
    cdef intptr_t strides[2]
    pointers[0], pointers[1], pointers[2] = total, part, total
    strides[0] = strides[1] = <intptr_t>itemsize
    add(pointers, strides, <intptr_t>(nbytes // itemsize), NULL)


cdef void add_gradient(const Weight* weight, char* total, bint* any_added, char* part) noexcept nogil:
    if any_added[0]:
        add_loop(total, part, weight.nbytes, weight.itemsize, weight.add)
    else:
        memcpy(total, part, weight.nbytes)
    any_added[0] = True


cdef void set_negative_zeros(char* data, size_t nbytes, size_t component) noexcept nogil:
    """Set real numbers, or the parts of complex ones, to -0.0, to which a sum has the bits of the other addend."""
    cdef size_t k
    memset(data, 0, nbytes)
    for k in range(1, nbytes // component + 1):
        data[k * component - 1] = <char>0x80        # the sign is in the last byte


cdef char* gather_elements(char* target, const char* source, const intptr_t* sizes, const intptr_t* strides, int ndim,
                           size_t itemsize) noexcept nogil:
    """Copy elements at strides, in bytes, into row-major memory, and return its end."""
    cdef intptr_t k
    if ndim == 0 or ndim == 1 and strides[0] == <intptr_t>itemsize:
        memcpy(target, source, itemsize * (1 if ndim == 0 else sizes[0]))
        return target + itemsize * (1 if ndim == 0 else sizes[0])
    for k in range(sizes[0]):
        target = gather_elements(target, source + k * strides[0], sizes + 1, strides + 1, ndim - 1, itemsize)
    return target


@cython.final
cdef class Sums:
    """The gradients of a loop's inputs, which grow from its last step to its first."""
    def __cinit__(self, LoopedStep looped, Frame frame, list inputs, list gradients, list sums, Py_ssize_t row, Py_ssize_t step,
                  Py_ssize_t count):
        cdef TensorImpl tensor
        cdef Layout layout
        cdef Target* target
        cdef Weight* weight
        cdef Addend* addend
        cdef StepValue* value
        cdef int k, number, d, base
        cdef Py_ssize_t lowest
        self.looped, self.frame, self.totals = looped, frame, []
        self.first, self.step, self.last = row, step, row + (count - 1) * step
        lowest = min(self.first, self.last)
        self.count, self.weight_count = <int>len(looped.differentiable), <int>len(looped.replay.recorded)
        self.first_weight = FIRST_INPUT + looped.replay.inputs
        for k, (kind, number, place) in enumerate(looped.recorded):
            value = &looped.values[<int>number] if kind == CARRIED else &looped.results[<int>number]
            layout = looped.layouts[number] if kind == CARRIED else looped.result_layouts[number]
            if kind == PASSED:
                place = self.weight_of_carried[<int>place]
            weight, tensor = &self.weights[<int>place], gradients[k]
            if weight.data is NULL:
                weight.data, weight.nbytes, weight.itemsize = frame.take(value.nbytes), value.nbytes, cg_itemsize[layout.dtype]
                weight.component, weight.add = cg_itemsize[<int>cg_real[layout.dtype]], add.kernel.loops[layout.dtype]
            if kind == CARRIED:
                self.weight_of_carried[number], weight.carried = place, frame.take(value.nbytes)
                weight.has_carried, weight.adds_rows = tensor is not None, number in looped.sums
                if tensor is not None:
                    memcpy(weight.carried, value_address(tensor), value.nbytes)
            elif tensor is not None:
                addend = &self.addends[self.addend_count]
                addend.weight, addend.is_passed, addend.rows.stride = place, kind == PASSED, <intptr_t>value.nbytes
                addend.rows.data = value_address(tensor) - lowest * addend.rows.stride
                self.addend_count += 1
        for k, number in enumerate(looped.differentiable):
            target, layout, tensor = &self.targets[k], looped.reverse.backward_part.results[k], inputs[number]
            target.carried, target.base = number if looped.is_carried(number) else -1, -1
            target.nbytes = looped.values[<int>number].nbytes if looped.is_carried(number) else layout_bytes(layout) if layout else 0
            target.is_sum = not looped.carried <= number < looped.carried + looped.slices
            target.adds = target.is_sum and number not in looped.sums
            target.part = frame.take(target.nbytes)
            self.totals.append(None)
            if layout is None:
                continue
            if not looped.is_carried(number):
                self.totals[k] = row_major_zeros(layout, -1 if target.is_sum else tensor.sizes[0])
                target.total = address(<TensorImpl>self.totals[k])
                target.stride = 0 if target.is_sum else <intptr_t>target.nbytes
            target.base = looped.reverse.input_bases[layout.base] if layout.kind == SAME else layout.base
            target.offset, target.ndim = layout.offset, layout.ndim
            target.itemsize, target.add = cg_itemsize[layout.dtype], add.kernel.loops[layout.dtype]
            target.component = cg_itemsize[<int>cg_real[layout.dtype]]
            for d in range(layout.ndim):
                target.sizes[d], target.strides[d] = layout.dims[d], layout.dims[8 + d] * <intptr_t>target.itemsize
        for k, number in enumerate(looped.sums):
            base = looped.reverse.input_bases[looped.replay.inputs + self.weight_count + k]
            target = &self.targets[<int>looped.differentiable.index(number)]
            frame.pointers[base] = self.weights[self.weight_of_carried[<int>number]].carried if target.carried >= 0 else target.total
        for (k, number), tensor in zip(looped.summed_edges, sums):
            target = &self.targets[k]
            layout = looped.layouts[number] if target.carried >= 0 else looped.reverse.backward_part.results[k]
            if layout is None:
                continue
            if tensor is not None and not suits(layout, tensor):
                raise ValueError("run_looped: a gradient that has arrived is not like the input")
            if target.carried >= 0:
                self.weights[self.weight_of_carried[target.carried]].outside = NULL if tensor is None else value_address(tensor)
            elif tensor is not None:
                memcpy(target.total, value_address(tensor), target.nbytes)
                target.any_added = True
            elif not target.adds:
                set_negative_zeros(target.total, target.nbytes, target.component)

    cdef void set_weights(self, Py_ssize_t row) noexcept nogil:
        """Set the gradients of the results of a step, in the order in which the engine adds them: of the last carried values those from
        outside, of stacks the newest first, then the parts of the step behind.
        """
        cdef Weight* weight
        cdef int k
        for k in range(self.weight_count):
            weight = &self.weights[k]
            weight.any_added = False
            self.frame.pointers[self.first_weight + k] = weight.data
            if row == self.first - self.step and weight.outside is not NULL and not weight.adds_rows:
                add_gradient(weight, weight.data, &weight.any_added, weight.outside)
            if row == self.last and weight.has_carried:
                add_gradient(weight, weight.data, &weight.any_added, weight.carried)
            if row == self.last or not weight.adds_rows:
                self.add_rows(k, row, weight.data, &weight.any_added)
            if row != self.last and weight.has_carried:
                add_gradient(weight, weight.data, &weight.any_added, weight.carried)
            elif not weight.any_added:
                memset(weight.data, 0, weight.nbytes)

    cdef void begin_sums(self, Py_ssize_t row) noexcept nogil:
        """Set the sums to which a step adds gradients of carried values, which are results of the step before it."""
        cdef Weight* weight
        cdef bint any_added
        cdef int k
        for k in range(self.weight_count):
            weight = &self.weights[k]
            any_added = False
            if weight.adds_rows:
                if row == self.first and weight.outside is not NULL:
                    add_gradient(weight, weight.carried, &any_added, weight.outside)
                self.add_rows(k, row - self.step, weight.carried, &any_added)
                if not any_added:
                    set_negative_zeros(weight.carried, weight.nbytes, weight.component)

    cdef void add_rows(self, int number, Py_ssize_t row, char* total, bint* any_added) noexcept nogil:
        """Add the rows that stacks have of a result of a step."""
        cdef Addend* addend
        cdef int k
        for k in range(self.addend_count - 1, -1, -1):
            addend = &self.addends[k]
            if addend.weight != number:
                continue
            if not addend.is_passed and row != self.first - self.step:
                add_gradient(&self.weights[number], total, any_added, addend.rows.data + row * addend.rows.stride)
            elif addend.is_passed and row != self.last:
                add_gradient(&self.weights[number], total, any_added, addend.rows.data + (row + self.step) * addend.rows.stride)

    cdef void add_step(self, Py_ssize_t row) noexcept nogil:
        """Take the gradients that the backward part of a step has made."""
        cdef Target* target
        cdef int k
        for k in range(self.count):
            target = &self.targets[k]
            if target.base < 0:
                continue
            gather_elements(target.part, self.frame.pointers[target.base] + target.offset, target.sizes, target.strides, target.ndim,
                            target.itemsize)
            if target.carried >= 0:
                continue
            if target.adds and target.any_added:
                add_loop(target.total, target.part, target.nbytes, target.itemsize, target.add)
            else:
                memcpy(target.total + row * target.stride, target.part, target.nbytes)
            target.any_added = True
        for k in range(self.count):     # now that no part of the step is read any more
            target = &self.targets[k]
            if target.carried >= 0:
                self.weights[self.weight_of_carried[target.carried]].has_carried = target.base >= 0
                memcpy(self.weights[self.weight_of_carried[target.carried]].carried, target.part, target.nbytes)

    cdef list results(self):
        """Return the gradients of the differentiable inputs."""
        cdef TensorImpl tensor
        cdef list gradients = []
        cdef int k
        self.set_weights(self.first - self.step)        # of the first carried values, which only rows of passed ones are stacked from
        for k, number in enumerate(self.looped.differentiable):
            if self.looped.is_carried(number):
                tensor = tensor_like(self.looped.layouts[number])
                memcpy(address(tensor), self.weights[self.weight_of_carried[<int>number]].data, self.targets[k].nbytes)
                gradients.append(tensor)
            else:
                gradients.append(self.totals[k] if self.targets[k].any_added else None)
        return gradients


cdef bint any_nan(list gradients) noexcept:
    cdef TensorImpl tensor
    cdef int real
    for tensor in gradients:
        if tensor is None:
            continue
        real = cg_real[tensor.dtype_nr]
        if any_is_nan(value_address(tensor), real, tensor.count * cg_itemsize[tensor.dtype_nr] // cg_itemsize[real]):
            return True
    return False
