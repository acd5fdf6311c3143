"""Makes modules whose bytecode passes the verifier, grown from its table of instructions and that of `hal` functions.

Functions are made of nested blocks (branches, loops, tables, calls) over registers of which each ref has a type, as the
verifier follows them. Numbers are useful ones and hostile ones. Every row goes by its operands, but for those in
`RULES`; a row that neither covers fails the totality test. A part of the modules is changed afterwards at one place
near the verifier's border (`passing_edits.py`), and passes or not. Export 0, `probe`, gives 42 after device work.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import passing_tensors
from mutate_bytecode import Line
from mutate_bytecode import write as encode_lines

from orchestrion.schema import tensor_encoding, writer
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.isa import BANKS, BY_NAME, INSTRUCTIONS, MOVE_BIT, Instruction, Operand
from orchestrion.schema.rows import ACCESSES, Access, InitializerKind
from orchestrion.schema.signature import NUMBER_TYPES, parse_signature
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_shapes import TensorType

HOSTILE = (
    0,
    1,
    -1,
    2,
    3,
    4,
    7,
    8,
    31,
    32,
    63,
    64,
    255,
    1 << 16,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 40,
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (0, 1, 0x3F800000, 0x80000000, 0x7F800000, 0xFFC00001, 0x7F800001, 0x4F000000, 0xCF000001, 0x5F000000)
DOUBLES = (
    0,
    1 << 63,
    0x3FF0000000000000,
    0x7FF0000000000000,
    0x7FF0000000000001,
    0x41E0000000000000,
    0x43E0000000000000,
)
F32 = DTYPES["f32"].code
#: what numbers of a `hal` function are mostly
USEFUL: dict[str, tuple[int, ...]] = {
    "hal.constant": (0, 0, 16, 48, 64, 1),
    "hal.allocate": (16, 64, 64, 256, 0, 5),
    "hal.view.check": (F32, F32, 4, -1, 2),
    "hal.view.destination": (F32, F32, 4, 2, 0),
    "hal.view.dim": (0, 0, 0, 1),
    "hal.view.create": (0, 0, F32, 4, 2, 16),
    "hal.executable.create": (0, 0, 1),
    "hal.recording.create": (0, 1, 2, 3),
    "hal.recording.create_control_flow": (0, 1, 2, 3),
    "hal.recording.begin_loop": (0, 0, 1, 4, 16),
    "hal.recording.begin_branch": (0, 0, 1, 4, 4, 2, 3),
    "hal.recording.parameters": (11, 13, 1),
    "hal.recording.dispatch": (0, 0, 0, 1, 1, 1, 0, 0, 0, 16, 0, 1, 32, 16, 4, 48, 60, 4),
    "hal.recording.copy": (0, 0, 0, 0, 0, 1, 16, 16),
    "hal.recording.fill": (0, 0, 0, 0, 16, 7, 4),
    "hal.read": (0, 4, 4, 1),
    "hal.cache.load": (0, 1),
    "hal.cache.save": (0, 1),
}
#: the types of ref registers; those that every function has
REFS = ("any", "buffer", "list<i32>", "list<i64>", "list<f32>", "list<f64>", "list<any>", "hal.buffer", "hal.view",
        "hal.executable", "hal.recording", "hal.fence")  # fmt: skip
GLOBALS = (*NUMBER_TYPES, "any", "hal.buffer", "hal.recording", "list<any>", "hal.view", "hal.executable")
IMPORTS = (
    *(writer.Import(row.name, row.signature) for row in HAL_IMPORTS.values()),
    writer.Import("no.such", "(i32, any) -> (i64, any)", optional=True),
    writer.Import("no.type", "(no.thing) -> no.thing", optional=True),
)
_SIGNATURES = [parse_signature(row.signature) for row in IMPORTS]
_NAMES = {row.name: at for at, row in enumerate(IMPORTS)}
#: how an object of a ref type is made: by which row or function, with which numbers; None is a ref
MAKERS: dict[str, tuple[str, tuple[int | None, ...]]] = {
    "buffer": ("buffer.alloc", (64,)),
    **{f"list<{'any' if bank == 'ref' else bank}>": (f"list.{bank}.new", (4,)) for bank in BANKS},
    "hal.buffer": ("hal.allocate", (64,)),
    "hal.view": ("hal.view.create", (None, 0, F32)),
    "hal.executable": ("hal.executable.create", (0,)),
    "hal.recording": ("hal.recording.create", (2,)),
    "hal.fence": ("hal.fence.create", ()),
}
#: rows that have a terminator's place, which blocks decide
BRANCHES = ("br", "br_if", "br_table", "return", "fail")
#: rows that may stand between any two; those with a rule more often than others
BODY = (*(row.name for row in INSTRUCTIONS if row.name not in BRANCHES), *["call_import"] * 70,
        *["call", "call.cached", "check", "buffer.constant", "global.load.ref", "global.store.ref"] * 5)  # fmt: skip
#: rows of which the translator makes text
STRAIGHT = (*(row.name for row in INSTRUCTIONS if row.family in ("globals", "value") and ".select" not in row.name),
            *["ref.null", "ref.copy", "call.cached"] * 3, *["call_import"] * 30)  # fmt: skip


@dataclass
class Made:
    """A function before it is encoded. Branch targets are numbers of lines."""

    name: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    counts: list[int]
    lines: list[Line] = field(default_factory=list)

    def row(self) -> writer.Function:
        return writer.Function(self.name, encode_lines(self.lines), self.arguments, self.results, tuple(self.counts))  # type: ignore[arg-type]


class FunctionMaker:
    """One function. `kind`: "program" for a program initializer, which may neither call nor store what is mutable."""

    def __init__(self, site: "Site", arguments: tuple[str, ...], results: tuple[str, ...], kind: str = "") -> None:
        self.choose = site.choose
        self.site = site
        self.arguments = arguments
        self.results = results
        self.kind = kind
        self.homes = [name for name in arguments if name not in NUMBER_TYPES] + list(REFS)
        counts = {"i32": 6, "i64": 6, "f32": 3, "f64": 3}
        for name in arguments:
            if name in counts:
                counts[name] += 1
        self.counts = [*counts.values(), len(self.homes)]
        self.lines: list[tuple[Instruction, list[Any]]] = []
        self.labels: list[int | None] = []
        self.straight = self.choose.random() < 0.3
        self.there: set[int] = set()  #: ref registers that mostly hold something, by their number in the bank

    def make(self, name: str, length: int) -> Made:
        self.prologue()
        self.block(length, 0 if self.straight else 2)
        self.end()
        lines: list[Line] = [(row, tuple(self._resolved(row, operands))) for row, operands in self.lines]
        return Made(name, self.arguments, self.results, self.counts, lines)

    # Registers and lines.

    def base(self, bank: int) -> int:
        return sum(self.counts[:bank])

    def number(self, name: str) -> int:
        """A register of numbers; the last two of i32 count loops."""
        bank = BANKS.index(name)
        return self.base(bank) + self.choose.randrange(self.counts[bank] - (2 if bank == 0 else 0))

    def ref(self, wanted: str, reads: bool) -> int:
        choose = self.choose
        fits = [at for at, home in enumerate(self.homes) if home == wanted or (wanted == "any" and reads)]
        if not fits or choose.random() < 0.04:
            fits = [self.homes.index("any")]
        at = choose.choice(fits)
        if not reads:
            self.there.add(at)
            return self.base(4) + at
        if at not in self.there and self.homes[at] in MAKERS and choose.random() < 0.95:
            self.make_ref(self.homes[at], self.base(4) + at)
        moved = choose.random() < 0.06
        (self.there.discard if moved else self.there.add)(at)
        return self.base(4) + at | (MOVE_BIT if moved else 0)

    def make_ref(self, home: str, register: int) -> None:
        """An object of a type into a register, as it mostly is right."""
        args = []
        name, numbers = MAKERS[home]
        signature = _SIGNATURES[_NAMES[name]].arguments if name in _NAMES else ("i64",) * len(numbers)
        for wanted, number in zip(signature, numbers, strict=False):
            args.append(self.ref(wanted, True) if number is None else self.constant(wanted, (number,)))
        if home == "hal.view":
            args.append(self.constant("i64", (4,)))
        if name in _NAMES:
            self.call_native(name, tuple(args), (register,))
        else:
            self.emit(name, *args, register)

    def register(self, name: str, reads: bool) -> int:
        return self.number(name) if name in NUMBER_TYPES else self.ref(name, reads)

    def emit(self, name: str, *operands: Any) -> None:
        self.lines.append((BY_NAME[name], list(operands)))

    def constant(self, bank: str, values: Sequence[int] = HOSTILE, register: int | None = None) -> int:
        """A constant into a register."""
        register = self.number(bank) if register is None else register
        bits = int(bank[1:])
        value = self.choose.choice(values if bank[0] == "i" else FLOATS if bits == 32 else DOUBLES)
        if bank[0] == "i":
            value = (value & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)
        self.emit(f"{bank}.const", value, register)
        return register

    def label(self) -> int:
        self.labels.append(None)
        return len(self.labels) - 1

    def place(self, label: int) -> None:
        self.labels[label] = len(self.lines)

    def _resolved(self, row: Instruction, operands: list[Any]) -> list[Any]:
        found = list(operands)
        for place, spec in enumerate(row.operands):
            if spec.kind == "target":
                found[place] = self.labels[found[place]]
            elif spec.kind == "targets":
                found[place] = tuple(self.labels[label] for label in found[place])
        return found

    # Blocks.

    def prologue(self) -> None:
        """Some numbers; the register for everything has two types."""
        for _ in range(7):
            self.constant(self.choose.choice(("i32", "i64", "f32", "f64")))
        self.there.update(at for at, name in enumerate(self.arguments) if name == "hal.view")
        if self.choose.random() < 0.9:  # what holds two types may hold any
            anything = self.base(4) + self.homes.index("any")
            for home in self.choose.sample([*MAKERS], 2):
                self.make_ref(home, anything)

    def block(self, length: int, depth: int) -> None:
        for _ in range(length):
            if depth and self.choose.random() < 0.12:
                self.choose.choice((self.branch, self.loop, self.table))(length // 2 + 1, depth - 1)
            elif self.choose.random() < 0.15:
                self.work()
            else:
                self.instruction(BY_NAME[self.choose.choice(STRAIGHT if self.straight else BODY)])

    def branch(self, length: int, depth: int) -> None:
        then, other, end = self.label(), self.label(), self.label()
        self.emit("br_if", self.number("i32"), then, other)
        self.place(then)
        self.block(length, depth)
        kind = self.choose.random()
        if kind < 0.03:
            self.emit("fail", "it says so")
        elif kind < 0.08:
            self.end()
        else:
            self.emit("br", end)
        self.place(other)
        self.block(length // 2, depth)
        self.place(end)

    def loop(self, length: int, depth: int) -> None:
        """Some turns by a counter of its own; now and then for ever."""
        head, end = self.label(), self.label()
        counter = self.base(0) + self.counts[0] - 1 - depth
        self.constant("i32", (1, 2, 3, 3, 50), counter)
        self.place(head)
        self.block(length, depth)
        if self.choose.random() < 0.03:
            self.emit("br", head)
        else:
            one = self.constant("i32", (1,))
            self.emit("i32.sub", counter, one, counter)
            self.emit("br_if", counter, head, end)
        self.place(end)

    def table(self, length: int, depth: int) -> None:
        ways, end = [self.label() for _ in range(self.choose.randrange(1, 4))], self.label()
        self.emit("br_table", self.number("i32"), ways[0], tuple(ways[1:]))
        for way in ways:
            self.place(way)
            self.block(length // 2, depth)
            self.emit("br", end)
        self.place(end)

    def end(self) -> None:
        self.emit("return", tuple(self.register(name, True) for name in self.results))

    def work(self) -> None:
        """A recording that mostly is right: made, filled, finished, and executed, enqueued or submitted."""
        choose, recording = self.choose, self.base(4) + self.homes.index("hal.recording")
        slots = choose.choice((0, 1, 2, 2, 2, 2))
        self.call_native("hal.recording.create", (self.constant("i32", (slots,)),), (recording,))
        for _ in range(choose.randrange(1, 4)):
            command = choose.choice(("dispatch", "dispatch", "dispatch", "copy", "fill", "barrier"))
            self.native(_NAMES[f"hal.recording.{command}"], recording)
        if choose.random() < 0.95:
            self.call_native("hal.recording.finish", (recording,), ())
        buffers = tuple(self.ref("hal.buffer", True) for _ in range(slots))
        kind = choose.random()
        if kind < 0.6 or self.straight:
            self.call_native("hal.execute", (recording, *buffers), ())
        elif kind < 0.75:
            self.call_native("hal.enqueue", (recording, *buffers), ())
            self.call_native("hal.execute", (recording, *buffers), ())
        else:
            fence = self.base(4) + self.homes.index("hal.fence")
            null = self.base(4) + self.homes.index("any")
            self.emit("ref.null", null)
            self.call_native("hal.fence.create", (), (fence,))
            self.call_native("hal.submit", (recording, null, fence, *buffers), ())
            self.emit("await", fence)

    # Instructions.

    def instruction(self, row: Instruction) -> None:
        rule = RULES.get(row.name)
        if rule is not None:
            rule(self, row)
        else:
            self.emit(row.name, *self.operands(row))

    def operands(self, row: Instruction) -> list[Any]:
        """Of a row that is registers and immediates: the rule of all that have none of their own."""
        if row.family in ("buffers", "lists"):
            for spec in row.operands:
                if spec.kind == "i64" and not spec.result and self.choose.random() < 0.5:
                    self.constant("i64", (0, 0, 1, 2, 4, 8) if self.choose.random() < 0.8 else HOSTILE)
        return [self.operand(spec) for spec in row.operands]

    def operand(self, spec: Operand) -> Any:
        if spec.kind in BANKS:
            return self.register(spec.type or spec.kind, not spec.result)
        if spec.kind in ("imm_i32", "imm_i64"):
            bits = int(spec.kind[5:])
            return (self.choose.choice(HOSTILE) & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)
        if spec.kind in ("imm_f32", "imm_f64"):
            return self.choose.choice(FLOATS if spec.kind == "imm_f32" else DOUBLES)
        if spec.kind == "constant":
            return self.choose.randrange(self.site.constants)
        raise LookupError(f"no rule for an operand of kind {spec.kind}")

    def native(self, ordinal: int, recording: int | None = None) -> None:
        """A call of an import, its numbers mostly useful ones."""
        signature, name = _SIGNATURES[ordinal], IMPORTS[ordinal].name
        types = list(signature.arguments)
        for _ in range(self.choose.choice((0, 1, 1, 2, 3)) if signature.repeated else 0):
            types += signature.repeated
        if name == "hal.recording.dispatch" and self.choose.random() < 0.8:
            types = [*signature.arguments, *signature.repeated * 2]
        args = []
        for place, wanted in enumerate(types):
            if wanted in ("i32", "i64") and self.choose.random() < 0.8:
                args.append(self.constant(wanted, self._useful(name, place)))
            elif wanted == "hal.recording" and recording is not None:
                args.append(recording)
            elif self._is_null(name, wanted):
                null = self.base(4) + self.homes.index("any")
                self.emit("ref.null", null)
                args.append(null)
            else:
                args.append(self.register(wanted, True))
        self.call_native(name, tuple(args), tuple(self.register(wanted, False) for wanted in signature.results))

    def _is_null(self, name: str, wanted: str) -> bool:
        """A fence often is, for to wait for what nobody signals takes time; a buffer in a recording, for a slot."""
        slot = wanted == "hal.buffer" and name.startswith("hal.recording.")
        return (slot or wanted == "hal.fence") and self.choose.random() < 0.5

    def _useful(self, name: str, place: int) -> Sequence[int]:
        known = USEFUL.get(name)
        if known is None or self.choose.random() < 0.1:
            return HOSTILE
        return known if self.choose.random() < 0.15 else (known[min(place, len(known) - 1)],)

    def call_native(self, name: str, args: tuple[int, ...], results: tuple[int, ...]) -> None:
        self.emit("call_import", _NAMES[name], args, results)


def _text(m: FunctionMaker, row: Instruction) -> None:
    """check and require: mostly they hold."""
    holds = m.constant("i32", (1,)) if m.choose.random() < 0.8 else m.number("i32")
    if row.name == "check":
        m.emit(row.name, holds, "it does not hold")
    else:
        m.emit(row.name, holds, tuple(m.number(m.choose.choice(("i32", "i64"))) for _ in range(2)), "{0} {1} {2}")


def _call(m: FunctionMaker, row: Instruction) -> None:
    cached = row.name == "call.cached"
    callees = [at for at, (arguments, _) in enumerate(m.site.signatures)
               if at not in m.site.setup and (not cached or all(t in ("i32", "i64") for t in arguments))]  # fmt: skip
    if m.kind == "program" or not callees:
        return
    callee = m.choose.choice(callees)
    arguments, results = m.site.signatures[callee]
    args = tuple(m.register(name, True) for name in arguments)
    given = tuple(m.register(name, False) for name in results)
    if cached and not set(args).isdisjoint(given):
        return
    m.emit(row.name, callee, args, given)


def _native(m: FunctionMaker, row: Instruction) -> None:
    """One that is there; now and then one that is not."""
    m.native(m.choose.randrange(len(HAL_IMPORTS) if m.choose.random() < 0.97 else len(IMPORTS)))


def _present(m: FunctionMaker, row: Instruction) -> None:
    m.emit(row.name, m.choose.randrange(len(IMPORTS)), m.number("i32"))


def _await(m: FunctionMaker, row: Instruction) -> None:
    """Of a fence that may never be reached only rarely, for that takes time."""
    if m.choose.random() < 0.1:
        m.emit(row.name, m.ref("hal.fence", True))


def _global(m: FunctionMaker, row: Instruction) -> None:
    bank = row.name.rpartition(".")[2]
    stores = ".store." in row.name
    fits = [at for at, (name, mutable) in enumerate(m.site.globals)
            if (name == bank if bank != "ref" else name not in NUMBER_TYPES)
            and (not stores or mutable != (m.kind == "program"))]  # fmt: skip
    place = m.choose.choice(fits)
    register = m.register(m.site.globals[place][0], stores)
    m.emit(row.name, *((register, place) if stores else (place, register)))


Rule = Callable[[FunctionMaker, Instruction], None]
RULES: dict[str, Rule] = {
    "check": _text,
    "require": _text,
    "call": _call,
    "call.cached": _call,
    "call_import": _native,
    "import.present": _present,
    "await": _await,
    **{f"global.{what}.{bank}": _global for what in ("load", "store") for bank in BANKS},
}
#: operand kinds of rows without a rule
KINDS = frozenset((*BANKS, "imm_i32", "imm_i64", "imm_f32", "imm_f64", "constant"))


def without_rule() -> list[str]:
    """Rows that the generator does not know how to make."""
    known = {*RULES, *BRANCHES}
    return [
        row.name for row in INSTRUCTIONS if row.name not in known and any(o.kind not in KINDS for o in row.operands)
    ]


class Site:
    """A module under way: what its functions may refer to."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.dims = (-1,) if seed % 4 == 1 else (4,)  #: of the tensors of its second export
        self.constants = 2
        self.globals = [(name, mutable) for name in GLOBALS for mutable in (True, False)]
        self.views = self.choose.choice((0, 1, 2)), self.choose.choice((0, 1))
        self.setup = {1}
        self.signatures: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), ("i32",)), ((), ()), ((), ())]
        self.signatures.append((("hal.view",) * sum(self.views), ("hal.view",) * self.views[1]))
        for _ in range(self.choose.randrange(1, 4)):
            kinds = self.choose.choice((("i32", "i64"), NUMBER_TYPES, (*NUMBER_TYPES, *REFS)))
            arguments, results = (tuple(self.choose.choices(kinds, k=self.choose.randrange(4))) for _ in range(2))
            self.signatures.append((arguments, results))

    def functions(self) -> list[Made]:
        made = [_probe()]
        for at, (arguments, results) in enumerate(self.signatures[1:], 1):
            maker = FunctionMaker(self, arguments, results, "program" if at in self.setup else "")
            made.append(maker.make(f"f{at}", self.choose.choice((1, 2) if at < 3 else (2, 4, 6, 10))))
        return made

    def module(self, functions: Sequence[Made]) -> writer.Module:
        """`Impossible` (of the mutators) where a function has no encoding."""
        rows = [one.row() for one in functions]
        exported = [0, 3, *(at for at in range(4, len(rows)))]
        exports = [writer.Export(f"e{at}") for at in exported]
        takes, gives = self.views
        if takes + gives:
            values = [
                writer.Value(f"v{at}", DTYPES["f32"], self.dims, expressions=("n",) * (-1 in self.dims))
                for at in range(takes + gives)
            ]
            exports[1] = writer.Export("e3", values[:takes], values[takes:])
        initializers = [writer.Initializer(1, InitializerKind.Program), writer.Initializer(2, InitializerKind.Context)]
        kept = self.choose.choices(initializers, k=1) if self.choose.random() < 0.4 else []
        program = writer.Program(
            "p", "reference", rows, exported,
            [writer.Global(f"g{at}", name, mutable, 3 if name in NUMBER_TYPES else 0)
             for at, (name, mutable) in enumerate(self.globals)],
            kept or [initializers[0]], [_adder(), self._executable()],
            [writer.Constant("c", bytes(range(64)), DTYPES["i8"], (64,)),
             writer.Constant("d", b"", DTYPES["f32"], (0,))],
        )  # fmt: skip
        return writer.Module([program], exports, IMPORTS)

    def _executable(self) -> writer.Executable:
        """Tensor code of any kind."""
        made = passing_tensors.make(self.choose.randrange(1000))
        return _executable(made.payload, made.entries, made.parameters)


