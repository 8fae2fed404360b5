"""Functions that call themselves for the items of a container of the user, which may be deep, or contain itself: RecursionError then."""

cdef extern from "Python.h":
    int enter_container "Py_EnterRecursiveCall"(const char* where) except *        # 1 or -1 where it fails
    void leave_container "Py_LeaveRecursiveCall"() noexcept
