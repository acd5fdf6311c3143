"""Number instructions against NumPy over operands drawn at random and from the edges; any NaN is as good as another.

NumPy's arithmetic is that of the machine's IEEE 754 unit, of which the VM's Python knows nothing.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.schema.encoding import bits_of_float, float_of_bits
from orchestrion.schema.isa import BY_NAME
from orchestrion.vm.errors import Trap

TYPES: dict[str, Any] = {"i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
UNSIGNED: dict[str, Any] = {"i32": np.uint32, "i64": np.uint64}
Wanted = Callable[..., Any]


def floats(bank: str) -> st.SearchStrategy[float]:
    bits = 32 if bank == "f32" else 64
    edges = [
        0,
        1,
        1 << bits - 1,
        float_edges(bank, 1.0),
        float_edges(bank, np.inf),
        float_edges(bank, np.finfo(TYPES[bank]).max),
    ]
    drawn = st.one_of(
        st.integers(0, (1 << bits) - 1),
        st.sampled_from(edges),
        st.integers(-100, 100).map(lambda n: n / 2).map(lambda number: float_edges(bank, number)),
    )
    return drawn.map(lambda value: float_of_bits(value, bank))


def float_edges(bank: str, value: float) -> int:
    return bits_of_float(float(TYPES[bank](value)), bank)


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    edges = st.integers(0, bits - 1).flatmap(
        lambda n: st.sampled_from([s(d) for s in (low_of(n), low_of(n, -1)) for d in (-1, 0, 1)])
    )
    return st.one_of(st.integers(low, high), st.integers(-20, 20), edges.filter(lambda n: low <= n <= high))


def low_of(power: int, sign: int = 1) -> Callable[[int], int]:
    return lambda offset: sign * (1 << power) + offset


OPERANDS = {"i32": integers(32), "i64": integers(64), "f32": floats("f32"), "f64": floats("f64")}


WANTED: dict[str, Wanted] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "copysign": np.copysign, "abs": np.abs, "neg": np.negative,
    "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "nearest": np.rint, "sqrt": np.sqrt,
    "min": np.minimum, "max": np.maximum, "popcnt": lambda a: np.bitwise_count(a.view(f"u{a.itemsize}")),
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "rem": np.fmod, "shr": lambda a, b: np.right_shift(a, b & (a.dtype.type(a.itemsize * 8 - 1))),
    "shl": lambda a, b: np.left_shift(a, b & (a.dtype.type(a.itemsize * 8 - 1))),
}  # fmt: skip


def rows() -> list[str]:
    """Instructions that NumPy has a function for."""
    found = []
    for bank in TYPES:
        for name, sign in ((name, sign) for name in WANTED for sign in ("", "_s", "_u")):
            if f"{bank}.{name}{sign}" in BY_NAME and not (bank[0] == "i" and name == "div"):
                found.append(f"{bank}.{name}{sign}")
    return found


@pytest.fixture(scope="module")
def program(assembled: Callable[[str], Any]) -> Any:
    letters = dict(zip(("i32", "i64", "f32", "f64"), "ilfd", strict=True))
    functions = []
    for row in map(BY_NAME.__getitem__, [*rows(), *CONVERSIONS]):
        *arguments, result = [operand.kind for operand in row.operands]
        registers = ", ".join(f"%{letters[bank]}{at}" for at, bank in enumerate(arguments))
        result_register = f"%{letters[result]}0"
        body = f"{result_register} = {row.name} {registers} return ({result_register})"
        functions.append(f"func @{row.name} ({', '.join(arguments)}) -> {result} {{ {body} }}")
    return assembled(f'program @p profile "reference" {{ {" ".join(functions)} }}')


def equal(got: Any, wanted: Any) -> bool:
    if isinstance(got, int):
        return got == int(wanted)
    return (got != got and wanted != wanted) or (got == wanted and np.signbit(got) == np.signbit(wanted))


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", rows())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_against_numpy(program: Any, name: str, data: st.DataObject) -> None:
    bank, _, operation = name.partition(".")
    banks = [operand.kind for operand in BY_NAME[name].operands[:-1]]
    values = [data.draw(OPERANDS[kind]) for kind in banks]
    unsigned = operation.endswith("_u")
    base = operation.removesuffix("_u").removesuffix("_s")
    operands = [np.array(value, TYPES[kind]) for value, kind in zip(values, banks, strict=True)]
    if unsigned:
        operands = [operand.view(UNSIGNED[bank]) for operand in operands]
    if base in ("rem",) and values[1] == 0:
        with pytest.raises(Trap, match="integer divide by zero"):
            program.call(name, *values)
        return
    with np.errstate(all="ignore"):
        wanted = WANTED[base](*operands)
    if base in ("min", "max") and values[0] == values[1] == 0:
        wanted = -0.0 if int(np.signbit(values[0])) + int(np.signbit(values[1])) >= (1 if base == "min" else 2) else 0.0
    if unsigned and wanted.dtype.kind == "u":
        wanted = wanted.view(TYPES[bank])
    assert equal(program.call(name, *values), wanted), (values, wanted)


CONVERSIONS = [
    f"{bank}.convert_{source}_{sign}" for bank in ("f32", "f64") for source in ("i32", "i64") for sign in "su"
] + ["f32.demote_f64", "f64.promote_f32", "i32.wrap_i64"]


@pytest.mark.parametrize("name", CONVERSIONS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_conversions(program: Any, name: str, data: st.DataObject) -> None:
    source, target = (operand.kind for operand in BY_NAME[name].operands)
    value = data.draw(OPERANDS[source])
    operand = np.array(value, TYPES[source])
    if name.endswith("_u"):
        operand = operand.view(UNSIGNED[source])
    with np.errstate(all="ignore"):
        wanted = operand.astype(TYPES[target])
    assert equal(program.call(name, value), wanted)
