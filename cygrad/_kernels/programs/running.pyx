# cython: cdivision=True
"""Running (see running.pxd for the contract)."""
cimport cygrad._kernels.programs.settings as settings
from cygrad._kernels.drivers.reduction cimport partial_bytes
from cygrad._kernels.programs.blocks cimport run_blocks, run_pass
from cygrad._kernels.programs.calls cimport cut_rows, row_memory
from cygrad._kernels.programs.checking cimport Check, begin_check, end_check
from cygrad._kernels.programs.passes cimport cut_passes, run_passes
from cygrad._kernels.programs.steps cimport NONE, Step, converts, output_of, reduction_of
from cygrad._kernels.programs.tiles cimport cut_tiles, run_tiles


cdef void plan_blocks(Plan* plan, const Program* program) noexcept nogil:
    plan.program, plan.way = program, BLOCKS
    plan.memory_bytes = 0 if reduction_of(program) == NONE else partial_bytes(program.total)


cdef bint plan_program(Plan* plan, const Program* program) noexcept nogil:
    plan.program = program
    if are_maps(program, program.step_count, NONE):
        plan_blocks(plan, program)
    elif cut_rows(&plan.rows, program):
        plan.way, plan.memory_bytes = ROWS, plan.rows.threads * row_memory(&plan.rows)
    elif reduces_all_at_last(program):
        plan_blocks(plan, program)
    elif cut_tiles(&plan.tiles, program):
        plan.way, plan.memory_bytes = TILES, plan.tiles.threads * program.slot_count * plan.tiles.slot_bytes
    elif cut_passes(program, &plan.memory_bytes):
        plan.way = PASSES
    else:
        return False
    return True


cdef bint are_maps(const Program* program, int count, int reduced) noexcept nogil:
    """Return True if the first steps are maps, that convert nothing, and all slots but one have the whole shape."""
    cdef int k
    for k in range(count):
        if program.steps[k].reduction is not NULL or converts(program, &program.steps[k]):
            return False
    for k in range(program.slot_count):
        if program.slots[k].reduced and k != reduced:
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
        run_blocks(plan.program, memory)
    elif plan.way == ROWS:
        run_pass(&plan.rows, memory)
    elif not (run_passes(plan.program, memory) if plan.way == PASSES else run_tiles(&plan.tiles, memory)):
        failed = -1
    if is_checked:
        end_check(&check, plan.program, failed)
    return failed
