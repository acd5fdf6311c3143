"""Devices that lack 8-, 16- or 64-bit integers compute the same: SwiftShader, and lavapipe as if it lacked them.

A sample of the programs always runs, all of them when `ORCHESTRION_REAL_PROGRAMS=all` asks for it.
"""

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from named_devices import open_named

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.schema.dtypes import BOOL, BY_NAME, FLOAT
from orchestrion.vm.errors import NoProgram

Array = np.ndarray[Any, Any]
ModuleOf = Callable[[Any], bytes]
Check = Callable[[Any, list[Any]], None]

ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: programs of `conftest.py` with booleans, masks, narrow and wide integers, in loops and in shared memory
SAMPLE = (
    "arithmetic_uint16", "arithmetic_int64", "bits_uint8", "booleans", "scatter_uint8", "scatter_int64",
    "reduce_booleans", "sort_int8", "sort_int64", "matmul_i8", "any_pool", "updates_in_loop",
)  # fmt: skip
#: what the device lacks (kernels with doubles need 64-bit integers); SwiftShader lacks all of it. A short run takes
#: SwiftShader and one more
DEVICES = {
    "swiftshader": frozenset[str](),
    "without int64": frozenset({"int64", "float64"}),
    "without int8 and int16": frozenset({"int8", "int16"}),
    "without all": frozenset({"int8", "int16", "int64", "float64"}),
}


@pytest.fixture(scope="module", params=DEVICES if ALL else ("swiftshader", "without all"))
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """An open device without integers of some widths."""
    lacks = DEVICES[request.param]
    name = "SwiftShader" if not lacks else "llvmpipe"
    with open_named(name, without=lacks) as opened:
        yield opened


def run(module: bytes, device: Device, *arguments: Any) -> list[Array]:
    with vm.load(module, device=device) as program:
        return [np.asarray(one) for one in jax.tree.leaves(program.main(*arguments))]


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample(name: str, device: Device, cases: dict[str, Any], module_of: ModuleOf, check: Check) -> None:
    case = cases[name]
    check(case, run(module_of(case), device, *case.arguments()))


@pytest.mark.programs(())
@pytest.mark.skipif(not ALL, reason="many programs: make programs")
def test_all(case: Any, device: Device, module_of: ModuleOf, check: Check) -> None:
    try:
        results = run(module_of(case), device, *case.arguments())
    except NoProgram as error:
        assert "wants float64" in str(error) or "wants int64, float64" in str(error)
    else:
        check(case, results)


#: sizes of one dimension: tails of words, whole words, more than a workgroup
SIZES = (1, 2, 7, 8, 257)
ELEMENTS = ("i1", "i8", "ui16", "i64", "f16", "i4", *(("ui8", "i16", "ui64", "bf16") if ALL else ()))


def values(dtype: str, size: int) -> Array:
    """Values of all of the type's range."""
    row, random = BY_NAME[dtype], np.random.default_rng(size)
    if row.kind == BOOL:
        return random.integers(0, 2, size).astype(np.bool_)
    if row.kind == FLOAT:
        return random.normal(size=size).astype(np.float32).astype(row.numpy)
    words = random.integers(0, 1 << 16, (size, 4)).astype(np.uint16).view(np.uint64)[:, 0]
    return words.astype(row.numpy) if row.computed else (words % 16).astype(np.int8).astype(row.numpy)


@functools.cache
def of_sizes(dtype: str) -> bytes:
    """For each size: x + y, the reverse of x, and x with y from the second element on, over the argument x itself."""
    arguments, lines, results, types = [], [], [], []
    for number, size in enumerate(SIZES):
        type, part = f"tensor<{size}x{dtype}>", f"tensor<{max(size - 1, 1)}x{dtype}>"
        x, y = f"%x{number}", f"%y{number}"
        arguments += [f"{x}: {type} {{tf.aliasing_output = {3 * number + 2} : i32}}", f"{y}: {type}"]
        lines += [
            f"%a{number} = stablehlo.add {x}, {y} : {type}",
            f"%r{number} = stablehlo.reverse {x}, dims = [0] : {type}",
            f"%s{number} = stablehlo.slice {y} [0:{max(size - 1, 1)}] : ({type}) -> {part}",
            f"%u{number} = stablehlo.dynamic_update_slice {x}, %s{number}, %one : "
            f"({type}, {part}, tensor<i32>) -> {type}",
        ]
        results += [f"%a{number}", f"%r{number}", f"%u{number}"]
        types += [type] * 3
    body = "\n".join(["%one = stablehlo.constant dense<1> : tensor<i32>", *lines])
    text = f"func.func @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{body}\n"
    text += f"return {', '.join(results)} : {', '.join(types)}\n}}"
    return compiler.compile(text, targets=["reference", "spirv"])


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_elements_of_every_size(dtype: str, device: Device) -> None:
    """Neighbours share words, the last word may be shorter, and updates in place keep the other elements."""
    arguments = [values(dtype, size) for size in SIZES for _ in range(2)]
    with vm.load(of_sizes(dtype), device="reference") as program:
        wanted = [np.asarray(one) for one in program.main(*arguments)]
    for got, want in zip(run(of_sizes(dtype), device, *arguments), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


DYNAMIC = """
func.func @main(%x: tensor<?xi8>, %y: tensor<?xi64>, %m: tensor<?xi1>) -> (tensor<?xi8>, tensor<?xi64>, tensor<?xi1>) {
  %a = stablehlo.multiply %x, %x : tensor<?xi8>
  %b = stablehlo.multiply %y, %y : tensor<?xi64>
  %c = stablehlo.not %m : tensor<?xi1>
  return %a, %b, %c : tensor<?xi8>, tensor<?xi64>, tensor<?xi1>
}
"""


def test_sizes_that_a_call_gives(device: Device) -> None:
    module = compiler.compile(DYNAMIC, targets="spirv")
    with vm.load(module, device=device) as program:
        for size in (5, 64, 3, 1, 1001):
            x, y, m = values("i8", size), values("i64", size), values("i1", size)
            got = [np.asarray(one) for one in program.main(x, y, m)]
            for one, want in zip(got, (x * x, y * y, ~m), strict=True):
                np.testing.assert_array_equal(one, want)


@pytest.mark.parametrize("dtype", ["i32", "ui32", "i64", "ui64"])
def test_conversions_to_floats_round_once(dtype: str, device: Device) -> None:
    """Numbers of every magnitude, also those whose top 32 bits are 2^31 or more: random programs found them wrong."""
    kind, random, size = BY_NAME[dtype].numpy, np.random.default_rng(5), 4096
    x = random.integers(np.iinfo(kind).min, np.iinfo(kind).max, size, kind, endpoint=True)
    x >>= random.integers(0, kind.itemsize * 8 - 1, size).astype(kind)
    type, result = f"tensor<{size}x{dtype}>", f"tensor<{size}xf32>"
    body = f"%y = stablehlo.convert %x : ({type}) -> {result}\nreturn %y : {result}"
    module = compiler.compile(f"func.func @main(%x: {type}) -> {result} {{\n{body}\n}}", targets="spirv")
    np.testing.assert_array_equal(run(module, device, x)[0], x.astype(np.float32))


def test_doubles_are_refused_by_name(swiftshader: str) -> None:
    text = "func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {\n%y = stablehlo.add %x, %x : tensor<4xf64>\n"
    module = compiler.compile(text + "return %y : tensor<4xf64>\n}", targets="spirv")
    with pytest.raises(NoProgram, match=r"wants float64, which the device lacks.*convert to f32"):
        vm.load(module, device=swiftshader)
