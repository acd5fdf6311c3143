"""Verified functions as blocks of ops, built once, when a function is first called.

- Constants are put into the template of the frame where that means the same: in a function without branches all of
  them, each in a register of its own; elsewhere those of the first straight line whose register nothing else writes.
- Code is shared by all contexts and threads of a program.
"""

from typing import Any

from orchestrion.hal.fork import new_lock
from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import MOVE_BIT, Effect

from .constants import place_constants
from .jit import Translation, translate
from .native import NativeFunction
from .operands import SHAPES, writes
from .ops import ENDS, OPS
from .ops.control import Block, goto
from .ops.imports import Check, absent, call_native, present
from .ops.suspension import wait_native
from .ops.table import HIDDEN, Op, Registers

_FRAME_WEIGHT = 16
#: an instruction may have thousands of operands: so many bytes of code cost a unit of fuel more
BYTES_PER_UNIT = 64
#: translating costs as much as some hundred calls save, so a function proves itself first
_RUNS_TO_TRANSLATE = 20


class Link:
    """What the code of one loaded program refers to."""

    __slots__ = ("codes", "imports", "lock", "names", "placed")

    def __init__(self, names: list[str], imports: list[NativeFunction | None], placed: bool = False) -> None:
        self.names = names  #: of the module's imports
        self.imports = imports
        self.placed = placed  #: whether imports want to know where they are called
        self.codes: list[Code] = []
        self.lock = new_lock()  #: held while code is built


class Code:
    """One function of a loaded program."""

    __slots__ = (
        "_entry",
        "link",
        "arguments",
        "counts",
        "decoded",
        "length",
        "name",
        "ordinal",
        "parameters",
        "fast_verified",
        "results",
        "runs",
        "translation",
        "template",
        "weight",
        "zeros",
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
        fast_verified: bool,
    ) -> None:
        self.link = link
        self._entry: Block | None = None
        self.ordinal = ordinal
        self.name = name
        self.arguments = arguments
        self.counts = counts  #: registers per bank
        self.results = results
        self.parameters = parameters
        self.decoded = decoded
        self.fast_verified = fast_verified  #: so it is straight-line code that moves no ref
        self.length = len(decoded) + decoded[-1].pc // BYTES_PER_UNIT  #: in units of fuel
        self.translation: Translation | None = None  #: once it is called often, if it can be translated
        self.runs = 0
        i32, i64, f32, f64, ref = counts
        self.zeros: list[Any] = [0] * (i32 + i64) + [0.0] * (f32 + f64) + [None] * ref
        self.template: list[Any] = self.zeros + [None] * HIDDEN
        self.weight = len(self.template) + _FRAME_WEIGHT

    def linked(self, link: Link) -> "Code":
        """The same function with other imports. It is not among the codes of `link`."""
        return Code(
            link,
            self.ordinal,
            self.name,
            self.counts,
            self.arguments,
            self.results,
            self.parameters,
            self.decoded,
            self.fast_verified,
        )

    def entry(self) -> Block:
        """The first block."""
        return self._entry or self._build()

    def ran(self) -> None:
        """Count a run of the interpreter; the last before the function is worth a translation makes one."""
        self.runs += 1
        if self.runs == _RUNS_TO_TRANSLATE:
            self.translation = translate(self.decoded, self.parameters, self.zeros, self.link.imports)

    def extend_template(self, further: list[Any], own: dict[int, Any]) -> None:
        """Put constants into the frames to come: behind the registers, and into some of them."""
        template = self.template[:-HIDDEN] + further + [None] * HIDDEN
        for register, value in own.items():
            template[register] = value
        self.template = template

    def _build(self) -> Block:
        with self.link.lock:
            if self._entry is None:
                self._entry = _Builder(self, self.link).build()
            return self._entry


