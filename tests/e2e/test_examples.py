"""The examples, on every device: what they compute, and what a call costs once the first ones are done.

A branch-free program is one submission and one wait, whatever it computes; nothing is allocated, created or moved, but
arguments in and results out, and with arrays on the device not these either. A program with branches is one submission
per question that the host asks, and one for the end.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler import Compilation
from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.options import Options
from orchestrion.compiler.pipeline import passes_named, run_passes
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.schema.writer import write

LoadOn = Callable[[bytes, str], Any]
Array = np.ndarray[Any, Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TARGETS = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
#: the first and the third hidden layer are never needed at one time, and the logits lie in the result
LAYERS = """
func.func @layers(%x: tensor<8x32xf32>, %w0: tensor<32x64xf32>, %w1: tensor<64x48xf32>, %w2: tensor<48x40xf32>,
                  %w3: tensor<40x10xf32>) -> tensor<8x10xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %h0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0]
    : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
  %h1 = stablehlo.dot_general %h0, %w1, contracting_dims = [1] x [0]
    : (tensor<8x64xf32>, tensor<64x48xf32>) -> tensor<8x48xf32>
  %h2 = stablehlo.dot_general %h1, %w2, contracting_dims = [1] x [0]
    : (tensor<8x48xf32>, tensor<48x40xf32>) -> tensor<8x40xf32>
  %logits = stablehlo.dot_general %h2, %w3, contracting_dims = [1] x [0]
    : (tensor<8x40xf32>, tensor<40x10xf32>) -> tensor<8x10xf32>
  %max = stablehlo.reduce(%logits init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<8x10xf32>, tensor<f32>) -> tensor<8xf32>
  %maxs = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<8xf32>) -> tensor<8x10xf32>
  %y = stablehlo.subtract %logits, %maxs : tensor<8x10xf32>
  return %y : tensor<8x10xf32>
}
"""
BEFORE_PACKING = ("group-by-barrier", "materialize-copies", "freeze-abi", "convert-to-ll-seq")


@dataclass(frozen=True, eq=False)
class Example:
    """A program without branches: its function, what goes in and what must come out, and the dispatches of a call."""

    file: str
    function: str
    arguments: list[Array]
    wanted: list[Array]
    dispatches: int
    devices: tuple[str, ...] = tuple(TARGETS)
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.file, *self.options.values()])


def uniform(*shape: int) -> Array:
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


def dot() -> Example:
    a, b = uniform(8, 16), uniform(16, 32)
    return Example("dot.hl_seq.mlir", "dot", [a, b], [a @ b], 1, options={"start": "hl_seq"})


def relu_tanh() -> Example:
    x = uniform(2)
    relu = np.maximum(x, 0)
    return Example("relu_tanh.mlir", "relu_tanh", [x], [relu, np.tanh(relu)], 1)


def mlp() -> Example:
    x, y = (np.load(EXAMPLES / f"mlp_{which}.npy") for which in ("input", "output"))
    return Example("mlp.mlir", "main", [x], [y], 4)


def library_call() -> Example:
    x, w, b = uniform(2, 3), uniform(3, 4), uniform(4)
    wanted = [np.maximum(x @ w + b, 0)]
    return Example("library_call.mlir", "dense", [x, w, b], wanted, 3, devices=("reference",))


def matmul_static(encodings: str, dispatches: int, *devices: str) -> Example:
    x = uniform(64, 128)
    weights = np.sin(np.arange(32768, dtype=np.float32)).reshape(128, 256)
    return Example(
        "matmul_static.mlir", "matmul_static", [x], [x @ weights], dispatches, devices, {"encodings": encodings}
    )


#: in row-major order a call is the product, with a layout it is one encoding and the product
BRANCH_FREE = [
    dot(),
    relu_tanh(),
    mlp(),
    library_call(),
    matmul_static("none", 1, *TARGETS),
    matmul_static("test", 2, *TARGETS),
    matmul_static("default", 2, "vulkan"),
]


@cache
def compiled(file: str, target: str, **options: Any) -> bytes:
    return write(Compilation(targets=(target,), **options).rows(EXAMPLES / file))


def on_devices(examples: list[Example]) -> Any:
    rows = [(example, device) for example in examples for device in example.devices]
    return pytest.mark.parametrize(("example", "device"), rows, ids=[f"{e}-{d}" for e, d in rows])


def steady(program: Any, function: str, arguments: list[Any], out: list[Any]) -> dict[str, Any]:
    """The counts of a call after some."""
    for _ in range(3):
        program[function](*arguments, out=tuple(out) if len(out) > 1 else out[0])
    found: dict[str, Any] = program.statistics()["calls"][-1]
    return {name: count for name, count in found.items() if name not in ("function", "seconds")}


@pytest.mark.parametrize("where", ["host", "device"])
@on_devices(BRANCH_FREE)
def test_a_call_without_branches(example: Example, device: str, where: str, load_on: LoadOn) -> None:
    if example.file == "library_call.mlir":
        pytest.importorskip("scipy")
    program = load_on(compiled(example.file, TARGETS[device], **example.options), device)
    arguments: list[Any] = example.arguments
    out: list[Any] = [np.empty_like(y) for y in example.wanted]
    moved_in, moved_out = (sum(x.nbytes for x in arrays) for arrays in (arguments, out))
    if where == "device":
        arguments, out = [program.put(x) for x in arguments], [program.empty(y.shape, y.dtype) for y in out]
        moved_in = moved_out = 0
    assert steady(program, example.function, arguments, out) == {
        "submissions": 1,
        "dispatches": example.dispatches,
        "waits": 1,
        "allocations": 0,
        "host_to_device_bytes": moved_in,
        "device_to_host_bytes": moved_out,
        "constant_bytes": 0,
        "executables_created": 0,
    }
    for got, want in zip(out, example.wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    program.close()


@pytest.mark.parametrize("device", TARGETS)
def test_a_call_with_branches(device: str, load_on: LoadOn) -> None:
    program = load_on(compiled("spectral_norm.mlir", TARGETS[device]), device)
    square = uniform(4, 4)
    for a in (square + square.T, square, np.eye(4, dtype=np.float32)):
        out = [np.empty((), np.float32), np.empty((), np.int32)]
        counts = steady(program, "spectral_norm", [a], out)
        np.testing.assert_allclose(out[0], np.linalg.norm(a.astype(np.float64), 2), rtol=1e-4)
        # the host asks for the conditional, and whether the kernel of the loop has ended it; or a recording does
        questions = 0 if device == "reference" else 2
        assert 0 < int(out[1]) < 200
        assert counts["submissions"] == counts["waits"] == questions + 1
        assert counts["device_to_host_bytes"] == questions + 8
        assert counts["host_to_device_bytes"] == a.nbytes
        assert counts["allocations"] == counts["executables_created"] == counts["constant_bytes"] == 0
    program.close()


@pytest.mark.parametrize("device", TARGETS)
def test_what_is_built_once(device: str, load_on: LoadOn) -> None:
    """Executables are the program's; a context adds its recording, and nothing else."""
    program = load_on(compiled("relu_tanh.mlir", TARGETS[device]), device)
    x = uniform(2)
    program.relu_tanh(x)
    load = program.statistics()["load"]
    assert (load["executables_created"], load["command_buffers_recorded"], load["dispatches"]) == (1, 1, 0)
    other = program.create_context()
    own = other.context.device.statistics
    assert (own.executables_created, own.command_buffers_recorded) == (0, 1)
    for _ in range(3):
        np.testing.assert_allclose(other.relu_tanh(x)[1], np.tanh(np.maximum(x, 0)), rtol=1e-5)
    assert (own.executables_created, own.dispatches) == (0, 3)
    other.close()
    program.close()


