"""Backwards nested in hooks and Functions, deep: every so many go to a thread of their own, as in torch, for its fresh stack.

The thread that waits keeps the GIL free. An exception comes out as if there were one thread. Ctrl-C, which reaches the main thread,
stops the one that computes at its next node. Threads end with their backward.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

from cygrad._core.engine import set_interruption


class _Chain(threading.local):
    """What interrupted the threads that wait for each other and this one: one list for all of them."""

    interruptions: list[BaseException] | None = None


_chain = _Chain()


def _interrupt() -> None:
    """Raise what reached the main thread while that waits for this one; the engine asks at each node."""
    if _chain.interruptions:
        raise _chain.interruptions[0]


def in_new_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a thread of its own and return its result."""
    outermost = _chain.interruptions is None
    interruptions = [] if _chain.interruptions is None else _chain.interruptions
    context = contextvars.copy_context()
    outcome: list[Any] = []
    done = threading.Lock()     # join() would count the thread as ended when a signal interrupts the wait

    def work() -> None:
        _chain.interruptions = interruptions
        try:
            outcome[:] = context.run(function, *arguments), None
        except BaseException as error:
            outcome[:] = None, error
        finally:
            done.release()

    done.acquire()
    thread = threading.Thread(target=work, name="cygrad nested backward")
    thread.start()
    while not outcome:
        try:
            done.acquire()
        except BaseException as signalled:
            interruptions.append(signalled)
            set_interruption(_interrupt)
    thread.join()
    if outermost and interruptions:
        set_interruption(None)
    result, error = outcome
    outcome.clear()
    try:
        if error is not None or outermost and interruptions:
            raise error or interruptions[0]
        return result
    finally:
        del error       # whose traceback holds this frame, and so do those
        if outermost:
            interruptions.clear()
