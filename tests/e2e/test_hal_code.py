"""What `vm-codegen --style=hal` writes gives the VM's bits on every device, with its costs, and says whose fault it is.

`make test` runs some programs of `test_devices.py`, and `make programs` all of them, and the real programs.
"""

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hal_code import as_list, created, generated, imported, same_bits, uploaded, write

jax = pytest.importorskip("jax")

from cpu_devices import best_level  # noqa: E402
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from real_programs import PROGRAMS, RealProgram  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

from orchestrion import compiler  # noqa: E402
from orchestrion.compiler.codegen.hal.calls import OTHERS, STATEMENTS, VALUES  # noqa: E402
from orchestrion.hal.backend import MemoryUse  # noqa: E402
from orchestrion.hal.buffer import BufferView  # noqa: E402
from orchestrion.hal.device import Device  # noqa: E402
from orchestrion.hal.errors import (  # noqa: E402
    DriverUnavailable,
    InvalidArgument,
    PolicyRefused,
    Unsupported,
)
from orchestrion.hal.policy import Policy  # noqa: E402
from orchestrion.hal.public import DEVICE_INTERFACE, PUBLIC  # noqa: E402
from orchestrion.hal.registry import open_device  # noqa: E402
from orchestrion.hal.semaphore import Fence  # noqa: E402
from orchestrion.schema.assembler import assemble  # noqa: E402
from orchestrion.schema.dtypes import BY_NAME  # noqa: E402
from orchestrion.schema.errors import ModuleError  # noqa: E402
from orchestrion.schema.hal_imports import HAL_IMPORTS  # noqa: E402
from orchestrion.schema.trust.store import TrustStore  # noqa: E402
from orchestrion.schema.writer import write as write_module  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
DEVICES = ("reference", "cpu", "opencl", "vulkan")
#: OpenCL drivers build kernels slowly
QUICK_DEVICES = ("reference", "cpu", "vulkan")
#: one program per kind of code: constants, arenas, in-place results, computed constants, each kind of control flow,
#: constants without elements, results of several types
SOME = (
    "simple_mul", "mlp", "donated", "approximate_top_k", "switch", "cond_in_loop", "loop_in_cond", "sort_1025",
    "zero_elements", "many_results", "empty_state",
)  # fmt: skip
#: of these, those that an OpenCL driver builds quickly
QUICK = ("simple_mul", "donated", "cond_in_loop", "empty_state")
LoadOn = Callable[..., Any]
ModuleOf = Callable[[Any], bytes]


@pytest.fixture(scope="module")
def device_of() -> Iterator[Callable[[str], Device]]:
    """Opens a device, once; skips, with the reason, where it is not there. All are closed at the end."""
    opened: dict[str, Device] = {}

    def open_one(name: str) -> Device:
        if name == "cpu":
            pytest.importorskip("llvmlite")
        if name not in opened:
            try:
                opened[name] = open_device(name, policy=Policy(allow_native_code=True))
            except DriverUnavailable as error:
                pytest.skip(f"{name}: {error}")
        return opened[name]

    yield open_one
    for device in opened.values():
        device.close()


def compare(module: bytes, folder: Path, device: Device, arguments: list[Any], want: Any, export: str = "main") -> None:
    """Calls the generated code, blocking and submitted, and compares its results with those of the VM."""
    code = imported(module, folder)
    with created(code, device) as program:
        same_bits(getattr(program, export)(*uploaded(code, device, arguments)), want)
        gate, done = (Fence([(device.create_semaphore(), 1)]) for _ in range(2))
        views = uploaded(code, device, arguments)
        gate.signal()
        got = getattr(program, f"submit_{export}")(*views, wait=gate, signal=done)
        done.wait(60)
        same_bits(got, want)


# programs


def compare_case(
    case: Any, device: str, module_of: ModuleOf, load_on: LoadOn, device_of: Callable[[str], Device], folder: Path
) -> None:
    module = module_of(case)
    with load_on(module, device) as program:
        want = program.main.flat(*case.arguments())
    compare(module, folder / case.name, device_of(device), case.arguments(), want)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SOME)
