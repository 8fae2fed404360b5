"""Running (see running.pxd for the contract)."""
cimport cygrad._kernels.programs.settings as settings
from cygrad._kernels.programs.blocks cimport reduce_blocks, run_blocks
from cygrad._kernels.programs.checking cimport Check, begin_check, compare, compare_reduction, end_check
from cygrad._kernels.programs.steps cimport NONE
from cygrad._kernels.programs.tiles cimport run_tiles


cdef void run_program(const Program* program) noexcept nogil:
    cdef Check check
    cdef bint checked = settings.mode == settings.CHECKED and begin_check(&check, program)
    run_blocks(program)
    if checked:
        compare(&check, program, NONE)
        end_check(&check)


cdef int reduce_program(const cg_reduction* reduction, const Program* program, int slot, char* output) noexcept nogil:
    cdef Check check
    cdef bint checked = settings.mode == settings.CHECKED and begin_check(&check, program)
    cdef int failed = reduce_blocks(reduction, program, slot, output)
    if checked:
        if not failed:
            compare(&check, program, slot)
            compare_reduction(&check, reduction, slot, output)
        end_check(&check)
    return failed


cdef bint run_cut(const Cut* cut, char* memory) noexcept nogil:
    cdef Check check
    cdef bint checked = settings.mode == settings.CHECKED and begin_check(&check, cut.program)
    cdef bint succeeded = run_tiles(cut, memory)
    if checked:
        if succeeded:
            compare(&check, cut.program, NONE)
        end_check(&check)
    return succeeded
