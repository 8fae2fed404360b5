"""Blocks for tensor data: padding and alignment, reuse from the bounded cache, failures, and the counters.

Large means from 256 KiB on. Sizes are in float32 elements where tensors are made.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import textwrap

import pytest

import cygrad
from cygrad._kernels.system import allocator
from cygrad._testing import fail_alloc, live_bytes

KIB, MIB = 1024, 1024**2
CACHED, LARGE = 32 * KIB, 256 * KIB      # kept when freed; mapped


@pytest.fixture(autouse=True)
def empty_cache_and_old_limit():
    limit = allocator.get_cache_limit()
    allocator.empty_cache()
    yield
    allocator.set_cache_limit(limit)
    allocator.empty_cache()


def block(nbytes):
    return cygrad.empty(nbytes // 4)


def hits():
    return allocator.allocator_report()["hits"]


@pytest.mark.cases("nbytes", [0, 4, 64, 100, 4 * KIB, CACHED - 4, CACHED, LARGE - 4, LARGE, LARGE + 4, MIB, 2 * MIB, 5 * MIB + 12])
def test_live_bytes_come_back(nbytes):
    before = allocator.allocator_report()
    x = block(nbytes)
    assert live_bytes() >= before["live_bytes"] + nbytes
    del x
    after = allocator.allocator_report()
    assert (after["live_bytes"], after["live_blocks"]) == (before["live_bytes"], before["live_blocks"])


@pytest.mark.parametrize(
    ("nbytes", "alignment"),
    [(4, 16), (4 * KIB, 64), (5 * KIB + 4, 64), (CACHED, 64), (CACHED + 4, 64), (LARGE, 64), (MIB, 64), (2 * MIB, 2 * MIB),
     (7 * MIB + 4, 2 * MIB)],
)
def test_alignment(nbytes, alignment):
    blocks = [block(nbytes) for _ in range(5)]
    assert all(x.data_ptr() % alignment == 0 for x in blocks)


def test_the_last_one_freed_is_the_first_reused():
    first, second = block(MIB), block(MIB)
    pointers = [first.data_ptr(), second.data_ptr()]
    before = hits()
    del first, second
    again = [block(MIB), block(MIB)]
    assert [x.data_ptr() for x in again] == pointers[::-1]
    assert hits() == before + 2
    assert allocator.cached_bytes() == 0


def test_a_block_serves_its_size_class_only():
    """Classes are an eighth of a power of two apart, so at most 12.5 % is wasted."""
    x = block(MIB)
    pointer = x.data_ptr()
    del x
    assert block(MIB + 4).data_ptr() != pointer
    assert block(MIB * 15 // 16).data_ptr() != pointer
    assert block(MIB * 15 // 16 + 4).data_ptr() == pointer


def test_waste_is_bounded():
    for nbytes in (CACHED, CACHED + 4, LARGE - 4, LARGE, LARGE + 4, 9 * LARGE // 8, 9 * LARGE // 8 + 4, 3 * MIB - 4, 17 * MIB + 4):
        allocator.empty_cache()
        block(nbytes)
        assert nbytes <= allocator.cached_bytes() <= nbytes * 9 // 8 + 64 * KIB  # a page for the padding


def test_small_blocks_are_not_cached():
    block(CACHED - 4)
    assert allocator.cached_bytes() == 0


def test_mallocs_blocks_are_reused_and_given_back():
    x = block(CACHED)
    pointer = x.data_ptr()
    del x
    assert block(CACHED - 4).data_ptr() != pointer
    assert block(CACHED).data_ptr() == pointer
    for nbytes in (CACHED, 3 * CACHED, LARGE - 4):
        block(nbytes)
    allocator.set_cache_limit(0)
    assert allocator.cached_bytes() == 0
    assert live_bytes() >= 0


def test_cache_keeps_its_limit_and_drops_the_eldest():
    allocator.set_cache_limit(4 * MIB)
    blocks = [block(MIB) for _ in range(6)]
    pointers = [x.data_ptr() for x in blocks]
    while blocks:
        del blocks[0]
        assert allocator.cached_bytes() <= 4 * MIB
    blocks = [block(MIB) for _ in range(3)]
    assert [x.data_ptr() for x in blocks] == pointers[:2:-1]


def test_a_block_above_the_limit_is_not_kept():
    allocator.set_cache_limit(2 * MIB)
    block(MIB)
    before = allocator.cached_bytes()
    block(4 * MIB)
    assert allocator.cached_bytes() == before > 0


def test_lowering_the_limit_gives_memory_back():
    block(8 * MIB)
    assert allocator.cached_bytes() >= 8 * MIB
    allocator.set_cache_limit(0)
    assert allocator.cached_bytes() == 0
    block(MIB)
    assert allocator.cached_bytes() == 0


def test_limit_refuses_nonsense():
    with pytest.raises(ValueError, match="^set_cache_limit expects a number of bytes, 0 or more, but got -1$"):
        allocator.set_cache_limit(-1)
    with pytest.raises(TypeError):
        allocator.set_cache_limit(1.5)


def test_default_limit():
    """At most 2 GiB, and not the whole memory of a small machine."""
    script = "from cygrad._kernels.system.allocator import get_cache_limit; print(get_cache_limit())"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert 0 < int(printed.stdout) <= 2 * 1024**3


@pytest.mark.parametrize("nbytes", [40, 4 * KIB, MIB])
def test_injected_failure_hits_the_nth_allocation_once(nbytes):
    before = live_bytes()
    fail_alloc(2)
    first = block(nbytes)
    with pytest.raises(cygrad.OutOfMemoryError) as failure:
        block(nbytes)
    assert isinstance(failure.value, MemoryError)
    assert isinstance(failure.value, RuntimeError)
    third = block(nbytes)
    del first, third, failure
    assert live_bytes() == before


def test_injected_failure_ends_with_its_statement():
    with fail_alloc(3) as failure:
        block(MIB)
    assert not failure.fired
    for _ in range(5):
        block(MIB)


def test_every_allocation_of_an_operation_may_fail():
    """The first, second, ... fails until none is left to fail; each time memory is as it was before."""
    x = cygrad.ones(1000)
    before = live_bytes()
    for n in itertools.count(1):
        with fail_alloc(n) as failure, contextlib.suppress(cygrad.OutOfMemoryError):
            x.exp()
        assert live_bytes() == before
        if not failure.fired:
            break
    assert n > 1


@pytest.mark.parametrize("elements", [2**50, 2**60])
def test_more_memory_than_any_machine_has_is_refused_at_once(elements):
    before = live_bytes()
    with pytest.raises(RuntimeError):
        cygrad.empty(elements)
    assert live_bytes() == before


def run(script):
    """Run a script in a process of its own, for tests of the whole address space."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_full_address_space_empties_the_cache_first():
    run("""
        import resource
        import cygrad
        from cygrad._kernels.system import allocator
        mib = 1024 ** 2
        allocator.set_cache_limit(1024 * mib)
        x = cygrad.empty(200 * mib // 4)
        del x
        assert allocator.cached_bytes() >= 200 * mib
        with open("/proc/self/status") as status:
            used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmSize"))
        resource.setrlimit(resource.RLIMIT_AS, (used + 50 * mib, resource.RLIM_INFINITY))
        x = cygrad.empty(150 * mib // 4)
        assert allocator.cached_bytes() == 0
        try:
            cygrad.empty(150 * mib // 4)
        except cygrad.OutOfMemoryError:
            pass
        else:
            raise AssertionError("more memory than the limit allows")
    """)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("limit", [0, 64 * MIB])
