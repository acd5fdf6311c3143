# Two commands do all the set-up on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := build/demo
# processes that run tests: one more than two processors, as a test waits for other processes a tenth of its time
WORKERS ?= 3
# compiled byte code is kept, whatever the environment says: tests start hundreds of Python processes
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-all lint types drivers bench bless fuzz fuzz-targets jax-programs microcontroller programs zoo schedules ray-batch stress frozen-app clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)

$(VENV)/ready-%: pyproject.toml | $(BIN)/python
	@echo "installing this package with its extra $* into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

demo: $(VENV)/ready-demo ## compile the examples and run them on the default device
	@mkdir -p $(DEMO)
	$(BIN)/vm-compile examples/simple_mul.mlir -o $(DEMO)/simple_mul.fb
	$(BIN)/vm-run $(DEMO)/simple_mul.fb --input=4xf32=1,2,3,4 --input=4xf32=10,20,30,40 --expected-output=4xf32=10,40,90,160
	$(BIN)/vm-compile examples/mlp.mlir -o $(DEMO)/mlp.fb
	$(BIN)/vm-run $(DEMO)/mlp.fb --input=@examples/mlp_input.npy --expected-output=@examples/mlp_output.npy --print-statistics
	$(BIN)/vm-compile examples/dot.hl_seq.mlir --compile-from=hl_seq -o $(DEMO)/dot.fb
	$(BIN)/vm-run $(DEMO)/dot.fb --input=8x16xf32=2 --input=16x32xf32=1 --expected-output=8x32xf32=32
	$(BIN)/vm-compile examples/matmul_static.mlir -o $(DEMO)/matmul_static.fb
	$(BIN)/vm-run $(DEMO)/matmul_static.fb --input=64x128xf32=0 --expected-output=64x256xf32=0
	$(BIN)/vm-compile examples/spectral_norm.mlir -o $(DEMO)/spectral_norm.fb
	$(BIN)/vm-run $(DEMO)/spectral_norm.fb --input=4x4xf32=4,1,0,0,1,3,1,0,0,1,2,1,0,0,1,1
	$(BIN)/python examples/relu_tanh.py

drivers: | $(BIN)/python ## install PoCL, Intel's OpenCL runtime (404 MB; not with INTEL_OPENCL=off), lavapipe, SwiftShader, the Vulkan loader and its validation layer, spirv-tools, flatc, g++, valgrind, cmake, emulators and gcc for aarch64, s390x, arm and microcontrollers, where that is allowed
	@sh .ci/drivers $(VENV)

test: $(VENV)/ready-test drivers ## run the everyday tests on every driver that can run here (some 20 minutes on two cores)
	$(BIN)/python -m pytest -n $(WORKERS) -rs -q -m "not long"

test-all: $(VENV)/ready-test drivers ## run every test on every driver that can run here (an hour on two cores)
	$(BIN)/python -m pytest -n $(WORKERS) -rs -q

lint: $(VENV)/ready-test ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready-test ## strict types
	$(BIN)/mypy

bench: $(VENV)/ready-bench ## run every benchmark beside its peers
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

bless: $(VENV)/ready-test ## rewrite expected texts; review the diff
	BLESS=1 $(BIN)/python -m pytest -q

fuzz: fuzz-targets $(VENV)/ready-test ## all of fuzzing: targets, mutants, random programs, what passes the checkers (some ten minutes each)
	ORCHESTRION_MUTANTS=200000 $(BIN)/python -m pytest -q tests/fuzz
	$(BIN)/python tests/fuzz/long_run.py --programs=$(or $(ORCHESTRION_PROGRAMS),4000) --jobs=2
	ORCHESTRION_PROGRAMS=500 $(BIN)/python -m pytest -q -n 2 tests/e2e/test_random_symbolic.py
	$(BIN)/python tests/fuzz/shader_run.py --count=$(or $(ORCHESTRION_SHADERS),100000) --jobs=2
	$(BIN)/python tests/fuzz/shader_run.py --count=$(or $(ORCHESTRION_DEVICE_SHADERS),5000) --device=vulkan
	$(BIN)/python tests/fuzz/soundness_run.py --count=$(or $(ORCHESTRION_PROGRAMS),4000) --jobs=2

fuzz-targets: $(VENV)/ready-test $(VENV)/ready-fuzz ## every fuzz target for TIME=60 seconds, guided by coverage; findings are kept in build/fuzz
	$(BIN)/python tests/fuzz/run.py --target=$(or $(TARGET),all) --time=$(or $(TIME),60) --seed=$(or $(SEED),0) --jobs=$(or $(JOBS),1)

schedules: $(VENV)/ready-test ## random schedules of random entries on every device: legal ones compute the same (some 20 minutes)
	$(BIN)/python tests/fuzz/schedule_run.py --count=$(or $(ORCHESTRION_SCHEDULE_PAIRS),10000) --jobs=2

jax-programs: $(VENV)/ready-test ## the 3,700 different programs by which JAX tests its own lowering, on DEVICES=reference,cpu, against XLA
	$(BIN)/python tests/fuzz/jax_programs_run.py --devices=$(or $(DEVICES),reference,cpu) --together=16

microcontroller: $(VENV)/ready-test ## classify digits on an emulated Cortex-M4, and report flash, RAM and instructions of each kernel
	$(MAKE) -C examples/microcontroller report VM_CODEGEN=$(abspath $(BIN)/vm-codegen)

programs: $(VENV)/ready-test ## networks, training steps and others as people export them, all of them on every device, on SwiftShader, on the least Vulkan device, on Intel's OpenCL, and for aarch64 under qemu-user
	ORCHESTRION_REAL_PROGRAMS=all $(BIN)/python -m pytest -q -rs tests/e2e/test_real_programs.py tests/e2e/test_devices.py \
		tests/e2e/test_aarch64.py tests/e2e/test_c_code.py tests/e2e/test_vulkan_code.py tests/e2e/test_hal_code.py \
		tests/e2e/test_least_devices.py tests/e2e/test_lacking_types.py tests/e2e/test_large_constants.py \
		tests/hal/test_intel_opencl.py

zoo: $(VENV)/ready-zoo ## programs of flax, equinox, optax, keras, diffrax and others on every device, into docs/zoo.md (some 15 minutes)
	$(BIN)/python benchmarks/zoo

ray-batch: $(VENV)/ready-test ## 10,000 inputs on a Ray cluster of two nodes, a worker of which is killed (a minute)
	$(BIN)/python benchmarks/ray_batch.py

stress: $(VENV)/ready-test ## eight threads, one program, 10,000 calls each on every device, faults, Ctrl-C, a million submissions on cpu (minutes per device)
	ORCHESTRION_STRESS=10000 $(BIN)/python -m pytest -q -rs tests/e2e/test_shared_program.py tests/e2e/test_stress.py tests/e2e/test_interrupted.py
	ORCHESTRION_CPU_SUBMISSIONS=1000000 ORCHESTRION_CPU_INTERRUPTS=200 $(BIN)/python -m pytest -q -rs tests/hal/test_cpu_stress.py tests/e2e/test_shuffled_programs.py

frozen-app: $(VENV)/ready-test ## freeze examples/app with PyInstaller, run it, and have it refuse modules (minutes; asks the package index)
	ORCHESTRION_FROZEN_APP=1 $(BIN)/python -m pytest -q -rs tests/tools/test_frozen_app.py

clean: ## remove what make made
	rm -rf $(VENV) build dist *.egg-info
