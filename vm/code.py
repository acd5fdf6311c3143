"""Verified functions as blocks of ops, built once, when a function is first called.

- A block is a tuple of ops and an end (`ops/control.py`); `pcs` has the pc of each op and, last, of the end.
- Constants that the entry block sets once and for all are put into the template of the frame instead: that is
  the same, since nothing can read or write their registers before.
- Code is shared by all contexts and threads of a program; building it twice at once does no harm.
"""

from typing import Any

from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import BANKS, MOVE_BIT, Operand

from .errors import Place
from .native import NativeFunction
from .ops import ENDS, OPS
from .ops.control import End, goto
from .ops.imports import absent, call_native
from .ops.table import HIDDEN, Op, Registers

_ZEROS = (0, 0, 0.0, 0.0, None)
_FRAME_WEIGHT = 16


class Block:
    """Straight-line code. `after` and `results` serve a call that ends it."""

    __slots__ = ("after", "code", "end", "ops", "pcs", "results")

    ops: tuple[Op, ...]
    end: End

    def __init__(self, code: "Code") -> None:
        self.code = code
        self.pcs: tuple[int, ...] = ()
        self.after: Block | None = None
        self.results: tuple[int, ...] = ()


class Link:
    """What the code of one loaded program refers to."""

    __slots__ = ("codes", "import_types", "imports", "names")

    def __init__(self, names: list[str], imports: list[NativeFunction | None]) -> None:
        self.names = names  #: of the module's imports
        self.imports = imports
        self.codes: list[Code] = []


class Code:
    """One function of a loaded program."""

    __slots__ = (
        "_entry",
        "_link",
        "arguments",
        "decoded",
        "length",
        "name",
        "ordinal",
        "parameters",
        "results",
        "template",
        "weight",
    )

    def __init__(
        self,
        link: Link,
        ordinal: int,
        name: str,
        counts: tuple[int, ...],
        arguments: tuple[str, ...],
        results: tuple[str, ...],
        parameters: tuple[int, ...],
        decoded: list[Decoded],
    ) -> None:
        self._link = link
        self._entry: Block | None = None
        self.ordinal = ordinal
        self.name = name
        self.arguments = arguments
        self.results = results
        self.parameters = parameters
        self.decoded = decoded
        self.length = len(decoded)
        self.template: list[Any] = []
        for count, zero in zip(counts, _ZEROS, strict=True):
            self.template += [zero] * count
        self.template += [None] * HIDDEN
        self.weight = len(self.template) + _FRAME_WEIGHT

    def entry(self) -> Block:
        """The first block."""
        return self._entry or self._build()

    def place(self, pc: int, location: str | None) -> Place:
        return Place(self.name or f"function {self.ordinal}", pc, location)

    def _build(self) -> Block:
        builder = _Builder(self, self._link)
        self._entry = builder.build()
        return self._entry


class _Builder:
    """Builds the blocks of one function. Itself the `Site` of the end that it builds."""

    def __init__(self, code: Code, link: Link) -> None:
        self.code = code
        self.link = link
        self.number = {decoded.pc: number for number, decoded in enumerate(code.decoded)}
        self.blocks = {pc: Block(code) for pc in _leaders(code.decoded)}
        self.block = self.blocks[0]
        self.place = 0
        self.hoisted = _hoistable(code)

    def build(self) -> Block:
        ops: list[Op] = []
        pcs: list[int] = []
        last = len(self.code.decoded) - 1
        for number, decoded in enumerate(self.code.decoded):
            self.place = number
            name = decoded.row.name
            ending = name in ENDS
            if ending:
                pcs.append(decoded.pc)
                end = ENDS[name](self, *decoded.operands)
            elif number in self.hoisted:
                OPS[name](*decoded.operands)(self.code.template)
            else:
                ops.append(self._op(decoded))
                pcs.append(decoded.pc)
            if not ending:
                if number == last or self.code.decoded[number + 1].pc not in self.blocks:
                    continue
                pcs.append(decoded.pc)
                end = goto(self.after(), 0)
            self.block.ops, self.block.pcs, self.block.end = tuple(ops), tuple(pcs), end
            ops, pcs = [], []
            if number != last:
                self.block = self.after()
        return self.blocks[0]

    def after(self) -> Block:
        return self.blocks[self.code.decoded[self.place + 1].pc]

    def target(self, pc: int) -> Block:
        return self.blocks[pc]

    def cost(self, pc: int) -> int:
        """What a branch from here costs: nothing ahead, else the instructions of the loop."""
        return max(0, self.place - self.number[pc] + 1)

    def callee(self, ordinal: int) -> Code:
        return self.link.codes[ordinal]

    def _op(self, decoded: Decoded) -> Op:
        name = decoded.row.name
        operands, moved = _without_moves(decoded)
        if name == "call_import":
            op = self._native(*operands)
        elif name == "import.present":
            op = OPS["i32.const"](0 if self.link.imports[operands[0]] is None else 1, operands[1])
        else:
            op = OPS[name](*operands)
        return _release(op, moved) if moved else op

    def _native(self, ordinal: Any, args: Any, results: Any) -> Op:
        function = self.link.imports[ordinal]
        if function is None:
            return absent(self.link.names[ordinal])
        types = function.signature.expand(len(args))
        assert types is not None
        return call_native(function, types, args, results)


