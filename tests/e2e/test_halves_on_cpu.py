"""f16 in native code: every value and every kind of rounding, by instructions and, where there are none, by integers.

NumPy is the oracle. The sign and the payload of a NaN are open.
"""

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from cpu_devices import open_cpu
from emulated_cpu import emulated, need_emulator

pytest.importorskip("llvmlite")

from orchestrion import compiler, vm
from orchestrion.compiler.targets.cpu.levels import LEVELS
from orchestrion.hal.registry import devices_of, load_driver

Array = np.ndarray[Any, Any]


def run(text: str, level: str, *arguments: Array) -> list[Array]:
    """The results of a program on a level; skips the test if no device runs it."""
    with ExitStack() as stack:
        if LEVELS[level].architecture != "x86-64":
            need_emulator()
            stack.enter_context(emulated())
        elif not any(level in info.features for info in devices_of(load_driver("cpu"))):
            pytest.skip(f"the processor does not run {level}")
        module = compiler.compile(text, targets=["cpu"], target_cpu=level)
        device = stack.enter_context(open_cpu())
        found = vm.load(module, device=device).main(*arguments)
        return [np.array(one) for one in (found if isinstance(found, tuple) else (found,))]


def program(body: str, *types: str, results: str) -> str:
    arguments = ", ".join(f"%x{at}: tensor<{type}>" for at, type in enumerate(types))
    return f"func.func @main({arguments}) -> tensor<{results}> {{\n{body}\nreturn %r : tensor<{results}>\n}}"


def same(got: Array, want: Array) -> None:
    """Equal bit for bit, but that a NaN is any NaN."""
    assert got.dtype == want.dtype
    unsigned = f"u{got.itemsize}"
    wrong = (got.view(unsigned) != want.view(unsigned)) & ~(np.isnan(got) & np.isnan(want))
    at = np.flatnonzero(wrong)[:5]
    assert not wrong.any(), (int(wrong.sum()), at, got.ravel()[at], want.ravel()[at])


def halves() -> Array:
    """Every f16."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def hard_numbers() -> Array:
    """Each f16, the middle between it and the next, the neighbours of both, the edges of exponents, and others."""
    random = np.random.default_rng(4)
    with np.errstate(all="ignore"):
        exact = halves().astype(np.float32)
        finite = np.unique(exact[np.isfinite(exact)])
        middle = (finite[1:].astype(np.float64) + finite[:-1]).astype(np.float32) / 2
        points = np.concatenate([exact, middle, 2.0 ** np.arange(-149, 128, dtype=np.float32)]).astype(np.float32)
    bits = points.view(np.uint32)
    special = np.uint32(
        [0x7F800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FF001, 0x33000000, 0x33000001, 0x7FC01234]
    )
    drawn = random.integers(0, 1 << 32, 20_001, dtype=np.uint32)
    found = np.concatenate([bits, bits + 1, bits - 1, special, special | 1 << 31, drawn])
    return found.astype(np.uint32).view(np.float32)


@pytest.fixture(params=[name for name, level in LEVELS.items() if not level.base])
def level(request: Any) -> str:
    return str(request.param)


def test_every_half_as_a_number(level: str) -> None:
    size = halves().size
    text = program(f"%r = stablehlo.convert %x0 : (tensor<{size}xf16>) -> tensor<{size}xf32>", f"{size}xf16",
                   results=f"{size}xf32")  # fmt: skip
    (got,) = run(text, level, halves())
    same(got, halves().astype(np.float32))


def test_numbers_round_once_to_even(level: str) -> None:
    """Subnormal numbers and results are kept, and what is too large is infinite."""
    x = hard_numbers()
    text = program(f"%r = stablehlo.convert %x0 : (tensor<{x.size}xf32>) -> tensor<{x.size}xf16>", f"{x.size}xf32",
                   results=f"{x.size}xf16")  # fmt: skip
    (got,) = run(text, level, x)
    with np.errstate(all="ignore"):
        same(got, x.astype(np.float16))


def test_a_chain_rounds_behind_each_op(level: str) -> None:
    random = np.random.default_rng(5)
    x, y = (random.permutation(halves())[: 1 << 14] for _ in range(2))
    type = f"tensor<{x.size}xf16>"
    body = f"%a = stablehlo.multiply %x0, %x1 : {type}\n%b = stablehlo.add %a, %x1 : {type}\n"
    text = program(f"{body}%r = stablehlo.subtract %b, %x0 : {type}", *[f"{x.size}xf16"] * 2, results=f"{x.size}xf16")
    (got,) = run(text, level, x, y)
    with np.errstate(all="ignore"):
        same(got, x * y + y - x)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 6, 16, 40])
def test_products_widen_their_operands(level: str, rows: int, turned: bool) -> None:
    """Of few rows where they are read, of more in front of the dot: the sums are those of widened operands."""
    random = np.random.default_rng(rows)
    x = random.standard_normal((rows, 204), np.float32).astype(np.float16)
    y = random.standard_normal((204, 272), np.float32).astype(np.float16)
    y[5, ::3] = np.float16(3e-7)
    shapes = [f"{rows}x204x", "272x204x" if turned else "204x272x"]
    dot = f"stablehlo.dot_general %{{}}0, %{{}}1, contracting_dims = [1] x [{int(turned)}]"
    wide, results = [f"{shape}f32" for shape in shapes], f"{rows}x272xf32"

    def text(kind: str, types: list[str]) -> str:
        given = ", ".join(f"tensor<{type}>" for type in types)
        return program(f"%r = {dot.format('x', 'x')} : ({given}) -> tensor<{results}>", *types, results=results)

    given = [x, np.ascontiguousarray(y.T) if turned else y]
    (got,) = run(text("f16", [f"{shape}f16" for shape in shapes]), level, *given)
    (want,) = run(text("f32", wide), level, *(one.astype(np.float32) for one in given))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


def test_levels_have_the_instructions() -> None:
    """All but `x86-64-v2`, whose code calls no function of a library for them."""
    text = program("%r = stablehlo.add %x0, %x1 : tensor<64xf16>", "64xf16", "64xf16", results="64xf16")
    for name, level in LEVELS.items():
        assert compiler.compile(text, targets=["cpu"], target_cpu=name)
        assert level.halves == (name != "x86-64-v2")