@pytest.mark.parametrize("device", TARGETS)
def test_zeros_and_sum_in_one_place(device: str, load_on: LoadOn, tmp_path: Path) -> None:
    """Said to be in place, the dot needs no memory but the caller's."""
    entry = "{entry = @accumulate::@accumulate,"
    text = (EXAMPLES / "dot.hl_seq.mlir").read_text()
    assert text.count(entry) == len(TARGETS)
    path = tmp_path / "in_place.mlir"
    path.write_text(text.replace(entry, f"{entry} in_place = array<i64: 2>,"))
    options = {"targets": (TARGETS[device],), "start": "hl_seq"}
    assert '"ll_seq.allocate"' in Compilation(**options).text(EXAMPLES / "dot.hl_seq.mlir", "ll_seq")
    assert '"ll_seq.allocate"' not in Compilation(**options).text(path, "ll_seq")
    program = load_on(write(Compilation(**options).rows(path)), device)
    a, b, out = uniform(8, 16), uniform(16, 32), np.empty((8, 32), np.float32)
    counts = steady(program, "dot", [a, b], [out])
    assert (counts["submissions"], counts["waits"], counts["dispatches"]) == (1, 1, 1)
    np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5)
    program.close()


@pytest.mark.parametrize("target", TARGETS.values())
def test_the_arena_is_smaller_than_what_it_holds(target: str) -> None:
    """Of four layers: than the transients, and than the allocations that are left of them."""
    options = Options((target,))
    module = Compilation(targets=(target,)).module(LAYERS, "hl_seq")
    transients = [
        hl_seq.size_of(value.type)
        for op in module.walk()
        if isinstance(op, flow.Dispatch) and isinstance(op.parent_op, Func)
        for value in op.results
        if hl_seq.lifetime_of(value.type) == "transient"
    ]
    run_passes(module, passes_named(BEFORE_PACKING), options)
    apart = allocated(module)
    run_passes(module, passes_named(("pack-arena",)), options)
    (arena,) = allocated(module)
    assert len(transients) > len(apart) > 1
    assert max(apart) < arena < sum(apart) < sum(transients)


def allocated(module: Any) -> list[int]:
    """Bytes of each allocation."""
    return [op.size for op in module.walk() if isinstance(op, ll_seq.Allocate)]
