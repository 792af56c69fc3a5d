# make verify: what is committed. make paper: from data to the PDF. make test: the tests. make help: the rest, with times.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
CORES ?= all
EFFORT ?= core
ifeq ($(filter core full,$(EFFORT)),)
$(error EFFORT=$(EFFORT): there are core and full)
endif
MIRROR ?= $(OCTOPUS_MIRROR)
# none, cuda12 or cuda13; by default what the NVIDIA driver can run
ifndef GPU
GPU := $(shell ./workflow/scripts/gpu_extra.sh)
endif
ifndef PYTHON
PYTHON := $(shell ./workflow/scripts/find_python.sh)
endif

BIN := $(VENV)/bin
LOCK := $(if $(filter cuda12,$(GPU)),requirements-cuda12.lock,requirements.lock)
COMPILER := compile$(if $(filter cuda12,$(GPU)),12)
GPU_EXTRA := $(if $(filter-out none,$(GPU)),$(GPU) $(COMPILER))
# Compiling kernels for the tests needs a CUDA toolkit, but no GPU.
TOOLKIT := $(or $(GPU_EXTRA),cuda13 compile)
STUBS := $(VENV)/stubs
RUN_STAMP := $(VENV)/.installed-run-$(GPU)
TEST_STAMP := $(VENV)/.installed-test-$(GPU)
INSTALL := workflow/scripts/install.py
# Packages that don't go with those of the locks: two bring an OpenCV of their own.
BESIDE := $(VENV)-beside
PACKAGES := transformers ultralytics sahi supervision rapidocr
# The lowest versions that the library says it works with; the locks have the highest.
OLD := $(VENV)-oldest
OLDEST := $(shell sed -nE 's/^dependencies = .*"numpy>=([0-9.]+)", "numba>=([0-9.]+).*/numpy==\1.* numba==\2.*/p' pyproject.toml)
# The last versions that octopus.integrations says it was tested with.
TESTED := "transformers<5.25" "ultralytics<8.4.191" "sahi<0.13" "supervision<0.32" "rapidocr<3.11"

export OCTOPUS_MIRROR := $(MIRROR)
# Snakemake and its friends keep files in the user's cache folder, which a user without a home doesn't have.
ifndef XDG_CACHE_HOME
ifneq ($(shell test -d "$$HOME" -a -w "$$HOME" && echo home),home)
export XDG_CACHE_HOME := $(abspath $(VENV)/cache)
endif
endif
export PATH := $(abspath $(BIN)):$(PATH)

FUZZ_SECONDS ?= 300
.PHONY: help install verify paper committed test test-gpu test-integrations test-newest test-oldest fuzz faults docs lint wheel lock clean

help:
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20
	@echo
	@awk -F '\t' 'NR > 1 && $$3 == "all" {printf "  make %-18s %3.0f min, installation included (%s; %s)\n", $$1, $$4 / 60, $$5, $$7}' config/timings.tsv
	@echo
	@echo "  variables: EFFORT=core|full  GPU=none|cuda12|cuda13  MIRROR=<folder with the data sets>  PYTHON=  VENV=  CORES="

install: $(RUN_STAMP) # what verify and paper need

verify: $(RUN_STAMP) ## install, derive all numbers anew from the committed rows and build the PDFs; measures nothing
	$(BIN)/snakemake --cores $(CORES) --config studies=[] -- verified paper supplement page

paper: $(RUN_STAMP) ## install, measure this machine's core claims (EFFORT=full: everything), build figures and PDFs
	$(BIN)/snakemake --cores $(CORES) --config effort=$(EFFORT)

committed: $(RUN_STAMP) # renew what is committed for those who build nothing: figures/reference, paper/octopus.pdf, notebooks
	$(BIN)/snakemake --cores $(CORES) --force -- committed

test: $(TEST_STAMP) ## install and run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-gpu: $(TEST_STAMP) ## install and run the tests that need a GPU: those that measure by themselves, the others side by side
	$(BIN)/python -m pytest -m "gpu and not alone" -n 4 --dist loadfile
	$(BIN)/python -m pytest -m "gpu and alone"

