# Two commands for a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: demo test test-all test-fast lint docs board clean

demo: $(VENV)/.installed
	$(BIN)/python run_probes.py --model all-MiniLM-L6-v2 --offline

test: $(VENV)/.installed
	# Once a process has crashed, the others may wait for its tests for ever.
	$(PYTEST) --max-worker-restart 0

# With the long tests, as every submission must pass them.
test-all: $(VENV)/.installed
	$(PYTEST) --max-worker-restart 0 -m "not exhaustive"

# Without what needs Ray, a browser, a wheel or several processes.
test-fast: $(VENV)/.installed
	$(PYTEST) -m "not integration and not slow and not exhaustive"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	# What is installed: one package, where a checkout has probes/ and three folders beside it.
	rm -rf build/lint && mkdir -p build/lint/probes
	ln -s $(CURDIR)/probes/* $(CURDIR)/data $(CURDIR)/tasks $(CURDIR)/common build/lint/probes
	$(BIN)/mypy build/lint/probes benchmarks tools run_probes.py
	cd build/lint && $(abspath $(BIN))/lint-imports --config $(CURDIR)/pyproject.toml

# The manual as a site, in build/site. Whatever leads nowhere ends the build.
docs: $(VENV)/.docs
	$(BIN)/python tools/write_manual.py
	$(BIN)/zensical build --clean --strict
	$(BIN)/python -m pytest --quiet tests/docs/test_site.py

# The board of the published results, in build/board.
board: $(VENV)/.installed
	$(BIN)/python -m probes board results/published --site build/board

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[demo,dev]"
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
