# cython: cdivision=True
"""Loops over batches of matrices by their names, and where they find LAPACK: in the library that NumPy computes by, else through SciPy.

It is looked for when the first matrix comes that is large enough, but real ones need it for some functions only (blocked.h). Without it,
the plain loops take all sizes, more slowly.
"""
from libc.stdio cimport snprintf
from libc.string cimport strcmp

from cygrad._kernels.drivers.elementwise cimport CG_FLOAT32, CG_FLOAT64
from cygrad._kernels.system.isa cimport choose_isa
from cygrad._kernels.system.journal cimport note_soon
from cygrad._kernels.system.threads cimport COST_ARITHMETIC, job_part, run_in_parts, threads_for

import importlib

import numpy

from cygrad._kernels.system.journal import note

cdef extern from "<dlfcn.h>" nogil:
    void* dlopen(const char* path, int mode)
    void* dlsym(void* library, const char* name)
    int dlclose(void* library)
    enum:
        RTLD_LAZY
        RTLD_NOLOAD

cdef extern from "matrices/blas_threads.h" nogil:
    void cg_note_blas()
    bint cg_is_blas_awake()

cdef extern from "matrices/loops.h" nogil:
    enum:
        CG_ROUTINES
        FEW "CG_FEW"
        LARGE "CG_LARGE"
        LARGEST_REDUCED "CG_LARGEST_REDUCED"
    ctypedef struct Library "cg_lapack_library":
        void* routines[4][CG_ROUTINES]
        bint looked_up, wide
    Library library "cg_lapack"
    void (*look_up "cg_look_up_lapack")() noexcept nogil
    const char* const routine_names "cg_routine_names"[2][CG_ROUTINES]
    const matrix_kernel kernels "cg_matrix_kernels"[]
    ctypedef void share_function "cg_share"(job_part part, const void* job, intptr_t panels, double work) noexcept nogil
    ctypedef struct SmallProducts "cg_small_products":
        matrix_loop any
        matrix_loop few[FEW][FEW]
    ctypedef struct Blocked "cg_blocked":
        const SmallProducts* small_products
        double share
    const Blocked* const* const* levels "cg_blocked_levels"
    const Blocked* const* blocked_algorithms "cg_blocked_algorithms"
    share_function* share_panels "cg_share_panels"
    ctypedef struct Field "cg_field":
        pass
    const Field float_field "cg_field_float32", double_field "cg_field_float64"
    bint cg_multiplies_quickly(const Field* field, intptr_t m, intptr_t n, intptr_t k)

cdef extern from "Python.h":
    void* PyCapsule_GetPointer(object capsule, const char* name) except NULL
    const char* PyCapsule_GetName(object capsule) except NULL

# How builds name `dgetrf`; the first ones where integers have 64 bits.
cdef enum:
    WIDE_SPELLINGS = 3
    SPELLINGS = 5
cdef (const char*)[SPELLINGS] spellings = [b"scipy_%c%s_64_", b"%c%s_64_", b"%c%s64_", b"scipy_%c%s_", b"%c%s_"]
cdef const char* letters = b"sdcz"


