"""`pytest_cygrad`, the plugin of pytest: fixtures that check gradients, and nothing imported before a test asks for one."""

import os
import subprocess
import sys
from pathlib import Path

import cygrad

USERS = '''\
import cygrad

def test_right(gradcheck, gradgradcheck):
    x = cygrad.tensor([0.5, 1.0], dtype=cygrad.float64, requires_grad=True)
    assert gradcheck(cygrad.exp, x) and gradgradcheck(cygrad.exp, x)
    assert not gradcheck(lambda x: x * x.detach(), x, raise_exception=False)

def test_wrong(gradcheck):
    x = cygrad.tensor([0.5, 1.0], dtype=cygrad.float64, requires_grad=True)
    gradcheck(lambda constant, x: constant * x * x.detach(), (x.detach().clone(), x))
'''


def run(folder, *arguments):
    places = {"PYTHONPATH": str(Path(cygrad.__file__).parents[1]), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, **places}, capture_output=True, text=True, timeout=60)


def test_a_wrong_gradient_fails_at_the_line_of_the_test(tmp_path):
    (tmp_path / "test_users.py").write_text(USERS)
    report = run(tmp_path, "-m", "pytest", "-p", "pytest_cygrad", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".").stdout
    assert "1 failed, 1 passed" in report, report
    assert "Jacobian mismatch for output 0 with respect to input 0" in report
    assert "Only tensors that require gradients have a number: input 0 = argument 1." in report
    assert f"test_users.py:{len(USERS.splitlines())}: Failed" in report
    assert "gradcheck/__init__.py" not in report


def test_a_start_of_pytest_does_not_import_the_package(tmp_path):
    result = run(tmp_path, "-c", "import sys, pytest_cygrad; print({'cygrad', 'numpy'} & {*sys.modules})")
    assert result.stdout == "set()\n", result.stderr
