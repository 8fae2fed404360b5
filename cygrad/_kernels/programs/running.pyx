# cython: cdivision=True
"""Running (see running.pxd for the contract)."""
cimport cygrad._kernels.programs.settings as settings
from cygrad._kernels.drivers.reduction cimport partial_bytes
from cygrad._kernels.programs.blocks cimport run_blocks, run_pass
from cygrad._kernels.programs.calls cimport cut_rows, row_memory
from cygrad._kernels.programs.checking cimport Check, begin_check, end_check
from cygrad._kernels.programs.passes cimport cut_passes, run_passes
from cygrad._kernels.programs.steps cimport NONE, converts, reduction_of
from cygrad._kernels.programs.tiles cimport cut_tiles, run_tiles


cdef void plan_blocks(Plan* plan, const Program* program) noexcept nogil:
    plan.program, plan.way = program, BLOCKS
    plan.memory_bytes = 0 if reduction_of(program) == NONE else partial_bytes(program.total)


cdef bint plan_program(Plan* plan, const Program* program) noexcept nogil:
    cdef bint has_tiles
    plan.program = program
    if are_maps(program):
        plan_blocks(plan, program)
        return True
    if cut_rows(&plan.rows, program):
        plan.way, plan.memory_bytes = ROWS, plan.rows.threads * row_memory(&plan.rows)
        return True
    has_tiles = cut_tiles(&plan.tiles, program)
    if (not has_tiles or plan.tiles.count == 1) and cut_passes(program, &plan.memory_bytes):
        plan.way = PASSES
    elif has_tiles:
        plan.way, plan.memory_bytes = TILES, plan.tiles.threads * program.slot_count * plan.tiles.slot_bytes
    else:
        return False
    return True


cdef bint are_maps(const Program* program) noexcept nogil:
    """Return True if all steps are maps of the whole shape that convert nothing."""
    cdef int k
    for k in range(program.step_count):
        if program.steps[k].reduction is not NULL or converts(program, &program.steps[k]):
            return False
    for k in range(program.slot_count):
        if program.slots[k].reduced:
            return False
    return True


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
