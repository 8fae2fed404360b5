"""Packages that choose functions by the type of a tensor: registered when both are imported, in either order."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

import cygrad as cg

BACKENDS = """
class AbstractBackend:
    def is_appropriate_type(self, tensor):
        raise NotImplementedError
"""


def run(code, folder):
    """Run a program that finds packages in a folder; return its output, words by word."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n" + textwrap.dedent(code)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.fixture
def folder(tmp_path):
    """A folder with an einops of nothing but the class whose subclasses it looks for."""
    package = tmp_path / "einops"
    package.mkdir()
    (package / "__init__.py").write_text("from . import _backends\n")
    (package / "_backends.py").write_text(BACKENDS)
    return tmp_path


@pytest.mark.parametrize("first", ["einops", "cygrad"])
def test_a_package_is_registered_with_in_either_order(first, folder):
    second = {"einops": "cygrad", "cygrad": "einops"}[first]
    assert run(f"""
        import {first}, {second}
        (kind,) = einops._backends.AbstractBackend.__subclasses__()
        print(kind.framework_name, kind().is_appropriate_type(cygrad.ones(2)), kind().is_appropriate_type([]))
        print(type(einops.__loader__).__name__, einops.__spec__.loader is einops.__loader__)
    """, folder) == ["cygrad", "True", "False", "SourceFileLoader", "True"]


def test_importing_cygrad_imports_no_other_package(folder):
    assert run("import cygrad, sys; print('einops' in sys.modules, 'cygrad.neighbours' in sys.modules)", folder) == ["False", "False"]


def test_a_package_of_another_make_is_warned_of(folder):
    (folder / "einops" / "_backends.py").write_text("")
    words = run("""
        import warnings, cygrad
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import einops
        print(*(each.message for each in caught))
    """, folder)
    assert " ".join(words).startswith("cygrad could not register its tensors with einops: AttributeError")


def test_a_package_that_is_not_there_is_not_found(tmp_path):
    assert run("""
        import cygrad
        try:
            import einops_of_another
        except ModuleNotFoundError as error:
            print(error.name)
    """, tmp_path) == ["einops_of_another"]


needs_einops = pytest.mark.skipif(importlib.util.find_spec("einops") is None, reason="einops is not installed")
needs_autoray = pytest.mark.skipif(importlib.util.find_spec("autoray") is None, reason="autoray is not installed")


@needs_einops
def test_einops():
    import einops
    x = cg.arange(24.0).reshape(2, 3, 4).requires_grad_()
    assert einops.rearrange(x, "a b c -> (a c) b").shape == (8, 3)
    assert einops.repeat(x, "a b c -> a b c d", d=2).shape == (2, 3, 4, 2)
    assert einops.rearrange([x, x], "n a b c -> a n b c").shape == (2, 2, 3, 4)
    assert einops.einsum(x, x, "a b c, a b d -> c d").shape == (4, 4)
    for name in ("sum", "mean", "min", "max", "prod"):
        expected = {"min": x.amin((0, 2)), "max": x.amax((0, 2)), "prod": x.prod(2).prod(0)}.get(name)
        expected = getattr(x, name)((0, 2)) if expected is None else expected
        assert cg.equal(einops.reduce(x, "a b c -> b", name), expected)
    einops.reduce(x, "a b c -> ", "mean").backward()
    assert cg.allclose(x.grad, cg.full((2, 3, 4), 1 / 24))


@needs_autoray
def test_autoray():
    import autoray
    x = cg.arange(6.0).reshape(2, 3)
    assert autoray.infer_backend(x) == "cygrad" and autoray.to_numpy(x).shape == (2, 3)
    assert autoray.do("expand_dims", x, 0).shape == (1, 2, 3) and autoray.astype(x, "float64").dtype == cg.float64
    assert autoray.do("power", x, 2).tolist() == (x * x).tolist() and autoray.do("max", x).item() == 5
    assert autoray.do("take", x, cg.tensor([0, 2]), axis=1).shape == (2, 2)
    assert autoray.do("sort", -x).tolist() == (-x).sort().values.tolist()
    assert autoray.do("zeros", (2, 3), dtype="float64", like=x).dtype == cg.float64 and autoray.do("eye", 2, 3, like=x).shape == (2, 3)
    assert autoray.do("random.uniform", size=(4,), like=x).shape == (4,)
