"""Lines of results in native code: ops that read their operands in another order, at the edges of lines and vectors."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cpu_devices import best_level
from schedule_runs import Judge
from scheduled_bodies import transposed

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.hal.errors import DriverUnavailable

TYPES = {"f32": np.float32, "i32": np.int32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i1": np.bool_}
LEVELS = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if best_level() >= (level,)]


#: text of the body, where `T` is the type of the operand and `R` of the result; columns of the result for `n` columns
#: of the operand; and its meaning
OPS: dict[str, tuple[str, Callable[[int], int], Callable[[Any], Any]]] = {
    "reverse": ("stablehlo.reverse %x, dims = [1] : T", lambda n: n, lambda x: x[:, ::-1]),
    "reverse rows": ("stablehlo.reverse %x, dims = [0] : T", lambda n: n, lambda x: x[::-1]),
    "every second": (
        "stablehlo.slice %x [0:5, 0:N:2] : (T) -> R", lambda n: (n + 1) // 2, lambda x: x[:, ::2],
    ),
    "every third": (
        "stablehlo.slice %x [0:5, 1:N:3] : (T) -> R", lambda n: (n + 1) // 3, lambda x: x[:, 1::3],
    ),
    "side by side": (
        "stablehlo.concatenate %x, %x, dim = 1 : (T, T) -> R", lambda n: 2 * n, lambda x: np.concatenate([x, x], 1),
    ),
    "column": (
        "stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<5xE>) -> R", lambda n: n,
        lambda x: np.repeat(x[:, :1], x.shape[1], 1),
    ),
}  # fmt: skip
#: columns around vectors and workgroups; with few columns, another schedule is taken
COLUMNS = [9, 15, 33, 129, 200, 1001]


def text_of(name: str, columns: int, dtype: str) -> str:
    body, width, _ = OPS[name]
    operand, result = f"tensor<5x{columns}x{dtype}>", f"tensor<5x{width(columns)}x{dtype}>"
    body = body.replace("R", result).replace("T", operand).replace("N", str(columns)).replace("xE>", f"x{dtype}>")
    column = f"tensor<5x1x{dtype}>"
    return f"""
    func.func @main(%x: {operand}) -> {result} {{
      %s = stablehlo.slice %x [0:5, 0:1] : ({operand}) -> {column}
      %c = stablehlo.reshape %s : ({column}) -> tensor<5x{dtype}>
      %r = {body}
      return %r : {result}
    }}"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    opened = Judge()
    yield opened
    opened.close()


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", OPS)
def test_every_level_computes_lines(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for columns in COLUMNS if dtype == "f32" else COLUMNS[2:4]:
        x = rng.integers(0, 2 if dtype == "i1" else 60, (5, columns)).astype(TYPES[dtype])
        text = text_of(name, columns, dtype)
        for level in LEVELS if LEVELS and dtype == "f32" else best_level():
            module = compiler.compile(text, targets=["cpu"], target_cpu=level)
            with vm.load(module, device="cpu", allow_native_code=True) as program:
                np.testing.assert_array_equal(program.main(x), OPS[name][2](x))


def test_lines_are_chosen() -> None:
    for name in OPS:
        assert "bind(e, local, 128)" in Compilation(targets=("cpu",)).text(text_of(name, 1001, "f32"), "hl_seq")


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_results_that_alternate(count: int, dtype: str) -> None:
    """Each invocation computes a result of each operand, which are neighbours in memory."""
    rng, t, u = np.random.default_rng(3), f"tensor<5x33x{dtype}>", f"tensor<5x33x1x{dtype}>"
    out = f"tensor<5x33x{count}x{dtype}>"
    shaped = "".join(f"%r{n} = stablehlo.reshape %x{n} : ({t}) -> {u}\n" for n in range(count))
    operands, types = ", ".join(f"%r{n}" for n in range(count)), ", ".join([u] * count)
    arguments = ", ".join(f"%x{n}: {t}" for n in range(count))
    text = f"""
    func.func @main({arguments}) -> {out} {{
      {shaped} %r = stablehlo.concatenate {operands}, dim = 2 : ({types}) -> {out}
      return %r : {out}
    }}"""
    assert f"[tile(e, {count}), bind(grid" in Compilation(targets=("cpu",)).text(text, "hl_seq")
    arrays = [rng.integers(0, 2 if dtype == "i1" else 60, (5, 33)).astype(TYPES[dtype]) for _ in range(count)]
    for level in LEVELS if LEVELS and dtype == "f32" else best_level():
        module = compiler.compile(text, targets=["cpu"], target_cpu=level)
        with vm.load(module, device="cpu", allow_native_code=True) as program:
            np.testing.assert_array_equal(program.main(*arrays), np.stack(arrays, 2))


@pytest.mark.parametrize("level", LEVELS)
def test_windows_with_padding_in_lines(level: str) -> None:
    """Extrema of padded windows, whose elements are neighbours, or two or three places apart."""
    x = np.random.default_rng(0).integers(-50, 50, (4, 37)).astype(np.float32)
    windowed = """
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %m = stablehlo.maximum %a, %b : tensor<f32>
        stablehlo.return %m : tensor<f32>
      }) {window_dimensions = array<i64: 1, 4>,
          window_strides = array<i64: 1, STEP>,
          padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>}
          : (tensor<4x37xf32>, tensor<f32>) -> tensor<4xCOUNTxf32>"""
    for step, count in ((1, 37), (2, 19), (3, 13)):
        window = windowed.replace("STEP", str(step)).replace("COUNT", str(count))
        text = f"""
        func.func @main(%x: tensor<4x37xf32>) -> tensor<4x{count}xf32> {{
          %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %r = "stablehlo.reduce_window"(%x, %0) ({{{window}
          return %r : tensor<4x{count}xf32>
        }}"""
        edged = np.pad(x, ((0, 0), (1, 2)), constant_values=-np.inf)
        want = np.lib.stride_tricks.sliding_window_view(edged, 4, 1).max(-1)[:, ::step]
        module = compiler.compile(text, targets=["cpu"], target_cpu=level)
        with vm.load(module, device="cpu", allow_native_code=True) as program:
            np.testing.assert_array_equal(program.main(x), want)


@pytest.mark.parametrize("columns", [9, 33, 129, 200])
def test_a_result_in_the_memory_of_an_operand(columns: int) -> None:
    """No element is computed twice where the result replaces what it reads."""
    t, row = f"tensor<5x{columns}xf32>", f"tensor<{columns}xf32>"
    text = f"""
    func.func @main(%x: {row}, %y: {t} {{tf.aliasing_output = 0 : i32}}) -> {t} {{
      %s = stablehlo.broadcast_in_dim %x, dims = [1] : ({row}) -> {t}
      %r = stablehlo.add %s, %y : {t}
      return %r : {t}
    }}"""
    x, y = (np.arange(size, dtype=np.float32) for size in (columns, 5 * columns))
    for level in LEVELS or best_level():
        module = compiler.compile(text, targets=["cpu"], target_cpu=level)
        with vm.load(module, device="cpu", allow_native_code=True) as program:
            memory = program.put(y.reshape(5, columns))
            program.main(x, memory, out=memory)
            np.testing.assert_array_equal(memory.to_numpy(), x + y.reshape(5, columns))


@pytest.mark.sampled
@pytest.mark.parametrize("target", ["cpu", "opencl"])
@pytest.mark.parametrize("size", [2, 4, 8, 16, 64])
@pytest.mark.parametrize("guarded", [True, False])
def test_parts_of_any_size_compute_the_same(judge: Judge, size: int, guarded: bool, target: str) -> None:
    if guarded and size > 24:
        pytest.skip("a part is longer than a line")
    guard = [Step("guard", "e", "shift")] if guarded else []
    schedule = Schedule.of(Step("bind", "grid", "workgroup"), Step("bind", "e", "local", size), *guard)
    try:
        judge.judge(transposed(), [schedule], target, "cpu")
    except DriverUnavailable as error:
        pytest.skip(str(error))
