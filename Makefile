# The two commands are `make repro` and `make test`; each makes the virtual environment where it is missing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What is started here sends nothing to anybody.
export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := 1
export PATH := $(abspath $(BIN)):$(PATH)

$(VENV)/.installed: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, found " + sys.version.split()[0] + "; say which: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing requirements.lock into $(VENV) (about 750 MB to download, 3 GB more where torch brings CUDA; two to five minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	@touch $@

.PHONY: help venv repro results serve stop test test-flows test-fast peers lint format bench deps lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.installed ## the virtual environment with the locked versions

repro: venv ## run the stages that changed; ends with data/report/index.html
	@python -m stages params check
	dvc repro
	@echo "the report: $(abspath data/report/index.html)"

results: venv ## every table at study size into docs/results.md (hours), then the default size again
	python -m stages params apply study
	dvc repro
	python -m stages results
	python -m stages params apply default

serve: venv ## Prefect server, workers and deployments on this machine, in the background; PORT=4200 ADDRESS=127.0.0.1
	@python -m flows serve $(if $(PORT),--port $(PORT)) $(if $(ADDRESS),--address $(ADDRESS))

stop: ## end what `make serve` started, and nothing else
	@python -m flows stop

# The suites of flows/ with servers, workers and kills take longer than all others together.
FAST_FLOWS := tests/flows/test_devices.py tests/flows/test_rerun_blocks.py

test: venv ## all tests but the long ones of flows/
	python -m pytest -n 2 --dist loadfile -q --ignore=tests/flows tests
	python -m pytest -n 2 --dist loadfile -q $(FAST_FLOWS)

test-flows: venv ## flows/ against a real Prefect server, workers, sshd, S3 and PostgreSQL where they are installed
	python -m pytest -n 2 --dist loadfile -q tests/flows

test-fast: venv ## the tests without the real graph
	python -m pytest -n 2 --dist loadfile -q -m 'not e2e' --ignore=tests/flows tests

peers: venv ## tigramite's own test files against our engine: fetches its source archive, see tests/peers
	python -m tests.peers.run $(OPTIONS)

lint: venv ## ruff, strict mypy, and dvc.yaml against the imports
	ruff check .
	ruff format --check .
	mypy
	python -m stages deps
	python -m stages params check

format: venv ## let ruff format and mend what it can
	ruff check --fix .
	ruff format .

deps: venv ## bring the code deps of dvc.yaml up to date with the imports
	python -m stages deps --write

bench: venv ## benchmarks beside their peers, one JSON object a line; NAME=pcmci for one
	@for script in $(if $(NAME),benchmarks/$(NAME).py,$(sort $(wildcard benchmarks/[a-z]*.py))); do python $$script || exit 1; done

# Left out of the lock: the CUDA libraries, which torch's wheel pins itself where it is the one for GPUs.
lock: ## make requirements.lock anew from pyproject.toml, for every platform (installs uv in an environment of its own)
	rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	{ echo "# Made by \`make lock\` from pyproject.toml; names and versions only."; \
	  $(VENV)-lock/bin/uv pip compile --quiet --universal --no-header --no-annotate --native-tls --extra dev \
	    --python-version 3.11 pyproject.toml | grep --extended-regexp --invert-match '^(nvidia|cuda|triton)'; } > requirements.lock
	rm -rf $(VENV)-lock

clean: ## remove the virtual environment, caches and drafts; data/ and the DVC cache stay
	rm -rf $(VENV) $(VENV)-lock .mypy_cache .ruff_cache .pytest_cache .hypothesis data/.partial
	find stages flows tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
