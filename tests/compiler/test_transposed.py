"""Transpositions in native code: all shapes and types, at the edges of tiles, and without an access per element."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cpu_devices import best_level
from schedule_runs import Judge
from scheduled_bodies import transposed

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.targets.cpu import target

TYPES = {"f32": np.float32, "i32": np.int32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i1": np.bool_}
CASES = [
    ((64, 48), (1, 0)),
    ((37, 53), (1, 0)),
    ((16, 16), (1, 0)),
    ((17, 130), (1, 0)),
    ((3, 33, 20), (0, 2, 1)),
    ((20, 5, 33), (2, 1, 0)),
    ((2, 7, 7, 40), (0, 3, 1, 2)),
    ((2, 40, 7, 7), (0, 2, 3, 1)),
    ((3, 16, 5, 18), (3, 1, 2, 0)),
    ((1, 20, 1, 24), (3, 2, 1, 0)),
]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    opened = Judge()
    yield opened
    opened.close()


def text_of(shape: tuple[int, ...], order: tuple[int, ...], dtype: str, late: bool = False) -> str:
    """The transposed sum of two arguments; `late`: the second one has the shape of the result."""
    x = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
    out = f"tensor<{'x'.join(str(shape[axis]) for axis in order)}x{dtype}>"
    add, move = "add" if dtype[0] == "f" else "xor", f"dims = {list(order)} : ({x}) -> {out}"
    if late:
        body = f"%m = stablehlo.transpose %x, {move} %r = stablehlo.{add} %m, %y : {out}"
    else:
        body = f"%s = stablehlo.{add} %x, %y : {x} %r = stablehlo.transpose %s, {move}"
    return f"func.func @main(%x: {x}, %y: {out if late else x}) -> {out} {{ {body} return %r : {out} }}"


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    return rng.integers(0, 2 if dtype == "i1" else 60, shape).astype(TYPES[dtype])


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("shape", "order", "dtype"),
    [*((*case, "f32") for case in CASES), *((*case, dtype) for case in CASES[1:7:5] for dtype in list(TYPES)[1:])],
)
def test_every_level_transposes(shape: tuple[int, ...], order: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(3)
    x, y = drawn(rng, shape, dtype), drawn(rng, shape, dtype)
    want = (x + y if dtype[0] == "f" else x ^ y).transpose(order)
    levels = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if best_level() >= (level,)]
    for level in levels if levels and dtype == "f32" else best_level():
        module = compiler.compile(text_of(shape, order, dtype), targets=["cpu"], target_cpu=level)
        with vm.load(module, device="cpu", allow_native_code=True) as program:
            np.testing.assert_array_equal(program.main(x, y), want)


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 3, 8, 16, 24])
@pytest.mark.parametrize("count", [1, 2, 3, 8, 16, 40])
def test_tiles_of_any_size_compute_the_same(judge: Judge, count: int, size: int) -> None:
    guard = [] if 40 % count == 0 and 24 % size == 0 else [Step("guard", "t", "shift")]
    schedule = Schedule.of(Step("tile", "t", count=count), Step("bind", "grid", "invocation", size), *guard)
    judge.judge(transposed(), [schedule], "cpu", "cpu")


@pytest.mark.parametrize("shape", [(64, 32), (37, 53)])
def test_a_result_in_the_memory_of_an_operand(shape: tuple[int, int]) -> None:
    """No element is computed twice where the result replaces what it reads."""
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    y = x.reshape(shape[::-1])
    head, tail = text_of(shape, (1, 0), "f32", late=True).split(") ->", 1)
    text = f"{head} {{tf.aliasing_output = 0 : i32}}) ->{tail}"
    module = compiler.compile(text, targets=["cpu"], target_cpu=best_level())
    with vm.load(module, device="cpu", allow_native_code=True) as program:
        memory = program.put(y)
        program.main(x, memory, out=memory)
        np.testing.assert_array_equal(memory.to_numpy(), x.T + y)


def test_an_element_is_no_access_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    original = target.texts_of

    def seen(*given: Any) -> Any:
        for text, names in original(*given):
            texts.append(text)
            yield text, names

    monkeypatch.setattr(target, "texts_of", seen)
    for dtype, gathers in (("f32", False), ("i32", False), ("f64", True)):
        texts.clear()
        compiler.compile(
            text_of((64, 64), (1, 0), dtype, late=True), targets=["cpu"], target_cpu=["x86-64-v2", "x86-64-v4"]
        )
        assert ["gather" in text for text in texts] == [gathers] * 2


def test_values_that_are_read_twice_are_looked_at_once() -> None:
    """Each of the sums doubles the paths from the result to the argument."""
    t = "tensor<32x32xf32>"
    sums = "".join(f"%{n + 1} = stablehlo.add %{n}, %{n} : {t}\n" for n in range(64))
    text = f"func.func @main(%x: {t}) -> {t} {{\n%0 = stablehlo.transpose %x, dims = [1, 0] : ({t}) -> {t}\n{sums}"
    module = compiler.compile(f"{text}return %64 : {t}\n}}", targets=["cpu"], target_cpu=best_level())
    x = np.ones((32, 32), np.float32)
    with vm.load(module, device="cpu", allow_native_code=True) as program:
        np.testing.assert_array_equal(program.main(x), x * 2.0**64)