def test_program(
    name: str,
    device: str,
    cases: dict[str, Any],
    module_of: ModuleOf,
    load_on: LoadOn,
    device_of: Callable[[str], Device],
    tmp_path: Path,
) -> None:
    if device == "opencl" and name not in QUICK and not ALL:
        pytest.skip("builds many kernels: make programs")
    compare_case(cases[name], device, module_of, load_on, device_of, tmp_path)


@pytest.mark.skipif(not ALL, reason="all programs: make programs")
@pytest.mark.parametrize("device", DEVICES)
def test_all_programs(
    device: str,
    cases: dict[str, Any],
    module_of: ModuleOf,
    load_on: LoadOn,
    device_of: Callable[[str], Device],
    tmp_path: Path,
) -> None:
    for case in cases.values():
        compare_case(case, device, module_of, load_on, device_of, tmp_path)


@pytest.mark.parametrize("program", PROGRAMS if ALL else PROGRAMS[:1], ids=lambda program: program.name)
def test_real_program(
    program: RealProgram, load_on: LoadOn, device_of: Callable[[str], Device], tmp_path: Path
) -> None:
    function, arguments = program.made()
    leaves = jax.tree.leaves(arguments)
    with jax.enable_x64(False):
        module = compiler.compile(jax.jit(function).lower(*arguments), target_cpu=best_level())
    for device in DEVICES if ALL else QUICK_DEVICES:
        with load_on(module, device) as loaded:
            want = loaded.main.flat(*leaves)
        compare(module, tmp_path / device, device_of(device), leaves, want)


@functools.cache
def example(name: str) -> bytes:
    return compiler.compile(EXAMPLES / f"{name}.mlir", target_cpu=best_level())


@pytest.mark.sampled
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["simple_mul", "mlp", "relu_tanh", "matmul_static", "spectral_norm"])
def test_example(name: str, device: str, load_on: LoadOn, device_of: Callable[[str], Device], tmp_path: Path) -> None:
    module = example(name)
    with load_on(module, device) as program:
        (exported,) = program.exports
        arguments = [
            np.random.default_rng(7).normal(size=value.shape).astype(value.dtype.numpy)
            for value in program[exported.name].export.arguments
        ]
        want = program[exported.name](*arguments)
    compare(module, tmp_path, device_of(device), arguments, want, exported.name)


def rows(x: Any, w: Any) -> Any:
    return jax.nn.softmax(jnp.tanh(x @ w)), x.sum(0)


def grown(x: Any) -> Any:
    return lax.while_loop(lambda v: v[0].sum() < 100, lambda v: (v[0] * 1.5 + 1, v[1] + 1), (abs(x), 0))


@functools.cache
def symbolic(function: Callable[..., Any], *shapes: str) -> bytes:
    """A module for any number of rows b up to 64."""
    (b,) = export.symbolic_shape("b", constraints=["b <= 64"])
    specs = [
        jax.ShapeDtypeStruct(tuple(b if size == "b" else int(size) for size in shape.split("x")), np.float32)
        for shape in shapes
    ]
    return compiler.compile(export.export(jax.jit(function))(*specs), target_cpu=best_level())


@pytest.mark.parametrize("device", DEVICES if ALL else QUICK_DEVICES)
@pytest.mark.parametrize(("function", "shapes"), [(rows, ("bx8", "8x16")), (grown, ("bx8",))])
def test_sizes_that_calls_choose(
    function: Any,
    shapes: tuple[str, ...],
    device: str,
    load_on: LoadOn,
    device_of: Callable[[str], Device],
    tmp_path: Path,
) -> None:
    """Recordings are made once per size. A size that the program forbids is the caller's error, with the VM's text."""
    module, opened = symbolic(function, *shapes), device_of(device)
    code = imported(module, tmp_path)
    with load_on(module, device) as loaded, created(code, opened) as program:
        for size in (3, 1, 40, 3):
            random = np.random.default_rng(size)
            arrays = [
                random.normal(size=[size if part == "b" else int(part) for part in shape.split("x")]).astype(np.float32)
                for shape in shapes
            ]
            views = uploaded(code, opened, arrays)
            out = as_list(program.main(*views))
            same_bits(tuple(out), loaded.main(*arrays))
            live = opened.live["command buffer"]
            before = opened.statistics.allocations
            program.main(*views, *out)
            assert (opened.live["command buffer"], opened.statistics.allocations) == (live, before)
        wide = [
            np.zeros([65 if part == "b" else int(part) for part in shape.split("x")], np.float32) for shape in shapes
        ]
        with pytest.raises(InvalidArgument, match="b <= 64"):
            program.main(*uploaded(code, opened, wide))


