"""Recording and inference mode of a thread, as `with` statements enter and leave them.

Leaving allocates nothing and runs no Python code, so it happens even where memory has run out or Ctrl-C arrives just then.
"""
cimport cython
from cygrad._core.graph.node cimport SUSPENDED, exchange_inference_mode, grad_mode

cdef enum:
    AS_IT_IS = -1


@cython.binding(False)
cdef class RecordingMode:
    """Sets modes on entry and what was before on exit; an object that is entered may be entered again."""
    cdef int grad
    cdef int inference
    cdef tuple outside      # (grad mode before, inference mode before, the same of the entry around this one)

    def __init__(self, int grad=AS_IT_IS, int inference=AS_IT_IS):
        self.grad, self.inference = grad, inference

    def __enter__(self):
        # All that allocates comes before the first change.
        self.outside = (grad_mode()[0], exchange_inference_mode(AS_IT_IS), self.outside)
        if self.grad != AS_IT_IS:
            grad_mode()[0] = self.grad
        exchange_inference_mode(self.inference)

    def __exit__(self, kind=None, error=None, traceback=None):
        cdef int grad, inference
        if self.outside is None:
            raise RuntimeError(f"{type(self).__name__}: this mode is left, but it was not entered")
        grad, inference, self.outside = self.outside
        if self.grad != AS_IT_IS:
            grad_mode()[0] = grad
        if self.inference != AS_IT_IS:
            exchange_inference_mode(inference)


cdef class inference_mode_suspended(RecordingMode):
    """Take the derivative of a function, which may be asked for in inference mode, as if it was not."""

    def __init__(self):
        super().__init__()
        self.inference = SUSPENDED if exchange_inference_mode(AS_IT_IS) else AS_IT_IS
