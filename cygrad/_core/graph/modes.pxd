"""Modes: whether a thread records operations and makes inference tensors; anomaly mode, which is one for all threads, as in torch."""

cdef enum:
    SUSPENDED = 2               # the inference mode of a thread; 1: on
    ANOMALY_DETECTED = 1        # tracebacks are kept with new nodes and shown when they fail
    ANOMALY_CHECKS_NAN = 2

cdef extern from "graph/modes.h" nogil:
    int cg_grad_mode
    int cg_inference_mode
    int cg_enabled_in_inference
    int cg_overrides_off
    int cg_function_modes

cdef inline int* grad_mode() noexcept nogil:
    """Return the address of this thread's grad mode (1: operations are recorded)."""
    return &cg_grad_mode

cdef bint is_inference_mode() noexcept
cdef bint is_inference_suspended() noexcept
cdef int exchange_inference_mode(int mode) noexcept
cdef int anomaly_mode                       # 0, or the sum of the two above
cdef int note_creation(object node) except -1
cdef int note_failure(object node) except -1
