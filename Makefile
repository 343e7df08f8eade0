# Two commands for a fresh machine: `make demo` and `make test`. `make help` lists the others.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: help demo test test-all test-fast lint families docs board clean

# A target is listed if its line has a text after two hashes.
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## probe a small model on the embedded sample corpus
	$(BIN)/python run_probes.py --model all-MiniLM-L6-v2 --offline

test: $(VENV)/.installed ## run all tests but those marked slow
	# Once a process has crashed, the others may wait for its tests for ever.
	$(PYTEST) --max-worker-restart 0

test-all: test ## run the slow tests, too
	$(PYTEST) --max-worker-restart 0 -m "slow and not exhaustive"

test-fast: $(VENV)/.installed ## leave out tests that need Ray, a browser, a wheel or several processes
	$(PYTEST) -m "not integration and not slow and not exhaustive"

lint: $(VENV)/.installed ## check style, types, and which room imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy probes benchmarks tools run_probes.py
	$(BIN)/lint-imports

families: $(VENV)/.installed ## delete each family of measurements in a copy, and check the rest
	$(BIN)/python tools/check_families.py

docs: $(VENV)/.docs ## build the manual as a site in build/site, and check its links
	$(BIN)/python tools/write_manual.py
	$(BIN)/zensical build --clean --strict
	$(BIN)/python -m pytest --quiet tests/docs/test_site.py

board: $(VENV)/.installed ## build the board of the published results in build/board
	$(BIN)/python -m probes board results/published --site build/board

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[demo,dev]"
	touch $@

clean: ## delete the environment and everything that was built
	rm -rf $(VENV) build src/*.egg-info
