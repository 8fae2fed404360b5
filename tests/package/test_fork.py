"""Fork while another thread holds a lock: the child, where that thread does not exist, computes on."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import cygrad

PACKAGE = Path(cygrad.__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

PRELUDE = """
    import os, signal, threading
    import cygrad as cg

    locked, over = threading.Event(), threading.Event()

    def hold(lock):
        with lock:
            locked.set()
            over.wait()

    def fork_while(function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        thread.start()
        locked.wait()
        child = os.fork()
        if child:
            status = os.waitpid(child, 0)[1]
            over.set()
            thread.join()
            assert status == 0, status
            os._exit(0)
        signal.alarm(10)
"""

# Where it is made: the code that holds it in another thread while this one forks, then the child's code.
LOCKS = {
    "numpy.random": """
        generator = cg.Generator().manual_seed(5)
        expected = cg.rand(3, generator=cg.Generator().manual_seed(5))
        fork_while(hold, generator._stream.bit_generator.lock)
        assert cg.equal(cg.rand(3, generator=generator), expected)
    """,
    "numpy.random, default generator": """
        cg.manual_seed(5)
        fork_while(hold, cg.random.default_generator._stream.bit_generator.lock)
        cg.rand(3)
        cg.manual_seed(5)
    """,
    "the default generator is being made": """
        from cygrad import generator
        class Slow(cg.Generator):
            __slots__ = ()
            def _begin(self, *arguments):
                if threading.current_thread() is not threading.main_thread():
                    locked.set()
                    over.wait()
                super()._begin(*arguments)
        generator.Generator = Slow
        fork_while(cg.rand, 3)
        cg.rand(3)
    """,
    "cygrad/checkpoint/loop.py": """
        x = cg.ones(2, requires_grad=True)
        out = cg.checkpoint.checkpoint_loop(lambda state, number: state * 2, x, 4, snapshots=2)
        loop = out.grad_fn.loop
        fork_while(hold, loop.running)
        try:
            out.sum().backward()
        except RuntimeError as error:       # the other thread's work cannot be finished here
            assert "is running in another thread" in str(error)
    """,
    "cygrad/func/loop_levels.py": """
        from cygrad.func import control, loop_levels, looping, scan, vmap
        control.LOOPED_FROM = looping.LOOPED_FROM = 8
        w = cg.eye(3).requires_grad_()
        value = vmap(lambda c: scan(lambda c, x: (c.sin() @ w, None), c, length=20)[0])(cg.ones(2, 3)).sum()
        def resume():
            with loop_levels.RESUMING, loop_levels.resumed(levels):
                locked.set()
                over.wait()
        from cygrad._core.levels.level import enter_level, exit_level
        levels = (enter_level(2, "error"),)
        exit_level(levels[0])
        fork_while(resume)
        with loop_levels.RESUMING, loop_levels.resumed(levels):
            assert levels[0].is_active()
        first, = cg.autograd.grad(value, w, create_graph=True)
        assert cg.autograd.grad(first.sum(), w)[0].isfinite().all()
    """,
    "cygrad/autograd/reentry.py": """
        from cygrad.autograd.reentry import in_new_thread
        fork_while(in_new_thread, lambda: (locked.set(), over.wait()))
        assert in_new_thread(lambda: 7) == 7
    """,
    "a parallel region": """
        x = cg.ones(1 << 22)
        def compute():
            while not over.is_set():
                x.exp()
                locked.set()
        fork_while(compute)
        x.exp()
        (cg.ones(1 << 20, requires_grad=True).tanh() * 2).sum().backward()
    """,
}


def test_every_lock_of_the_package_is_here():
    kinds = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"}
    made = set()
    for path in PACKAGE.rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text()))]
        names = {f"threading.{kind}" for kind in kinds} | {
            alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "threading"
            for alias in node.names if alias.name in kinds}
        if any(isinstance(node, ast.Call) and ast.unparse(node.func) in names for node in nodes):
            made.add(str(path.relative_to(PACKAGE.parent)))
    assert made and made <= LOCKS.keys()
    assert not [path for path in PACKAGE.rglob("*.pyx") if "mutex" in path.read_text() or "Lock(" in path.read_text()]


@pytest.mark.parametrize("lock", LOCKS)
def test_fork_while_another_thread_holds_a_lock(lock):
    program = textwrap.dedent(PRELUDE) + textwrap.dedent(LOCKS[lock])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