test-integrations: $(BESIDE)/.installed ## install torch and the packages of octopus.integrations (6 GB); compare answers and times
	$(BESIDE)/bin/python -m pytest -n auto --dist loadfile -m "not gpu and not alone" tests/library/integrations \
		tests/library/crop/test_torch.py tests/library/crop/test_torch_operators.py tests/library/images/test_images_calls.py \
		tests/library/images/test_fold.py
	$(BESIDE)/bin/python -m pytest -m "alone and not gpu" tests/library/integrations
	$(BESIDE)/bin/python -m pytest tests/library/test_docs.py tests/project/test_examples.py -k "torch or integrations or examples"
	$(BESIDE)/bin/python -m pytest tests/study/studies/test_pipelines.py tests/study/studies/test_reading.py \
		tests/study/studies/test_embeddings.py

test-newest: $(BESIDE)/.installed # the same with the newest versions of these packages; prints which methods have changed
	rm $(BESIDE)/.installed
	$(BESIDE)/bin/python -m pip install --quiet --upgrade $(PACKAGES)
	$(BESIDE)/bin/python tests/library/integrations/known_code.py
	$(BESIDE)/bin/python -m pytest -n auto --dist loadfile -m "not gpu and not alone" tests/library/integrations

test-oldest: $(OLD)/.installed # run all kinds of calls on the CPU with the lowest versions of NumPy and Numba
	$(OLD)/bin/python -m pytest -n auto --dist loadfile tests/library/cases/test_cases_cpu.py tests/library/backends

fuzz: $(TEST_STAMP) # install and make random calls with guard pages around all memory, for FUZZ_SECONDS (five minutes)
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)} $(BIN)/python -m pytest tests/library/test_fuzz.py -rP

faults: $(TEST_STAMP) # install, inject faults into copies, which checks and tests must notice, and run the long tests
	OCTOPUS_FAULTS=1 OCTOPUS_FUZZ_ROWS=6 $(BIN)/python -m pytest -n auto --dist loadfile \
		tests/project/test_pythons.py tests/study/report/test_damaged_rows.py
	$(BIN)/python tests/faults/run.py

docs: $(TEST_STAMP) ## build the documentation into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: $(TEST_STAMP) ## check style, import layers and workflow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/lint-imports
	MYPYPATH=$(STUBS) $(BIN)/mypy
	$(BIN)/snakemake --lint
	$(BIN)/python workflow/scripts/rules_age.py
	! test -x $(BIN)/hadolint || $(BIN)/hadolint Containerfile
	$(MAKE) --no-print-directory docs

wheel: $(TEST_STAMP) ## compile the kernels that a wheel carries, and build sdists and wheels into dist/
	$(BIN)/python $(INSTALL) $(LOCK) $(TOOLKIT) test release
	$(BIN)/python workflow/scripts/wheel_kernels.py
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python -m build --no-isolation --outdir dist workflow

lock: # renew requirements.lock and requirements-cuda12.lock (needs uv)
	"$(PYTHON)" workflow/scripts/lock.py --upgrade

clean: ## remove what runs wrote, but neither .venv, downloads nor committed results
	rm -rf .snakemake logs benchmarks data/results paper/build site dist
	find figures -maxdepth 1 -type f ! -name README.md -delete

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Octopus needs Python 3.11, 3.12 or 3.13 and found none: install one (python.org," \
		"your distribution, conda) or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(RUN_STAMP): $(BIN)/python pyproject.toml workflow/pyproject.toml $(LOCK) $(INSTALL)
	$(BIN)/python $(INSTALL) $(LOCK) $(GPU_EXTRA)
	@touch $@

$(BESIDE)/.installed: pyproject.toml
	"$(PYTHON)" -m venv $(BESIDE)
	$(BESIDE)/bin/python -m pip install --quiet -e ".[transformers,ultralytics,sahi,supervision,rapidocr]" $(TESTED) \
		av lap tqdm "ray[data]" pytest pytest-xdist hypothesis psutil -e ./workflow hf-processors-rs onnxruntime
	@touch $@

$(OLD)/.installed: pyproject.toml
	"$(PYTHON)" -m venv $(OLD)
	$(OLD)/bin/python -m pip install --quiet -e . $(OLDEST) pytest pytest-xdist hypothesis psutil -e ./workflow
	@touch $@

$(TEST_STAMP): $(BIN)/python pyproject.toml workflow/pyproject.toml $(LOCK) $(INSTALL)
	$(BIN)/python $(INSTALL) $(LOCK) $(TOOLKIT) test
	./workflow/scripts/tensorrt_stubs.sh $(BIN)/python $(STUBS)
	@touch $@
