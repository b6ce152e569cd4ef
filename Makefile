# The words to use with this project: `make help`. Needs GNU make, Python >= 3.11.1 with venv and pip, and a package index.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3
# Two more than the two cores that this is measured on: a test waits for a third of its time, for servers and Chromium.
WORKERS ?= 4
PORT ?=
FRESH ?=
PART ?=
CLUSTER ?=
# Only one that was written on make's command line: the demo must not write to the cluster that your shell happens to name.
OWN_CLUSTER := $(if $(filter command,$(firstword $(origin KUBECONFIG))),$(KUBECONFIG))

# Every process of the tests and of the demo imports some hundreds of modules: what Python compiles once, it keeps.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# The lock is complete, so nothing is resolved; bytecode is made when a module is first imported.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --no-deps --no-compile --require-hashes
SELF := $(PIP) install --no-deps --no-build-isolation --editable .
RUNNER := $(BIN)/python -m tests.support.runner
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate --quiet --extra postgres --extra otel --extra s3 --extra sentry \
	--group build
# What is written by hand and what is generated, links and anchors included: a warning is an error, and nothing is kept of the last build.
SPHINX := $(BIN)/sphinx-build --fresh-env --fail-on-warning --quiet --conf-dir docs --doctree-dir .docs/doctrees
# Python without a .py that the tools would not find by themselves.
SCRIPTS := tests/controlplane/build tests/controlplane/run tests/objectstore/build

.PHONY: help demo test thorough quick lint lint-types lint-pages lint-code docs screenshots bench lock clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/installed ## try it: PORT=8000 FRESH=1 CLUSTER=real KUBECONFIG=file; Ctrl-C stops everything
	@PORT="$(PORT)" FRESH="$(FRESH)" CLUSTER="$(CLUSTER)" KUBECONFIG="$(OWN_CLUSTER)" exec $(BIN)/pratique-manage demo

test: lint ## lint and the tests of each promise, as continuous integration does it; installs and builds what it needs
	tests/install
	$(BIN)/python tests/controlplane/build
	$(BIN)/python tests/objectstore/build
	$(BIN)/python -m tests.support.built
	$(RUNNER) test --workers $(WORKERS)

thorough: .venv/installed-dev ## the long tests, in about an hour: random differentials, chaos, races; PART=chaos runs one folder
	tests/install
	$(BIN)/python tests/controlplane/build
	$(BIN)/python tests/objectstore/build
	$(BIN)/python -m tests.support.built
	$(RUNNER) thorough --workers $(WORKERS) $(if $(PART),--part $(PART))

quick: .venv/installed-dev ## in two minutes, those of the tests that need neither Kubernetes, other services nor a browser
	$(RUNNER) quick --workers $(WORKERS)

lint: .venv/installed-dev ## style, types, imports, templates, migrations, pages
	@$(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint-types lint-pages lint-code

lint-types:
	$(BIN)/mypy

lint-pages:
	$(BIN)/python -m docs.generators --check
	$(SPHINX) --builder dummy . .docs/dummy

lint-code:
	$(BIN)/ruff check . $(SCRIPTS)
	$(BIN)/ruff format --check . $(SCRIPTS)
	$(BIN)/lint-imports
	$(BIN)/djlint --quiet --lint templates
	$(BIN)/djlint --quiet --check templates
	$(BIN)/pratique-manage makemigrations --check --dry-run

docs: .venv/installed-dev ## write the generated pages of docs/, and build all of them in .docs/html
	$(BIN)/python -m docs.generators
	$(SPHINX) --builder html . .docs/html
	@echo "Open .docs/html/docs/README.html"

screenshots: .venv/installed-dev ## make the pictures of pages in docs/ anew, from the demo in Chromium
	tests/install
	$(BIN)/python -m docs.screenshots

bench: .venv/installed-dev ## figures: beside kubectl and (with Go) kapp, helm, crdify; memory of a worker and a watch; and all of chaos
	tests/install
	$(BIN)/python tests/controlplane/build
	PRATIQUE_CHAOS_RUNS=0 PRATIQUE_CHAOS_REAL_RUNS=24 PRATIQUE_CHAOS_REVIEW_RUNS=120 PRATIQUE_TOGETHER_ROUNDS=20 \
		PRATIQUE_CHAOS_SECONDS=10800 $(BIN)/python -m pytest tests/chaos
	$(BIN)/python -m pytest tests/bench -s

# Each lock holds all of the one before, in the same versions: the image's, then the demo's, then the developers'.
lock: .venv/installed-dev ## renew deploy/*.lock from pyproject.toml
	$(LOCK) --output-file deploy/requirements.lock
	$(LOCK) --extra demo --constraint deploy/requirements.lock \
		--output-file deploy/requirements-demo.lock
	$(LOCK) --extra demo --extra helm --group dev --constraint deploy/requirements-demo.lock \
		--output-file deploy/requirements-dev.lock

clean: ## remove what the targets made here (not the Kubernetes binaries in the user's cache)
	rm -rf .venv .demo .docs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles test-results
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 1))' 2>/dev/null || { \
		echo "Pratique needs Python 3.11.1 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' lacks venv or pip (on Debian: apt-get install python3-venv)." >&2; exit 1; }
	@echo "making .venv"
	@$(PYTHON) -m venv .venv

.venv/installed: deploy/requirements-demo.lock pyproject.toml | .venv/bin/python
	@echo "installing deploy/requirements-demo.lock (the first time takes about half a minute)"
	@$(INSTALL) --requirement deploy/requirements-demo.lock
	@$(SELF)
	@touch $@

# A superset of the same versions, so that a demo afterwards installs nothing.
.venv/installed-dev: deploy/requirements-dev.lock deploy/requirements-demo.lock pyproject.toml | .venv/bin/python
	@echo "installing deploy/requirements-dev.lock (the first time takes about a minute)"
	@$(INSTALL) --requirement deploy/requirements-dev.lock
	@$(SELF)
	@touch .venv/installed $@
