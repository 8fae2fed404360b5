"""Programs: loops that run together, as steps over slots. The one representation of pending results and tiled formulas.

There are no tensors or nodes here. All steps of a program go over one space of elements. Arrays are row-major, or repeat one number
everywhere, or have a geometry: byte strides of their own over the dims of the space.

Makers see to it that
- an array that is written is new memory or read before in the same places, is padded, and overlaps no operand of another geometry;
- the memory of arrays and numbers stays where it is until the program has run;
- there is room for steps: they ask `has_room`. An operand without room is NONE; `cut_back` takes back operands and steps before it.
"""
from libc.stdint cimport intptr_t

from cygrad._kernels.drivers.elementwise cimport CG_BOOL, MAX_DIMS, MAX_OPERANDS, Operand, cg_kernel, cg_real
from cygrad._kernels.drivers.reduction cimport cg_reduction

cdef enum:
    MAX_STEPS = 64
    MAX_SLOTS = 160
    MAX_BLOCKS = 40         # values that live at one time; a maker of more steps sees to it that no more do
    MAX_LAID = 6            # arrays that are read or written by a traversal
    MAX_REPEATED = 12       # numbers: each may take a block
    PARTS = 8               # the bit of the first operand that is real beside complex numbers
    NONE = -1               # in place of a slot or a step
    DENSE = -1              # in place of a geometry: row-major

cdef struct Geometry:
    intptr_t strides[MAX_DIMS]      # in bytes; 0 where elements are repeated

cdef struct Slot:
    char* data              # NULL: an executor has memory for a part of it
    int dtype               # of the memory
    int loop_dtype          # of the loops that read or write it
    int geometry            # its number, or DENSE
    bint number             # one number in every place
    bint reduced            # of size 1 in the reduced dims
    bint padded             # 64 bytes may be read after its end

# A step without kernel and reduction copies its input, from the dtype of its memory into the dtype of its output.
cdef struct Step:
    const cg_kernel* kernel         # of a map, else NULL
    const cg_reduction* reduction
    const void* params
    int dtype                       # of the loop; a copy reads it
    int masks                       # inputs that are read as bool (bits), and from bit PARTS on as real numbers
    int inputs
    int slots[MAX_OPERANDS]         # of the inputs, then of the output
    bint joined                     # reads the step before, which nothing else reads, and there is a loop of both:
    const cg_kernel* shifted        # for a map of a difference from a reduced slot; NULL for a reduction of products

cdef struct Program:
    int ndim, cost, slot_count, step_count, geometry_count
    int most_steps                  # MAX_BLOCKS, or more where few values live at one time
    intptr_t total                  # elements of an array
    intptr_t shape[MAX_DIMS]
    char is_reduced[MAX_DIMS]
    Geometry geometries[MAX_LAID + 1]   # the last one until a slot has it
    Slot slots[MAX_SLOTS]
    Step steps[MAX_STEPS]

# How far a program is filled.
cdef struct Extent:
    int slots, steps, geometries

# An empty program over some dims.
cdef void begin_program(Program* program, int ndim, const intptr_t* shape) noexcept nogil
# There is room for so many more steps with their outputs.
cdef bint has_room(const Program* program, int steps) noexcept nogil
cdef Extent extent_of(const Program* program) noexcept nogil
cdef void cut_back(Program* program, const Extent* extent) noexcept nogil
# Copy as much as a program has.
cdef void copy_program(Program* target, const Program* source) noexcept nogil
# The slot of a dense, padded array of the dtype of loops; NULL: of an output that has no memory yet.
cdef int add_array(Program* program, char* data, int dtype) noexcept nogil
# The slot of an array with any byte strides over the dims of the program, which loops read in a dtype, or write; numbers are repeated.
# NONE: there is no room.
cdef int add_operand(Program* program, const Operand* operand) noexcept nogil
# The slots of all operands of a step. False, and nothing is added, where there is no room for them, the step and a copy of its result.
cdef bint add_operands(Program* program, int count, const Operand* operands, int* slots) noexcept nogil
# Reduce the marked dims from now on: operands that are repeated along these, and row-major else, have one number for each row.
cdef void reduce_operands(Program* program) noexcept nogil
# The slot of the same values in another dtype, by a step more where a step has computed them; or NONE.
cdef int read_as(Program* program, int slot, int dtype) noexcept nogil
# A step by a loop of a dtype, from slots into another one.
cdef void add_map(Program* program, const cg_kernel* kernel, int dtype, int masks, const void* params, int inputs, const int* slots,
                  int output) noexcept nogil
# A step that reduces a slot, which loops read in a dtype, into another one.
cdef void add_reduction(Program* program, const cg_reduction* reduction, int dtype, int slot, int output) noexcept nogil
# A step that copies a slot into another one.
cdef void add_copy(Program* program, int source, int target) noexcept nogil
# The first step that reduces; NONE if there is none.
cdef int reduction_of(const Program* program) noexcept nogil
# The step that writes a slot last, among those from `first` up to `last`, which is not one of them; NONE if there is none.
cdef int last_writer(const Program* program, int slot, int first, int last) noexcept nogil
# A map reads its inputs in other dtypes than their slots have for loops, or writes a result that memory has in another one.
cdef bint converts(const Program* program, const Step* step) noexcept nogil
# The byte strides of a slot: of its geometry, or row-major over a shape.
cdef void strides_of(const Program* program, const Slot* slot, const intptr_t* shape, intptr_t* strides) noexcept nogil

cdef inline int add_block(Program* program, int dtype) noexcept nogil:
    return add_array(program, NULL, dtype)

# The operand that a driver gets in place of a slot.
cdef void describe_slot(const Program* program, const Slot* slot, Operand* operand) noexcept nogil

cdef inline int output_of(const Step* step) noexcept nogil:
    return step.slots[step.inputs]

# Of the memory of an operand k of a loop.
cdef inline int dtype_of(int k, int masks, int dtype) noexcept nogil:
    return CG_BOOL if masks >> k & 1 else cg_real[dtype] if masks >> (k + PARTS) & 1 else dtype

# Loops of blocks do not take an array as it lies: a traversal has the pieces.
cdef inline bint is_laid(const Slot* slot) noexcept nogil:
    return slot.data is not NULL and not slot.number and (
        slot.geometry != DENSE or slot.dtype != slot.loop_dtype or not slot.padded and not slot.reduced)
