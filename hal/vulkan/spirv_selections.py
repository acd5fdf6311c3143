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

from dataclasses import dataclass, field

from .spirv_module import CODES, EditableModule, Instruction

_CONDITIONAL, _LABEL, _PHI, _SELECTION = (
    CODES[name] for name in ("OpBranchConditional", "OpLabel", "OpPhi", "OpSelectionMerge")
)


@dataclass(slots=True)
class _Selection:
    """A selection with two arms. `between` is the new block's label, `phis` are its phis."""

    header: int
    condition: int
    merge: int
    between: int
    second: int  #: label of the second arm
    first_end: int = 0  #: the last block of the first arm
    phis: list[Instruction] = field(default_factory=list)


def split_selections(code: bytes) -> bytes:
    """Returns the words of a verified payload, or of a hardened one, without selections that have two arms."""
    splitter = _Splitter(code)
    return splitter.code() if splitter.split() else code


class _Splitter(EditableModule):
    def __init__(self, code: bytes) -> None:
        super().__init__(code)
        self._seconds: dict[int, _Selection] = {}  # label of a second arm -> its selection
        self._merges: dict[int, _Selection] = {}  # label of a merge block -> its selection
        self._nulls: dict[int, int] = {}  # type -> its null

    def split(self) -> bool:
        """Split the selections of all functions. Returns whether there are any."""
        for function in self._functions:
            parts: list[list[Instruction]] = []  # the phis of a new block grow until its merge block is read
            block = 0
            for row in function.body:
                before = parts[-1][-1] if parts else row
                if row[0] == _LABEL:
                    if row[1] in self._seconds:
                        parts += self._between(self._seconds[row[1]], before, block)
                    block = row[1]
                elif row[0] == _CONDITIONAL and before[0] == _SELECTION and before[1] not in row[2:4]:
                    row = self._divide(row, before, block)
                elif row[0] == _PHI and block in self._merges:
                    row = self._joined(self._merges[block], row)
                parts.append([row])
            function.body = [row for part in parts for row in part]
        return bool(self._merges)

    def _divide(self, row: Instruction, merge: Instruction, block: int) -> Instruction:
        """The branch of the first selection; its merge instruction is changed in place."""
        _, condition, first, second = row[:4]
        selection = _Selection(block, condition, merge[1], self._new(), second)
        self._seconds[second] = self._merges[merge[1]] = selection
        merge[1] = selection.between
        return [_CONDITIONAL, condition, first, selection.between]

    def _between(self, selection: _Selection, branch: Instruction, block: int) -> list[list[Instruction]]:
        """The new block; `branch` ends the last block of the first arm, and is changed in place."""
        selection.first_end = block
        branch[1] = selection.between
        return [
            [[_LABEL, selection.between]],
            selection.phis,
            [[_SELECTION, selection.merge, 0], [_CONDITIONAL, selection.condition, selection.merge, selection.second]],
        ]

    def _joined(self, selection: _Selection, row: Instruction) -> Instruction:
        """The phi of the merge block; the value of the first arm passes through a phi of the new block."""
        _, type, result, *pairs = row
        through = self._new()
        if type not in self._nulls:
            self._nulls[type] = self._null(type)
        joined = [_PHI, type, result]
        for value, block in zip(pairs[::2], pairs[1::2], strict=True):
            if block == selection.first_end:
                selection.phis.append([_PHI, type, through, value, block, self._nulls[type], selection.header])
                joined += [through, selection.between]
            else:
                joined += [value, block]
        return joined
