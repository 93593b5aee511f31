# Everything from a clone: `make book` to read, `make test` to check, `make bench` for what is long, `make help` for the list.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
PY := .venv/bin/python

# The environment is stamped with the lock's hash: it is set up once, and again only when the lock changes.
LOCK_HASH := $(shell $(PYTHON) -c "import hashlib, pathlib; print(hashlib.sha256(b''.join(pathlib.Path(f).read_bytes() for f in ('requirements.txt', 'pyproject.toml'))).hexdigest()[:16])")
STAMP := .venv/ready-$(LOCK_HASH)

.PHONY: help setup book html test lint bench lock clean

help: ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) ## Set up .venv with the pinned requirements

$(STAMP):
	@$(PYTHON) -c "import sys; sys.version_info >= (3, 11) or sys.exit('losslab needs Python 3.11 or newer, this is ' + sys.version.split()[0] + '; name another one: make PYTHON=python3.12')"
	@echo "Setting up .venv: a few minutes and about 2 GB, once."
	@test -x $(PY) || $(PYTHON) -m venv .venv
	@$(PY) -m pip install --disable-pip-version-check --progress-bar on --quiet -r requirements.txt
	@$(PY) -m pip install --disable-pip-version-check --quiet --no-deps --editable .
	@rm -f .venv/ready-* && touch $@

book: setup ## Build the book into _build/html, serve it, print its address
	@PYTHONPATH=book/_ext $(PY) -m losslab_book.build --serve

html: setup ## Build the book into _build/html
	@PYTHONPATH=book/_ext $(PY) -m losslab_book.build

test: setup lint ## Run every test, every chapter and every page
	@$(PY) -m pytest -n 2 --dist loadgroup --durations 15 -m "not timing"
	@$(PY) -m pytest --durations 5 -m timing

lint: setup ## Check style and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

bench: setup ## Run what is long, and every comparison; writes data/measured
	@$(PY) -m losslab measure --all

lock: ## Resolve the pinned versions anew from requirements.in into requirements.txt
	@$(PYTHON) -m venv _build/lock
	@_build/lock/bin/pip install --disable-pip-version-check --quiet -r requirements.in
	@_build/lock/bin/pip freeze | sed 's/+[a-z0-9.]*$$//' > requirements.txt
	@rm -rf _build/lock

clean: ## Remove what was built, but never .venv
	@rm -rf _build build .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
