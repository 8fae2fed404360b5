"""The rooms of the core: imports run downwards between them, calls upwards are declared in one file, memory has one door."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "cygrad" / "_core"
SOURCES = sorted(CORE.glob("*/*.p[yx][xd]"))
KERNELS = sorted((ROOT / "cygrad" / "_kernels").glob("*/*.p[yx][xd]"))
UPWARD = CORE / "memory" / "upward.pxd"
pytestmark = pytest.mark.skipif(not SOURCES, reason="looks at the sources, and runs beside none")

CYCLES = {"graph", "levels"}        # rooms of types that have fields of each other
SEE_UNSETTLED = {"graph/saved.pyx", "graph/tensor.pxd", "graph/tensor.pyx", "operands/operands.pyx", "programs/pending.pyx"}
MOST_UPWARD_CALLS = 14


def drawn():
    """Return {room: its modules} as the design page draws them, the highest first; a room may have several lines."""
    text = (ROOT / "docs" / "design.md").read_text()
    drawing = re.search(r"^cygrad\._core .*\n((?:   +\w.*\n)+)", text, re.MULTILINE)[1]
    lines = re.sub(r"\n {10,}", "  ", drawing).splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


ROOMS = drawn() if SOURCES else {}
ORDER = [*reversed(ROOMS)]      # the lowest first


def imports(path):
    """Yield (room, module) of all that a source imports from the core, at once or late."""
    for module, names in re.findall(r"^ *(?:from|c?import) +cygrad\._core\.([\w.]+)(?: +c?import +\(?([\w, ]+))?", path.read_text(), re.M):
        room, _, name = module.partition(".")
        yield from ((room, name or each.strip()) for each in (names.split(",") if not name else [name]))


def test_the_page_draws_the_modules_of_each_room():
    there = {room.name: sorted({path.stem for path in room.glob("*.pyx")}) for room in CORE.iterdir() if (room / "__init__.py").exists()}
    assert {room: sorted(modules) for room, modules in ROOMS.items()} == there


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_imports_run_downwards_between_rooms(path):
    floor = ORDER.index(path.parent.name)
    assert {f"{room}.{module}" for room, module in imports(path) if ORDER.index(room) > floor} == set()


@pytest.mark.parametrize("room", sorted({*ORDER} - CYCLES))
def test_imports_run_in_no_circle_within_a_room(room):
    inside = {path.stem: set() for path in (CORE / room).glob("*.pyx")}
    for path in (CORE / room).glob("*.p[yx][xd]"):
        inside[path.stem] |= {module for other, module in imports(path) if other == room and module != path.stem}
    while free := [module for module, others in inside.items() if not others]:
        inside = {module: others.difference(free) for module, others in inside.items() if module not in free}
    assert inside == {}


@pytest.mark.parametrize("room", ORDER)
def test_rooms_state_their_promises_and_the_rooms_that_they_use(room):
    """Nothing else stands in their `__init__.py`, which is not read on import."""
    (sentence,) = ast.parse((CORE / room / "__init__.py").read_text()).body
    text = ast.get_docstring(ast.Module([sentence], []))
    assert len(text.splitlines()) <= 5
    assert "\nPromises " in text and "\nUses " in text


# ----- Upwards -----
def test_all_calls_that_run_upwards_are_declared_in_one_file():
    text = UPWARD.read_text()
    calls = re.findall(r"^    cdef [\w ]+ (\w+) +# (\w+)\.(\w+) <- ([\w.]+): .+$", text, re.MULTILINE)
    assert [name for name, *_ in calls] == re.findall(r"^    cdef [\w ]+? (\w+) *(?:#.*)?$", text, re.MULTILINE)
    assert len(calls) <= MOST_UPWARD_CALLS
    core = {f"{path.parent.name}.{path.stem}": path.read_text() for path in SOURCES if path.suffix == ".pyx"}
    python = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in (ROOT / "cygrad").rglob("*.py")}
    for name, room, module, answers in calls:
        if not answers.startswith("cygrad."):
            assert ORDER.index(room) < ORDER.index(answers.partition(".")[0]), name
        fills = rf"^upward\.{name}(?:, upward\.\w+)* = |^upward\.\w+, upward\.{name} = |^fill\((?:.*[ (])?{name}="
        assert [where for where, text in (core | python).items() if re.search(fills, text, re.MULTILINE)] == [answers], name
        asks = rf"\bupward\.{name}\b(?!(?:, upward\.\w+)* = )"
        assert [where for where, text in core.items() if re.search(asks, text)] == [f"{room}.{module}"], name


def rows_of_the_page(heading):
    """Return the cells of the rows of the table below a heading of the design page."""
    section = (ROOT / "docs" / "design.md").read_text().split(heading)[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| `")]


def test_functions_handed_downwards_are_listed():
    """A variable of a module that a function sets and another calls is a call upwards that no import shows."""
    variables = {}
    for path in (*SOURCES, *KERNELS, *sorted((ROOT / "cygrad").rglob("*.py"))):
        text = path.read_text()
        assigned = {name.strip() for names in re.findall(r"^ +global ([\w, ]+)$", text, re.MULTILINE) for name in names.split(",")}
        for name in assigned:
            if re.search(rf"(?<![\w.]){name}\(", text):
                variables[name] = f"{path.parent.name}.{path.stem}"
    assert {row[0].strip("`"): row[1].strip("`") for row in rows_of_the_page("### Functions set from above")} == variables


def test_a_name_is_one_function():
    """Functions of compiled modules are cimported by their names: each is defined once, so that a search finds the one that is called."""
    defined = {}
    for path in (*SOURCES, *KERNELS):
        if path.suffix == ".pyx":
            for name in re.findall(r"^(?:cdef|cpdef|def)\s[^\n(=:]*?\b(\w+)\(", path.read_text(), re.MULTILINE):
                defined.setdefault(name, set()).add(path.name)
    assert {name: files for name, files in defined.items() if len(files) > 1} == {}


def test_calls_by_name_do_not_grow():
    """Methods of tensors, and rules of operators, that the core asks for by name are answered above it."""
    text = "".join(path.read_text() for path in SOURCES if path.suffix == ".pyx")
    methods, rules = re.findall(r"\(<object>\s*[\w.\[\]]+\)\.\w+", text), re.findall(r'rule_op\("(\w+)"[,)]', text)
    counts = {"methods": len(methods), "rules": len({*rules})}
    page = (ROOT / "docs" / "design.md").read_text()
    for kind, count in counts.items():
        limit = int(re.search(rf"(\d+) {kind} by name", page)[1])
        assert count <= limit, f"{kind}: import it, or raise the number in docs/design.md: a compiled view is one rule more"


# ----- Kernels -----
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_kernels_import_downwards_and_nothing_of_the_core(path):
    """`programs` and `matrices` use `drivers`, and all use `system`; no kernel imports anything above."""
    rooms = re.findall(r"^ *(?:from|c?import) +cygrad\.(_core|_kernels\.\w+)", path.read_text(), re.MULTILINE)
    order = ("system", "drivers", path.parent.name)         # `programs` and `matrices` stand side by side
    assert {room.removeprefix("_kernels.") for room in rooms} <= {*order[:order.index(path.parent.name) + 1]}


def test_matrices_are_included_by_one_header():
    """`kernel.h` is the interface; beside it the unit of each level is compiled from `blocked_levels.h`."""
    sources = [path for path in (ROOT / "cygrad").rglob("*") if path.suffix in (".pyx", ".pxd", ".h", ".py")]
    outside = [path for path in sources if path.parent.name != "matrices"]
    included = {name for path in outside for name in re.findall(r'["/]matrices/(\w+\.h)', path.read_text())}
    assert included <= {"blocked_levels.h"}
    interface = (ROOT / "cygrad/_kernels/matrices/loops.pxd").read_text()
    assert re.findall(r'"matrices/(\w+\.h)', interface) == ["kernel.h"]


@pytest.mark.parametrize("room", ["programs", "drivers", "matrices", "system"])
def test_kernels_import_in_no_circle(room):
    inside = {path.stem: set() for path in KERNELS if path.parent.name == room and path.suffix == ".pyx"}
    for path in KERNELS:
        if path.parent.name == room and path.stem in inside:
            modules = re.findall(rf"cygrad\._kernels\.{room}\.(\w+)", path.read_text())
            inside[path.stem] |= {module for module in modules if module in inside} - {path.stem}
    while free := [module for module, others in inside.items() if not others]:
        inside = {module: others.difference(free) for module, others in inside.items() if module not in free}
    assert inside == {}


def test_no_module_has_a_parallel_loop_of_cython():
    """Such a loop gives the GIL away, also in a function without it: other threads would see a change in place half done."""
    assert [path.name for path in [*SOURCES, *KERNELS] if "prange" in path.read_text() and path.name != "threads.pxd"] == []


# ----- Memory -----
def test_the_address_of_elements_has_one_door():
    """A read of memory before pending results are computed would read old values: address() computes them."""
    seen = {f"{path.parent.name}/{path.name}" for path in SOURCES if re.search(r"\bunsettled\b", path.read_text())}
    assert seen == SEE_UNSETTLED


def test_the_page_lists_all_that_touch_memory():
    """By the functions that they ask for an address: kernels are launched, others look, or give memory away."""
    text = (ROOT / "docs" / "design" / "programs.md").read_text()
    drawn_callers, shortcuts = {}, set()
    for why, functions, modules in re.findall(r"^\| ([^|]+) \| (`\w*address`[^|]*) \| ([^|]+) \|$", text, re.M):
        for name in re.findall(r"\w+", functions):
            drawn_callers.setdefault(name, set()).update(re.findall(r"\w+", modules))
        if why.startswith("a short cut"):
            shortcuts.update(re.findall(r"\w+", modules))
    there, notes = {}, set()
    for path in SOURCES:
        source = path.read_text()
        for name in set(re.findall(r"\b((?:value_|new_|look_|export_)?address)\(", source)):
            if path.name != "tensor.pxd":
                there.setdefault(name, set()).add(path.stem)
        if re.search(r"\bnoted\b", source):
            notes.add(path.stem)
    together = "address", "value_address", "new_address"
    assert set().union(*(drawn_callers[name] for name in together)) == set().union(*(there[name] for name in together))
    assert {name: drawn_callers[name] for name in ("look_address", "export_address")} == {
        name: there[name] for name in ("look_address", "export_address")}
    assert shortcuts <= notes
