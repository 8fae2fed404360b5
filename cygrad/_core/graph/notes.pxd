"""Notes of launches: see notes.pyx."""
from cygrad._core.graph.launches cimport Launch

# Note a launch in the innermost notes of this thread, if there are any, before it runs.
cdef void note_launch(const Launch* launch, char** data) noexcept
