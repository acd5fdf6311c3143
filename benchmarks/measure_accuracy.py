"""Measures the error of every float op on every device, in units in the last place, against mpmath.

    python benchmarks/measure_accuracy.py            all rows of tests/support/accuracy.py
    python benchmarks/measure_accuracy.py lgamma     rows with this in their name; writes no file

Writes docs/numerics-table.md and tests/support/accuracy_cases.npz, which has the arguments with the largest errors and
their exact results; the tests check the bounds with them. Takes some minutes, most of them in mpmath.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import accuracy  # noqa: E402

from orchestrion import compiler, vm  # noqa: E402

DEVICES = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
TABLE = ROOT / "docs" / "numerics-table.md"
#: arguments saved per row and type: those with the largest errors on each device, and some evenly spread ones
WORST, SPREAD = 16, 112
HEAD = """# Accuracy of float ops, measured

Worst error in units in the last place (ulp) of the exact result against mpmath, over {count:,} arguments: powers of two
and their neighbours, multiples of pi/2 and ln 2, all exponents, values near one, roots, and random values. The tests
check the bound on every device. If a row says "of ...", the ulp is that of the larger of the result and this value.
`python benchmarks/measure_accuracy.py` writes this page. [numerics.md](numerics.md) explains the numbers.

| op | bound | {columns} |
| --- | --- | {rule} |
"""
#: row -> the value whose ulp counts if it is larger than the result
SIZES = {"lgamma, x < -2": "lgamma(-x), 1", "digamma, x < 0": "digamma(-x), 1"}


def measured(
    chosen: list[int], dtype: str
) -> Iterator[tuple[int, tuple[Any, ...], accuracy.Exact, Any, dict[str, Any]]]:
    """Yields the row's number, operands, exact results, sizes, and errors by device."""
    scalar = accuracy.DTYPES[dtype]
    operands = {index: accuracy.FUNCTIONS[index].operands(scalar) for index in chosen}
    text = accuracy.program(dtype, operands)
    programs = {
        device: vm.load(compiler.compile(text, targets=[target]), device=device, allow_native_code=True)
        for device, target in DEVICES.items()
    }
    for index, columns in operands.items():
        want, sizes = accuracy.exact(accuracy.FUNCTIONS[index], columns)
        results = {device: np.asarray(program[f"f{index}"](*columns)) for device, program in programs.items()}
        yield index, columns, want, sizes, {d: accuracy.ulps(got, want, scalar, sizes) for d, got in results.items()}


def hardest(errors: dict[str, Any]) -> Any:
    """The indices of the arguments to save."""
    count = len(next(iter(errors.values())))
    worst = [np.argsort(-found)[:WORST] for found in errors.values()]
    return np.unique(np.concatenate([*worst, np.linspace(0, count - 1, SPREAD).astype(int)]))


def main() -> None:
    wanted = sys.argv[1:]
    chosen = [
        index
        for index, function in enumerate(accuracy.FUNCTIONS)
        if not wanted or any(part in function.name for part in wanted)
    ]
    worst: dict[tuple[int, str, str], float] = {}
    kept: dict[str, Any] = {}
    count = 0
    for dtype in accuracy.DTYPES:
        for index, columns, want, sizes, errors in measured(chosen, dtype):
            name = accuracy.FUNCTIONS[index].name
            count += len(columns[0])
            worst |= {(index, dtype, device): float(found.max()) for device, found in errors.items()}
            found = max(errors.values(), key=np.max)
            where = ", ".join(repr(column[found.argmax()]) for column in columns)
            print(f"{name:22} {dtype}", *(f"{d} {e.max():6.2f}" for d, e in errors.items()), f"at {where}", flush=True)
            keep = hardest(errors)
            made = {"high": want[0], "low": want[1], "size": sizes} | {f"x{i}": c for i, c in enumerate(columns)}
            kept |= {f"{name}/{dtype}/{key}": values[keep] for key, values in made.items()}
    if wanted:
        return
    np.savez_compressed(accuracy.CASES, **kept)
    columns = [(dtype, device) for dtype in accuracy.DTYPES for device in DEVICES]
    text = HEAD.format(count=count, columns=" | ".join(map(" ".join, columns)), rule=" | ".join(["---"] * len(columns)))
    for index in chosen:
        function = accuracy.FUNCTIONS[index]
        of = f" of {SIZES[function.name]}" if function.name in SIZES else ""
        cells = [f"{worst[index, dtype, device]:.2f}" for dtype, device in columns]
        text += f"| `{function.op.partition('.')[2]}`{function.of and f', {function.of}'} | {function.bound:g}{of} | "
        text += " | ".join(cells) + " |\n"
    TABLE.write_text(text)


if __name__ == "__main__":
    main()
