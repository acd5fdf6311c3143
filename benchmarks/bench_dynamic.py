"""Calls of programs with symbolic sizes, at a size that was called before, compared with the same programs exported for
that size.

Expected before measuring: 1.25 times for a program of one small launch on the reference device, where only the host's
work counts (shapes are compared, sizes measured, a setup looked up: 0.8 us); no visible difference where a device works
longer. Kernels index by parameters instead of constants, which costs more where a launch is short.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from harness import ROOT, arguments, measure, need, save, table, versions

#: device -> target to compile for
DEVICES = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}
#: the largest acceptable ratio of symbolic to static times
MAX_RATIO = 1.3
#: batch sizes of the real programs, and the number of their calls in a round
REAL_SIZES = (3, 8)
REAL_CALLS = 3


class Row(NamedTuple):
    """A program to measure: its function, the symbolic shapes of its arguments, the sizes to call it with, and the
    calls per round.
    """

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    sizes: tuple[dict[str, int], ...]
    calls: int


def rows() -> dict[str, Row]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    random = np.random.default_rng(0)
    w0, w1, w2 = (random.normal(size=shape).astype(np.float32) / 8 for shape in ((64, 128), (128, 128), (128, 10)))

    def mlp(x: Any) -> Any:
        return jax.nn.softmax(jnp.tanh(jnp.tanh(x @ w0) @ w1) @ w2)

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqd,bkd->bqk", q, k) / 8
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), v)

    def rnn(x: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, Any]:
            h = jnp.tanh(x @ w0 + h @ w1)
            return h, h[:, 0]

        return lax.scan(step, jnp.zeros((x.shape[1], 128), jnp.float32), x)

    batch = tuple({"b": size} for size in (1, 8, 33))
    return {
        "multiply": Row(lambda x, y: x * y, ("b, 4", "b, 4"), batch, 1000),
        "mlp": Row(mlp, ("b, 64",), batch, 30),
        "attention": Row(attention, ("b, s, 64",) * 3, tuple({"b": 2, "s": s} for s in (8, 32, 57, 256)), 10),
        "rnn": Row(rnn, ("s, b, 64",), tuple({"s": s, "b": 4} for s in (3, 16)), 3),
    }


class Program(NamedTuple):
    """StableHLO with symbolic sizes. For each set of sizes, `cases` has its name, the text exported for it, and the
    arguments.
    """

    text: str
    cases: list[tuple[str, str, list[Any]]]
    calls: int


def program_of(row: Row) -> Program:
    import jax
    import jax.numpy as jnp
    from jax import export

    scope = export.SymbolicScope()
    symbolic = [export.symbolic_shape(shape, scope=scope) for shape in row.shapes]
    jitted = jax.jit(row.function)
    dynamic = export.export(jitted)(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in symbolic))
    cases = []
    for sizes in row.sizes:
        values = inputs(row, sizes)
        at = ", ".join(f"{key} = {size}" for key, size in sizes.items())
        cases.append((at, jitted.lower(*values).as_text(), values))
    return Program(dynamic.mlir_module(), cases, row.calls)


def inputs(row: Row, sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    shapes = [[sizes.get(word.strip()) or int(word) for word in shape.split(",")] for shape in row.shapes]
    random = np.random.default_rng(1)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


def real_programs() -> dict[str, Program]:
    """The tests' programs that have a symbolic batch, except those whose many kernels take minutes to build."""
    import jax
    from jax import export

    sys.path += [str(ROOT / "examples"), str(ROOT / "tests" / "support")]
    from real_programs import PROGRAMS

    found = {}
    for program in PROGRAMS:
        if not program.batch or program.many_kernels:
            continue
        function, arguments = program.made()
        leaves, tree = jax.tree.flatten(arguments)
        jitted = jax.jit(function)
        calls = {size: program.sized(leaves, size) for size in REAL_SIZES}
        cases = [
            (f"b = {size}", jitted.lower(*jax.tree.unflatten(tree, values)).as_text(), values)
            for size, values in calls.items()
        ]
        text = export.export(jitted)(*program.symbolic(leaves, tree)).mlir_module()
        found[program.name] = Program(text, cases, REAL_CALLS)
    return found


def main() -> None:
    from orchestrion import compiler, vm

    options = arguments("a call at a repeated size of programs with symbolic sizes, beside static ones")
    need("jax")
    worst: dict[str, float] = {}
    programs = {name: program_of(row) for name, row in rows().items()} | real_programs()
    for name, program in programs.items():
        for device, target in DEVICES.items():
            sized = vm.load(compiler.compile(program.text, targets=[target]), device, allow_native_code=True)
            for at, text, values in program.cases:
                fixed = vm.load(compiler.compile(text, targets=[target]), device, allow_native_code=True)
                for got, want in zip(as_tuple(sized.main(*values)), as_tuple(fixed.main(*values)), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
                candidates = {
                    "static": lambda fixed=fixed, values=values: fixed.main(*values),
                    "symbolic": lambda sized=sized, values=values: sized.main(*values),
                }
                timings = measure(candidates, program.calls, options.rounds)
                table(f"{name}, {at}, {device}", timings, "static")
                worst[f"{name}, {at}, {device}"] = min(timings["symbolic"].rounds) / min(timings["static"].rounds)
                save(options.json and f"{options.json}.{len(worst)}", timings)
                fixed.close()
            sized.close()
    print(f"\n{versions('jax')}; symbolic over static, least times, aim: at most {MAX_RATIO}:")
    for what, times in sorted(worst.items(), key=lambda item: -item[1]):
        print(f"  {times:5.2f}x  {what}{'  above' if times > MAX_RATIO else ''}")


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


if __name__ == "__main__":
    main()
