"""Single operations of JAX on the device `cpu` beside XLA's, with one thread and by processor time, in one process.

Arguments and results are NumPy arrays. A time is the least of rounds in which both take turns. `ratio` is our time
divided by XLA's: above 1, `cpu` is behind. Results are compared first; a difference is printed in place of the times.
Rows of f64 and i64 run with JAX's 64-bit types.

    bench_ops.py [--rounds N] [--sort] [--json FILE] [--list] [a part of a row's name ...]
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "cpu"))

Array = Any
#: seconds of a block of calls, and of all blocks of a row
BLOCK, ALL = 0.004, 1.2


def become_single() -> None:
    """Gives this process one core, before JAX is imported and makes its threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    os.environ |= {"JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def argument(spec: str, number: int) -> Array:
    """An array of a spec like `f32 4x5`: normal numbers, `positive f32 4x5`: their magnitudes and 0.1, `i32<9 4x5`:
    integers below 9, `sorted f32 9`, `spd f32 9x9`: a positive definite matrix.
    """
    import ml_dtypes
    import numpy as np

    *how, dtype, text = spec.split()
    random, shape = np.random.default_rng(number), tuple(map(int, text.split("x")))
    dtype, _, limit = dtype.partition("<")
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype[0] in "iu":
        name = dtype.replace("i", "int").replace("u", "uint")
        return random.integers(0, int(limit or 100), shape).astype(name)
    found = random.standard_normal(shape)
    if "positive" in how:
        found = abs(found) + 0.1
    if "spd" in how:
        found = found @ found.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
    if "sorted" in how:
        found.sort()
    kinds = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "c64": np.complex64}
    return np.ascontiguousarray(found.astype(kinds[dtype]))


def difference(found: Array, want: Array) -> float:
    """The largest difference, relative to the largest magnitude. Integers that differ count 1."""
    import numpy as np

    if found.shape != want.shape or found.dtype != want.dtype:
        return math.inf
    if want.dtype.kind in "biu":
        return float((found != want).any())
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), want.astype(wide)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    held = np.isfinite(b)
    return float(abs(a - b)[held].max(initial=0) / (abs(b[held]).max(initial=0) + 1e-30))


def candidates(row: Any) -> dict[str, Callable[[], Any]]:
    """A call of the row on each side, after their results were compared.

    Raises ArithmeticError if the results differ.
    """
    import jax
    import numpy as np
    from peers import best_level

    from orchestrion import compiler, vm

    function, inputs = jax.jit(row.function), [argument(spec, n) for n, spec in enumerate(row.arguments)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "row.fb")
        lowered = function.lower(*inputs)
        compiler.compile_to_file(lowered, path, targets=["cpu"], target_cpu=best_level())
        main = vm.load(path, device="cpu", threads=1, allow_native_code=True).main

    def xla() -> Any:
        return [np.asarray(x) for x in jax.tree.leaves(function(*inputs))]

    found = main(*inputs)
    found = [np.asarray(x) for x in (found if isinstance(found, tuple | list) else [found])]
    error = max(difference(a, b) for a, b in zip(found, xla(), strict=True))
    if not error <= row.tolerance:
        raise ArithmeticError(f"differs by {error:.1e}")
    return {"cpu": lambda: main(*inputs), "XLA": xla}


def seconds(row: Any, rounds: int) -> dict[str, float]:
    """Least seconds of processors of a call of each side."""
    import jax
    from harness import measure

    with jax.enable_x64(row.is_wide):
        calls = candidates(row)
        least = {}
        for name, call in calls.items():
            call()
            start = time.process_time()
            call()
            least[name] = time.process_time() - start
        repeated = max(1, min(300, int(BLOCK / max(least.values()))))
        rounds = max(3, min(rounds, int(ALL / (sum(least.values()) * repeated))))
        timings = measure(calls, repeated, rounds, warm_up=1, clock=time.process_time)
    return {name: min(timing.rounds) for name, timing in timings.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", nargs="*", help="parts of names; all rows by default")
    parser.add_argument("--rounds", type=int, default=15, help="the most rounds in which each side is timed")
    parser.add_argument("--sort", action="store_true", help="print the rows again at the end, the slowest first")
    parser.add_argument("--json", metavar="FILE", help="also write all seconds")
    parser.add_argument("--list", action="store_true", help="only print the names")
    options = parser.parse_args()
    become_single()
    from harness import machine, unit
    from op_rows import ROWS

    rows = [row for row in ROWS if not options.rows or any(part in row.name for part in options.rows)]
    if options.list:
        print("\n".join(row.name for row in rows))
        return
    print(machine(), "\n\n| | cpu | XLA | ratio |\n| --- | --- | --- | --- |")
    every: dict[str, dict[str, float]] = {}
    lines: dict[str, tuple[float, str]] = {}
    for row in rows:
        try:
            found = every[row.name] = seconds(row, options.rounds)
        except Exception as error:
            text = str(error).strip().splitlines() or [""]
            print(f"| {row.name} | {type(error).__name__}: {text[0][:150]} | | |", flush=True)
            continue
        ratio = found["cpu"] / found["XLA"]
        lines[row.name] = ratio, f"| {row.name} | {unit(found['cpu'])} | {unit(found['XLA'])} | {ratio:.2f} |"
        print(lines[row.name][1], flush=True)
    if options.sort:
        print("\n" + "\n".join(line for _, line in sorted(lines.values(), reverse=True)))
    if lines:
        mean = math.exp(sum(math.log(ratio) for ratio, _ in lines.values()) / len(lines))
        print(f"\ngeometric mean of {len(lines)} rows: {mean:.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(every, indent=2) + "\n")


if __name__ == "__main__":
    main()