def layers(weights: Any, x: Any) -> Any:
    return jnp.tanh(x @ weights["w"] + weights["b"]) @ weights["w"].T


def with_parameters(file: Path) -> bytes:
    """A module whose weights are in a file."""
    random = np.random.default_rng(1)
    arrays = {"w": random.normal(size=(48, 40)).astype(np.float32), "b": random.normal(size=40).astype(np.float32)}
    lowered = jax.jit(lambda x: layers(arrays, x)).lower(np.zeros((4, 48), np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrion.compiler.stablehlo.functions.mark_parameters.MIN_PARAMETER_BYTES", 64)
        return compiler.compile(lowered, parameters=file, target_cpu=best_level())


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("device", QUICK_DEVICES)
def test_parameters_are_given_by_name(
    device: str, load_on: LoadOn, device_of: Callable[[str], Device], tmp_path: Path
) -> None:
    x, file = np.random.default_rng(2).normal(size=(4, 48)).astype(np.float32), tmp_path / "weights.safetensors"
    module, values = with_parameters(file), load_file(file)
    code, opened = imported(module, tmp_path / "code"), device_of(device)
    with load_on(module, device, parameters=file) as loaded, created(code, opened, values) as program:
        same_bits(program.main(*uploaded(code, opened, [x])), loaded.main(x))
    name = next(iter(values))
    for given, text in (
        ({}, f"parameter {name} is missing"),
        ({**values, name: np.zeros(3, np.float32)}, f"parameter {name}: expected"),
    ):
        with pytest.raises(InvalidArgument, match=re.escape(text)):
            created(code, opened, given)


# what a call costs


@pytest.mark.parametrize("device", DEVICES)
def test_a_warm_call_submits_once_and_allocates_nothing(
    device: str, cases: dict[str, Any], module_of: ModuleOf, device_of: Callable[[str], Device], tmp_path: Path
) -> None:
    opened = device_of(device)
    code = imported(module_of(cases["mlp"]), tmp_path)
    with created(code, opened) as program:
        views = uploaded(code, opened, cases["mlp"].arguments())
        out = program.main(*views)
        counts = opened.statistics
        names = ("submissions", "waits", "allocations", "host_to_device_bytes", "device_to_host_bytes")
        before = [getattr(counts, name) for name in names]
        assert program.main(*views, out) is out
        assert [getattr(counts, name) - old for name, old in zip(names, before, strict=True)] == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_a_submitted_call_waits_for_its_fence(
    device: str, cases: dict[str, Any], module_of: ModuleOf, device_of: Callable[[str], Device], tmp_path: Path
) -> None:
    """Two calls in a row: the second one takes the result of the first, and both begin when the host says so."""
    opened, case = device_of(device), cases["simple_mul"]
    code = imported(module_of(case), tmp_path)
    gate, between, done = (Fence([(opened.create_semaphore(), 1)]) for _ in range(3))
    with created(code, opened) as program:
        x, y = uploaded(code, opened, case.arguments())
        first = program.submit_main(x, y, wait=gate, signal=between)
        second = program.submit_main(first, y, wait=between, signal=done)
        assert not done.reached
        gate.signal()
        done.wait(60)
        a, b = case.arguments()
        same_bits(first, a * b)
        same_bits(second, a * b * b)


@pytest.mark.parametrize("device", DEVICES)
def test_closing_releases_everything(
    device: str, cases: dict[str, Any], module_of: ModuleOf, device_of: Callable[[str], Device], tmp_path: Path
) -> None:
    opened = device_of(device).share()
    for name in ("mlp", "approximate_top_k", "cond_in_loop"):
        code = imported(module_of(cases[name]), tmp_path / name)
        program = created(code, opened)
        views = uploaded(code, opened, cases[name].arguments())
        results = as_list(program.main(*views))
        program.close()
        with pytest.raises(InvalidArgument, match="released|not finished"):
            program.main(*views)
        for view in (*views, *results):
            view.buffer.release()
        assert opened.leaks == ()
    assert opened.close() == ()


# errors


@pytest.fixture
def multiply(module_of: ModuleOf, cases: dict[str, Any], tmp_path: Path) -> Any:
    return imported(module_of(cases["simple_mul"]), tmp_path, "multiply")


def test_wrong_arguments_are_the_callers_error(multiply: Any, device_of: Callable[[str], Device]) -> None:
    device, f32 = device_of("reference"), BY_NAME["f32"]
    with created(multiply, device) as program:
        (good,) = uploaded(multiply, device, [np.zeros((4,), np.float32)])
        size = good.shape[0]
        wide, ints = uploaded(multiply, device, [np.zeros((size, 2), np.float32), np.zeros((size,), np.int32)])
        late = BufferView(device.allocator.allocate(64 + good.nbytes, MemoryUse.INPUT), f32, good.shape, 64)
        for bad, text in (
            (wide, f"main: argument y: expected {size}xf32, got {size}x2xf32"),
            (ints, f"main: argument y: expected {size}xf32, got {size}xi32"),
            (late, "main: argument y: begins at byte 64 of its buffer, expected 0"),
            (np.zeros(size), "main: argument y: expected a BufferView, got ndarray"),
        ):
            with pytest.raises(InvalidArgument, match=re.escape(text)):
                program.main(good, bad)
        with pytest.raises(InvalidArgument, match=f"main: result: expected {size}xf32, got {size}xi32"):
            program.main(good, good, ints)


def test_a_device_that_does_not_fit_says_why(
    module_of: ModuleOf, cases: dict[str, Any], tmp_path: Path, device_of: Callable[[str], Device]
) -> None:
    module, device = module_of(cases["simple_mul"]), device_of("reference")
    code = imported(module, tmp_path, targets=("spirv", "opencl"))
    with pytest.raises(Unsupported) as error:
        code.create(device)
    info = device.info
    assert str(error.value) == (
        f"no program of model runs on device {info.id} ({info.name}): "
        "spirv (wants spirv, the device runs tensor-bytecode); opencl (wants opencl-c, the device runs tensor-bytecode)"
    )
    with pytest.raises(Unsupported, match="program spirv does not run on reference"):
        code.ModelSpirv.create(device)


def test_files_that_were_changed_are_refused(
    module_of: ModuleOf, cases: dict[str, Any], tmp_path: Path, device_of: Callable[[str], Device]
) -> None:
    code = imported(module_of(cases["mlp"]), tmp_path, targets=("reference",))
    constant, payload = next(tmp_path.glob("*.constant")), next(tmp_path.glob("*.tensors"))
    whole = constant.read_bytes()
    constant.write_bytes(whole[:-1])
    with pytest.raises(ModuleError, match=f"{constant.name}: {len(whole) - 1} bytes, expected {len(whole)}"):
        code.Model.create(device_of("reference"))
    constant.write_bytes(whole)
    payload.write_bytes(payload.read_bytes() + b"\0")
    with pytest.raises(ModuleError, match=f"{payload.name}: the SHA-256 differs"):
        code.Model.create(device_of("reference"))
    assert device_of("reference").live["executable"] == 0


def test_native_code_needs_trust(module_of: ModuleOf, cases: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    code = imported(module_of(cases["simple_mul"]), tmp_path, targets=("cpu",))
    nobody = Policy(store=TrustStore(tmp_path / "trust"))
    with (
        open_device("cpu", policy=nobody) as device,
        pytest.raises(PolicyRefused, match="was not compiled on this machine"),
    ):
        code.Model.create(device)


# the text


@pytest.fixture(scope="module")
def texts(module_of: ModuleOf, cases: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of several programs."""
    folder = tmp_path_factory.mktemp("texts")
    for name in ("simple_mul", "mlp", "approximate_top_k", "switch", "loop_in_cond", "sort_1025", "many_results"):
        write(generated(module_of(cases[name]), name), folder)
    write(generated(symbolic(rows, "bx8", "8x16"), "rows"), folder)
    write(generated(symbolic(grown, "bx8"), "grown"), folder)
    write(generated(with_parameters(tmp_path_factory.mktemp("weights") / "weights.safetensors"), "layers"), folder)
    return folder


def test_it_is_formatted_and_typed(texts: Path) -> None:
    checked(texts)


def checked(texts: Path) -> None:
    """Fails unless ruff and mypy, which is strict here, accept all modules of a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".types"), "MYPYPATH": str(ROOT / ".types")}
    for command in (
        ("ruff", "format", "--check", "--diff", "--config", ROOT / "pyproject.toml", texts),
        ("ruff", "check", "--config", ROOT / "pyproject.toml", texts),
        ("mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache", texts),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, env=environment, cwd=texts
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_imports_public_names_alone(texts: Path) -> None:
    for path in texts.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("orchestrion"):
                module = str(node.module)
                names = {*PUBLIC.get(module, ()), *DEVICE_INTERFACE.get(module, ())}
                assert {alias.name for alias in node.names} <= names, f"{path.name}: {module}"


def test_it_is_the_same_each_time(module_of: ModuleOf, cases: dict[str, Any]) -> None:
    module = module_of(cases["cond_in_loop"])
    assert generated(module, "model") == generated(module, "model")


def test_every_function_of_hal_is_rendered_or_refused() -> None:
    rendered, refused = {*VALUES, *STATEMENTS}, {*OTHERS}
    assert {name for name in rendered if name.startswith("hal.")} | refused == HAL_IMPORTS.keys()
    assert not rendered & refused


# code that the compiler does not write

_NAMES = """
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.view.check (hal.view, i32, i64*) -> hal.buffer
export @main (self: tensor<4xi32>, storage: tensor<4xi32>, "a b": tensor<4xi32>) -> (call: tensor<4xi32>)
export @submit_main ("": tensor<4xi32>, "": tensor<4xi32>, "\\"\\"\\"\\n": tensor<4xi32>) -> (class: tensor<4xi32>)
export @"def" (F32: tensor<4xi32>, wait: tensor<4xi32>, made: tensor<4xi32>) -> ("result": tensor<4xi32>)
program @"a\\nb" profile "reference" {
  func @"no name" (hal.view, hal.view, hal.view, hal.view) -> hal.view {
    %i0 = i32.const 544
    %l0 = i64.const 4
    %r4 = call_import @hal.view.check(%r2, %i0, %l0)
    %r3 = call_import @hal.view.destination(%r3, %i0, %l0)
    return (%r3)
  }
  func @"add_main" () -> () {
    %i0 = i32.const 7
    global.store.i32 %i0, @lock
    return ()
  }
  func @lock () -> () {
    return ()
  }
  global @lock : i32 mutable = 5
  global @"set up" : i32 mutable
  initializer context @add_main
  initializer context @lock
  entry @"no name"
  entry @"no name"
  entry @"no name"
}
"""


def test_names_of_a_module_are_never_names_of_the_code(device_of: Callable[[str], Device], tmp_path: Path) -> None:
    """Keywords, names that the code uses itself, equal names, quotes and line breaks."""
    code, device = imported(write_module(assemble(_NAMES)), tmp_path, "none"), device_of("reference")
    with created(code, device) as program:
        x, y, z = uploaded(code, device, [np.arange(4, dtype=np.int32)] * 3)
        for name in ("main", "submit_main_1", "def_"):
            same_bits(getattr(program, name)(x, y, z), np.zeros(4, np.int32))
            with pytest.raises(InvalidArgument, match="expected 4xi32, got 2xi32"):
                getattr(program, f"submit_{name}")(x, y, uploaded(code, device, [np.arange(2, dtype=np.int32)])[0])
    checked(tmp_path)
