# cython: annotation_typing=False
"""Thread counts, and OpenMP's behaviour at fork.

Importing reads the environment and changes nothing: no thread is started, no handler registered, no setting made
before the first parallel region. The limit follows, in this order: `set_num_threads`, `OMP_NUM_THREADS`, the
affinity mask, the CPU quota of the cgroup, the share of a process among those that a launcher has started on the node;
a lower limit that `threadpoolctl` gave the calling thread always wins.
Safe from every thread: the shared state is a few ints, each read and written whole.
"""
from libc.limits cimport INT_MAX
from libc.math cimport ceil
from libc.stdint cimport intptr_t

import operator
import os

from cygrad._kernels.system.journal cimport note_soon, raise_soon

from cygrad._kernels.system.journal import note
from cygrad._kernels.system.machine import cpu_quota, launcher_report, process_share, whole_number

# A count that the system refuses to start makes libgomp end the process, or its table of them overflows the stack: so absurd ones
# are turned down, and the environment's cut.
cdef enum:
    LARGEST_REQUEST = 1024

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include "system/isa.h"
    #include "system/older_glibc.h"

    #ifdef _OPENMP
    #include <dlfcn.h>
    #include <omp.h>
    #include <pthread.h>
    #include <stddef.h>
    enum { cg_openmp = _OPENMP };

    /* A thread of its own ICV: set_num_threads sets the caller's, so that threadpoolctl shows and lowers it. */
    static __thread int cg_own_icv;

    static int cg_pause_failed, cg_serial_after_fork;
    static int (*cg_pause)(int);
    static pthread_once_t cg_guard = PTHREAD_ONCE_INIT;

    static const char *cg_openmp_path(void) {
        Dl_info library;
        return dladdr((void *)(size_t)&omp_get_max_threads, &library) && library.dli_fname ? library.dli_fname : "";
    }

    /* libgomp's pool does not survive a fork: the child would wait for threads it does not have. So the forking
       thread's pool is dissolved first, and starts again at the next region of either process. */
    static void cg_before_fork(void) {
        cg_pause_failed = omp_in_parallel() || !cg_pause || cg_pause(2 /* omp_pause_hard */) != 0;
    }
    static void cg_in_child(void) {
        if (cg_pause_failed) cg_serial_after_fork = 1;
    }

    /* LLVM's runtime starts a child with the default again, which was not lowered. */
    static void cg_forget_icv(void) { cg_own_icv = 0; }

    /* LLVM's and Intel's runtimes look after themselves and may crash when paused; they can stand in under libgomp's
       name, so the symbols decide. The pause itself is missing before GCC 9. */
    static void cg_register_guard(void) {
        void *runtime = dlopen(cg_openmp_path(), RTLD_LAZY | RTLD_NOLOAD);
        if (runtime && dlsym(runtime, "__kmpc_fork_call")) { pthread_atfork(NULL, NULL, cg_forget_icv); return; }
        if (runtime) cg_pause = (int (*)(int))(size_t)dlsym(runtime, "omp_pause_resource_all");
        pthread_atfork(cg_before_fork, NULL, cg_in_child);
    }
    static void cg_prepare_parallel(void) { pthread_once(&cg_guard, cg_register_guard); }

    #else
    enum { cg_openmp = 0, cg_own_icv = 0, cg_serial_after_fork = 0 };
    static int omp_get_max_threads(void) { return 1; }
    static int omp_get_num_procs(void) { return 1; }
    static int omp_get_thread_limit(void) { return 1; }
    static const char *cg_openmp_path(void) { return ""; }
    static void cg_prepare_parallel(void) { }
    #endif

    static void cg_set_icv(int n) {
    #ifdef _OPENMP
        omp_set_num_threads(n);
        cg_own_icv = n;
    #else
        (void)n;
    #endif
    }

    #if defined(__GNUC__) && !defined(__clang__)
    #define CG_COMPILER "GCC " __VERSION__
    #else
    #define CG_COMPILER __VERSION__
    #endif

    /* The threads of a region write the same number at once, hence atomic. */
    static int cg_region_threads;
    static int cg_noted(void) { return __atomic_load_n(&cg_region_threads, __ATOMIC_RELAXED); }
    static void cg_note(int n) { __atomic_store_n(&cg_region_threads, n, __ATOMIC_RELAXED); }
    /* CPUs the cgroup grants; 0: not read yet; INT_MAX: no quota. Written last of the values read then, so a thread that sees it sees the
    rest. */ static int cg_quota;
    static int cg_granted(void) { return __atomic_load_n(&cg_quota, __ATOMIC_ACQUIRE); }
    static void cg_set_granted(int n) { __atomic_store_n(&cg_quota, n, __ATOMIC_RELEASE); }
    static void cg_note_team(void) {
    #ifdef _OPENMP
        int n = omp_get_num_threads();
        if (n > cg_noted()) cg_note(n);
    #endif
    }
    typedef void (*cg_job_part)(const void *job, intptr_t first, intptr_t last);
    static void cg_run_part(cg_job_part part, const void *job, intptr_t count, intptr_t chunk, intptr_t number) {
        intptr_t first = number * chunk;
        cg_note_team();
        part(job, first, count - first < chunk ? count : first + chunk);
    }
    static void cg_run_parts(cg_job_part part, const void *job, intptr_t count, intptr_t chunk, int threads, int uneven) {
        intptr_t parts = (count + chunk - 1) / chunk, k;
        (void)threads;
        if (uneven) {
    #pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
            for (k = 0; k < parts; k++) cg_run_part(part, job, count, chunk, k);
        } else {
    #pragma omp parallel for schedule(static, 1) num_threads(threads)
            for (k = 0; k < parts; k++) cg_run_part(part, job, count, chunk, k);
        }
    }
    static int cg_choice_noted;         /* noted by the first large operation */
    static int cg_is_choice_noted(void) { return __atomic_load_n(&cg_choice_noted, __ATOMIC_RELAXED); }
    static void cg_set_choice_noted(int noted) { __atomic_store_n(&cg_choice_noted, noted, __ATOMIC_RELAXED); }
    """
    int cg_openmp, cg_own_icv, cg_serial_after_fork
    int omp_get_max_threads() noexcept nogil
    int omp_get_num_procs() noexcept nogil
    int omp_get_thread_limit() noexcept nogil
    const char* cg_openmp_path() noexcept
    void cg_prepare_parallel() noexcept nogil
    void cg_set_icv(int n) noexcept
    void cg_note(int n) noexcept nogil
    void cg_run_parts(job_part part, const void* job, intptr_t count, intptr_t chunk, int threads, bint uneven) noexcept nogil
    int cg_noted() noexcept nogil
    int cg_granted() noexcept nogil
    void cg_set_granted(int n) noexcept
    int cg_is_choice_noted() noexcept nogil
    void cg_set_choice_noted(int noted) noexcept nogil
    int cg_denormal_mode() noexcept
    const char* CG_COMPILER


cdef enum Reason:
    AFFINITY, QUOTA, SHARE, ENVIRONMENT, REQUEST, LOWERED, TEAM_LIMIT, AFTER_FORK, SERIAL_BUILD

cdef int requested = 0                              # of set_num_threads, for the whole process; 0: never called
cdef int share = INT_MAX                            # CPUs of this process among its launcher's; read with the quota
cdef str why_share = ""
cdef int initial_icv = omp_get_max_threads()        # the initial value of other threads

# Elements a region must have to repay its start (10 us with cores shared) several times over, by cost class.
cdef intptr_t[3] grain
grain[:] = [524288, 131072, 32768]


def _environment_counts() -> str:
    """Return OMP_NUM_THREADS if it is a count, or a list of them, whose first is the outer level's; else ""."""
    counts = [whole_number(text) for text in os.environ.get("OMP_NUM_THREADS", "").split(",")]
    return "" if None in counts else ",".join(map(str, counts))


