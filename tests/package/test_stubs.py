"""Type stubs and pages of the API: as the tables have them, of the names and signatures that are there at run time, and of use to mypy."""

import ast
import functools
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest

import cygrad
import typing_sample

PACKAGE = Path(cygrad.__file__).parent
stubs = importlib.import_module("cygrad.operators._written.stubs")
catalogue = importlib.import_module("cygrad.operators._written.catalogue")
needs_pyright = pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason="pyright is not installed")
needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")


def is_public(name):
    return not name.startswith("_") or name.startswith("__")


# ----- Up to date -----
@pytest.mark.parametrize("path", stubs.PATHS, ids=lambda path: path.name)
def test_stubs_agree_with_the_tables(path):
    assert path.read_text() == stubs.stub(path), "run `python -m building.operators`"


def test_the_registry_agrees_with_the_declarations():
    assert catalogue.REGISTRY.read_text() == catalogue.registry(), "run `python -m building.operators`"


def test_pages_of_the_api_agree_with_the_declarations():
    pages = pytest.importorskip("building.operators.pages", reason="needs the sources")
    assert {path: path.read_text() for path in pages.FOLDER.glob("*.md")} == pages.pages(), "run `python -m building.operators`"


def test_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


# ----- Names -----
# Declarations of stubs that a class does not show: attributes that __init__ sets, and a slot that Cython fills without a name.
UNSEEN = {"id", "__getattr__"}


def names(body):
    """Return the names that statements of a stub or a class define; an import counts if it is renamed, to any name."""
    results = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            results.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            results.add(node.target.id)
        elif isinstance(node, ast.Assign):
            results |= {target.id for target in node.targets}
        elif isinstance(node, ast.ImportFrom):
            results |= {alias.asname for alias in node.names if alias.asname}
    return results


def class_named(path, name):
    return next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef) and node.name == name)


@pytest.mark.parametrize("path", [path for path in stubs.PATHS if path != stubs.METHODS], ids=lambda path: path.name)
def test_functions_are_the_functions_of_the_package(path):
    place = attrgetter(stubs.OF_NAMESPACES[path])(cygrad) if path in stubs.OF_NAMESPACES else cygrad
    stub = {name for name in names(ast.parse(path.read_text()).body) if not name.startswith("_")}
    package = {name for name in dir(place) if not name.startswith("_")}
    modules = {name for name in package if isinstance(getattr(place, name), ModuleType)}
    assert package - modules - stub == set()
    assert stub - package == set()


def test_methods_are_the_methods_of_tensor():
    stub = names(class_named(stubs.METHODS, "TensorBase").body) | names(class_named(PACKAGE / "tensor.py", "Tensor").body)
    tensor = set(dir(cygrad.Tensor))
    assert {name for name in tensor - stub if not name.startswith("_")} == set()
    assert {name for name in stub - tensor if is_public(name)} <= {"__buffer__"}        # Python's from 3.12 on


COMPILED = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
            for folder in ("_core", "_kernels") for path in sorted((PACKAGE / folder).glob("*/*.pyi"))}
COMPILED_MODULES = sorted(module.__name__ for name, module in sys.modules.items() if name.startswith("cygrad.")
                          and isinstance(module.__spec__.loader, ExtensionFileLoader))


@functools.cache
def declared_operators():
    """Return {compiled function: operator that is declared with it}."""
    modules = {entry.module: importlib.import_module(entry.module) for entry in catalogue.entries()}
    operators = [getattr(modules[entry.module], entry.name) for entry in catalogue.entries()]
    return {operator.function: operator for operator in operators if operator.function is not operator.__wrapped__}


def test_stubs_belong_to_compiled_modules():
    assert COMPILED.keys() - set(COMPILED_MODULES) == set()


@pytest.mark.cases("name", COMPILED_MODULES)
def test_stubs_of_compiled_modules_name_their_functions(name):
    """A module that offers nothing to Python has no stub."""
    module = importlib.import_module(name)
    body = ast.parse(COMPILED[name].read_text()).body if name in COMPILED else []
    assert names(body) or name not in COMPILED
    present = {name for name in names(body) if is_public(name) and name != "__getattr__"}
    assert {name for name in present if not hasattr(module, name)} == set()

    own = {name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__}
    described = {name for name in own if getattr(module, name) in declared_operators()}
    assert {name for name in own if not name.startswith("_")} - described <= present
    for node in body:
        if isinstance(node, ast.ClassDef) and hasattr(module, node.name) and node.name != "TensorBase":
            cls = getattr(module, node.name)
            missing = {name for name in names(node.body) if not hasattr(cls, name) and name not in UNSEEN}
            assert missing == set(), node.name


# ----- Signatures -----
def parameters(function):
    """Return {name: (kind, has default)}; catch-alls and another spelling of a parameter, which wrappers take, excepted."""
    catch_all = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {parameter.name: (parameter.kind, parameter.default is not parameter.empty)
            for parameter in inspect.signature(function).parameters.values() if parameter.kind not in catch_all}


