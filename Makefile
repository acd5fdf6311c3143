# Two commands do all the set-up on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := build/demo

.PHONY: help demo test lint types drivers bench bless fuzz stress clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/ready-%: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing orchestrion[$*] into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

demo: $(VENV)/ready-stablehlo ## compile two programs and run them on the default device
	@mkdir -p $(DEMO)
	$(BIN)/vm-compile examples/simple_mul.mlir -o $(DEMO)/simple_mul.fb
	$(BIN)/vm-run $(DEMO)/simple_mul.fb --input=4xf32=1,2,3,4 --input=4xf32=10,20,30,40 --expected_output=4xf32=10,40,90,160
	$(BIN)/vm-compile examples/mlp.mlir -o $(DEMO)/mlp.fb
	$(BIN)/vm-run $(DEMO)/mlp.fb --input=@examples/mlp_input.npy --expected_output=@examples/mlp_output.npy --print_statistics

drivers: ## install PoCL, lavapipe, the Vulkan loader and its validation layer, spirv-tools, where that is allowed
	@sh .ci/drivers $(VENV)

test: $(VENV)/ready-test drivers ## run every test on every driver that can run here
	$(BIN)/python -m pytest -n 2 -rs -q

lint: $(VENV)/ready-test ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready-test ## strict types
	$(BIN)/mypy

bench: $(VENV)/ready-bench ## run every benchmark beside its peers
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

bless: $(VENV)/ready-test ## rewrite expected texts; review the diff
	BLESS=1 $(BIN)/python -m pytest -q

fuzz: $(VENV)/ready-test ## the long runs: mutants of modules, random programs (some ten minutes each)
	ORCHESTRION_MUTANTS=200000 $(BIN)/python -m pytest -q tests/fuzz
	ORCHESTRION_PROGRAMS=4000 $(BIN)/python -m pytest -q -n 2 tests/e2e/test_random_programs.py

stress: $(VENV)/ready-test ## eight threads, one program, 10,000 calls each on every device (a minute or two per device)
	ORCHESTRION_STRESS=10000 $(BIN)/python -m pytest -q -rs tests/e2e/test_shared_program.py

clean: ## remove what make made
	rm -rf $(VENV) build dist *.egg-info
