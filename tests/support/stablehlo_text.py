"""StableHLO in MLIR's generic syntax, put together for tests: types, one op, `@main`, reductions. And arrays for it.

On `sys.path` of the tests (pyproject.toml, `pythonpath`).
"""

from collections.abc import Sequence

import numpy as np

DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8,
    "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}


#: scalar ops that are of the dialect CHLO
CHLO = ("erf", "erfc")


def op_name(scalar: str) -> str:
    """The op that applies a scalar op."""
    return f"{'chlo' if scalar in CHLO else 'stablehlo'}.{scalar}"


def tensor(shape: Sequence[int], dtype: str = "i32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def literal(array: np.ndarray) -> str:
    """`dense<..> : tensor<..>` with these elements, bit for bit."""
    kind = tensor(array.shape, NAMES[array.dtype])
    if array.size == 0:
        return f"dense<> : {kind}"
    if array.ndim:
        return f'dense<"0x{array.tobytes().hex().upper()}"> : {kind}'
    if array.dtype == np.bool_:
        return f"dense<{str(bool(array)).lower()}> : {kind}"
    return f"dense<0x{array.tobytes()[::-1].hex().upper()}> : {kind}"


def main(arguments: Sequence[str], lines: Sequence[str], results: Sequence[tuple[str, str]]) -> str:
    """`@main` with arguments `%a0`, ... of these types, body lines, and results as (value, type)."""
    names = ", ".join(f"%a{at}: {type}" for at, type in enumerate(arguments))
    outputs = ", ".join(type for _, type in results)
    values = ", ".join(value for value, _ in results)
    body = "\n".join(lines)
    return (
        f'"func.func"() <{{sym_name = "main", function_type = ({", ".join(arguments)}) -> ({outputs})}}> ({{\n'
        f'^bb0({names}):\n{body}\n"func.return"({values}) : ({outputs}) -> ()\n}}) : () -> ()'
    )


def ints(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"


def apply(op: str, values: str, attributes: str, types: Sequence[str], result: str) -> str:
    return f'"stablehlo.{op}"({values}) <{{{attributes}}}> : ({", ".join(types)}) -> {result}'


def reducer(op: str, dtype: str) -> str:
    """The region of a reduction that is one op."""
    t = f"tensor<{dtype}>"
    return (
        f'({{ ^bb0(%x: {t}, %y: {t}): %s = "stablehlo.{op}"(%x, %y) : ({t}, {t}) -> {t} '
        f'"stablehlo.return"(%s) : ({t}) -> () }})'
    )


def reduction(shape: Sequence[int], dims: Sequence[int], op: str, dtype: str, start: str) -> str:
    """`@main` that reduces its argument with one op from a constant on."""
    t, scalar = tensor(shape, dtype), f"tensor<{dtype}>"
    out = tensor([size for axis, size in enumerate(shape) if axis not in dims], dtype)
    constant = f'%c = "stablehlo.constant"() <{{value = dense<{start}> : {scalar}}}> : () -> {scalar}'
    call = f'%r = "stablehlo.reduce"(%a0, %c) <{{dimensions = {ints(dims)}}}> {reducer(op, dtype)}'
    return main([t], [constant, f"{call} : ({t}, {scalar}) -> {out}"], [("%r", out)])


def filled(shape: Sequence[int], dtype: str = "i32") -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if dtype == "i1":
        return rng.random(shape) < 0.5
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(DTYPES[dtype])
    return rng.integers(0, 100, shape).astype(DTYPES[dtype])