def test_freed_memory_does_not_pile_up(limit):
    """Large blocks with small ones between them, all sizes different: freed blocks are reused or given back."""
    run(f"""
        import cygrad
        from cygrad._kernels.system import allocator
        allocator.set_cache_limit({limit})
        def resident():
            with open("/proc/self/statm") as statm:
                return int(statm.read().split()[1]) * 4096
        def fill(times):
            small = []
            for i in range(times):
                cygrad.ones(4_000_000 + 5000 * i)
                small.append(cygrad.ones(1000))
        fill(3)
        before = resident()
        fill(200)
        assert resident() - before < 32 * 1024 ** 2 + {limit}, resident() - before
    """)


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_cache_after_fork():
    """The child has the parent's cache as its own copy."""
    run("""
        import os
        import cygrad
        x = cygrad.ones(1 << 20)
        del x
        child = os.fork()
        y = cygrad.ones(1 << 20) if child else cygrad.ones(1 << 20).exp()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert float(y[12345]) == 1
    """)


@pytest.mark.skipif("libasan" not in os.environ.get("LD_PRELOAD", ""), reason="a matter of the build with sanitizers")
@pytest.mark.cases("nbytes", [4, 12, 64, 100, CACHED, LARGE + 4])
@pytest.mark.cases("where", ["behind", "inside", "freed"])
def test_the_address_sanitizer_guards_memory_outside_of_blocks(nbytes, where):
    """Two bytes are read: behind the data, the last ones of it, or in a block that lies in the cache."""
    script = f"""if True:
        import ctypes, cygrad
        x = cygrad.empty({nbytes // 4})
        address = x.data_ptr() + {dict(behind=nbytes, inside=nbytes - 2, freed=nbytes // 2)[where]}
        if {where == "freed"}:
            del x
        ctypes.memmove(ctypes.create_string_buffer(2), address, 2)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    if where == "inside" or where == "freed" and nbytes <= 64:      # the cached part of a small one is the next one's
        assert done.returncode == 0, done.stderr
    else:
        assert "AddressSanitizer: use-after-poison" in done.stderr or "AddressSanitizer: heap-use-after-free" in done.stderr
