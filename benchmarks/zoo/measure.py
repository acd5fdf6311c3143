"""Runs one program of the zoo in this process; the last line that it prints is the result as JSON.

    python -m zoo.measure flax "linen CNN with batch norm" --device=opencl --device=vulkan
    python -m zoo.measure flax

Without a name it lists the programs of the library. The variables of a program's `environment` must be set when the
process starts, because equinox reads them when it is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .programs import LIBRARIES, Program, program_named, programs_of

#: the limits of repeating a call: seconds and number
WARM_SECONDS, WARM_CALLS = 1.0, 200


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a result (a tree of dicts, lists and tuples) in order. None has no arrays."""
    if isinstance(tree, Mapping):
        for child in tree.values():
            yield from leaves(child)
    elif isinstance(tree, list | tuple):
        for child in tree:
            yield from leaves(child)
    elif tree is not None:
        yield tree


def timed(step: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = step()
    return found, time.perf_counter() - start


def warm(step: Callable[[], Any]) -> float:
    """The median seconds of a call."""
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < WARM_SECONDS and len(seconds) < WARM_CALLS):
        seconds.append(timed(step)[1])
    return statistics.median(seconds)


def peer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[list[Any], dict[str, float]]:
    """The results of `jax.jit` on the CPU, the seconds to the first of them, and those of a warm call.

    A function whose arguments contain more than arrays (an equinox module, say) is filtered by its author, and called
    without `jax.jit`.
    """
    import jax
    import numpy as np

    plain = all(isinstance(leaf, np.ndarray | np.generic | jax.Array) for leaf in jax.tree.leaves(arguments))
    call = jax.jit(lambda *given: function(*given)) if plain else function
    found, first = timed(lambda: jax.block_until_ready(call(*arguments)))
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(found) if hasattr(leaf, "shape")]
    return arrays, {"first": first, "warm": warm(lambda: jax.block_until_ready(call(*arguments)))}


def error_of(found: Any, expected: Any) -> float:
    """The largest error relative to the largest magnitude; infinite where NaN, infinity, shape or type differ."""
    import numpy as np

    found = np.asarray(found)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not np.issubdtype(expected.dtype, np.floating):
        return 0.0 if np.array_equal(found, expected) else float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return float("inf")
    scale = float(np.abs(expected[finite]).max(initial=0.0)) or 1.0
    return float(np.abs(found[finite] - expected[finite]).max(initial=0.0)) / scale


def on_device(blob: bytes, device: str, arguments: tuple[Any, ...], expected: Sequence[Any]) -> dict[str, Any]:
    """Load time, first call, warm call and error on a device, or the reason why there are none."""
    from orchestrion import vm
    from orchestrion.hal.errors import HalError

    try:
        program, load = timed(lambda: vm.load(blob, device=device))
    except (vm.VmError, HalError) as error:
        return {"refused": str(error)}
    with program:
        main = next(iter(program.functions.values()))
        result, first = timed(lambda: main(*arguments))
        found = list(leaves(result))
        if len(found) != len(expected):
            return {"wrong": f"{len(found)} results, {len(expected)} expected"}
        errors = [error_of(*pair) for pair in zip(found, expected, strict=True)]
        return {
            "load": load,
            "first": first,
            "warm": warm(lambda: main(*arguments)),
            "error": max(errors, default=0.0),
        }


def run(program: Program, devices: Sequence[str]) -> dict[str, Any]:
    """All measurements of one program."""
    from orchestrion import compiler

    function, arguments = program.make()
    found: dict[str, Any] = {"name": program.name, "note": program.note, "tolerance": program.tolerance}
    try:
        blob, found["compile"] = timed(lambda: compiler.compile(function, *arguments, **dict(program.options)))
    except compiler.CompileError as error:
        return found | {"refused": str(error)}
    found["bytes"] = len(blob)
    expected, found["jax"] = peer(function, arguments)
    found["devices"] = {device: on_device(blob, device, arguments, expected) for device in devices}
    return found


def main() -> None:
    made = argparse.ArgumentParser(description="Runs one program of the zoo, or lists those of a library.")
    made.add_argument("library", choices=LIBRARIES)
    made.add_argument("name", nargs="?")
    made.add_argument("--device", action="append", default=[])
    options = made.parse_args()
    if options.name is None:
        print(json.dumps([{"name": row.name, "environment": row.environment} for row in programs_of(options.library)]))
        return
    row = program_named(options.library, options.name)
    missing = [name for name, value in row.environment if os.environ.get(name) != value]
    if missing:
        raise SystemExit(f"{row.name} needs {dict(row.environment)} in the environment of the process")
    print(json.dumps(run(row, options.device or ["reference", "opencl", "vulkan"])))


if __name__ == "__main__":
    main()
