# cython: cdivision=True
"""Formulas of maps and reductions over some dims, computed tile by tile where they are not recorded."""
cimport cython
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport intptr_t

cimport cygrad._kernels.programs.settings as settings
from cygrad._core.compute.places cimport dense
from cygrad._core.graph.modes cimport grad_mode
from cygrad._core.graph.tensor cimport CONTIGUOUS, REQUIRES_GRAD, SPECIAL, TensorImpl, VIEW, empty, needs_grad, new_address, value_address
from cygrad._core.levels.observers cimport profiling_threads, special_tensors
from cygrad._core.memory.sizes cimport dim_bits, read_dims
from cygrad._core.operands.operands cimport RELEASE_GIL, is_one_number, shape_is
from cygrad._kernels.drivers.elementwise cimport (CG_BOOL, CG_FLOAT64, MAX_DIMS, cast, cg_is_floating_point, cg_loops_of, cg_number,
                                                  elementwise_kernel)
from cygrad._kernels.drivers.reduction cimport reduction
from cygrad._kernels.programs.running cimport Plan, plan_program, run_program
from cygrad._kernels.programs.steps cimport DENSE, MAX_BLOCKS, MAX_SLOTS, Program, Slot, Step, begin_program

from cygrad._core.memory.storage import dtype_by_name
from cygrad.ops import ELEMENTWISE


cdef enum:
    FLOATING = -1       # the dtype of the tensors that a formula is given
    COMPUTED = -1       # the source of a slot that is neither an input nor a number
    NUMBER = -2
    STACK_BYTES = 8192  # partial results of small tensors need no memory of their own


@cython.final
cdef class Steps:
    """A formula read for inputs of which some are reduced and some are numbers: its slots, the steps between them, and the slots of its
    results.

    A slot is (its input or None, a number or None, the name of its dtype or None for the dtype of the tensors, whether it is reduced).
    A step is (name, whether it reduces, whether one loop computes it and the step before, the name of its dtype or None, bits of the
    inputs that are masks, its slots).
    """
    cdef Step steps[MAX_BLOCKS]
    cdef int sources[MAX_SLOTS]
    cdef int slot_dtypes[MAX_SLOTS]
    cdef bint reduced[MAX_SLOTS]
    cdef double numbers[MAX_SLOTS]
    cdef int slot_count, step_count, cost
    cdef tuple results

    def __cinit__(self, list slots not None, list steps not None, tuple results not None):
        cdef Step* step
        cdef int k, j
        if len(slots) > MAX_SLOTS or len(steps) > MAX_BLOCKS:
            raise RuntimeError("a formula has too many steps for tiles")
        self.slot_count, self.step_count, self.results = <int>len(slots), <int>len(steps), results
        for k, (source, number, dtype, is_reduced) in enumerate(slots):
            self.sources[k] = NUMBER if number is not None else COMPUTED if source is None else source
            self.numbers[k] = 0 if number is None else number
            self.slot_dtypes[k] = FLOATING if dtype is None else dtype_by_name[dtype].number
            self.reduced[k] = is_reduced
        for k, (name, reduces, joined, dtype, masks, slots) in enumerate(steps):
            step = &self.steps[k]
            step.dtype, step.masks, step.inputs = FLOATING if dtype is None else dtype_by_name[dtype].number, masks, <int>len(slots) - 1
            for j in range(step.inputs + 1):
                step.slots[j] = slots[j]
            step.kernel, step.reduction, step.shifted, step.params, step.joined = NULL, NULL, NULL, NULL, joined
            if reduces:
                step.reduction = reduction(name)
            else:
                step.kernel = elementwise_kernel(name)
                step.shifted = elementwise_kernel(name + "_shifted") if joined else NULL
                self.cost = max(self.cost, <int>ELEMENTWISE[name].cost)

    cdef tuple compute(self, tuple arguments, TensorImpl first, unsigned long long dims, const intptr_t* reduced):
        """Compute the results of the formula, some of the shape `reduced`; None where its reductions are too large for a tile."""
        cdef Program program
        cdef Plan plan
        cdef Slot* slot
        cdef cg_number numbers[MAX_SLOTS]
        cdef char stack[STACK_BYTES]
        cdef char* own = stack
        cdef int d, k, ndim = first.ndim, loops = cg_loops_of[first.dtype_nr], failed
        cdef TensorImpl tensor, memory
        cdef double number
        cdef bint releases = first.count >= RELEASE_GIL
        cdef list storages = [] if releases else None
        cdef tuple results
        begin_program(&program, ndim, first.sizes)
        program.step_count, program.slot_count, program.cost = self.step_count, self.slot_count, self.cost
        for d in range(ndim):
            program.is_reduced[d] = dims >> d & 1
        for k in range(self.step_count):
            program.steps[k] = self.steps[k]
            if program.steps[k].dtype == FLOATING:
                program.steps[k].dtype = loops
        for k in range(self.slot_count):
            slot = &program.slots[k]
            slot.data, slot.number, slot.padded, slot.reduced = NULL, False, False, self.reduced[k]
            slot.dtype = slot.loop_dtype = loops if self.slot_dtypes[k] == FLOATING else self.slot_dtypes[k]
            slot.geometry = DENSE
            if self.sources[k] >= 0 and isinstance(arguments[self.sources[k]], TensorImpl):
                tensor = <TensorImpl>arguments[self.sources[k]]
                if releases:
                    storages.append(tensor.storage)     # other threads may give the tensor other memory meanwhile
                slot.data, slot.padded, slot.dtype = value_address(tensor), tensor.storage.padded, tensor.dtype_nr
                slot.number = is_one_number(tensor)
            elif self.sources[k] != COMPUTED:
                number = self.numbers[k] if self.sources[k] == NUMBER else arguments[self.sources[k]]
                cast(CG_FLOAT64, slot.dtype)(<char*>&numbers[k], 0, <char*>&number, 0, 1)
                slot.data, slot.number = <char*>&numbers[k], True
        results = PyTuple_New(len(self.results))
        for d in range(len(self.results)):
            k = self.results[d]
            slot = &program.slots[k]
            if self.slot_dtypes[k] == FLOATING:
                slot.dtype = first.dtype_nr         # rounded once
            tensor = empty(slot.dtype, ndim, reduced if self.reduced[k] else first.sizes)
            slot.data, slot.padded = new_address(tensor), tensor.storage.padded
            Py_INCREF(tensor)
            PyTuple_SET_ITEM(results, d, tensor)
        if not plan_program(&plan, &program):
            return None
        if plan.memory_bytes > STACK_BYTES:
            memory = empty(CG_BOOL, 1, &plan.memory_bytes)
            own = new_address(memory)
        if releases:
            with nogil:
                failed = run_program(&plan, own)
        else:
            failed = run_program(&plan, own)
        if failed:
            raise MemoryError("no memory for partial results")
        return results


