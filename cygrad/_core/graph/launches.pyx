"""Launches (see launches.pxd for the contract)."""
from cpython.ref cimport Py_DECREF, Py_INCREF

from cygrad._core.graph.notes cimport note_launch
from cygrad._core.graph.shadow cimport run_twice
from cygrad._core.memory.storage cimport Storage
from cygrad._kernels.programs.settings cimport CHECKED, mode


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
    note_launch(launch, data)
    return run_twice(launch, data) if mode == CHECKED else launch.run(launch.arguments, data)