cdef void shared_out(job_part part, const void* job, intptr_t panels, double work) noexcept nogil:
    cdef intptr_t threads = min(panels, threads_for(<intptr_t>(work / blocked_algorithms[0].share), COST_ARITHMETIC))
    if threads <= 1 or cg_is_blas_awake():
        part(job, 0, panels)
        return
    run_in_parts(part, job, panels, (panels + threads - 1) // threads, <int>threads)


share_panels = shared_out
blocked_algorithms = levels[choose_isa()]

cdef (const SmallProducts*)[2] small_products


cdef int choose_small_products() except -1:
    """Choose the highest level that runs and has loops of few columns, else the lowest one."""
    cdef int level = choose_isa()
    while level and levels[level][0].small_products.few[0][0] is NULL:
        level -= 1
    small_products[0], small_products[1] = levels[level][0].small_products, levels[level][1].small_products
    return 0


choose_small_products()


cdef const matrix_kernel* matrix_kernel_of(str name) except NULL:
    cdef const matrix_kernel* row = kernels
    encoded = name.encode()
    while row.name is not NULL:
        if strcmp(row.name, encoded) == 0:
            return row
        row += 1
    raise LookupError(f"there are no loops of matrices named {name!r}")


cdef void note_blas() noexcept nogil:
    cg_note_blas()


cdef matrix_loop small_product_of(int dtype, intptr_t m, intptr_t inner) noexcept nogil:
    cdef const SmallProducts* products
    if dtype != CG_FLOAT32 and dtype != CG_FLOAT64:
        return NULL
    products = small_products[dtype == CG_FLOAT64]
    return products.few[m - 1][inner - 1] if 0 < m <= FEW and 0 < inner <= FEW and products.few[0][0] is not NULL else products.any


cdef bint multiplies_quickly(int dtype, intptr_t m, intptr_t n, intptr_t k) noexcept nogil:
    return cg_multiplies_quickly(&float_field if dtype == CG_FLOAT32 else &double_field, m, n, k)


cdef bint find_in_numpy() except -1:
    """Look the routines up in the libraries that NumPy's linalg was linked with; return whether they are there."""
    cdef char name[32]
    cdef int spelling, number, k
    path = getattr(getattr(numpy.linalg, "_umath_linalg", None), "__file__", "")
    cdef void* opened = dlopen(path.encode(), RTLD_LAZY | RTLD_NOLOAD) if path else NULL
    if opened is NULL:
        return False
    for spelling in range(SPELLINGS):
        snprintf(name, sizeof(name), spellings[spelling], c"d", b"getrf")
        if dlsym(opened, name) is not NULL:
            break
    else:
        dlclose(opened)
        return False
    library.wide = spelling < WIDE_SPELLINGS
    for number in range(4):
        for k in range(CG_ROUTINES):
            snprintf(name, sizeof(name), spellings[spelling], letters[number], routine_names[number // 2][k])
            library.routines[number][k] = dlsym(opened, name)
    dlclose(opened)
    return True


cdef bint find_in_scipy() except -1:
    """Look them up among those that SciPy has for Cython, whose integers have 32 bits."""
    try:
        tables = [importlib.import_module(f"scipy.linalg.cython_{name}").__pyx_capi__ for name in ("lapack", "blas")]
    except ImportError:
        return False
    table = tables[0] | tables[1]
    library.wide = False
    for number, letter in enumerate("sdcz"):
        for k in range(CG_ROUTINES):
            capsule = table.get(letter + routine_names[number // 2][k].decode())
            library.routines[number][k] = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)) if capsule is not None else NULL
    return True


cdef str found_in = None


cdef int note_lapack() except -1:
    note("LAPACK", lapack_report()["reason"])
    return 0


cdef void find_lapack() noexcept with gil:
    global found_in
    found_in = "NumPy" if find_in_numpy() else "SciPy" if find_in_scipy() else None
    library.looked_up = True        # last: other threads ask without the GIL
    note_soon(note_lapack)


look_up = find_lapack


def lapack_report():
    """Return whether LAPACK was looked for yet, which library's was found and the bits of its integers; and that in words."""
    bits = (64 if library.wide else 32) if found_in else None
    return {"looked_up": bool(library.looked_up), "library": found_in, "integer_bits": bits, "reason": (
        f"{found_in}'s, integers of {bits} bits" if found_in else
        "none is there: plain loops take all sizes" if library.looked_up else "looked for when the first large matrix needs it")}


def is_reduced(intptr_t size, str routine not None):
    """Return True if large real matrices of that size are reduced by blocks: not too large, and LAPACK has the routine for the rest."""
    cdef int k
    if size <= LARGE or size > LARGEST_REDUCED:
        return False
    if not library.looked_up:
        find_lapack()
    for k in range(CG_ROUTINES):
        if routine_names[0][k].decode() == routine:
            return library.routines[0][k] is not NULL and library.routines[1][k] is not NULL
    return False


def use_lapack(str where):
    """Look for LAPACK in "numpy" or "scipy" only, or in "none", until it is said otherwise; return whether it is there. For tests."""
    global found_in
    cdef int number, k
    for number in range(4):
        for k in range(CG_ROUTINES):
            library.routines[number][k] = NULL
    library.looked_up = True
    found_in = "NumPy" if where == "numpy" and find_in_numpy() else "SciPy" if where == "scipy" and find_in_scipy() else None
    return found_in is not None
