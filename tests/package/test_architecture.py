"""The shape of the house: imports run downwards, files are short, loops are vectorised, importing is quiet."""

import ast
import json
import platform
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import cygrad
import public
from cygrad._kernels.system import free_memory
from cygrad._kernels.system.threads import compiler

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cygrad"
GENERATED = PACKAGE / "_kernels" / "generated"
in_checkout = pytest.mark.skipif(not PACKAGE.is_dir(), reason="looks at the sources, and runs beside none")

# From the top, where users enter; modules in none of them are namespaces, between autograd and the core.
LAYERS = (
    ("cygrad.__main__", "cygrad.bench"),
    ("cygrad", "cygrad.config"),
    ("cygrad.utils",),
    ("cygrad.mpi",),
    ("cygrad.optimize", "cygrad.sparse"),
    ("cygrad.func",),
    ("cygrad.compiling", "cygrad.checkpoint"),
    ("cygrad.autograd",),
    (),
    ("cygrad._core",),
    ("cygrad._kernels",),
    ("cygrad.ops",),
)


def sources(*suffixes):
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in suffixes and GENERATED not in path.parents)


# ----- Layers -----
def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def layer(module):
    for number, prefixes in enumerate(LAYERS):
        if module in prefixes or any(module.startswith(f"{prefix}.") for prefix in prefixes if prefix != "cygrad"):
            return number
    return LAYERS.index(())


def is_module(name):
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or any(path.with_suffix(suffix).exists() for suffix in (".py", ".pyx", ".pxd"))


def nodes_inside(tree, kind, condition=lambda node: True):
    return {inner for node in ast.walk(tree) if isinstance(node, kind) and condition(node) for inner in ast.walk(node)}


def python_imports(path):
    """Yield (module, whether while importing) for imports that run; relative imports stay in their package."""
    tree = ast.parse(path.read_text())
    late = nodes_inside(tree, ast.FunctionDef)
    for_types = nodes_inside(tree, ast.If, lambda node: "TYPE_CHECKING" in ast.unparse(node.test))
    for node in set(ast.walk(tree)) - for_types:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node not in late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                yield (name if is_module(name) else node.module), node not in late


def cython_imports(path):
    for match in re.finditer(r"^( *)(?:from|c?import) +(cygrad[\w.]*)", path.read_text(), re.MULTILINE):
        yield match[2], not match[1]


