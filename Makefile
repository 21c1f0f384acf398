SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
STAMP := .venv/.installed
PIP_FLAGS := -qq --disable-pip-version-check
WORKERS ?= 2
export DAGSTER_DISABLE_TELEMETRY := 1

.PHONY: help venv demo dev test check format bench drills campaign lambda status-lambda deploy remove aws-local
.PHONY: observed-run lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## the environment in .venv (made by every target that needs it)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "linkwatch needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | tail -n 1)." >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "installing into .venv ..." >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## four weeks of a small site, from first check to mail, in ./.linkwatch-demo
	@$(BIN)/linkwatch demo

dev: $(STAMP) ## the Dagster UI, on the demo's home if there is one
	@$(BIN)/linkwatch $(if $(wildcard .linkwatch-demo),--home .linkwatch-demo) dev

test: $(STAMP) ## the tests (promise: at most 8 minutes on 2 cores)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal $(ARGS)

check: $(STAMP) ## lint, format, types and the import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(STAMP) ## rewrite the code in the house format
	@$(BIN)/ruff check --fix-only --select I .
	@$(BIN)/ruff format .

bench: $(STAMP) ## the numbers of docs/performance.md
	@$(BIN)/python -m linkwatch_pipeline_tests.bench $(ARGS)

drills: $(STAMP) ## faults brought about on purpose, each step and verdict printed
	@$(BIN)/python -m linkwatch_pipeline_tests.drills $(ARGS)

campaign: $(STAMP) ## the long tests
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m campaign --timeout 3600 $(ARGS)

lambda: $(STAMP) ## the zip of the Lambda functions, in dist/
	@$(BIN)/python deploy/package_lambda.py $(ARGS)

status-lambda: $(STAMP) ## the zips of the functions of service status, in dist/
	@$(BIN)/python deploy/package_status.py $(ARGS)

deploy: $(STAMP) ## both stacks on AWS: make deploy ARGS="--set Contact=... --set MailFrom=... --set MailIdentity=..."
	@$(BIN)/python deploy/stacks.py $(if $(NAME),--name "$$NAME") deploy $(ARGS)

remove: $(STAMP) ## take both stacks away again; the table stays
	@$(BIN)/python deploy/stacks.py $(if $(NAME),--name "$$NAME") remove

aws-local: $(STAMP) ## the AWS half on an emulator: deploy, run a week by its schedule, account for it (ARGS=--keep: stay up)
	@$(BIN)/python -m linkwatch_pipeline_tests.cloud.aws_local $(ARGS)

observed-run: $(STAMP) ## write docs/observed-run.md from a run that just happened
	@mkdir -p docs
	@$(BIN)/python -m linkwatch_pipeline_tests.observed_run > docs/observed-run.md.tmp \
	  && mv docs/observed-run.md.tmp docs/observed-run.md || { rm -f docs/observed-run.md.tmp; exit 1; }

lock: ## requirements.lock anew from pyproject.toml, all at their newest (gets uv, pinned, into .venv-tools)
	@$(PYTHON) -m venv .venv-tools
	@.venv-tools/bin/python -m pip install $(PIP_FLAGS) uv==$(UV_VERSION)
	@.venv-tools/bin/uv pip compile pyproject.toml --quiet --no-config --upgrade --universal --python-version 3.11 \
	  --all-extras --no-strip-extras --generate-hashes --custom-compile-command "make lock" -o requirements.lock

clean: ## remove the environments, caches and the demo's home
	@rm -rf .venv .venv-tools .linkwatch-demo build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find linkwatch_pipeline linkwatch_pipeline_tests -name __pycache__ -type d -prune -exec rm -rf {} +
