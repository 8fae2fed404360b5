# cython: cdivision=True
"""Running (see running.pxd for the contract)."""
cimport cygrad._kernels.programs.settings as settings
from cygrad._kernels.drivers.elementwise cimport STREAM_BYTES
from cygrad._kernels.programs.blocks cimport reduce_blocks, run_blocks
from cygrad._kernels.programs.checking cimport Check, begin_check, compare, end_check
from cygrad._kernels.programs.passes cimport cut_passes, run_passes
from cygrad._kernels.programs.planning cimport BLOCKS, PASSES, REDUCED_BLOCKS
from cygrad._kernels.programs.row_tiles cimport cut_rows
from cygrad._kernels.programs.steps cimport NONE, Slot, Step, last_writer, output_of
from cygrad._kernels.programs.tiles cimport cut_tiles, run_tiles
from cygrad._kernels.system.threads cimport threads_for


cdef bint plan_program(Plan* plan, const Program* program) noexcept nogil:
    plan.program, plan.memory_bytes = program, 0
    if are_maps(program, program.step_count, NONE):
        plan.way = BLOCKS
        return True
    plan.streamed = STREAM_BYTES * max(threads_for(program.total, program.cost), 1) // max(program.total, 1)
    if cut_rows(plan):
        return True
    if reduces_all_at_last(program):
        plan.way = REDUCED_BLOCKS
        return True
    return cut_tiles(plan) or cut_passes(plan)


cdef bint are_maps(const Program* program, int count, int reduced) noexcept nogil:
    """Return True if the first steps are maps, whose outputs are not converted and whose slots, but for one, have the whole shape."""
    cdef const Slot* slot
    cdef int k
    for k in range(count):
        if program.steps[k].reduction is not NULL:
            return False
    for k in range(program.slot_count):
        slot = &program.slots[k]
        if slot.reduced and k != reduced or slot.dtype != slot.loop_dtype and last_writer(program, k, 0, count) != NONE:
            return False
    return True


cdef bint reduces_all_at_last(const Program* program) noexcept nogil:
    cdef const Step* step = &program.steps[program.step_count - 1]
    cdef int output = output_of(step), d
    for d in range(program.ndim):
        if not program.is_reduced[d]:
            return False
    return (step.reduction is not NULL and program.slots[step.slots[0]].data is NULL
            and program.slots[output].dtype == step.reduction.out_dtype[step.dtype]
            and are_maps(program, program.step_count - 1, output))


cdef int run_program(const Plan* plan, char* memory) noexcept nogil:
    cdef Check check
    cdef bint is_checked = settings.mode == settings.CHECKED and begin_check(&check, plan.program)
    cdef int failed = 0
    if plan.way == BLOCKS:
        run_blocks(plan.program)
    elif plan.way == REDUCED_BLOCKS:
        failed = reduce_blocks(plan.program)
    elif not (run_passes(plan, memory) if plan.way == PASSES else run_tiles(plan, memory)):
        failed = -1
    if is_checked:
        if not failed:
            compare(&check, plan.program)
        end_check(&check)
    return failed