cdef inline bint fits(TensorImpl tensor) noexcept:
    """Return True if a tensor lies as tiles take it."""
    return tensor.flags & CONTIGUOUS or is_one_number(tensor)


@cython.final
@cython.binding(False)
cdef class Tiled:
    """A formula, called with tensors and numbers and, at last, the dims that it reduces; computed tile by tile where it can be, and by
    `step_by_step` elsewhere. `read` makes its Steps: (formula, 0 for a tensor, 1 for a reduced one, 2 for a number of each input).
    """
    cdef object formula, step_by_step, read
    cdef dict readings      # Steps by which inputs are reduced and which are numbers

    def __init__(self, formula, step_by_step, read):
        self.formula, self.step_by_step, self.read, self.readings = formula, step_by_step, read, {}

    def __call__(self, *arguments):
        return self.call(arguments)

    def values(self, *arguments):
        """Compute the formula without a record, of tensors in any layout."""
        cdef int mode = grad_mode()[0], k
        for k in range(<int>len(arguments) - 1):
            if isinstance(arguments[k], TensorImpl) and not fits(<TensorImpl>arguments[k]):
                arguments = (*arguments[:k], dense(arguments[k], (<TensorImpl>arguments[k]).dtype_nr), *arguments[k + 1:])
        grad_mode()[0] = False
        try:
            return self.call(arguments)
        finally:
            grad_mode()[0] = mode

    cdef object call(self, tuple arguments):
        cdef tuple results = self.by_tiles(arguments)
        cdef TensorImpl result
        if results is None:
            values = self.step_by_step(*arguments)
            results = values if type(values) is tuple else (values,)
            for result in results:
                if not result.flags & (REQUIRES_GRAD | VIEW | SPECIAL):
                    result.storage.version = 0      # no node has seen the steps in place
        return results[0] if len(results) == 1 else results

    cdef tuple by_tiles(self, tuple arguments):
        """Compute by tiles; None if a tensor is special, the call is recorded, or operands are not floats of one shape."""
        cdef TensorImpl first = None, tensor
        cdef intptr_t reduced[MAX_DIMS]
        cdef unsigned long long reduced_dims
        cdef tuple dims
        cdef int d, k, key = 0, inputs = <int>len(arguments) - 1
        cdef Steps steps
        if special_tensors() or profiling_threads or not settings.fuses:
            return None
        dims = read_dims(arguments[inputs])     # before anything of a tensor is read: code of an argument may change tensors
        for k in range(inputs):
            if not isinstance(arguments[k], TensorImpl) and type(arguments[k]) is not float:
                arguments = (*arguments[:k], float(arguments[k]), *arguments[k + 1:])
        for k in range(inputs):
            if isinstance(arguments[k], TensorImpl):
                tensor = <TensorImpl>arguments[k]
                if first is None or tensor.count > first.count:
                    first = tensor
        if first is None or first.count == 0 or not cg_is_floating_point[first.dtype_nr]:
            return None
        reduced_dims = dim_bits(dims, first.ndim)
        for d in range(first.ndim):
            reduced[d] = 1 if reduced_dims >> d & 1 else first.sizes[d]
        for k in range(inputs):
            key *= 3
            if not isinstance(arguments[k], TensorImpl):
                key += 2
                continue
            tensor = <TensorImpl>arguments[k]
            if tensor.dtype_nr != first.dtype_nr or grad_mode()[0] and needs_grad(tensor) or not fits(tensor):
                return None
            if not shape_is(tensor, first.ndim, first.sizes):
                if not shape_is(tensor, first.ndim, reduced):
                    return None
                key += 1
        steps = self.readings.get(key)
        if steps is None:
            kinds = [key // 3 ** (inputs - 1 - k) % 3 for k in range(inputs)]
            steps = self.readings[key] = self.read(self.formula, kinds)
        return steps.compute(arguments, first, reduced_dims, reduced)
