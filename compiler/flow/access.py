"""How often an op's operands are read: what fusion decides on.

An op's *paths* say how a region that computes `workload` elements gets at it: path -> number of reads. On the path
`ROOT`, element i in row-major order is read for result element i. Elementwise ops and reshapes hand their paths on to
their operands; an op that moves elements or sums them up starts new ones. Ops of one path share their work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.types import TensorType

#: how a value is reached: the ops in between, outermost first, with the operand number where it matters
Path = tuple[tuple[int, int], ...]
Paths = Mapping[Path, int]
ROOT: Final[Path] = ()

HEROES: Final = frozenset({"stablehlo.reduce", "stablehlo.dot_general"})
GENERATORS: Final = frozenset({"stablehlo.constant", "stablehlo.iota"})
MOVEMENT: Final = frozenset(
    f"stablehlo.{name}"
    for name in ("reshape", "transpose", "slice", "broadcast_in_dim", "pad", "concatenate", "reverse")
)
#: elementwise ops that cost much more than a read
EXPENSIVE: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one",
        "logistic", "power", "remainder", "rsqrt", "sine", "sqrt", "tan", "tanh",
    )
)  # fmt: skip


def elements(value: Value) -> int:
    """Number of elements of a tensor value."""
    assert isinstance(value.type, TensorType), value.type
    return value.type.num_elements


def is_elementwise(op: Operation) -> bool:
    return not (op.name in HEROES or op.name in GENERATORS or op.name in MOVEMENT)


def operand_paths(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """The path to operand `index` of an op that is itself read `reads` times on `path`, and how often it is read."""
    rule = _RULES.get(op.name, _same_element)
    return rule(op, index, path, reads)


def _same_element(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Elementwise: the same element, except for a scalar that goes with every element (select, clamp)."""
    if elements(op.operands[index]) == elements(op.results[0]):
        return path, reads
    return _moved(op, index, path, reads)


def _moved(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    return (*path, (id(op), 0)), reads


def _one_of_several(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Pad and concatenate: an element comes from one operand, so each is read for its share."""
    share = reads * elements(op.operands[index]) // max(elements(op.results[0]), 1)
    return (*path, (id(op), index)), max(share, 1)


def _reduced(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    ratio = elements(op.operands[index]) // max(elements(op.results[0]), 1)
    return (*path, (id(op), 0 if index < len(op.operands) // 2 else 1)), reads * max(ratio, 1)


def _contracted(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Dot: out = b*m*n, lhs = b*m*k, rhs = b*n*k elements, and every out element reads k of each; b = 1 is assumed."""
    lhs, rhs = (elements(value) for value in op.operands)
    depth = isqrt(lhs * rhs // max(elements(op.results[0]), 1))
    return (*path, (id(op), index)), reads * max(depth, 1)


_RULES: Final[dict[str, Callable[[Operation, int, Path, int], tuple[Path, int]]]] = {
    "stablehlo.reshape": _same_element,
    "stablehlo.transpose": _moved,
    "stablehlo.slice": _moved,
    "stablehlo.broadcast_in_dim": _moved,
    "stablehlo.reverse": _moved,
    "stablehlo.pad": _one_of_several,
    "stablehlo.concatenate": _one_of_several,
    "stablehlo.reduce": _reduced,
    "stablehlo.dot_general": _contracted,
}
