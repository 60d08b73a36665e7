# Each target makes .venv in the project's root if need be, with what it needs, and uses it.
PYTHON ?= python3
BIN := .venv/bin
# Tests that touch every dependency, but compile few agents.
CORE := tests/test_package.py tests/core/test_blas.py tests/simulation/test_query.py \
	tests/cli/test_cli.py::test_simulate_writes_report_figures_and_tables \
	tests/cli/test_sweep_command.py::test_a_dead_address_is_one_sentence_and_writes_nothing \
	tests/votes/reading/test_reading.py tests/votes/reading/test_sources.py tests/votes/ranking/test_preference_model.py \
	tests/service/api/test_api.py
# Files with tests marked torch; their other tests need no PyTorch and run in `make test`.
TORCH := $(shell grep -rl --include='test_*.py' 'mark\.torch' tests)
# The newest Python on this machine beyond 3.11, if there is one.
NEWEST := $(shell for p in python3.15 python3.14 python3.13 python3.12 \
	$$(ls -d $$HOME/.pyenv/versions/3.1[2-9]*/bin/python 2>/dev/null | sort -rV); \
	do $$p -c '' 2>/dev/null && echo $$p && break; done)

.PHONY: demo test test-lowest test-newest test-neural torture lint bench docs clean

demo: .venv/with-votes      ## a poll with liars and Figure 1, on one page, from nothing
	$(BIN)/fairduel demo

test: .venv/with-dev        ## all tests, by three processes at a time, because many wait for servers and browsers
	$(BIN)/python -m pytest --numprocesses 3 --dist worksteal --durations 25

test-lowest: .venv-lowest/made  ## the core of the tests, with the lowest versions that pyproject.toml allows; an old Numba needs a cache of its own
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-lowest/compiled .venv-lowest/bin/python -m pytest -o filterwarnings=ignore::DeprecationWarning $(CORE)

ifeq ($(NEWEST),)
test-newest:
	@echo "test-newest: SKIPPED, because no Python newer than 3.11 was found on PATH or in ~/.pyenv/versions"
else
test-newest: .venv-newest/made  ## the core of the tests, with the newest Python found
	.venv-newest/bin/python --version
	.venv-newest/bin/python -m pytest $(CORE)
endif

test-neural: .venv-neural/made  ## the tests marked torch, with PyTorch
	.venv-neural/bin/python -m pytest -m torch $(TORCH)

torture: .venv/with-dev     ## the twenty tests of live voting at full size, alone on the machine; results in docs/data/torture.csv
	$(BIN)/python -m pytest -m torture --torture docs/data/torture.csv tests/service

lint: .venv/with-dev        ## style and types, of Python and JavaScript
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/oxfmt --check 'src/**/*.js' 'tests/**/*.js'
	$(BIN)/oxlint src tests
	$(BIN)/mypy

bench: .venv/with-dev       ## speed, as ratios to plain NumPy and SciPy
	$(BIN)/python -m benchmarks

docs: .venv/with-docs       ## the documentation as a site, in site/
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs site

clean:
	rm -rf .venv .venv-lowest .venv-newest .venv-neural site

.venv-newest/made: pyproject.toml
	$(NEWEST) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.venv-lowest/made: pyproject.toml
	python3.11 -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct --editable '.[dev]'
	@touch $@

# A CPU build suffices; where pip finds another, it is larger but does the same.
.venv-neural/made: pyproject.toml
	python3.11 -m venv --clear .venv-neural
	.venv-neural/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 pytest hypothesis --editable '.[trl]'
	@touch $@

.venv/with-docs: | .venv/with-dev  # not both at once into one environment

.venv/with-%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fairduel needs Python 3.11 or later: make PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
