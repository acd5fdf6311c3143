"""The static types of a function's ref registers, independent of the order of instructions. In linear time.

A register has the type of everything that is written to it, or `any` if there are two types or one is not known. A
register to which only null is written has no type and fits every type. A copy has the type of its source.
"""

from orchestrion.schema.encoding import Decoded
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import INSTRUCTIONS, MOVE_BIT, Effect, Instruction

ANY = "any"
#: effects of rows that do not give the types of their refs: the verifier notes the types of globals, null has none
WITHOUT_TYPES = frozenset((Effect.LOAD, Effect.STORE, Effect.NULL))


def _copies(row: Instruction) -> bool:
    """Whether the result is one of the refs that the row reads."""
    refs = {operand.result for operand in row.operands if operand.kind == "ref"}
    return row.effect in (Effect.COPY, Effect.PURE) and refs == {False, True}


_COPIES = frozenset(row.opcode for row in INSTRUCTIONS if _copies(row))


class RefTypes:
    """Collects the writes, copies and reads of refs in one function, then checks the reads."""

    __slots__ = ("_copies", "_types", "reads")

    def __init__(self) -> None:
        self._types: dict[int, str] = {}
        self._copies: dict[int, list[int]] = {}
        self.reads: list[tuple[int, int, str, str]] = []  #: pc, register, expected type, the operand in messages

    def write(self, register: int, type_name: str) -> None:
        """Note a write of a ref of that type."""
        known = self._types.setdefault(register, type_name)
        if known != type_name:
            self._types[register] = ANY

    def instruction(self, decoded: Decoded) -> None:
        """Note the ref operands of an instruction whose row gives their types."""
        row = decoded.row
        copies = row.opcode in _COPIES
        for spec, value in zip(row.operands, decoded.operands, strict=True):
            if spec.kind != "ref" or not isinstance(value, int):
                continue
            if copies and not spec.result:
                target = decoded.operands[-1]
                assert isinstance(target, int)
                self._copies.setdefault(value & ~MOVE_BIT, []).append(target)
            elif copies:
                continue
            elif spec.result:
                self.write(value, spec.type)
            else:
                self.reads.append((decoded.pc, value & ~MOVE_BIT, spec.type, f"operand {spec.name} of {row.name}"))

    def check(self, ordinal: int) -> None:
        """`ModuleError` for a read whose expected type differs from the type of the register."""
        self._spread()
        types = self._types
        for pc, register, wanted, what in self.reads:
            have = types.get(register, ANY)
            if have != wanted and have != ANY and wanted != ANY:
                raise ModuleError(
                    f"function[{ordinal}] pc {pc:#x}: {what}: register {register} holds {have}, expected {wanted}"
                )

    def _spread(self) -> None:
        """Propagate types along copies. A type changes at most twice, so this ends in linear time."""
        todo = [register for register in self._copies if register in self._types]
        while todo:
            source = todo.pop()
            for target in self._copies.get(source, ()):
                before = self._types.get(target)
                self.write(target, self._types[source])
                if self._types[target] != before:
                    todo.append(target)
