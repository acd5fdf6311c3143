"""Every scalar op of every type on every device means what the scalar table says: exact, zeros and infinities included.

Transcendentals have a bound instead of one right answer: their accuracy is tested elsewhere, here they have to run.
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler.kernel import math
from orchestrion.schema import scalars
from orchestrion.schema.dtypes import BOOL, BY_NAME, DTYPES, FLOAT, DType
from orchestrion.schema.scalars import ScalarOp

#: outputs of one test kernel
PER_KERNEL = 12


def applications(subject: DType) -> Iterator[tuple[ScalarOp, tuple[DType, ...], DType]]:
    """(row, operand types, result type) for each StableHLO op that takes the type."""
    for row in scalars.SCALARS:
        operands = tuple(subject if variable == "T" else BY_NAME["i1"] for variable in row.operands)
        results = DTYPES if row.result == "U" else (subject if row.result == "T" else BY_NAME["i1"],)
        for result in results:
            if row.name != "fma" and row.accepts(operands, result):
                yield row, operands, result


def is_exact(row: ScalarOp, subject: DType) -> bool:
    return subject.kind != FLOAT or row.name not in math.EXPANSIONS


def samples(dtype: DType) -> np.ndarray:
    """The hard values of a type and some random ones. No subnormals: a device may flush them."""
    rng = np.random.default_rng(dtype.code)
    if dtype.kind == BOOL:
        return np.array([False, True])
    if dtype.kind == FLOAT:
        info = np.finfo(dtype.numpy)
        values = [0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 127.5, 128.0, 255.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64]
        values += [float(info.max), float(info.tiny), np.inf, np.nan, 0.49999997, 8388607.5, 4.0e9]
        both = np.array(values + [-value for value in values], dtype.numpy)
        return np.concatenate([both, (rng.standard_normal(8) * 10).astype(dtype.numpy)])
    info = np.iinfo(dtype.numpy)
    edge = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, 65, 100, -1, -2, -3, -8, -33, info.max, info.max - 1, info.min]
    edge = [value for value in edge if info.min <= value <= info.max]
    return np.concatenate(
        [np.array(edge, dtype.numpy), rng.integers(info.min, info.max, 8, dtype.numpy, endpoint=True)]
    )


def grid(types: tuple[DType, ...]) -> list[np.ndarray]:
    """Every combination of samples, thinned for three operands."""
    spaces = [samples(dtype) for dtype in types]
    if len(spaces) == 3:
        spaces = [space[:: max(1, len(space) // 13)] for space in spaces]
    return [np.ascontiguousarray(part.reshape(-1)) for part in np.meshgrid(*spaces, indexing="ij")]


def application_text(row: ScalarOp, name: str, operands: tuple[DType, ...], result: DType, count: int) -> str:
    attributes, op = "", row.name
    if op.startswith("compare_"):
        direction = op.rpartition("_")[2].upper()
        total = ", compare_type = #stablehlo<comparison_type TOTALORDER>" if "total" in op else ""
        attributes = f" <{{comparison_direction = #stablehlo<comparison_direction {direction}>{total}}}>"
        op = "compare"
    op = "bitcast_convert" if op == "bitcast" else op
    types = ", ".join(f"tensor<{count}x{dtype}>" for dtype in operands)
    values = ", ".join(f"%x{position}" for position in range(len(operands)))
    return f'{name} = "stablehlo.{op}"({values}){attributes} : ({types}) -> tensor<{count}x{result}>'


def function_text(cases: list[tuple[ScalarOp, tuple[DType, ...], DType]], count: int) -> str:
    """`@main` of the operands that gives each op's result."""
    operands = cases[0][1]
    inputs = [f"tensor<{count}x{dtype}>" for dtype in operands]
    outputs = ", ".join(f"tensor<{count}x{result}>" for _, _, result in cases)
    arguments = ", ".join(f"%x{position}: {type}" for position, type in enumerate(inputs))
    lines = [application_text(row, f"%r{at}", types, result, count) for at, (row, types, result) in enumerate(cases)]
    body = "\n".join(lines)
    values = ", ".join(f"%r{at}" for at in range(len(cases)))
    signature = f"({', '.join(inputs)}) -> ({outputs})"
    return (
        f'"func.func"() <{{sym_name = "main", function_type = {signature}}}> ({{\n^bb0({arguments}):\n{body}\n'
        f'"func.return"({values}) : ({outputs}) -> ()\n}}) : () -> ()'
    )


def kernels(subject: DType) -> Iterator[list[tuple[ScalarOp, tuple[DType, ...], DType]]]:
    """The applications of a type in groups that one kernel computes."""
    ordered = sorted(applications(subject), key=lambda case: [dtype.code for dtype in case[1]])
    for _, cases in groupby(ordered, key=lambda case: case[1]):
        same = list(cases)
        yield from (same[at : at + PER_KERNEL] for at in range(0, len(same), PER_KERNEL))


def differing(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where they are not equal bit for bit, any NaN being as good as another. A subnormal may be a zero."""
    if got.dtype.kind != "f":
        return np.flatnonzero(got != want)
    view = f"u{got.itemsize}"
    same = (got.view(view) == want.view(view)) | (np.isnan(got) & np.isnan(want))
    flushed = (np.abs(want) < np.finfo(want.dtype).tiny) & (got == 0)
    return np.flatnonzero(~(same | flushed))


@pytest.mark.parametrize("target", ["opencl", "spirv"])
@pytest.mark.parametrize("subject", DTYPES, ids=str)
def test_scalar_ops_on_devices(lowered: Callable[..., Any], devices: Any, subject: DType, target: str) -> None:
    wrong = []
    for cases in kernels(subject):
        operands = grid(cases[0][1])
        entry = lowered(function_text(cases, len(operands[0])), target)
        for (row, _, result), got in zip(cases, devices.run(entry, *operands), strict=True):
            if is_exact(row, subject):
                want = scalars.evaluate(row, operands, result)
                bad = differing(got, want)
                shown = [(tuple(x[i] for x in operands), got[i], want[i]) for i in bad[:4]]
                wrong += [f"{row.name} -> {result}: {len(bad)} of {len(got)}, {shown}"] if len(bad) else []
    assert not wrong, "\n".join(wrong)


def test_all_rows_are_applied() -> None:
    applied = {row.name for subject in DTYPES for row, _, _ in applications(subject)}
    assert applied == set(scalars.BY_NAME) - {"fma"}
