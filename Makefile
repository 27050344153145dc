# qkvtrace. Plain `make` lists what there is; every target sets up what it needs.
#
# PYTHON  the Python to make .venv from (3.11 or later)
# TORCH   cpu: set up PyTorch's CPU-only build, a smaller download, for machines without a GPU
# ARGS    Hydra overrides, as in make train ARGS="model.layers=2 training.seed=1"
# TEXT    what make translate translates; without it, stdin

SHELL := /bin/sh
PYTHON ?= $(firstword $(shell for p in python3.11 python3 python; do command -v $$p; done))
TORCH ?=
ARGS ?=
PORT ?= 6006
BIN := .venv/bin

# TEXT goes through the environment, untouched by make and shell; an empty one is an empty line.
ifneq ($(origin TEXT),undefined)
override TEXT := $(value TEXT)
export TEXT
endif

# All set-up speaks to stderr: stdout belongs to results.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help train translate study claims page board prepare bench bench-tab gpu picture screenshots test lint format clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name does; do \
		printf '  make %-12s %s\n' "$$name" "$$does"; done

train: $(BIN)/.ready ## train, watch and log; ARGS="..." are Hydra overrides
	@$(BIN)/python scripts/train.py $(ARGS)

translate: $(BIN)/.ready ## translate TEXT="...", or each line of stdin
	@$(BIN)/python scripts/translate.py $(ARGS)

study: $(BIN)/.ready ## the article's experiments; ARGS="study=word_order" is one of them
	@$(BIN)/python scripts/study.py $(ARGS)

claims: $(BIN)/.ready ## test what texts claim, over 32 seeds; ARGS="seeds=8 claims=[symmetry,word_order]"
	@$(BIN)/python scripts/claims.py $(ARGS)

page: $(BIN)/.ready ## one page of a run and its studies, which opens from disk
	@$(BIN)/python scripts/page.py $(ARGS)

board: $(BIN)/.ready ## TensorBoard over the runs in outputs/, on localhost; PORT=6006
	@$(BIN)/tensorboard --logdir outputs/train --host localhost --port $(PORT) \
		--samples_per_plugin images=1000,text=1000

prepare: $(BIN)/.ready ## tokenise a corpus ahead of training; ARGS="data=grammatical"
	@$(BIN)/python scripts/prepare.py $(ARGS)

bench: $(BIN)/.ready ## measure a training step and a whole training on this machine
	@$(BIN)/python scripts/benchmark.py $(ARGS)

bench-tab: $(BIN)/.ready-dev ## measure how quickly the tab Q/K/V shows an epoch, with Chromium
	@$(BIN)/python scripts/benchmark_tab.py $(ARGS)

gpu: $(BIN)/.ready ## train on CPU and GPU, compare, and write docs/results/gpu.md
	@$(BIN)/python scripts/gpu.py $(ARGS)

picture: $(BIN)/.ready ## draw how a run's attention was learned; ARGS="run=outputs/latest"
	@$(BIN)/python scripts/picture.py $(ARGS)

screenshots: $(BIN)/.ready-dev ## take the README's pictures of tab and page, with Chromium
	@QKVTRACE_SCREENSHOTS=outputs/screenshots $(BIN)/python -m pytest -q tests/browser
	@cp outputs/screenshots/first-sight-in-tensorboard.png docs/tab.png
	@cp outputs/screenshots/page.png docs/page.png

test: $(BIN)/.ready-dev ## all tests
	@$(BIN)/python -m pytest $(ARGS)

lint: $(BIN)/.ready-dev ## check format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(BIN)/.ready-dev ## format the code, and mend what the linter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove .venv; runs in outputs/ stay
	@rm -rf .venv

$(BIN)/.ready: requirements.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "expected Python 3.11 or later, found: $(PYTHON) (PYTHON=... names another)" >&2; \
		exit 1; }
	@echo "setting up .venv (once, a minute or more)" >&2
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv >&2
ifeq ($(TORCH),cpu)
	@$(PIP) --no-deps --extra-index-url https://download.pytorch.org/whl/cpu \
		"$$(sed -n 's/^torch==.*/&+cpu/p' requirements.lock)" >&2
endif
	@$(PIP) --requirement requirements.lock >&2
	@$(PIP) --no-deps --no-build-isolation --editable . >&2
	@touch $@

$(BIN)/.ready-dev: $(BIN)/.ready requirements-dev.lock
	@$(PIP) --requirement requirements-dev.lock >&2
	@touch $@
