"""Writes each selection with two arms in verified SPIR-V as two selections with one arm, for drivers with that defect.

    SelectionMerge M, BranchConditional c Y N | Y: ... Branch M | N: ... Branch M | M: phi (a, Y) (b, N)

becomes, with a new block J in front of N,

    SelectionMerge J, BranchConditional c Y J | Y: ... Branch J
    | J: j = phi (a, Y) (null, header), SelectionMerge M, BranchConditional c M N | N: ... Branch M
    | M: phi (j, J) (b, N)

The words have the form that `spirv_flow` checks: arms follow each other, and each ends with a branch to the merge
block. Values are unchanged, because each arm runs under the same condition. Time is linear in the words.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from orchestrion.schema.spirv import OP_BY_NAME

from .spirv_harden import BOUND, CONSTANT_NULL, HEADER_WORDS

_BRANCH, _CONDITIONAL, _FUNCTION, _LABEL, _PHI, _SELECTION = (
    OP_BY_NAME[name].code
    for name in ("OpBranch", "OpBranchConditional", "OpFunction", "OpLabel", "OpPhi", "OpSelectionMerge")
)

Instruction = list[int]


@dataclass(slots=True)
class _Selection:
    """A selection with two arms. `between` is the new block's label, `phis` are its phis."""

    header: int
    condition: int
    merge: int
    between: int
    first_end: int = 0  #: the last block of the first arm
    phis: list[Instruction] = field(default_factory=list)


def split_selections(code: bytes) -> bytes:
    """Returns the words of a verified payload, or of a hardened one, without selections that have two arms."""
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    splitter = _Splitter(words[BOUND])
    at = HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        splitter.take([words[at] & 0xFFFF, *words[at + 1 : at + count]])
        at += count
    if splitter.bound == words[BOUND]:
        return code
    out = words[:HEADER_WORDS]
    out[BOUND] = splitter.bound
    for row in splitter.rows():
        out += [len(row) << 16 | row[0], *row[1:]]
    return struct.pack(f"<{len(out)}I", *out)


class _Splitter:
    """Takes instructions in order. A block of phis is a list in `_out` that grows until its merge block is read."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._globals: list[Instruction] = []
        self._out: list[list[Instruction]] = []
        self._nulls: dict[int, int] = {}  # type -> its null
        self._seconds: dict[int, _Selection] = {}  # label of a second arm -> its selection
        self._merges: dict[int, _Selection] = {}  # label of a merge block -> its selection
        self._block = 0

    def rows(self) -> list[Instruction]:
        nulls = [[CONSTANT_NULL, type, id] for type, id in self._nulls.items()]
        return [*self._globals, *nulls, *[row for part in self._out for row in part]]

    def take(self, row: Instruction) -> None:
        code = row[0]
        if code == _FUNCTION or self._out:
            if code == _LABEL:
                self._label(row[1])
            elif code == _CONDITIONAL and self._out[-1][-1][0] == _SELECTION and self._out[-1][-1][1] not in row[2:4]:
                row = self._divide(row)
            elif code == _PHI and self._block in self._merges:
                row = self._join(self._merges[self._block], row)
            self._out.append([row])
        else:
            self._globals.append(row)

    def _new(self) -> int:
        self.bound += 1
        return self.bound - 1

    def _divide(self, row: Instruction) -> Instruction:
        """The branch of the first selection; its merge instruction, which is the row before, is changed in place."""
        _, condition, first, second = row[:4]
        merge = self._out[-1][-1]
        selection = _Selection(self._block, condition, merge[1], self._new())
        self._seconds[second] = self._merges[merge[1]] = selection
        merge[1] = selection.between
        return [_CONDITIONAL, condition, first, selection.between]

    def _label(self, label: int) -> None:
        selection = self._seconds.get(label)
        if selection is not None:  # the row before ends the first arm
            selection.first_end = self._block
            self._out[-1][-1][1] = selection.between
            self._out.append([[_LABEL, selection.between]])
            self._out.append(selection.phis)
            self._out.append([[_SELECTION, selection.merge, 0]])
            self._out.append([[_CONDITIONAL, selection.condition, selection.merge, label]])
        self._block = label

    def _join(self, selection: _Selection, row: Instruction) -> Instruction:
        """The phi of the merge block; the value of the first arm passes through a phi of the new block."""
        _, type, result, *pairs = row
        through = self._new()
        if type not in self._nulls:
            self._nulls[type] = self._new()
        joined = [_PHI, type, result]
        for value, block in zip(pairs[::2], pairs[1::2], strict=True):
            if block == selection.first_end:
                selection.phis.append([_PHI, type, through, value, block, self._nulls[type], selection.header])
                joined += [through, selection.between]
            else:
                joined += [value, block]
        return joined
