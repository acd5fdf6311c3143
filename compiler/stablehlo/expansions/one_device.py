"""Ops on several devices, for one device: collectives, ids, tokens.

With one partition and one replica, a collective returns its operands, as the specification says of a group with one
member. A device outside of all groups, or to which no device sends, gets zeros. Groups with more devices are left for
the legality check.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, erase_unused
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, expansion, splat


def _collective(op: Operation, *operands: Tensor) -> list[Tensor] | None:
    """Returns the operands if the only group consists of this device, zeros if the device is in no group."""
    groups = op.get_as("replica_groups", DenseElements)
    members = _members(groups) if groups is not None else {1}
    if not members <= {0, -1}:
        return None
    alone = 0 in members or not members and op.name not in _NEEDS_GROUP
    return list(operands) if alone else [x.zeros() for x in operands]


def _members(listed: DenseElements) -> set[int | float]:
    """The device numbers in a list, which may be a splat of any size."""
    return set(listed.scalars()) if listed.type.num_elements else set()


def _permute(op: Operation, x: Tensor) -> Tensor | None:
    """Returns the operand if this device sends to itself, zeros if no device sends to it."""
    pairs = op.get_as("source_target_pairs", DenseElements)
    named = _members(pairs) if pairs is not None else {1}
    return None if any(named) else x if named else x.zeros()


def _first(op: Operation, rewriter: Rewriter) -> bool:
    """The number of the device or partition: 0."""
    type = TensorType((), scalar("ui32"))
    if op.operands or [result.type for result in op.results] != [type]:
        return False
    return rewriter.replace(op, [splat(rewriter, 0, type).value])


#: Collectives that give zeros to a device outside of all groups. For the others an empty list is one group of all
#: devices.
_NEEDS_GROUP: Final = frozenset({"stablehlo.collective_broadcast"})

_ROWS: Final[dict[str, Pattern]] = {
    "after_all": erase_unused,
    "all_gather": expansion(_collective, None, None),
    "all_reduce": expansion(_collective, None, None),
    "all_to_all": expansion(_collective, None, None),
    "collective_broadcast": expansion(_collective, None, None),
    "collective_permute": expansion(_permute, 1),
    "create_token": erase_unused,
    "cross-replica-sum": expansion(_collective, None, None),
    "partition_id": _first,
    "reduce_scatter": expansion(_collective, None, None),
    "replica_id": _first,
}
PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {f"stablehlo.{name}": (pattern,) for name, pattern in _ROWS.items()}