class _Builder:
    """Builds the blocks of one function. Itself the `Site` of the end that it builds."""

    def __init__(self, code: Code, link: Link) -> None:
        self.code = code
        self.link = link
        self.number = {decoded.pc: number for number, decoded in enumerate(code.decoded)}
        self.blocks = {pc: Block(code) for pc in _leaders(code.decoded, link.imports)}
        self.block = self.blocks[0]
        self.pc = 0
        placed = place_constants(code.decoded, code.parameters, len(code.template) - HIDDEN)
        code.extend_template(placed.further, placed.own)
        self.decoded = {instruction.pc: instruction for instruction in placed.decoded}

    def build(self) -> Block:
        ops: list[Op] = []
        pcs: list[int] = []
        for number, (pc, row, _) in enumerate(self.code.decoded):
            self.pc = pc
            if row.ends_block:
                end = ENDS[row.name](self, *self.decoded[pc].operands)
            elif _waits(self.code.decoded[number], self.link.imports):
                end = self._wait(self.decoded[pc])
            else:
                if pc in self.decoded:  # else it is a constant, placed already
                    ops.append(self._op(self.decoded[pc]))
                    pcs.append(pc)
                if self.code.decoded[number + 1].pc not in self.blocks:
                    continue
                end = goto(self.after(), 0)
            self.block.ops, self.block.pcs, self.block.end = tuple(ops), (*pcs, pc), end
            ops, pcs = [], []
            if number + 1 < len(self.code.decoded):
                self.block = self.after()
        return self.blocks[0]

    def after(self) -> Block:
        return self.blocks[self.code.decoded[self.number[self.pc] + 1].pc]

    def target(self, pc: int) -> Block:
        return self.blocks[pc]

    def cost(self, pc: int) -> int:
        """What a branch from here costs: nothing ahead, else the instructions of the loop, the long ones more."""
        return max(0, self.number[self.pc] - self.number[pc] + 1 + (self.pc - pc) // BYTES_PER_UNIT)

    def callee(self, ordinal: int) -> Code:
        return self.link.codes[ordinal]

    def _op(self, decoded: Decoded) -> Op:
        row = decoded.row
        operands, moved = without_moves(decoded)
        if row.effect is Effect.NATIVE:
            op = self._native(*operands)
        elif row.effect is Effect.LINKED:
            op = present(self.link.imports[operands[0]], operands[1])
        else:
            op = OPS[row.name](*operands)
        return _release(op, moved) if moved else op

    def _wait(self, decoded: Decoded) -> Any:
        (ordinal, args, _), moved = without_moves(decoded)
        function = self.link.imports[ordinal]
        assert function is not None and function.begin is not None
        types = function.signature.expand(len(args))
        assert types is not None
        return wait_native(self, self._op(decoded), function.begin, Check(function, types), args, tuple(moved))

    def _native(self, ordinal: Any, args: Any, results: Any) -> Op:
        function = self.link.imports[ordinal]
        if function is None:
            return absent(self.link.names[ordinal])
        function = function.at(self.code.ordinal, self.pc)
        types = function.signature.expand(len(args))
        assert types is not None
        return call_native(function, types, args, results)


def _waits(decoded: Decoded, imports: list[NativeFunction | None]) -> bool:
    """Whether an instruction calls a native function that waits for the device."""
    if decoded.row.effect is not Effect.NATIVE:
        return False
    ordinal: Any = decoded.operands[0]
    function = imports[ordinal]
    return function is not None and function.begin is not None


def _leaders(decoded: list[Decoded], imports: list[NativeFunction | None]) -> set[int]:
    """The pcs at which blocks start."""
    leaders = {0}
    for number, instruction in enumerate(decoded):
        row, operands = instruction.row, instruction.operands
        if not row.ends_block and not _waits(instruction, imports):
            continue
        for spec, value in zip(row.operands, operands, strict=True):
            if spec.kind == "target" and isinstance(value, int):
                leaders.add(value)
            elif spec.kind == "targets" and isinstance(value, tuple):
                leaders.update(value)
        if number + 1 < len(decoded):
            leaders.add(decoded[number + 1].pc)
    return leaders


def without_moves(decoded: Decoded) -> tuple[tuple[Any, ...], list[int]]:
    """The operands without move bits, and the registers that are null after the instruction."""
    shape, operands = SHAPES[decoded.row.opcode], decoded.operands
    moved: list[int] = []
    if not shape.refs and not shape.counted_reads:
        return operands, moved
    plain: list[Any] = list(operands)
    for place in shape.refs:
        if plain[place] & MOVE_BIT:
            plain[place] &= ~MOVE_BIT
            moved.append(plain[place])
    for place in shape.counted_reads:
        if any([register & MOVE_BIT for register in plain[place]]):
            moved += [register & ~MOVE_BIT for register in plain[place] if register & MOVE_BIT]
            plain[place] = tuple([register & ~MOVE_BIT for register in plain[place]])
    if moved:
        written = writes(decoded)
        moved = [register for register in moved if register not in written]
    return tuple(plain), moved


def _release(op: Op, moved: list[int]) -> Op:
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
