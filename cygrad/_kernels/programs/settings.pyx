"""How programs run (see settings.pxd for the contract)."""
import os

from cygrad._kernels.system.journal import note
from cygrad._kernels.system.machine import whole_number

cdef enum:
    LARGE = 1 << 17
    GROUPED = 1 << 11       # smaller arrays lie in the first-level cache anyway

cdef str setting = ""
cdef int noting_threads = 0


cdef void count_noting(int change) noexcept:
    global fuses, noted, noting_threads
    noting_threads += change
    fuses, noted = mode != EAGER and not noting_threads, mode == CHECKED or noting_threads


def set_programs(str text not None):
    """Run programs as `text` says from now on, and return the setting before: "" (fused), "eager", "check", or "check:N", where arrays
    are large from N elements on. For tests, and for the environment variable.
    """
    global mode, large, grouped, setting
    name, _, count = text.strip().lower().partition(":")
    elements = whole_number(count or str(LARGE))
    if name not in ("", "eager", "check") or count and name != "check" or elements is None:
        raise ValueError(f"programs run as 'eager', 'check' or 'check:N' (elements), or by default as '', not {text!r}")
    before = setting
    setting, mode = text, {"": FUSED, "eager": EAGER, "check": CHECKED}[name]
    large, grouped = elements, min(<intptr_t>elements, <intptr_t>GROUPED)
    count_noting(0)
    return before


def group_from(intptr_t count):
    """Group maps in captured programs from how many elements on, and return the limit before."""
    global grouped
    before = grouped
    grouped = count
    return before


cdef int read_environment() except -1:
    wish = os.environ.get("CYGRAD_PROGRAMS", "")
    try:
        set_programs(wish)
    except ValueError as error:
        raise ImportError(f"CYGRAD_PROGRAMS: {error}") from None
    if wish:
        note("programs", f"{wish}, CYGRAD_PROGRAMS")
    return 0


read_environment()
