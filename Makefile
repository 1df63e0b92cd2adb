# Everything here may be called on a fresh machine with Python 3.11 and make: each target sets up what it needs, once.
SHELL := /bin/bash
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Bytecode is kept, whatever the environment says: compiling it anew is a third of a server's start.
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell tools/python.sh)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 5433
DATA ?= data
PIP := $(BIN)/python -m pip --disable-pip-version-check
# A lock names all packages, so that pip need not look for what they depend on; all cores compile what pip leaves.
INSTALL := $(PIP) install --quiet --no-deps --no-compile --use-pep517 --require-hashes
COMPILE := $(BIN)/python -m compileall -q -j 0 $(VENV)/lib

.PHONY: help
help:  ## this list
	@grep -hE '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | awk -F ':.*  ## ' '{printf "make %-10s %s\n", $$1, $$2}'

.PHONY: run
run: $(VENV)/.installed java  ## set up what is missing and start the server on 127.0.0.1:$(PORT), its data in ./$(DATA)
	@exec $(BIN)/python -m server --listen 127.0.0.1:$(PORT) --data $(DATA)

.PHONY: test
test: $(VENV)/.installed-dev java postgres clients $(VENV)/spark.jsa  ## the test suite (ARGS="--whole": also what samples stand for)
	$(PYTEST) 3 $(ARGS) -m "not spark" $(OR_NONE)
	$(PYTEST) 2 $(ARGS) -m spark $(OR_NONE)

.PHONY: test-clients
test-clients: $(VENV)/.installed-dev java postgres clients  ## what runs real clients: drivers, ORMs, frameworks and tools
	$(PYTEST) 3 tests/clients $(ARGS)

.PHONY: test-law
test-law: $(VENV)/.installed-dev postgres  ## random views over random changes, beside PostgreSQL (ARGS="SECONDS=600 SEED=1 SPARK=1")
	$(BIN)/python -m tests.law.changing $(ARGS)

.PHONY: test-cluster
test-cluster: $(VENV)/.installed-dev java $(VENV)/spark.jsa  ## servers with one storage and one Spark cluster, killed at every step (ARGS="--whole": on a Spark cluster, too)
	$(BIN)/python -m pytest $(ARGS) tests/executor/test_cluster.py tests/executor/test_migration.py tests/cluster \
		tests/server/test_cluster*.py tests/server/test_named_views.py \
		tests/server/test_unreachable_storage.py tests/server/test_hanging_storage.py \
		tests/spark/test_separation_failures.py

# Three processes keep two cores busy, since many tests wait for a disk or a lease; a file's tests share their servers.
# Spark's tests come last, by two, since each process has a Spark of its own, of which most of the time goes into its
# start.
PYTEST := $(BIN)/python -m pytest --dist loadfile --max-worker-restart 0 --numprocesses
# ARGS may leave one of the two without tests.
OR_NONE := || test $$? -eq 5
FAST := $(PYTEST) 3 -m "not slow and not spark" -p no:cacheprovider

.PHONY: check
check: $(VENV)/.installed-dev  ## format, lint, strict types, import layers and the fast tests, in about a minute
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target format-check lint layers mypy fast

.PHONY: static format-check lint types mypy pyright layers fast
static: format-check lint types layers
format-check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
# mypy remembers what it has found; pyright begins anew each time, so that only CI waits for it.
types: mypy pyright
mypy: $(VENV)/.installed-dev
	$(BIN)/mypy
pyright: $(VENV)/.installed-dev
	$(BIN)/pyright --pythonpath $(BIN)/python
layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports --no-cache
fast: $(VENV)/.installed-dev
	$(FAST) $(ARGS)

.PHONY: format
format: $(VENV)/.installed-dev  ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: rewrite
rewrite: $(VENV)/.installed-dev  ## regenerate the golden files; the diff is the review
	MILLSTREAM_REWRITE=1 $(FAST) $(ARGS)

.PHONY: bench
bench: $(VENV)/.installed-dev java postgres  ## all benchmarks (ARGS="copy reads" for some), beside PostgreSQL
	$(BIN)/python -m bench $(ARGS)

.PHONY: compatibility
compatibility: $(VENV)/.installed-dev java postgres  ## thousands of generated cases on both engines beside PostgreSQL; writes docs/compatibility.md
	$(BIN)/python -m tools.compatibility $(ARGS)

.PHONY: demo
demo: $(VENV)/.installed-dev java postgres  ## two minutes of streams and views at scale factor 1
	$(BIN)/python -m bench.demo

.PHONY: lock
lock: $(VENV)/.installed-dev  ## resolve pyproject.toml's pins again, with hashes
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url \
		--group build pyproject.toml --output-file requirements.lock
	$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header --no-emit-index-url \
		--extra connect --group build --group dev pyproject.toml --output-file requirements-dev.lock

.PHONY: java postgres clients
java: $(VENV)/.installed
	@tools/java.sh $(BIN)/python
postgres:
	@tools/postgres.sh
clients:
	@tools/clients.sh

# What JVMs of tests need not read and verify each time; without it they take longer to start. It takes a minute, in which
# pip, which uses one core, may install what the tests need besides.
$(VENV)/spark.jsa: $(VENV)/.installed | java
	@$(BIN)/python -m tests.rig.spark 2>/dev/null || echo "Spark's classes are not archived"

.PHONY: clean
clean:  ## remove everything that was generated; never the data
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@tools/venv.sh "$(PYTHON)" $(VENV)

$(VENV)/.installed: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing the locked dependencies into $(VENV) ..."
	$(INSTALL) -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@$(COMPILE) protocol catalog planner executor server || true  # so that the first start is as quick
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	$(INSTALL) -r requirements-dev.lock
	@$(COMPILE) || true
	@touch $@
