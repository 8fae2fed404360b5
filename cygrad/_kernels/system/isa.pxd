"""The choice of the instruction-set level whose loops run, made once when the package is imported.

`choose_isa()` answers the highest level this processor has, or the one that `CYGRAD_ISA` names. It only reads.
Everything is inline, so no module has to be loaded for it. Needs the GIL; called once.
"""
from libc.stdlib cimport getenv


cdef extern from "system/isa.h" nogil:
    int CG_ISA_LEVELS
    const char* cg_isa_name(int level)
    int cg_isa_vector_bytes(int level)
    bint cg_isa_supported(int level)
    const char* cg_isa_built_for()
    const char* cg_isa_lacking()


cdef inline list supported_isas():
    """Names of the levels this build has and this processor can run, lowest first."""
    return [cg_isa_name(level).decode() for level in range(CG_ISA_LEVELS) if cg_isa_supported(level)]


cdef inline int choose_isa() except -1:
    """Number of the level to use, or ImportError in one sentence if there is none or the wish cannot be met."""
    cdef list supported = supported_isas()
    cdef const char* variable = getenv("CYGRAD_ISA")
    wish = variable.decode("utf-8", "replace").strip().lower() if variable is not NULL else ""
    if not supported:
        raise ImportError(f"this build of cygrad needs a processor with {cg_isa_lacking().decode()}, which this one lacks" + (
            f": it is for the one that it was built on, {cg_isa_built_for().decode()} (CYGRAD_ISA_BUILD=native)" if cg_isa_built_for()[0]
            else ""))
    cdef int highest = <int>len(supported) - 1
    if not wish:
        return highest
    for level in range(CG_ISA_LEVELS):
        name = cg_isa_name(level).decode()
        if wish in (name, name.removeprefix("x86-64-")) and name in supported:
            return level
    raise ImportError(f"CYGRAD_ISA={wish!r} names no instruction set this build and processor have: "
                      f"choose one of {', '.join(supported)}, or unset it for {supported[highest]}")
