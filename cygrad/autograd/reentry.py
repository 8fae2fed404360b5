"""Backwards nested in hooks and Functions, deep: every so many go to a thread of their own, as in torch, for its fresh stack.

The thread that waits keeps the GIL free. An exception comes out as if there were one thread. Ctrl-C, which reaches the main thread,
stops the one that computes at its next node. Threads end with their backward.
"""

from __future__ import annotations

import _thread
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from cygrad._core.engine.backward import set_interruption
from cygrad._core.graph.modes import _set_inference_mode, is_inference_mode_enabled
from cygrad._core.graph.saved import set_thread_hooks, thread_hooks
from cygrad._core.levels.observers import current_observer, set_observer


class _Chain(threading.local):
    """Interruptions of the threads that wait for each other and this one: one list for all of them."""

    interruptions: list[BaseException] | None = None


_chain = _Chain()


def _interrupt() -> None:
    """Raise an interruption of the main thread while that waits for this one; the engine calls this at each node."""
    if _chain.interruptions:
        raise _chain.interruptions[0]


def in_new_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a thread of its own and return its result."""
    outermost = _chain.interruptions is None
    interruptions = [] if _chain.interruptions is None else _chain.interruptions
    context, hooks, inference = contextvars.copy_context(), thread_hooks(), is_inference_mode_enabled()
    observer = current_observer()
    outcome: list[Any] = []
    finished = threading.Lock()     # join() would count the thread as ended when a signal interrupts the wait

    def work() -> None:
        _chain.interruptions = interruptions
        set_thread_hooks(hooks)
        _set_inference_mode(inference)
        set_observer(observer)
        try:
            outcome[:] = context.run(function, *arguments), None
        except BaseException as error:
            outcome[:] = None, error
        finally:
            set_thread_hooks(None)
            _set_inference_mode(False)
            set_observer(None)
            finished.release()

    def launch() -> None:
        if not begun:
            begun.append(True)
            thread.start()

    begun: list[bool] = []
    launched = False
    finished.acquire()
    thread = threading.Thread(target=work, name="cygrad nested backward")
    while not outcome:
        try:
            # Thread.start() waits, and a signal that ended the wait would leave the thread to itself; this call is over at once.
            if not launched:
                _thread.start_new_thread(launch, ())
                launched = True
            finished.acquire()
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