def by_hand():
    """Return [(qualified name, function, its declaration)] of declarations by hand in stubs, without overloads."""
    pairs = [(cygrad, stubs.FUNCTIONS), *((attrgetter(space)(cygrad), path) for path, space in stubs.OF_NAMESPACES.items())]
    pairs += [(importlib.import_module(name), path) for name, path in COMPILED.items()]
    results = []
    for module, path in pairs:
        text = stubs.by_hand(path) if path in stubs.PATHS else path.read_text()
        results += [(f"{module.__name__}.{node.name}", getattr(module, node.name), node) for node in ast.parse(text).body
                  if isinstance(node, ast.FunctionDef) and not node.decorator_list and node.name != "__getattr__"]
    return results


@pytest.mark.cases("operator", lambda: declared_operators().values(), ids=lambda operator: operator.__name__)
def test_declarations_have_the_signatures_of_the_compiled_functions(operator):
    assert parameters(operator.__wrapped__) == parameters(operator.function)


@pytest.mark.cases("name, function, node", by_hand)
def test_signatures_by_hand_equal_the_signatures_of_the_functions(name, function, node):
    node.returns, node.decorator_list = None, []
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])):
        argument.annotation = None
    namespace = {}
    exec(ast.unparse(node), namespace)
    declared, actual = parameters(namespace[node.name]), parameters(function)
    for theirs in ("axis", "keepdims"):
        if theirs not in actual and {"axis": "dim", "keepdims": "keepdim"}[theirs] in actual:
            declared.pop(theirs, None)
    keywords = any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(function).parameters.values())
    assert {name: kind for name, kind in declared.items() if name in actual or not keywords} == actual


@pytest.mark.cases("name", sorted(stubs.ELEMENTWISE))
def test_signatures_of_rows_have_the_names_of_their_operators(name):
    from cygrad._core.compute.dispatch import ops
    declared = [parameter.partition(":")[0] for parameter in stubs.parameters_of(stubs.ELEMENTWISE[name])]
    assert tuple(declared) == ops[name].arguments


# ----- mypy and pyright -----
@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Return a function that runs mypy as strictly as it can be on a file, and returns its report."""
    cache = tmp_path_factory.mktemp("mypy")
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={cache}"]

    def run(path):
        command = [sys.executable, "-m", "mypy", *options, str(path)]
        result = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True)
        assert not result.stderr, result.stderr
        return result.stdout

    return run


@pytest.mark.slow
@needs_mypy
def test_mypy_accepts_programs_of_users(mypy):
    report = mypy(typing_sample.__file__)
    assert report.startswith("Success"), report


@pytest.fixture
def pyright():
    """Return a function that runs pyright on a file, and returns its report."""
    def run(path):
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(path)]
        return subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True).stdout

    return run


@pytest.mark.slow
@needs_pyright
def test_pyright_accepts_programs_of_users(pyright):
    report = pyright(typing_sample.__file__)
    assert "0 errors, 0 warnings" in report, report


WRONG = """\
import cygrad
x = cygrad.zeros(2, 3, requires_grad=True)
cygrad.exp("text")  # arg-type
cygrad.zeros("text")  # call-overload, arg-type
cygrad.tensor([1.0], dtype="float32")  # arg-type
cygrad.no_such_function(x)  # attr-defined
x.no_such_method()  # attr-defined
x.exp(1)  # call-arg, arg-type, misc
x.add_("text")  # arg-type
x.div(2, rounding_mode="up")  # arg-type
x.sum(dim="rows")  # arg-type
x["column"]  # index
x + "text"  # operator
x.grad + 1  # operator
x.shape = (3, 2)  # misc, assignment
size: str = x.size(0)  # assignment
values, indices = x.max()
value, place, more = x.max(dim=0)  # misc
x.matmul(x.t()).backward("text")  # arg-type
cygrad.softplus(x, beta="text")  # arg-type
cygrad.stack(x, dim=None)  # arg-type
"""


@pytest.mark.slow
@needs_mypy
def test_mypy_rejects_wrong_code(mypy, tmp_path):
    """Each line of WRONG with a comment is reported, by an error the comment names."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    report = mypy(wrong)
    reported = {int(number): code for number, code in re.findall(r"wrong\.py:(\d+): error.*\[([\w-]+)\]", report)}
    expected = {number: line.partition("# ")[2] for number, line in enumerate(WRONG.splitlines(), 1) if "# " in line}
    assert reported.keys() == expected.keys(), report
    assert {number: code for number, code in reported.items() if code not in expected[number].split(", ")} == {}


@pytest.mark.slow
@needs_pyright
def test_pyright_rejects_wrong_code(pyright, tmp_path):
    """The same lines."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    report = pyright(wrong)
    reported = {int(number) for number in re.findall(r"wrong\.py:(\d+):\d+ - error: ", report)}
    assert reported == {number for number, line in enumerate(WRONG.splitlines(), 1) if "# " in line}, report


def test_the_sample_runs():
    assert typing_sample.train() > 0
    assert typing_sample.shapes(cygrad.rand(3, 4)) == (2, 1, 1, 2, 2)
    assert len(typing_sample.second_derivative()) == 3
    assert typing_sample.descent(cygrad.ones(3), 5).shape == (3,) and typing_sample.objective()[0] == 5.0
