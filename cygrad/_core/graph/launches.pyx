"""Launches (see launches.pxd for the contract)."""
from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad._core.graph.notes cimport DECISION, LAUNCH, note_launch
from cygrad._core.graph.shadow cimport run_twice
from cygrad._core.graph.tensor cimport value_address
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.programs.kernel cimport MAX_TENSORS
from cygrad._kernels.programs.settings cimport CHECKED, mode, noted


cdef Traits NO_TRAITS = Traits(steady=False, safe=False, large=NULL, store=NULL, run_stored=NULL, fuse=NULL)
cdef Traits STEADY = Traits(steady=True, safe=True, large=NULL, store=NULL, run_stored=NULL, fuse=NULL)


cdef int run_decision(const char* name, kernel_function run, void* arguments, size_t argument_bytes, TensorImpl tensor) noexcept:
    cdef Launch launch
    cdef char* data = value_address(tensor)
    cdef int outcome = run(arguments, &data)
    if noted:
        begin_launch(&launch, name, run, arguments, argument_bytes)
        add_input(&launch, tensor)
        note_launch(&launch, &data, DECISION, outcome)
    return outcome


cdef int run_released(Launch* launch, char** data) noexcept:
    """Run a kernel without the GIL. Other threads may give a tensor other memory meanwhile: its own stays."""
    cdef PyObject* storages[MAX_TENSORS]
    cdef int k, failed
    for k in range(launch.count):
        storages[k] = <PyObject*>(<TensorImpl>launch.tensors[k]).storage
        Py_INCREF(<Storage>storages[k])
    with nogil:
        failed = launch.run(launch.arguments, data)
    for k in range(launch.count):
        Py_DECREF(<Storage>storages[k])
    return failed


cdef int run_noted(Launch* launch, char** data) noexcept:
    note_launch(launch, data, LAUNCH, 0)
    return run_twice(launch, data) if mode == CHECKED else launch.run(launch.arguments, data)
