"""Folding and expanding against StableHLO's own interpreter (`stablehlo.eval_module`) and XLA, on the hard values.

Integers, booleans, comparisons and moved data must be equal; floats within 4 units in the last place of the
interpreter, which computes transcendentals in double; NaN where it says NaN.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.scalars.lowering import SCALAR_OPS
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, Compare, Elementwise
from orchestrion.schema.dtypes import BOOL, BY_NAME, COMPUTED, FLOAT, SIGNED, UNSIGNED, DType

Oracle = Callable[..., list[np.ndarray]]

#: kind -> values; few enough that a pair of them stays below what is folded
VALUES: dict[int, tuple[float, ...]] = {
    BOOL: (0, 1),
    SIGNED: (0, 1, -1, 2, -3, 7, 31),
    UNSIGNED: (0, 1, 2, 3, 7, 31, 200),
    FLOAT: (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf),
}
FLOATS_TOO = (np.nan, -np.inf, 3.0, 1e-3, -7.25, 88.0, 1e30)
#: ops that only complex numbers need, and that are never folded
PARTS = ("complex", "real", "imag")
COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def dense(values: np.ndarray, dtype: DType) -> str:
    return DenseElements.of(np.asarray(values), dtype.name).text()


def samples(dtype: DType) -> list[np.ndarray]:
    """Two arrays that pair every value with another; the extremes of integers among them."""
    values = list(VALUES[dtype.kind])
    if dtype.kind == SIGNED or dtype.kind == UNSIGNED:
        info = np.iinfo(dtype.numpy)
        values += [info.min, info.max]
    left = np.array(values + list(FLOATS_TOO if dtype.kind == FLOAT else ()), dtype.numpy)
    return [left, np.roll(left, 1), np.roll(left, 3)]


def operands_of(types: list[DType]) -> list[np.ndarray]:
    arrays = [samples(dtype)[index] for index, dtype in enumerate(types)]
    return [array[: min(map(len, arrays))] for array in arrays]


def main(arguments: str, inputs: str, results: str, lines: list[str], values: list[str]) -> str:
    """A module whose `@main` has these lines and returns these values."""
    body = "\n    ".join(lines)
    head = f'"func.func"() <{{function_type = ({inputs}) -> ({results}), sym_name = "main"}}> ({{'
    return (
        f'"builtin.module"() ({{\n  {head}\n'
        f"{f'  ^bb0({arguments}):' if arguments else ''}\n    {body}\n"
        f'    "func.return"({", ".join(values)}) : ({results}) -> ()\n  }}) : () -> ()\n}}) : () -> ()\n'
    )


def constant(name: str, value: str) -> str:
    return f'%{name} = "stablehlo.constant"() <{{value = {value}}}> : () -> {value.partition(" : ")[2]}'


def program(cls: type[Elementwise], types: list[DType], out: DType, attributes: str) -> str:
    """The op once per element, on constants: what is folded is small."""
    arrays = operands_of(types)
    count = len(arrays[0])
    lines = []
    scalars = ", ".join(f"tensor<{dtype}>" for dtype in types)
    for at in range(count):
        names = [f"c{at}_{index}" for index in range(len(types))]
        lines += [constant(n, dense(a[at], t)) for n, a, t in zip(names, arrays, types, strict=True)]
        operands = ", ".join(f"%{name}" for name in names)
        lines.append(f'%r{at} = "{cls.name}"({operands}){attributes} : ({scalars}) -> tensor<{out}>')
    return main("", "", ", ".join([f"tensor<{out}>"] * count), lines, [f"%r{at}" for at in range(count)])


def vector_program(cls: type[Elementwise], types: list[DType], out: DType, attributes: str) -> str:
    """The op once, on arguments that hold all elements: XLA itself stumbles over some constants."""
    count = len(operands_of(types)[0])
    tensors = [f"tensor<{count}x{dtype}>" for dtype in types]
    result = f"tensor<{count}x{out}>"
    arguments = ", ".join(f"%a{index}: {tensor}" for index, tensor in enumerate(tensors))
    operands = ", ".join(f"%a{index}" for index in range(len(types)))
    line = f'%r = "{cls.name}"({operands}){attributes} : ({", ".join(tensors)}) -> {result}'
    return main(arguments, ", ".join(tensors), result, [line], ["%r"])


def cases() -> list[Any]:
    """Each op with each element type it takes; comparisons with each direction; conversions between all types."""
    found = []
    for name, cls in OPS.items():
        dialect, _, short = name.partition(".")
        if dialect != "stablehlo" or short in PARTS:  # the interpreter is StableHLO's; never folded
            continue
        if cls is Compare:
            for direction in COMPARISONS:
                attribute = f" <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}>"
                found += [(cls, [t, t], COMPUTED[0], attribute, f"{short}_{direction}_{t}") for t in COMPUTED]
            continue
        row = SCALAR_OPS["bitcast" if short == "bitcast_convert" else short]
        for t in COMPUTED:
            for u in COMPUTED if "U" in (*row.operands, row.result) else (COMPUTED[0],):
                by = {"T": t, "U": u, "i1": COMPUTED[0]}
                types, out = [by[v] for v in row.operands], by[row.result]
                if row.accepts(types, out):
                    found.append((cls, types, out, "", f"{short}_{t}_{out}"))
    return [pytest.param(*case[:4], id=case[4]) for case in found]


def folded(text: str) -> list[np.ndarray]:
    """What each result of `@main` was folded to."""
    module = Compilation().module(text, "stablehlo")
    main = module.find("main")
    assert main is not None
    found = []
    last = main.regions[0].block.last
    assert last is not None
    for value in last.operands:
        maker = value.defining_op
        assert maker is not None and maker.name == "stablehlo.constant", f"{maker} is not folded"
        elements = maker.properties["value"]
        assert isinstance(elements, DenseElements)
        found.append(np.array(elements.array()))
    return found


#: what StableHLO leaves open: there our meaning is what XLA does on CPU, and tests/schema/test_scalars.py has it
OPEN = {
    "divide": "integer division by zero and overflow",
    "remainder": "integer remainder by zero and overflow",
    "power": "negative integer exponents",
    "convert": "floats that no integer holds; i1 from a number",
    "sign": "of NaN",
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(("cls", "types", "out", "attributes"), cases())
def test_folding_is_what_the_specification_says(
    cls: type[Elementwise],
    types: list[DType],
    out: DType,
    attributes: str,
    interpreter: Oracle,
    xla: Oracle,
) -> None:
    text = program(cls, types, out, attributes)
    if cls.name.removeprefix("stablehlo.") in OPEN:
        wanted = list(xla(vector_program(cls, types, out, attributes), *operands_of(types))[0])
    else:
        wanted = interpreter(text)
    for at, (got, want) in enumerate(zip(folded(text), wanted, strict=True)):
        place = f"element {at}: {got!r}, wanted {want!r}"
        assert got.dtype == want.dtype, place
        if out.kind == FLOAT and np.isfinite(want):
            assert abs(np.float64(got) - np.float64(want)) <= 4 * np.spacing(abs(want)), place
            assert np.signbit(got) == np.signbit(want), place
        else:
            np.testing.assert_array_equal(got, want, place)


def test_every_elementwise_op_has_a_scalar_and_the_other_way_round() -> None:
    used = {name.partition(".")[2] for name in OPS} - {"compare", "bitcast_convert", *PARTS}
    scalars = set(SCALAR_OPS)
    assert used <= scalars
    left = {name for name in scalars - used if not name.startswith("compare_")}
    assert left == {"bitcast", "fma"}
    for total in ("", "total_"):
        assert {f"compare_{total}{direction.lower()}" for direction in COMPARISONS} <= scalars


MOVES = [
    '"stablehlo.transpose"(%x) <{permutation = array<i64: 1, 0>}> : (T) -> tensor<4x3xi32>',
    '"stablehlo.reverse"(%x) <{dimensions = array<i64: 0, 1>}> : (T) -> T',
    '"stablehlo.slice"(%x) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 3, 4>, '
    "strides = array<i64: 2, 2>}> : (T) -> tensor<2x2xi32>",
    '"stablehlo.slice"(%x) <{start_indices = array<i64: 1, 1>, limit_indices = array<i64: 1, 4>, '
    "strides = array<i64: 2, 2>}> : (T) -> tensor<0x2xi32>",
    '"stablehlo.reshape"(%x) : (T) -> tensor<2x6xi32>',
    '"stablehlo.broadcast_in_dim"(%s) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xi32>) -> tensor<3x2xi32>',
    '"stablehlo.broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64: 1, 0>}> : (T) -> tensor<4x3xi32>',
    '"stablehlo.broadcast_in_dim"(%y) <{broadcast_dimensions = array<i64: 2, 0>}> : (tensor<1x4xi32>) '
    "-> tensor<4x2x2xi32>",
    '"stablehlo.concatenate"(%x, %y) <{dimension = 0 : i64}> : (T, tensor<1x4xi32>) -> tensor<4x4xi32>',
    '"stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x5xi32>',
    '"stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xf64>',
] + [
    f'"stablehlo.pad"(%s, %z) <{{edge_padding_low = array<i64: {low}>, edge_padding_high = array<i64: {high}>, '
    f"interior_padding = array<i64: {inner}>}}> : (tensor<2xi32>, tensor<i32>) -> tensor<{low + 2 + inner + high}xi32>"
    for low, high, inner in (
        (1, 2, 0), (0, 0, 3), (-1, 2, 1), (2, -3, 2), (-2, 3, 0), (-1, -1, 2), (-3, 0, 3), (5, -6, 2),
    )
]  # fmt: skip


@pytest.mark.parametrize("op", MOVES)
def test_movement_is_folded_as_the_specification_says(op: str, interpreter: Oracle) -> None:
    result = op.rpartition("-> ")[2].replace("T", "tensor<3x4xi32>")
    constants = {
        "x": "dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]> : tensor<3x4xi32>",
        "y": "dense<[[-1, -2, -3, -4]]> : tensor<1x4xi32>",
        "s": "dense<[5, 6]> : tensor<2xi32>",
        "z": "dense<-9> : tensor<i32>",
    }
    lines = [constant(name, value) for name, value in constants.items()]
    lines.append("%r = " + op.replace("T", "tensor<3x4xi32>"))
    text = main("", "", result, lines, ["%r"])
    np.testing.assert_array_equal(folded(text)[0], interpreter(text)[0])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("exponent", "mantissa"), [(8, 7), (5, 10), (8, 23), (4, 3), (5, 2), (2, 1), (11, 0), (8, 0)])
def test_reduce_precision_is_what_xla_does(dtype: str, exponent: int, mantissa: int, xla: Oracle) -> None:
    kind = BY_NAME[dtype]
    width = 8 * kind.itemsize
    random = np.random.default_rng(exponent * 100 + mantissa)
    bits = random.integers(0, 2**width, 2000, dtype=np.uint64).astype(f"u{kind.itemsize}")
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 65504.0, 65520.0, 1e-5, 448.0, 3.4e38, -1.5], kind.numpy
    )
    near = random.normal(size=2000).astype(kind.numpy) * np.exp2(random.integers(-20, 20, 2000)).astype(kind.numpy)
    values = np.concatenate([bits.view(kind.numpy), special, near])
    values = values[(np.abs(values) >= np.finfo(kind.numpy).tiny) | (values == 0) | np.isnan(values)]
    type = f"tensor<{len(values)}x{dtype}>"
    attributes = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
    line = f'%r = "stablehlo.reduce_precision"(%x) <{{{attributes}}}> : ({type}) -> {type}'
    text = main(f"%x: {type}", type, type, [line], ["%r"])
    ours = print_module(Compilation().module(text.encode(), "stablehlo"), locations=False)
    assert "reduce_precision" not in ours
    got, want = xla(ours, values)[0], xla(text, values)[0]
    np.testing.assert_array_equal(
        got.view(f"u{kind.itemsize}")[~np.isnan(want)], want.view(f"u{kind.itemsize}")[~np.isnan(want)]
    )
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
