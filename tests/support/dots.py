"""Dots for tests: matrix products and any other contraction, as StableHLO and as einsum.

On `sys.path` of the tests (pyproject.toml, `pythonpath`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from stablehlo_text import DTYPES, apply, main, tensor

from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions

PLAIN_DOT = DotDimensions((), (), (1,), (0,))


@dataclass(frozen=True)
class Dot:
    """A dot between two arguments and the same for einsum; `lhs` and `rhs` are shapes."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    dims: DotDimensions
    equation: str
    out: tuple[int, ...]

    def line(self, result: str, x: str, y: str, dtypes: Sequence[str]) -> str:
        types = [tensor(shape, dtype) for shape, dtype in zip((self.lhs, self.rhs, self.out), dtypes, strict=True)]
        attributes = f"dot_dimension_numbers = {self.dims.attribute()}"
        return f"{result} = " + apply("dot_general", f"{x}, {y}", attributes, types[:2], types[2])

    def text(self, dtypes: Sequence[str]) -> str:
        arguments = [tensor(self.lhs, dtypes[0]), tensor(self.rhs, dtypes[1])]
        return main(arguments, [self.line("%r", "%a0", "%a1", dtypes)], [("%r", tensor(self.out, dtypes[2]))])


def matmul(rows: int, depth: int, columns: int) -> Dot:
    return Dot((rows, depth), (depth, columns), PLAIN_DOT, "ij,jk->ik", (rows, columns))


def tiled(rows: int, columns: int, *more: str, rows_faster: bool = False, guard: str = "clamp") -> str:
    """A schedule by which an invocation computes a tile of a dot's results. `more`: steps behind `bind`."""
    steps = [f"tile(m, {rows})", f"tile(n, {columns})", *(["reorder(n, m)"] if rows_faster else [])]
    steps += ["bind(grid, invocation, 32)", *more]
    return f"[{', '.join([*steps, f'guard(m, {guard})', f'guard(n, {guard})'])}]"


def staged(rows: int, columns: int, depth: int, workgroup: tuple[int, int] = (8, 16)) -> str:
    """A schedule by which a workgroup, of so many invocations down and across, stages slices of both operands."""
    steps = [
        *(f"tile({dim}, {size})" for dim, size in (("m", rows), ("n", columns))),
        "bind(grid, workgroup)",
        *(f"bind({dim}, local, {size})" for dim, size in zip("mn", workgroup, strict=True)),
        *(f"stage({operand}, shared, {depth})" for operand in ("lhs", "rhs")),
        "guard(m, clamp)",
        "guard(n, clamp)",
    ]
    return f"[{', '.join(steps)}]"


def panels(
    rows: int,
    columns: int,
    depth: int,
    operands: str = "",
    local: tuple[int, int] = (16, 1),
    along: str = "n",
    how: str = "panel",
) -> str:
    """A schedule by which a workgroup computes a block, with panels of these operands, in slices of up to `depth`
    elements, and vectors along a dimension. The last block along that is moved back. `how`: of the step for sums.
    """
    dims, vector = ("m", "n"), min(rows if along == "m" else columns, 16)
    steps = [
        *(f"tile({dim}, {size})" for dim, size in zip(dims, (rows, columns), strict=True)),
        "bind(grid, workgroup)",
        *(f"bind({dim}, local, {size})" for dim, size in zip(dims, local, strict=True)),
        f"vectorize({along}, {vector})",
        *(
            f"stage({name}, {f'{how}, {depth}' if name == 'out' else 'panel'})"
            for name in sorted(f"{operands} out".split())
        ),
        *(f"guard({dim}, {'shift' if dim == along else 'clamp'})" for dim in dims),
    ]
    return f"[{', '.join(steps)}]"


@st.composite
def dots(draw: st.DrawFn, least: int = 1) -> Dot:
    """Any number of batch, free and contracted axes, each operand's in any order; most results fill several tiles. No
    size but those of batches is below `least`.
    """
    names = iter("abcdefghijkl")
    groups = [
        [(next(names), draw(st.integers(low, most))) for _ in range(draw(st.integers(axes, 2)))]
        for axes, low, most in ((0, 1, 3), (0, least, 20), (1, least, 20), (0, least, 12))
    ]
    batch, left, right, contract = groups
    lhs, rhs = draw(st.permutations(batch + left + contract)), draw(st.permutations(batch + right + contract))
    of_lhs, of_rhs = [name for name, _ in lhs], [name for name, _ in rhs]
    left = [axis for axis in lhs if axis in left]
    right = [axis for axis in rhs if axis in right]
    out = batch + left + right
    dims = DotDimensions(
        *(tuple(of.index(name) for name, _ in group) for group in (batch, contract) for of in (of_lhs, of_rhs))
    )
    equation = f"{''.join(of_lhs)},{''.join(of_rhs)}->{''.join(name for name, _ in out)}"
    shapes = [tuple(size for _, size in axes) for axes in (lhs, rhs, out)]
    return Dot(shapes[0], shapes[1], dims, equation, shapes[2])


def expected(dot: Dot, x: np.ndarray, y: np.ndarray, dtype: str) -> np.ndarray:
    """Exact for integers, modulo 2^n; in f64 for floats."""
    wide = np.int64 if dtype.startswith("i") else np.float64
    result = np.einsum(dot.equation, x.astype(wide), y.astype(wide))
    return result.astype(DTYPES[dtype]) if dtype.startswith("i") else result


def check(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    if dtype.startswith("i"):
        np.testing.assert_array_equal(got, want)
    else:
        bound = 1e-6 if dtype == "f32" else 1e-14
        np.testing.assert_allclose(got, want, rtol=10 * bound, atol=bound * np.abs(want).max())
