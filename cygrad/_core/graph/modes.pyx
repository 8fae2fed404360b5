"""Modes of recording, of inference and of anomalies (see modes.pxd for the contract)."""
cimport cython

cdef extern from *:
    """
    __thread int cg_grad_mode = 1;
    __thread int cg_inference_mode = 0;
    __thread int cg_enabled_in_inference = 0;
    __thread int cg_overrides_off = 0;
    __thread int cg_function_modes = 0;
    """

cdef enum:
    AS_IT_IS = -1


# ----- Recording -----
def is_grad_enabled():
    """Return True if operations are recorded in this thread, or would be outside of inference mode."""
    return bool(grad_mode()[0] or is_inference_mode() and cg_enabled_in_inference)


cpdef void _set_grad_enabled(bint mode) noexcept:
    """Set whether operations are recorded in this thread, but for inference mode; `set_grad_enabled` is the public form."""
    global cg_enabled_in_inference
    cg_enabled_in_inference = mode
    grad_mode()[0] = mode and not is_inference_mode()


# ----- Inference mode -----
cdef int inference_threads = 0      # threads in inference mode: while there are none, no thread looks for its mode


cdef bint is_inference_mode() noexcept:
    """Return True if this thread is in inference mode."""
    return inference_threads > 0 and cg_inference_mode == 1


cdef bint is_inference_suspended() noexcept:
    """Return True if this thread takes a derivative that was asked for in inference mode."""
    return cg_inference_mode == SUSPENDED


def is_inference_mode_enabled():
    """Return True if this thread makes inference tensors.

    >>> import cygrad
    >>> cygrad.is_inference_mode_enabled()
    False
    """
    return is_inference_mode()


cdef int exchange_inference_mode(int mode) noexcept:
    """Set whether this thread makes inference tensors (a negative mode: leave it), and return the mode before."""
    global inference_threads, cg_inference_mode
    cdef int before = cg_inference_mode
    if mode >= 0:
        inference_threads += (mode == 1) - (before == 1)
        cg_inference_mode = mode
    return before


def _set_inference_mode(int mode):
    """Set the mode of a thread that works in another's place; `inference_mode` is the public form."""
    return exchange_inference_mode(mode)


# ----- Anomaly mode -----
cdef int anomaly_mode = 0
cdef object node_created = None     # called with a new node in anomaly mode,
cdef object node_failed = None      # and with one whose backward raised an error


def set_anomaly_mode(bint mode, bint checks_nan, created, failed):
    """Set anomaly mode and the functions called while it is on: created(node) and failed(node)."""
    global anomaly_mode, node_created, node_failed
    node_created, node_failed = created, failed
    anomaly_mode = 0 if not mode else ANOMALY_DETECTED | ANOMALY_CHECKS_NAN if checks_nan else ANOMALY_DETECTED


def is_anomaly_mode():
    """Return True if anomaly mode is on."""
    return anomaly_mode != 0


cdef int note_creation(object node) except -1:
    node_created(node)
    return 0


cdef int note_failure(object node) except -1:
    node_failed(node)
    return 0


# ----- As `with` statements enter and leave them -----
@cython.binding(False)
cdef class RecordingMode:
    """Sets modes on entry and the former ones on exit; an object that is entered may be entered again.

    Leaving allocates nothing and runs no Python code, so it happens even where memory has run out or Ctrl-C arrives just then.
    """
    cdef int grad
    cdef int inference
    cdef tuple outside      # (modes before: recording, recording in inference mode, inference; the same of the entry around this one)

    def __init__(self, int grad=AS_IT_IS, int inference=AS_IT_IS):
        self.grad, self.inference = grad, inference

    def __enter__(self):
        # All that allocates comes before the first change.
        self.outside = (grad_mode()[0], cg_enabled_in_inference, exchange_inference_mode(AS_IT_IS), self.outside)
        exchange_inference_mode(self.inference)
        if self.grad != AS_IT_IS:
            _set_grad_enabled(self.grad)

    def __exit__(self, kind=None, error=None, traceback=None):
        global cg_enabled_in_inference
        cdef int grad, enabled, inference
        if self.outside is None:
            raise RuntimeError(f"{type(self).__name__}: this mode is left, but it was not entered")
        grad, enabled, inference, self.outside = self.outside
        if self.grad != AS_IT_IS:
            grad_mode()[0], cg_enabled_in_inference = grad, enabled
        if self.inference != AS_IT_IS:
            exchange_inference_mode(inference)


cdef class inference_mode_suspended(RecordingMode):
    """Take the derivative of a function, which may be asked for in inference mode, as if it was not."""

    def __init__(self):
        super().__init__()
        self.inference = SUSPENDED if exchange_inference_mode(AS_IT_IS) else AS_IT_IS
