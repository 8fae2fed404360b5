"""Rows: tiles of programs that reduce one dense row at a time, run as calls of loops where the operands are.

A driver for each step of a tile would take longer than few rows do, and tiles of many rows leave the first-level cache.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.programs.planning cimport Plan

# False: the reduced dims are no dense row, or a step has no loop of rows.
cdef bint cut_rows(Plan* plan) noexcept nogil
# Give each row of a thread's memory the operands that are one number everywhere.
cdef void repeat_numbers(const Plan* plan, char* memory) noexcept nogil
cdef void run_tile_rows(const Plan* plan, intptr_t tile, char* memory) noexcept nogil