cdef str environment_counts = _environment_counts()
cdef bint counted_by_environment = bool(environment_counts)
cdef str ignored_counts = "" if environment_counts else os.environ.get("OMP_NUM_THREADS", "").strip()
# OpenMP's count, but where OMP_NUM_THREADS holds something else: of 2**32 - 1, say, libgomp takes the bits for a negative number.
cdef int initial_threads = omp_get_num_procs() if ignored_counts else initial_icv


cdef int decide(Reason* reason) noexcept nogil:
    cdef int icv = omp_get_max_threads()
    cdef int limit = initial_threads if icv == initial_icv else icv
    cdef int quota
    if not cg_openmp:
        reason[0] = SERIAL_BUILD
        return 1
    if cg_serial_after_fork:
        reason[0] = AFTER_FORK
        return 1
    if requested > 0:
        # The caller's ICV differs from the value set only if threadpoolctl, say, lowered it since. (Unseen: a
        # limit equal to OpenMP's default, below the request, in a thread other than the one that made the request.)
        if icv < requested and icv != (cg_own_icv if cg_own_icv > 0 else initial_icv):
            reason[0] = LOWERED
        else:
            reason[0] = REQUEST
            limit = requested
    elif limit < initial_threads:
        reason[0] = LOWERED
    else:
        reason[0] = ENVIRONMENT if counted_by_environment else AFFINITY
    if requested == 0 and not counted_by_environment:
        quota = cg_granted()
        if quota == 0:
            read_grants()
            quota = cg_granted()
        if quota < limit:
            limit = quota
            reason[0] = QUOTA
        if share < limit:
            limit = share
            reason[0] = SHARE
    if omp_get_thread_limit() < limit:
        limit = omp_get_thread_limit()
        reason[0] = TEAM_LIMIT
    return max(1, min(limit, <int>LARGEST_REQUEST))


cdef int thread_limit() noexcept nogil:
    cdef Reason reason
    cdef int threads = decide(&reason)
    if not cg_is_choice_noted():
        cg_set_choice_noted(note_soon(note_choice))
    if threads > 1:
        cg_prepare_parallel()
    return threads


cdef int threads_for(intptr_t n, int cost) noexcept nogil:
    return 1 if n < grain[cost] else thread_limit()