def _probe() -> Made:
    """Device memory is filled and read: 42."""
    recording, buffer, sixteen, value, four = 5, 4, 1, 2, 0
    zero = 3
    lines = [
        ("i64.const", (16, sixteen)), ("call_import", (_NAMES["hal.allocate"], (sixteen,), (buffer,))),
        ("call_import", (_NAMES["hal.recording.create"], (four,), (recording,))),
        ("i64.const", (42, value)), ("i32.const", (4, four)),
        ("call_import", (_NAMES["hal.recording.fill"], (recording, buffer, four, zero, sixteen, value, four), ())),
        ("call_import", (_NAMES["hal.recording.finish"], (recording,), ())),
        ("call_import", (_NAMES["hal.execute"], (recording,), ())),
        ("call_import", (_NAMES["hal.read"], (buffer, zero, four), (four,))), ("return", ((four,),)),
    ]  # fmt: skip
    return Made("probe", (), ("i32",), [1, 3, 0, 0, 2], [(BY_NAME[name], operands) for name, operands in lines])


def _adder() -> writer.Executable:
    four = TensorType(DTYPES["f32"], (4,))
    negate = EntryCode(2)
    (x,) = negate.emit("load_input", (), 0, four)
    negate.emit("store_output", negate.emit("negate", (x,)), 1)
    add = EntryCode(2)
    (x,) = add.emit("load_input", (), 0, four)
    (y,) = add.emit("load_input", (), 1, four)
    add.emit("store_output", add.emit("add", (x, y)), 1)
    codes = [negate, add]
    return _executable(tensor_encoding.encode(codes), tuple(code.accesses for code in codes), (0, 0))


def _executable(payload: bytes, entries: Sequence[Any], parameters: Sequence[int]) -> writer.Executable:
    rows = [
        writer.Entry(f"e{at}", [writer.Binding(Access(ACCESSES[access]), length) for access, length in one], words)
        for at, (one, words) in enumerate(zip(entries, parameters, strict=True))
    ]  # fmt: skip
    variant = writer.Variant("tensor-bytecode", payload, [(1, 1, 1)] * len(rows))
    return writer.Executable("x", rows, [variant])
