# `make` or `make help` lists what there is.
PYTHON ?= python3
SECONDS ?= 600
WORKERS ?= 2
BIN := .venv/bin
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help setup quickstart test test-full soak fuzz lint bench lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup:  ## set up .venv, Java and the jars of the embedded stack; skips what is there
	@$(PYTHON) tools/setup.py

quickstart: setup  ## play the README's quickstart on real servers, check it, leave nothing running
	@$(BIN)/python -m penstock.dev.quickstart

# What measures ratios has the machine for itself. The rest is shared out by files: what is set up for one stays one.
MEASURING := tests/benchmarks/test_ratios.py
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore $(MEASURING)

test: setup  ## run all tests: first what measures, alone; then the others in WORKERS processes (2)
	@code=0; $(BIN)/python -m pytest $(MEASURING) || code=$$?; $(BIN)/python -m pytest $(PARALLEL) || code=$$?; exit $$code

test-full: export PENSTOCK_FULL = 1
test-full: test  ## run all tests, with the whole matrices instead of samples

soak: setup  ## SECONDS of kills, S3 faults and broker restarts; then every record is counted
	@PYTHONPATH=tests $(BIN)/python -m soak --seconds $(SECONDS)

lint: setup  ## check style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup  ## measure (not part of the tests); QUICK=1 to try it out, STAGES="..." and CASES="..." to choose
	@$(BIN)/uv pip install --quiet --require-hashes --python $(BIN)/python -r benchmarks/requirements.txt
	@$(BIN)/python -m benchmarks $(STAGES) $(if $(QUICK),--quick) $(if $(CASES),--cases $(CASES))

COUNT ?= 1000000
fuzz: setup  ## read COUNT mutated record batches, compiled as shipped and with bounds checks
	@$(BIN)/python tests/fuzzing.py $(COUNT)
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/bounds-checked $(BIN)/python tests/fuzzing.py $(COUNT)

lock: setup  ## resolve requirements/*.in anew for every supported Python
	$(COMPILE) --upgrade requirements/runtime.in -o requirements/runtime.txt
	$(COMPILE) --upgrade -c requirements/runtime.txt requirements/dev.in -o requirements/dev.txt
	$(COMPILE) --upgrade benchmarks/requirements.in -o benchmarks/requirements.txt

clean:  ## remove .venv, caches and build products of this checkout (not PENSTOCK_CACHE)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
