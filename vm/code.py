"""Builds verified functions into blocks of ops, when a function is first called.

A block is straight-line code, and an end that gives the next block (`ops/control.py`). Constants are moved to the
template of the frame where the meaning stays the same (`constants.py`). Code is shared by all contexts and threads of a
program.
"""

from typing import Any

from orchestrion.hal.fork import new_lock
from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import MOVE_BIT, Effect

from .constants import hoist_constants
from .jit import Translation, translate
from .native import NativeFunction
from .operands import PLACES, targets, writes
from .ops import ENDS, OPS
from .ops.control import Block, goto
from .ops.imports import ArgumentCheck, call_absent, call_native, is_present
from .ops.suspension import wait_native
from .ops.table import HIDDEN, Op, Registers

#: registers that a frame counts for, in addition to its own (`call.MAX_FRAME_REGISTERS`)
_FRAME_WEIGHT = 16
#: bytes of code for one more unit of fuel: an instruction may have thousands of operands
BYTES_PER_UNIT = 64
#: runs after which a function is translated: a translation costs as much time as some hundred calls save
_RUNS_TO_TRANSLATE = 20


class Link:
    """The functions and imports that the code of one loaded program refers to."""

    __slots__ = ("codes", "imports", "lock", "names", "placed")

    def __init__(self, names: list[str], imports: list[NativeFunction | None], placed: bool = False) -> None:
        self.names = names  #: of the module's imports
        self.imports = imports  #: by ordinal of the import; None if it is absent or the program does not use it
        self.placed = placed  #: whether native functions depend on the instruction that calls them
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
        self.translation: Translation | None = None  #: once it was called often, if it can be translated
        self.runs = 0  #: of the interpreter
        i32, i64, f32, f64, ref = counts
        self.zeros: list[Any] = [0] * (i32 + i64) + [0.0] * (f32 + f64) + [None] * ref
        self.template: list[Any] = self.zeros + [None] * HIDDEN
        self.weight = len(self.template) + _FRAME_WEIGHT

    def relinked(self, link: Link) -> "Code":
        """The same function with the imports of `link`. The caller adds it to `link.codes`."""
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

    def count_run(self) -> None:
        """Count a run of the interpreter. After `_RUNS_TO_TRANSLATE` runs, translate the function if possible."""
        self.runs += 1
        if self.runs == _RUNS_TO_TRANSLATE:
            self.translation = translate(self.decoded, self.parameters, self.zeros, self.link.imports)

    def extend_template(self, new: list[Any], existing: dict[int, Any]) -> None:
        """Put constants into the template of frames: `new` behind the registers, `existing` into some of them."""
        template = self.template[:-HIDDEN] + new + [None] * HIDDEN
        for register, value in existing.items():
            template[register] = value
        self.template = template

    def _build(self) -> Block:
        with self.link.lock:
            if self._entry is None:
                self._entry = _Builder(self, self.link).build()
            return self._entry


class _Builder:
    """Builds the blocks of one function. It is the `Site` of each end while it builds that."""

    def __init__(self, code: Code, link: Link) -> None:
        self.code = code
        self.link = link
        self.number = {decoded.pc: number for number, decoded in enumerate(code.decoded)}
        self.blocks = {pc: Block(code) for pc in _leaders(code.decoded, link.imports)}
        self.block = self.blocks[0]
        self.pc = 0
        hoisted = hoist_constants(code.decoded, code.parameters, len(code.template) - HIDDEN)
        code.extend_template(hoisted.new, hoisted.existing)
        self.decoded = {instruction.pc: instruction for instruction in hoisted.decoded}

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
                if pc in self.decoded:  # else it is a constant in the template
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
        """The fuel for a branch to `pc`: 0 for a branch forward, else the instructions of the loop and their bytes."""
        return max(0, self.number[self.pc] - self.number[pc] + 1 + (self.pc - pc) // BYTES_PER_UNIT)

    def callee(self, ordinal: int) -> Code:
        return self.link.codes[ordinal]

    def _op(self, decoded: Decoded) -> Op:
        row = decoded.row
        operands, moved = without_moves(decoded)
        if row.effect is Effect.NATIVE:
            op = self._native(*operands)
        elif row.effect is Effect.LINKED:
            op = is_present(self.link.imports[operands[0]], operands[1])
        else:
            op = OPS[row.name](*operands)
        return _release(op, moved) if moved else op

    def _wait(self, decoded: Decoded) -> Any:
        (ordinal, args, _), moved = without_moves(decoded)
        function = self.link.imports[ordinal]
        assert function is not None and function.begin is not None
        types = function.signature.expand(len(args))
        assert types is not None
        return wait_native(self, self._op(decoded), function.begin, ArgumentCheck(function, types), args, tuple(moved))

    def _native(self, ordinal: Any, args: Any, results: Any) -> Op:
        function = self.link.imports[ordinal]
        if function is None:
            return call_absent(self.link.names[ordinal])
        function = function.at(self.code.ordinal, self.pc)
        types = function.signature.expand(len(args))
        assert types is not None
        return call_native(function, types, args, results)


def _waits(decoded: Decoded, imports: list[NativeFunction | None]) -> bool:
    """Whether an instruction calls a native function that may wait for the device."""
    if decoded.row.effect is not Effect.NATIVE:
        return False
    ordinal: Any = decoded.operands[0]
    function = imports[ordinal]
    return function is not None and function.begin is not None


def _leaders(decoded: list[Decoded], imports: list[NativeFunction | None]) -> set[int]:
    """The pcs at which blocks start."""
    leaders = {0}
    for number, instruction in enumerate(decoded):
        if not instruction.row.ends_block and not _waits(instruction, imports):
            continue
        leaders.update(targets(instruction))
        if number + 1 < len(decoded):
            leaders.add(decoded[number + 1].pc)
    return leaders


def without_moves(decoded: Decoded) -> tuple[tuple[Any, ...], list[int]]:
    """The operands without move bits, and the registers that the instruction sets to null afterwards."""
    places, operands = PLACES[decoded.row.opcode], decoded.operands
    moved: list[int] = []
    if not places.refs and not places.counted_reads:
        return operands, moved
    plain: list[Any] = list(operands)
    for place in places.refs:
        if plain[place] & MOVE_BIT:
            plain[place] &= ~MOVE_BIT
            moved.append(plain[place])
    for place in places.counted_reads:
        if any([register & MOVE_BIT for register in plain[place]]):
            moved += [register & ~MOVE_BIT for register in plain[place] if register & MOVE_BIT]
            plain[place] = tuple([register & ~MOVE_BIT for register in plain[place]])
    if moved:
        written = writes(decoded)
        moved = [register for register in moved if register not in written]
    return tuple(plain), moved


def _release(op: Op, moved: list[int]) -> Op:
    """An op that runs `op` and sets the moved registers to null."""
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
