# Each target makes .venv in the project's root if need be, with what it needs, and uses it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench docs clean

demo: .venv/with-bench      ## Figure 1 and its report, from nothing
	$(BIN)/fairduel reproduce figure1

test: .venv/with-dev        ## all tests
	$(BIN)/python -m pytest

lint: .venv/with-dev        ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/with-dev       ## speed, as ratios to plain NumPy and SciPy
	$(BIN)/python -m benchmarks

docs: .venv/with-docs       ## the documentation as a site, in site/
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv site

.venv/with-%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fairduel needs Python 3.11 or later: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
