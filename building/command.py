"""setuptools' command `build_ext`: generate the loops, translate Cython to C, compile and link, as far as anything changed.

`--debug` builds with bounds checks and assertions; its objects lie beside the normal build's.
"""

import importlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy
from setuptools.command.build_ext import build_ext

from building import native
from building.compiler import CALLS, LOOPS, ONE_VERSION, RARE, SELDOM, SHORT, SMALLEST, Compiler, messages_of
from building.translation import COMMON, common_translation, translation_of
from building.units import Unit, build_units

PACKAGE, GENERATED = Path("cygrad"), Path("cygrad/_kernels/generated")
MODULES = sorted(PACKAGE.glob("**/*.pyx"))
# Rooms and modules whose own code takes no time beside the functions it calls: half as much where it is to be small. Loops of matrices are
# short, or LAPACK's, and the engine is no slower. The executor's addresses would become vectors, and then numbers again.
OPTIMIZATION = {**dict.fromkeys(("capture", "notes", "noted_calls", "buffers", "exchange", "system", "levels", "by_hand", "handles",
                                 "formats", "dtype_views", "rows", "special", "hooks", "boxes", "gathering", "stepped", "windows",
                                 "convolution", "arrays", "shadow", "checking", "profiling", "strided", "settings", "pending",
                                 "deferred", "pending_reductions", "contraction", "rules", "replay", "looks", "diagonals", "filling",
                                 "tracking", "creation", "writes", "upward", "checks", "derivatives", "splitting", "lookups", "bands",
                                 "distances", "patches", "points", "sparse_rows", "grid_sums", "moving", "groups",
                                 "running", "rewriting", "planning", "steps", "passes", "tiles", "saved", "weights"), SELDOM),
                "linked": [*CALLS, "-fno-tree-slp-vectorize"],
                **dict.fromkeys(("matrices", "engine", "places", "sizes", "composed", "indexing", "joining", "inplace", "copies", "storage",
                                 "modes", "constants", "products", "operator_object", "shapes", "parts", "reductions",
                                 "calls", "kinds"), SHORT)}
ERROR_PATHS = "system/error_paths.h"
INCLUDES = ["cygrad/_core", "cygrad/_kernels", numpy.get_include()]


class Build(build_ext):
    parallel: int
    units: list[Unit]

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or available_cores()
        if self.editable_mode:      # setuptools would build in a folder that is gone afterwards
            build = self.get_finalized_command("build")
            self.build_temp = os.path.join(build.build_base, f"temp.{build.plat_name}-{sys.implementation.cache_tag}")
        if self.debug:
            self.build_temp += "-debug"

    def build_extensions(self) -> None:
        compiler = Compiler(self.compiler, INCLUDES, self.debug)
        self.units = [*self.loops(compiler), *self.modules(compiler)]
        build_units(self.units, self.parallel, self.force)
        objects = [unit.compiled.target for unit in self.units]
        library = compiler.library_of(objects, Path(self.build_temp, "_native.so"))
        library.update(self.force)

        (native,) = self.extensions
        place = Path(self.get_ext_fullpath(native.name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)   # running programs keep the open file
        shutil.copy(library.target, place)

    def loops(self, compiler: Compiler) -> Iterator[Unit]:
        """Generate the inner loops."""
        generator = load_generator()
        alone = native.builds_for_this_machine(compiler)
        levels = ("native",) if alone else tuple(generator.LEVELS) if compiler.levelled else ("baseline",)
        for name in generator.generate(levels, native.header(compiler) if alone else ""):
            source = Path(name)
            is_old = len(levels) > 1 and source.stem.endswith(levels[0]) and not source.stem.startswith("floats_reduction")
            is_rare = is_old or source.stem.startswith("rare")
            is_small = is_old and source.stem.startswith(("others", "rare")) and "reduction" not in source.stem
            optimization = SMALLEST if is_small else RARE if is_rare else [*LOOPS, *([] if compiler.clang else ONE_VERSION)]
            flags = [*optimization, *(native.FLAGS if alone else [])]
            yield Unit(source, compiler.object_of(source, Path(self.build_temp, source).with_suffix(".o"), flags))

    def modules(self, compiler: Compiler) -> Iterator[Unit]:
        folder = Path(self.build_temp)
        for source in (COMMON, *MODULES):
            translated = common_translation(folder) if source is COMMON else translation_of(source, folder, self.debug)
            optimization = OPTIMIZATION.get(source.stem, OPTIMIZATION.get(source.parent.name, CALLS))
            flags = [*optimization, "-include", ERROR_PATHS]
            yield Unit(source, compiler.object_of(translated.target, translated.target.with_suffix(".o"), flags), translated)

    def copy_extensions_to_source(self) -> None:
        """Leave word of the objects of the loops and of the compiler's messages, for the tests of a build in place."""
        super().copy_extensions_to_source()
        objects = [unit.compiled.target for unit in self.units]
        loops = [unit.compiled.target for unit in self.units if unit.source.parent == GENERATED]
        words = {"objects": "".join(f"{path}\n" for path in loops), "messages": "".join(messages_of(path).read_text() for path in objects)}
        for name, text in words.items():
            word = GENERATED / name
            word.unlink(missing_ok=True)
            if not self.debug:
                word.write_text(text)


def load_generator() -> ModuleType:
    """Import the tables and the generator of the inner loops without the package, which is not built yet."""
    folder = PACKAGE.resolve() / "ops"
    spec = importlib.util.spec_from_file_location("_cygrad_ops", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec and spec.loader
    sys.modules["_cygrad_ops"] = tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    return importlib.import_module("_cygrad_ops.codegen")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
