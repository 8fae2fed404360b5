"""Launches: kernels and the tensors whose memory they read and write, in the one form in which they run, are noted and are checked.

A kernel is a function of its arguments, a structure, and of the addresses of its tensors. The structure has sizes, strides and numbers,
and no pointer into tensors or the caller's stack: a copy of it runs as well, on other memory. Kernels need no GIL, launches do.

Code with a short cut for small operands takes it only where nothing is `noted`.
"""
from cpython.object cimport PyObject
from libc.stdint cimport intptr_t
from libc.string cimport memset

from cygrad._core.graph.tensor cimport TensorImpl, address, value_address
from cygrad._kernels.programs.groups cimport fuse_function
from cygrad._kernels.programs.kernel cimport MAX_TENSORS, kernel_function
from cygrad._kernels.programs.settings cimport noted

# Compute a launch again on tensors over other storages, from some bytes on: operands or results may be pending. A launch that `makes` its
# result returns it, in new memory, or None where the kernel has to run; the last tensor of others is the result.
ctypedef object (*again_function)(void* arguments, list storages, const intptr_t* starts)

# Return how many elements a launch goes over, if a tensor, by number, is a row-major array of them; else 0.
ctypedef intptr_t (*space_function)(const void* arguments, int tensor) noexcept

# Write arguments in as few words as they take, and return how many these are; into NULL: count them.
ctypedef size_t (*store_function)(const void* arguments, intptr_t* words) noexcept

# Change the arguments of a step for a run of it besides the one that was noted.
ctypedef void (*repeat_function)(void* arguments) noexcept

# Of kernels over large arrays, which programs of notes run again on tensors.
cdef struct LargeTraits:
    again_function again
    space_function space_of
    bint makes                          # `again` makes its result
    repeat_function repeat              # NULL: it takes longer than memory does

# The ways in which programs of notes may run a kernel.
cdef struct Traits:
    bint steady                         # notes run it without a change of its arguments
    bint safe                           # it needs no memory
    const LargeTraits* large            # or NULL
    store_function store                # or NULL: notes have the words in place of the arguments, and `run_stored`
    kernel_function run_stored          # which does not change them
    fuse_function fuse                  # of the words, or of the arguments where there are none; or NULL

cdef Traits NO_TRAITS
# Of kernels that neither change their arguments nor need memory.
cdef Traits STEADY

cdef struct Launch:
    const char* name
    kernel_function run
    void* arguments
    size_t argument_bytes
    PyObject* owner                     # of memory that the arguments point to, or NULL
    const Traits* traits
    int count
    unsigned read, written              # bits by tensor
    unsigned partly                     # written, where no element is read and some stay as they are
    PyObject* tensors[MAX_TENSORS]      # borrowed

cdef inline void clear_arguments(void* arguments, size_t nbytes) noexcept:
    """Set arguments to 0, before they are filled, where launches are noted: programs have equal ones once, and compare all bytes."""
    if noted:
        memset(arguments, 0, nbytes)

cdef inline void begin_launch(Launch* launch, const char* name, kernel_function run, void* arguments, size_t argument_bytes) noexcept:
    launch.name, launch.run, launch.arguments, launch.argument_bytes, launch.owner = name, run, arguments, argument_bytes, NULL
    launch.traits = &NO_TRAITS
    launch.count = 0
    launch.read = launch.written = launch.partly = 0

cdef inline void add_input(Launch* launch, TensorImpl tensor) noexcept:
    launch.tensors[launch.count] = <PyObject*>tensor
    launch.read |= 1 << launch.count
    launch.count += 1

cdef inline void add_output(Launch* launch, TensorImpl tensor) noexcept:
    """Add a tensor of which the kernel writes every element, and reads none as this argument."""
    launch.tensors[launch.count] = <PyObject*>tensor
    launch.written |= 1 << launch.count
    launch.count += 1

cdef inline void add_changed(Launch* launch, TensorImpl tensor) noexcept:
    """Add a tensor of which the kernel reads elements and writes some."""
    launch.read |= 1 << launch.count
    add_output(launch, tensor)

cdef inline void add_part(Launch* launch, TensorImpl tensor) noexcept:
    """Add a tensor of which the kernel writes some elements and reads none."""
    launch.partly |= 1 << launch.count
    add_changed(launch, tensor)

cdef inline int run_launch(Launch* launch, bint release) noexcept:
    """Run a kernel, `release`: without the GIL. -1: there is no memory."""
    cdef char* data[MAX_TENSORS]
    cdef int k
    for k in range(launch.count):
        if launch.written >> k & 1:
            data[k] = address(<TensorImpl>launch.tensors[k])
        else:
            data[k] = value_address(<TensorImpl>launch.tensors[k])
    if noted:
        return run_noted(launch, data)
    if release:
        return run_released(launch, data)
    return launch.run(launch.arguments, data)

# Run a kernel whose result, no less than 0, decides the caller's way.
cdef int run_decision(const char* name, kernel_function run, void* arguments, size_t argument_bytes, TensorImpl tensor) noexcept
cdef int run_released(Launch* launch, char** data) noexcept
cdef int run_noted(Launch* launch, char** data) noexcept
