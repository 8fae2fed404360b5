# Every target makes the environment .venv if there is none, and builds again what has changed.
# A build without threads: make clean, then CYGRAD_OPENMP=0 make test.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
TOOLS := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
SOURCES := setup.py pyproject.toml \
    $(shell find cygrad -name generated -prune -o \( -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' \) -print)
WHEEL_LIMIT_KIB := 3072

.PHONY: demo test lint check bench wheel clean
.DELETE_ON_ERROR:

demo: $(VENV)/cygrad $(VENV)/demo.txt
	$(RUN) examples/digits.py
	$(RUN) examples/logistic.py

test: lint check

lint: $(VENV)/lint.txt
	$(TOOLS) ruff check
	$(TOOLS) cython-lint cygrad
	$(TOOLS) mypy

check: $(VENV)/cygrad $(VENV)/test.txt
	$(RUN) -m pytest

bench: $(VENV)/cygrad $(VENV)/bench.txt
	$(RUN) -m benchmarks

# The wheel is built from the sdist, as others would, and tested where there are neither sources nor a compiler.
wheel: $(VENV)/wheel.txt
	rm -rf build/wheel dist
	$(RUN) -m build --no-isolation --outdir build/wheel
	$(TOOLS) auditwheel repair --strip --wheel-dir dist build/wheel/*.whl
	du -k dist/*.whl | awk '{ print; if ($$1 > $(WHEEL_LIMIT_KIB)) { print "more than $(WHEEL_LIMIT_KIB) KiB"; exit 1 } }'
	$(PYTHON) -m venv build/wheel/venv
	cp -r tests pyproject.toml build/wheel
	cd build/wheel && PATH="$$PWD/venv/bin" && ! type cc gcc clang 2> /dev/null && \
	    python -m pip install --only-binary :all: "$$(echo ../../dist/*.whl)[test]" && python -m pytest

clean:
	rm -rf $(VENV) build dist *.egg-info cygrad/_kernels/generated cygrad/*/*.c cygrad/*.so

$(RUN):
	$(PYTHON) -m venv $(VENV)

# What an extra of pyproject.toml asks for, with what the build does.
$(VENV)/%.txt: pyproject.toml | $(RUN)
	$(RUN) -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb")); print(*project["build-system"]["requires"], \
	    *project["project"]["optional-dependencies"].get(sys.argv[1], []), sep="\n")' $* > $@
	$(RUN) -m pip install --requirement $@

$(VENV)/cygrad: $(SOURCES) $(VENV)/build.txt
	$(RUN) -m pip install --no-build-isolation --no-deps --editable .
	touch $@
