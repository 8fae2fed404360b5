"""Choices and their reasons, for the standard library's logger `cygrad`, at DEBUG.

The code that chooses leaves a note. Notes are logged at once where `logging` is loaded and its level lets them pass. Otherwise the last
note of each subject is pending: so importing cygrad does not load `logging`, and programs may set it up after their imports. Needs the GIL.
"""
import sys

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept nogil
    int PyThreadState_SetAsyncExc(unsigned long thread, object kind) except -1
    int Py_AddPendingCall(int (*function)(void*) noexcept, void* argument) noexcept nogil

cdef dict pending = {}      # subject: the pending note
cdef dict logged = {}         # subject: the last logged note


def note(subject: str, text: str) -> None:
    """Note a choice, and log it if the logger's level lets it pass."""
    if logged.get(subject) != text:
        pending[subject] = text
    log_pending()


def log_pending() -> None:
    """Log pending notes, if the logger's level lets them pass."""
    logging = sys.modules.get("logging")
    if not pending or not hasattr(logging, "NullHandler"):      # or half imported
        return
    logger = logging.getLogger("cygrad")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    if logger.isEnabledFor(logging.DEBUG):
        while pending:      # handlers may leave notes, and so may other threads while they run
            subject = next(iter(pending))
            logged[subject] = text = pending.pop(subject)
            logger.debug("%s: %s", subject, text)


cdef int leave_note(void* function) noexcept:
    """Call a function that leaves a note. Errors of handlers of logs are written; an interrupt is raised in the program."""
    try:
        (<note_function>function)()
    except KeyboardInterrupt as error:
        raise_soon(error)
    return 0


cdef bint note_soon(note_function function) noexcept nogil:
    return Py_AddPendingCall(leave_note, <void*>function) == 0


cdef int raise_soon(object error) except -1:
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type(error))
    return 0