@in_checkout
@pytest.mark.cases("path", lambda: sources(".py", ".pyx", ".pxd"), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_downwards(path):
    module = module_name(path)
    imports = python_imports(path) if path.suffix == ".py" else cython_imports(path)
    upwards = {
        name
        for name, early in imports
        if (name == "cygrad" or name.startswith("cygrad.")) and layer(name) < layer(module)
    }
    assert upwards == set()


@in_checkout
def test_no_circle_of_imports_between_python_modules():
    """Late imports count, too: dependences have one direction."""
    graph = {module_name(path): {name for name, _ in python_imports(path)} for path in sources(".py")}
    for module in TopologicalSorter({module: names & graph.keys() - {module} for module, names in graph.items()}).static_order():
        assert module in graph      # a circle raises CycleError, which names its modules


def run(code, *options):
    """Return the JSON that a fresh interpreter prints."""
    command = [sys.executable, *options, "-c", textwrap.dedent(code)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@in_checkout
def test_the_tables_need_neither_the_package_nor_anything_installed():
    """As the build reads them, which has no compiled module yet."""
    code = f"""
        import json, sys
        from importlib.util import module_from_spec, spec_from_file_location
        folder = {str(PACKAGE / "ops")!r}
        spec = spec_from_file_location("tables", folder + "/__init__.py", submodule_search_locations=[folder])
        sys.modules["tables"] = tables = module_from_spec(spec)
        spec.loader.exec_module(tables)
        assert len(tables.ELEMENTWISE) > 20
        print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
    """
    assert set(run(code, "-I", "-S")) <= {*sys.stdlib_module_names, "__main__", "tables"}


# ----- Sources -----
@in_checkout
def test_no_file_is_longer_than_600_lines():
    others = (path for folder in ("building", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py"))
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in (*sources(".py", ".pyx", ".pxd", ".h"), *others, ROOT / "setup.py")
    }
    assert {name: length for name, length in lengths.items() if length > 600} == {}


@in_checkout
@pytest.mark.skipif(not (GENERATED / "objects").exists(), reason="the loops are not built in place, or without optimisation")
@pytest.mark.skipif(not compiler().startswith("GCC"), reason="other compilers call scalars")
@pytest.mark.parametrize("level", ["v2", "v3", "v4", "native", "baseline"])
def test_loops_call_vector_mathematics_only(level):
    """A scalar call takes 25 times as long and may give other bits; filling and copying memory is harmless.

    The functions that loops share may call scalars: vectors of our own do, where there is no libmvec, for numbers far from 0. So may sums
    of powers, of a number of terms that depends on the operand.
    """
    objects = [line for line in (GENERATED / "objects").read_text().splitlines() if (ROOT / line).exists()]
    ours = [line for line in objects if line.endswith(f"_{level}.o") and "shared" not in line]
    if not ours:
        pytest.skip("this level is not built, or its objects are gone")

    def names(option, files):
        listing = subprocess.run(["nm", option, *files], cwd=ROOT, capture_output=True, text=True, check=True)
        return {line.split()[-1] for line in listing.stdout.splitlines() if " " in line}

    scalars = {f"cg_{name}{suffix}" for name in ("sin", "cos", "pow") for suffix in ("", "f")}
    called = names("-u", ours) - (names("--defined-only", objects) - scalars)
    assert {name for name in called if not name.startswith("_ZGV")} <= {"memset", "memcpy", "memmove", "_GLOBAL_OFFSET_TABLE_", "pow"}


@in_checkout
@pytest.mark.skipif(not (GENERATED / "messages").exists(), reason="not built in place, or without optimisation")
@pytest.mark.skipif(not re.match(r"GCC 12\b", compiler()), reason="each version warns of other things")
def test_the_compiler_warns_of_nothing():
    """Of the loops and of Cython's output, whenever the objects were made."""
    assert (GENERATED / "messages").read_text() == ""


@in_checkout
def test_levels_are_named_in_one_place():
    """A build for one processor has one of another name: a list of them is missing there, or not complete."""
    naming = {path.name for path in sources(".py", ".pyx", ".pxd", ".h") if re.search(r"_v[234]\b", path.read_text())}
    assert naming == {"levels.h"}


ARITHMETIC = re.compile(r"\bv?(?:add|sub|mul|div|sqrt|fn?m(?:add|sub)\d*)([sp])[sd]\b")      # of one number, or packed


@in_checkout
@pytest.mark.skipif(not (GENERATED / "objects").exists(), reason="the loops are not built in place, or without optimisation")
@pytest.mark.skipif(not re.match(r"GCC 1[2-5]\b", compiler()), reason="GCC 16 has no vectors of a choice between comparisons")
@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("objdump") is None, reason="reads instructions of x86-64")
@pytest.mark.parametrize("level", ["v2", "v3", "v4", "native"])
def test_loops_of_vector_mathematics_are_vectors(level):
    """Where one choice among comparisons is too many, the compiler says nothing, and a loop takes three times as long."""
    texts = [text for path in GENERATED.glob("*_loops.h") for text in path.read_text().split('#include "elementwise_template.h"')]
    vectors = {text.partition("#define NAME ")[2].partition("(")[2].partition(")")[0] for text in texts
               if re.search("#define (VECTORS|NARROW)", text) and "RESULT uint8_t" not in text}     # numbers to bools are fewer bytes
    objects = [line for line in (GENERATED / "objects").read_text().splitlines() if line.endswith(f"_{level}.o") and (ROOT / line).exists()]
    if not objects:
        pytest.skip("this level is not built, or its objects are gone")
    result, name = {}, ""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *objects], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        if line.endswith(">:"):
            name = line.partition("<")[2].removesuffix(f"_{level}>:")
        elif (operation := ARITHMETIC.search(line)) and name in vectors:
            result.setdefault(name, []).append(operation[1])
    assert len(result) > 20
    assert {name for name, kinds in result.items() if kinds.count("s") > kinds.count("p") + 10} == set()


@in_checkout
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc" or shutil.which("nm") is None, reason="needs glibc, and a tool that lists symbols")
def test_the_library_asks_for_no_newer_glibc_than_its_wheels_promise():
    """manylinux_2_28; a function with newer versions is bound to an older one, by `system/older_glibc.h`."""
    listing = subprocess.run(["nm", "-D", "--undefined-only", free_memory.__file__], capture_output=True, text=True, check=True).stdout
    versions = re.findall(r"(\w+)@GLIBC_2\.(\d+)", listing)
    assert len(versions) > 10
    assert {name for name, minor in versions if int(minor) > 28} == set()


@in_checkout
def test_directives_of_all_modules_stand_in_the_build():
    """A debug build states others, and a directive in a module has the last word."""
    everywhere = re.compile(r"# cython:.*(language_level|boundscheck=False|wraparound=False)")
    assert [str(path) for path in sources(".pyx", ".pxd") if everywhere.match(path.read_text())] == []


# ----- Importing -----
def test_importing_opens_few_files_and_starts_no_thread():
    before, after, threads = run("""
        import json, os, sys
        import __future__, numpy        # an editable installation has loaded the former
        def files():
            return sorted({module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)})
        def threads():
            return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
        before, running = files(), threads()
        import cygrad
        print(json.dumps([before, files(), threads() - running]))
    """)
    assert len(set(after) - set(before)) <= 25
    assert threads == 0


def test_importing_changes_no_global_state():
    before, after = run("""
        import json
        import atexit, decimal, gc, locale, os, random, signal, sys, threading, warnings
        import numpy
        def state():
            return {
                "array printing": repr(numpy.get_printoptions()),
                "floating-point errors": repr(numpy.geterr()),
                "denormals": float(numpy.float64(5e-324) * 1) != 0,
                "random numbers": [hash(random.getstate()), numpy.random.get_state()[1].tolist()],
                "garbage collection": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
                "signals": [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
                "at exit": atexit._ncallbacks(),
                "importing": repr([sys.path, [each for each in sys.meta_path if "_Watcher" not in repr(each)], sys.path_hooks]),
                "hooks": repr([sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook]),
                "limits": repr([sys.getrecursionlimit(), sys.getswitchinterval(), decimal.getcontext()]),
                "environment": dict(os.environ),
                "places": [os.getcwd(), locale.setlocale(locale.LC_ALL)],
                "warnings": repr(warnings.filters),
            }
        before = state()
        import cygrad
        print(json.dumps([before, state()]))
    """)
    assert after == before


# ----- Documentation -----
@pytest.mark.cases("name, text", lambda: public.docstrings().items())
def test_docstrings_open_with_a_sentence(name, text):
    summary = text.split("\n\n")[0]
    assert re.fullmatch(r"\S.*[^.\s]\.", summary, re.DOTALL)


def exists(dotted_name):
    thing, missing = cygrad, object()
    for name in dotted_name.split(".")[1:]:
        thing = getattr(thing, name, missing)
    return thing is not missing or is_module(dotted_name)


def headings(page):
    """Return the headings of a page as links name them."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)}


@in_checkout
@pytest.mark.parametrize("page", public.pages(), ids=lambda page: page.name)
def test_pages_name_only_existing_files(page):
    text = page.read_text()
    names = set(re.findall(r"(?<![\w./-])(?:cygrad|cg)(?:\.[A-Za-z]\w*)+(?![\w/])", text))
    assert {name for name in names if not exists(name) and not name.endswith(".xyz")} == set()

    files = set(re.findall(r"(?<![\w./-])(?:cygrad|tests|docs|benchmarks|examples)/[\w./-]*\w", text))
    assert {name for name in files if not (ROOT / name).exists()} == set()

    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)", text)
    assert {link for link, _ in links if not (page.parent / link).exists()} == set()
    assert {(link, place) for link, place in links if place and place not in headings(page.parent / link if link else page)} == set()

    targets = set(re.findall(r"`make ([a-z]+)`", text))
    assert targets <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    extras = {extra for group in re.findall(r"cygrad\[([\w,]+)\]", text) for extra in group.split(",")}
    assert extras <= set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@in_checkout
def test_the_map_names_functions_where_they_are():
    """A row names a file, then the action in it."""
    rows = re.findall(r"^\| [^|]+ \| `(cygrad/[\w/]+\.\w+)`((?:, `[\w.]+`)+) \|", (ROOT / "docs" / "map.md").read_text(), re.MULTILINE)
    missing = {(file, name) for file, names in rows for name in re.findall(r"(\w+)`", names)
               if not re.search(rf"\b(?:def|cdef|cpdef|class)\b.*\b{name}\b", (ROOT / file).read_text())}
    assert len(rows) > 10
    assert missing == set()


@in_checkout
def test_a_table_of_the_design_names_every_file():
    """Or a page of the API does, if it is a family of operators: so a stranger finds the purpose of each."""
    lines = [line for page in (ROOT / "docs" / "design").glob("*.md") for line in page.read_text().splitlines() if line.startswith("|")]
    named = {word for code in re.findall(r"`([^`]+)`", "".join(lines)) for word in re.findall(r"\w+", code)}
    named |= {page.stem for page in (ROOT / "docs" / "api").glob("*.md")}
    files = {path.stem for path in (*sources(".py", ".pyx", ".h"), *(ROOT / "building").rglob("*.py"))} - {"__init__", "__main__"}
    assert files - named == set()


def own_names():
    """Yield (module, operator, line) where the body of an operator writes the operator's name, alone or as `name()` in a message, or
    another function of the module begins a message with it. `rows[name]` is its row.
    """
    for path in sorted((PACKAGE / "operators").glob("*.py")):
        functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        operators = [function for function in functions if "operator" in " ".join(map(ast.unparse, function.decorator_list))]
        short = "|".join(re.sub("^(linalg|fft|special|signal_windows|nn_functional|mpi)_", "", function.name) for function in operators)
        for function in functions:
            keys = {id(node.slice) for node in ast.walk(function) if isinstance(node, ast.Subscript)}
            body = function.body[1:] if ast.get_docstring(function) else function.body
            name = rf"(.*_)?({short})_?\(\):.*" if short else "(?!)"
            if function in operators:
                name += rf"|{function.name}|(^|.*[ .]){function.name}_?\(\).*|{function.name}: .*"
            yield from ((path.name, function.name, node.lineno) for statement in body for node in ast.walk(statement)
                        if isinstance(node, ast.Constant) and re.fullmatch(name, str(node.value), re.DOTALL) and id(node) not in keys)


@in_checkout
def test_bodies_of_operators_do_not_write_their_names():
    """The declaration has the name once: errors take it from the operator."""
    assert list(own_names()) == []


def test_each_tuned_row_exists():
    from cygrad.ops.elementwise import ELEMENTWISE
    from cygrad.ops.reduction import REDUCTIONS
    from cygrad.ops.tuning import TUNING, Tuning

    assert {*TUNING} <= {*ELEMENTWISE, *REDUCTIONS}
    assert {field for fields in TUNING.values() for field in fields} == {*Tuning.__annotations__}


def functions_of(source):
    """Yield the name and the body of each function in a module of Cython."""
    for text in re.split(r"^(?=(?:    )?(?:cdef|cpdef|def) [^=\n]*\()", source, flags=re.MULTILINE)[1:]:
        head = re.match(r"\s*[^(]*?(\w+)\((?:[^)]|\)(?!.*:$))*?\)[^\n]*:\n", text)
        if head:
            yield head[1], text[head.end():]


@in_checkout
def test_functions_that_call_themselves_for_items_have_an_end():
    """A container of the user may contain itself."""
    endless = [(path.stem, name) for path in sources(".pyx") for name, body in functions_of(path.read_text())
               if "enter_container(" not in body and re.search(rf"(?<![\w.]){name}\((item\b|\w+, item\b|part\))", body)]
    assert endless == []
