"""Settings of torch that change nothing here: the one device is the CPU, and results are the same for any number of threads.

Each setting is kept for its question, and refused where torch refuses it, so that ported programs run, or learn of a mistake.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from cygrad._kernels.system.threads import get_num_threads
from cygrad.device import CPU, resolve_device

if TYPE_CHECKING:
    from cygrad.device import device as Device

_DEBUG_MODES = ("default", "warn", "error")
_PRECISIONS = ("highest", "high", "medium")
_settings = SimpleNamespace(deterministic=0, precision="highest", interop_threads=0, warns_always=False)


def _checked(function: str, argument: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or kind is int and isinstance(value, bool):
        raise TypeError(f"{function}(): argument '{argument}' (position 1) must be {kind.__name__}, not {type(value).__name__}")
    return value


# ----- The device -----
def set_default_device(device: str | Device | None) -> None:
    """Set the device of new tensors. Changes nothing: there is the CPU only, and any other is refused with AssertionError.

    >>> import cygrad
    >>> cygrad.set_default_device("cpu")
    """
    resolve_device(device)


def get_default_device() -> Device:
    """Return the device of new tensors: the CPU.

    >>> import cygrad
    >>> cygrad.get_default_device()
    device(type='cpu')
    """
    return CPU


# ----- Deterministic algorithms -----
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that give the same result each time. Changes nothing: all here do.

    >>> import cygrad
    >>> cygrad.use_deterministic_algorithms(False)
    """
    _checked("use_deterministic_algorithms", "mode", mode, bool)
    _settings.deterministic = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Return True if `use_deterministic_algorithms` asked for them. That changes nothing: algorithms here always are."""
    return _settings.deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return True if `use_deterministic_algorithms` asked for warnings only. That changes nothing."""
    return _settings.deterministic == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Ask for deterministic algorithms by "default", "warn" or "error", or 0, 1, 2. Changes nothing: algorithms here always are."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str) and debug_mode not in _DEBUG_MODES:
        raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
    if isinstance(debug_mode, int) and debug_mode not in range(3):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _settings.deterministic = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode


def get_deterministic_debug_mode() -> int:
    """Return the mode of `set_deterministic_debug_mode`: 0, 1 or 2. It changes nothing."""
    return _settings.deterministic


# ----- Precision and threads -----
def set_float32_matmul_precision(precision: Literal["highest", "high", "medium"]) -> None:
    """Set how exact products of float32 matrices have to be. Changes nothing: they are computed in float32; RuntimeError for other words.

    >>> import cygrad
    >>> cygrad.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _settings.precision = precision


def get_float32_matmul_precision() -> str:
    """Return the word that `set_float32_matmul_precision` was given. It changes nothing."""
    return _settings.precision


def set_num_interop_threads(num: int) -> None:
    """Set the number of threads between operators. Changes nothing: operators run one after the other, `set_num_threads` is for each."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, got {num}")
    _settings.interop_threads = num


def get_num_interop_threads() -> int:
    """Return the number that `set_num_interop_threads` was given, or of threads that an operator may use. It changes nothing."""
    return _settings.interop_threads or get_num_threads()


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers are computed with, and the processor's mode is not changed. Changes nothing.

    >>> import cygrad
    >>> cygrad.set_flush_denormal(True)
    False
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# ----- Warnings -----
def set_warn_always(b: bool) -> None:
    """Ask for each warning every time. Changes nothing: Python's filters of warnings decide, `warnings.simplefilter("always")`."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _settings.warns_always = b


def is_warn_always_enabled() -> bool:
    """Return True if `set_warn_always` asked for each warning every time. That changes nothing."""
    return _settings.warns_always
