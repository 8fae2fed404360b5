"""Choices and their reasons, for the standard library's logger `cygrad`, at DEBUG.

The code that chooses leaves a note. Notes are logged at once where `logging` is loaded and its level lets them pass, else they are pending,
the last of each
subject: so importing cygrad does not load `logging`, and programs may set it up after their imports. Needs the GIL.
"""
import sys

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*function)(void*) noexcept, void* argument) noexcept nogil

cdef dict waiting = {}      # subject: the pending note
cdef dict told = {}         # subject: the last logged note


def note(subject: str, text: str) -> None:
    """Note a choice, and log it if the logger's level lets it pass."""
    if told.get(subject) != text:
        waiting[subject] = text
    tell()


def tell() -> None:
    """Log pending notes, if the logger's level lets them pass."""
    logging = sys.modules.get("logging")
    if not waiting or not hasattr(logging, "NullHandler"):      # or half imported
        return
    logger = logging.getLogger("cygrad")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    if logger.isEnabledFor(logging.DEBUG):
        while waiting:      # handlers may leave notes, and so may other threads while they run
            subject = next(iter(waiting))
            told[subject] = text = waiting.pop(subject)
            logger.debug("%s: %s", subject, text)


cdef bint note_soon(int (*function)(void*) noexcept) noexcept nogil:
    return Py_AddPendingCall(function, NULL) == 0