cdef void run_in_parts(job_part part, const void* job, intptr_t count, intptr_t chunk, int threads, bint uneven=False) noexcept nogil:
    if count and (threads <= 1 or count <= chunk):
        part(job, 0, count)
    elif count:
        cg_run_parts(part, job, count, chunk, thread_limit(), uneven)


cdef void read_grants() noexcept with gil:
    global share, why_share
    try:
        granted = cpu_quota()
        share, why_share = process_share() or (INT_MAX, "")
        cg_set_granted(INT_MAX if granted is None else max(1, <int>ceil(min(granted, 1e6))))
    except BaseException as error:      # kernels have no place for errors
        raise_soon(error)


cdef tuple explained(Reason reason, int threads):
    """Return a reason as a word and as a sentence."""
    return {
        AFFINITY: ("affinity", f"CPUs in the affinity mask at the start: {threads}"),
        QUOTA: ("cgroup", f"CPUs granted by the cgroup: {threads}"),
        SHARE: ("launcher", f"the share of this process: {why_share}"),
        ENVIRONMENT: ("environment", f"OMP_NUM_THREADS={environment_counts}" +
                      f" (at most {LARGEST_REQUEST} are started)" * (threads == LARGEST_REQUEST)),
        REQUEST: ("request", f"set_num_threads({requested})"),
        LOWERED: ("lowered", "lowered for the calling thread, as threadpoolctl does"),
        TEAM_LIMIT: ("thread limit", f"OMP_THREAD_LIMIT={omp_get_thread_limit()}"),
        AFTER_FORK: ("fork", "forked where OpenMP's threads could not be paused"),
        SERIAL_BUILD: ("build", "built without OpenMP"),
    }[reason]


cdef int note_choice() except -1:
    cdef Reason reason
    cdef int threads = decide(&reason)
    note("threads", f"{threads}, {explained(reason, threads)[1]}")
    note("OpenMP", os.fsdecode(cg_openmp_path()) or "not in this build")
    for variable, text in (launcher_report()["ignored"] | ({"OMP_NUM_THREADS": ignored_counts} if ignored_counts else {})).items():
        note(variable, f"{text!r} is no count, and ignored")
    return 0


def get_num_threads() -> int:
    """Return the number of threads the next parallel region of the calling thread may use.

    `set_num_threads` decides, else `OMP_NUM_THREADS`, else the smallest of the affinity mask, the cgroup's CPU quota, and the share of a
    process among those that a launcher (MPI, Slurm, torchrun) has started on the node. `show_config()` says which it was.

    >>> import cygrad
    >>> cygrad.get_num_threads() >= 1
    True
    """
    cdef Reason reason
    return decide(&reason)


def set_num_threads(n: int) -> None:
    """Set the number of threads of parallel regions, for the whole process.

    The number may exceed the number of CPUs. Results have the same bits for every number, except results of BLAS and LAPACK
    compute; their threads are their own, see `threadpoolctl`. Raises RuntimeError unless n is an int from 1 to 1024.

    >>> import cygrad
    >>> before = cygrad.get_num_threads()
    >>> cygrad.set_num_threads(1)
    >>> cygrad.get_num_threads()
    1
    >>> cygrad.set_num_threads(before)
    """
    global requested
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    count = operator.index(n)
    if not 0 < count <= LARGEST_REQUEST:
        raise RuntimeError(f"set_num_threads expects a positive integer, at most {LARGEST_REQUEST}, but got {count}")
    requested = count
    cg_set_icv(count)
    note("threads", f"{count}, {explained(REQUEST, count)[1]}")


def thread_report() -> dict:
    """Return the number of threads of the calling thread's next region, the reason, and the limits considered."""
    cdef Reason reason
    cdef int threads = decide(&reason)
    source, sentence = explained(reason, threads)
    return {
        "threads": threads,
        "source": source,
        "reason": f"{sentence}; OMP_NUM_THREADS={ignored_counts!r} is no count, and ignored" if ignored_counts else sentence,
        "requested": requested or None,
        "affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cgroup_quota": cpu_quota(),
        "share": None if share == INT_MAX else share,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        "OMP_THREAD_LIMIT": os.environ.get("OMP_THREAD_LIMIT"),
        "openmp": bool(cg_openmp),
        "openmp_version": cg_openmp or None,
        "openmp_runtime": os.fsdecode(cg_openmp_path()) or None,
    }


def exchange_grains(sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    """Set the grain sizes of the cost classes, for tests and measurements, and return the former ones."""
    previous = (grain[0], grain[1], grain[2])
    grain[0], grain[1], grain[2] = sizes
    return previous


def region_threads() -> int:
    """Return the most threads a parallel region had since the last reset, 0 if there was none."""
    return cg_noted()


def reset_region_threads() -> None:
    """Forget the count of `region_threads`."""
    cg_note(0)


def compiler() -> str:
    """Return the version of the compiler this module was built with."""
    return CG_COMPILER.decode()


def denormal_mode() -> dict[str, bool]:
    """Return how the calling thread treats denormal numbers: {"flush_results", "zero_operands"}, normally False."""
    cdef int mode = cg_denormal_mode()
    return {"flush_results": bool(mode & 1), "zero_operands": bool(mode & 2)}
