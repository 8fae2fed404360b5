"""Functions of NumPy and SciPy that take no tensors: the error names the function and existing alternatives."""

import inspect
import re

import numpy as np
import pytest

import cygrad as cg

UFUNCS = sorted({value for value in vars(np).values() if isinstance(value, np.ufunc)}, key=lambda ufunc: ufunc.__name__)


def functions_of(module):
    return [(f"{module.__name__}.{name}", function) for name, function in sorted(vars(module).items())
            if callable(function) and not name.startswith("_") and not inspect.isclass(function)]


def refused_words(call):
    """Return the message of the TypeError that a call raises; None if it returns, or if its other arguments are wrong."""
    try:
        call()
    except TypeError as error:
        return str(error)
    except Exception:
        return None
    return None


def check_names(message):
    """Check that each name of cygrad's and each method of a tensor in a message exists."""
    for path in re.findall(r"\bcygrad\.((?:\w+\.)*\w+)", message):
        assert hasattr(cg, path.partition(".")[0]), message
    for name in re.findall(r"(?<!\.)\btensor\.(\w+)", message):
        assert hasattr(cg.Tensor, name), message
    assert "a cygrad function" not in message


@pytest.mark.cases("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_ufuncs_of_numpy(ufunc):
    for dtype in (cg.float64, cg.int64, cg.bool):
        message = refused_words(lambda dtype=dtype: ufunc(*[cg.ones(2, dtype=dtype)] * ufunc.nin))
        if message is not None and "is not supported on cygrad tensors" in message:
            assert message.startswith(f"np.{ufunc.__name__} is not supported on cygrad tensors: call it on tensor.detach().numpy()")
        if message is not None:
            check_names(message)


@pytest.mark.cases("name, function", lambda: [case for module in (np, np.linalg, np.fft) for case in functions_of(module)], ids=str)
def test_functions_of_numpy(name, function):
    if function in (np.save, np.savez, np.savez_compressed, np.savetxt, getattr(np, "test", None)) or "memmap" in name:
        return      # they write files, or run tests
    for count in (1, 2, 3):
        message = refused_words(lambda count=count: function(*[cg.ones(2, 2)] * count))
        if message is not None:
            check_names(message)


def exp(x):
    return x + 100


def test_a_ufunc_of_another_library_is_not_taken_for_the_one_of_its_name():
    other = np.frompyfunc(exp, 1, 1)
    assert other.__name__.startswith("exp")
    with pytest.raises(TypeError, match=r"^the ufunc 'exp.*' is not supported on cygrad tensors"):
        other(cg.ones(2))


def test_functions_of_scipy_name_scipy():
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    ufuncs = [(name, function) for name, function in vars(special).items() if isinstance(function, np.ufunc)]
    assert len(ufuncs) > 100
    x = cg.ones(2, dtype=cg.float64)
    for name, ufunc in ufuncs:
        if hasattr(cg.special, name):
            continue        # an operator
        message = refused_words(lambda ufunc=ufunc: ufunc(*[x] * ufunc.nin))
        assert message is not None, name
        if "is not supported on cygrad tensors" in message:
            assert re.match(r"(?:scipy\.special\.|np\.)\w+ is not supported on cygrad tensors", message), message
        check_names(message)
    with pytest.raises(TypeError, match=r"^scipy\.special\.hankel1 is not supported on .*: call it on tensor\.detach\(\)\.numpy\(\)$"):
        special.hankel1(x, x)
    with pytest.raises(TypeError, match=r"^scipy\.special\.cbrt is not supported .*: call it on tensor\.detach\(\)\.numpy\(\)"):
        special.cbrt(x)
