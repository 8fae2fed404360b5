"""Anomaly mode: nodes keep the traceback of the call that made them, and it is shown when their backward fails.

On and off for all threads, as in torch. While it is off a new node costs one test of a flag.
"""

from __future__ import annotations

import os
import sys
import warnings

from cygrad._core.engine.backward import evaluating_node
from cygrad._core.graph.modes import is_anomaly_mode, set_anomaly_mode
from cygrad._core.graph.node import Node
from cygrad._core.memory.looks import look

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled", "set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_check_nan = True   # the last setting, also while the mode is off


def is_anomaly_enabled() -> bool:
    """Return True if anomaly mode is on."""
    return is_anomaly_mode()


def is_anomaly_check_nan_enabled() -> bool:
    """Return True if anomaly mode, when it is on, refuses gradients that are not a number."""
    return _check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off; `check_nan` also refuses gradients that are not a number."""
    for position, (name, value) in enumerate({"enabled": enabled, "check_nan": check_nan}.items(), 1):
        if not isinstance(value, bool):
            raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {position}) must be bool, not {type(value).__name__}")
    _set(enabled, check_nan)


def _set(enabled: bool, check_nan: bool) -> None:
    """Set the mode, without anything that could fail."""
    global _check_nan
    _check_nan = check_nan
    look("anomaly mode was set")
    set_anomaly_mode(enabled, check_nan, _remember, _report)


class set_detect_anomaly:
    """Switch anomaly mode on or off: at once when called as a function, until the end of the block as a context manager.

    >>> import cygrad
    >>> with cygrad.autograd.set_detect_anomaly(True):
    ...     cygrad.is_anomaly_enabled()
    True
    >>> cygrad.is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.previous = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        """Do nothing: the mode was set when this object was made."""

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        _set(*self.previous)


class detect_anomaly:
    """Show, when a backward fails, the traceback of the call that made the failing node; refuse gradients that are not a number.

    A context manager around forward and backward. It slows both down, and warns of that. `check_nan=False` lets NaN pass.

    >>> import cygrad, warnings
    >>> warnings.simplefilter("ignore")
    >>> x = cygrad.tensor(-1., requires_grad=True)
    >>> with cygrad.autograd.detect_anomaly():
    ...     x.sqrt().backward()
    Traceback (most recent call last):
        ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.previous = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
                      stacklevel=2)

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, kind: object = None, error: object = None, traceback: object = None) -> None:
        _set(*self.previous)


def _remember(node: Node) -> None:
    """Keep the traceback with a new node, up to the user's call, and the node whose backward made it."""
    from traceback import StackSummary, walk_stack
    summary = StackSummary.extract(walk_stack(sys._getframe(1)))
    summary.reverse()
    while summary and summary[-1].filename.startswith((_PACKAGE, "<formula of")):
        summary.pop()
    node.metadata["traceback_"] = summary.format()
    parent = evaluating_node()
    if parent is not None:
        node.metadata["parent_"] = parent


def _report(node: Node) -> None:
    """Warn of a node that failed, with the place where it was made, if that is known."""
    traceback = node.metadata.get("traceback_")
    if traceback is None:
        _warn(f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for more "
              "information.")
        return
    _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(traceback)}")
    while (parent := node.metadata.get("parent_")) is not None:
        node = parent
        _warn(f"\n\nPrevious calculation was induced by {node.name()}. Traceback of forward call that induced the previous calculation:\n"
              f"{''.join(node.metadata.get('traceback_', ()))}")


def _warn(message: str) -> None:
    try:
        warnings.warn(message, stacklevel=3)
    except Warning:         # where warnings are errors, the one that failed shall come out
        print(f"UserWarning: {message}", file=sys.stderr)