def _leaders(decoded: list[Decoded]) -> set[int]:
    """The pcs at which blocks start."""
    leaders = {0}
    for number, instruction in enumerate(decoded):
        if instruction.row.name not in ENDS:
            continue
        for spec, value in zip(instruction.row.operands, instruction.operands, strict=True):
            if spec.kind == "target" and isinstance(value, int):
                leaders.add(value)
            elif spec.kind == "targets" and isinstance(value, tuple):
                leaders.update(value)
        if number + 1 < len(decoded):
            leaders.add(decoded[number + 1].pc)
    return leaders


def _registers(spec: Operand, value: object) -> tuple[int, ...]:
    if spec.kind in BANKS and isinstance(value, int):
        return (value & ~MOVE_BIT,)
    if spec.kind == "registers" and isinstance(value, tuple):
        return tuple(register & ~MOVE_BIT for register in value)
    return ()


_HOISTABLE = frozenset(("i32.const", "i64.const", "f32.const", "f64.const"))


def _hoistable(code: Code) -> set[int]:
    """Constants of the entry block whose register is written by nothing else and read by nothing before."""
    writes: dict[int, int] = dict.fromkeys(code.parameters, 1)
    for decoded in code.decoded:
        for spec, value in zip(decoded.row.operands, decoded.operands, strict=True):
            for register in _registers(spec, value) if spec.result else ():
                writes[register] = writes.get(register, 0) + 1
    found: set[int] = set()
    read: set[int] = set()
    for number, decoded in enumerate(code.decoded):
        if decoded.row.name in _HOISTABLE:
            register = decoded.operands[1]
            if register not in read and writes[register] == 1:  # type: ignore[index]
                found.add(number)
            continue
        if decoded.row.name in ENDS:
            break
        for spec, value in zip(decoded.row.operands, decoded.operands, strict=True):
            read.update(() if spec.result else _registers(spec, value))
    return found


def _without_moves(decoded: Decoded) -> tuple[list[Any], tuple[int, ...]]:
    """The operands without move bits, and the registers that are null after the instruction."""
    operands: list[Any] = []
    moved: set[int] = set()
    written: set[int] = set()
    for spec, value in zip(decoded.row.operands, decoded.operands, strict=True):
        if spec.kind == "ref" and isinstance(value, int):
            moved.update((value & ~MOVE_BIT,) if value & MOVE_BIT else ())
            value &= ~MOVE_BIT
        elif spec.kind == "registers" and isinstance(value, tuple):
            moved.update(register & ~MOVE_BIT for register in value if register & MOVE_BIT)
            value = tuple(register & ~MOVE_BIT for register in value)
        written.update(_registers(spec, value) if spec.result else ())
        operands.append(value)
    return operands, tuple(sorted(moved - written))


def _release(op: Op, moved: tuple[int, ...]) -> Op:
    if len(moved) == 1:
        register = moved[0]

        def one(regs: Registers) -> None:
            op(regs)
            regs[register] = None

        return one

    def several(regs: Registers) -> None:
        op(regs)
        for register in moved:
            regs[register] = None

    return several
