"""Random SPIR-V shaders of the checker's subset, grown from a seed: `generate(seed)` gives the same words again.

A shader is grown statement by statement, so that it is well typed and structured as the emitter writes it, with all
features of the rows of `orchestrion.schema.spirv` (`shader_rules`). Integers are preferred to floats, borders to other
constants, and new values to older ones, so that arithmetic reaches indices, conditions and stores.

A part of the shaders hold *proposals*: at some accesses, barriers and constructs they take a form of
`shader_proposals`, which a right checker refuses, and which does harm if a wrong one accepts it. The words of
other shaders are changed at random (`shader_mutants`).
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import shader_proposals
from shader_mutants import mutate
from shader_rules import ARITHMETIC, COMPARISONS
from shader_words import BITS, FLOAT_BITS, ModuleWords, input_kind

from orchestrion.hal.backend import Entry
from orchestrion.schema.spirv import (
    BUILTINS,
    EXT_BY_NAME,
    OP_BY_NAME,
    RELAXED,
    SCOPE_DEVICE,
    SCOPE_WORKGROUP,
    WORKGROUP_MEMORY,
    ExtInst,
    Op,
)

SIZES = ((1, 1, 1), (2, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (2, 2, 1))
LENGTHS = (1, 2, 3, 5, 16, 64, 129, 200, 255, 256, 256, 300, 32769, 40000)
#: share of shaders that propose, and how often one of them does where it can; most do it once
PROPOSING, PROPOSAL, AGAIN = 0.55, 0.5, 0.03
#: share of shaders whose words are changed afterwards
MUTANTS = 0.15
#: what a proposing shader proposes, as often as it stands here
FAMILIES = ("index",) * 10 + ("statement",) * 6 + ("barrier", "control", "phi", "loop", "loop", "arm", "body", "store")
NESTING = 4

_EDGES = (0, 1, 2, 3, 4, 7, 8, 15, 31, 32, 33, 63, 64, 127, 128, 254, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
          0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)  # fmt: skip
_FLOATS = (1.0, -1.0, 0.5, -0.5, 2.0, 3.7, -3.7, 255.0, 256.5, 2147483648.0, 4294967296.0, -2147483904.0, 1e19, 1e30,
           float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1e-40)  # fmt: skip
EDGES: dict[str, tuple[int, ...]] = {
    "bool": (0, 1),
    "f32": tuple(struct.unpack("<I", struct.pack("<f", value))[0] for value in _FLOATS),
    "f64": tuple(struct.unpack("<Q", struct.pack("<d", value))[0] for value in _FLOATS),
    "u64": (*_EDGES, 1 << 32, 1 << 63, (1 << 64) - 1, (1 << 64) - 0x80000000),
} | {
    kind: tuple(sorted({value & (1 << BITS[kind]) - 1 for value in _EDGES})) for kind in ("u8", "u16", "u32")
}  # fmt: skip


class Shader(NamedTuple):
    """`proposals`: the forms in it that a checker refuses. `forms`: control flow, indices and storage it was given."""

    payload: bytes
    entries: tuple[Entry, ...]
    proposals: tuple[str, ...]
    forms: tuple[str, ...]


@dataclass(slots=True)
class Array:
    """Workgroup memory."""

    variable: int
    kind: str
    length: int


@dataclass(slots=True)
class Memory:
    """A storage buffer."""

    variable: int
    kind: str
    writable: bool


def generate(seed: int) -> Shader:
    return Grower(random.Random(seed)).shader()


class Grower:
    """Grows one module. `pool` holds the visible values by kind; `varying` those that differ among invocations."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.random = rng.random
        self.words = ModuleWords()
        self.code = self.words.code
        self.proposals: list[str] = []
        self.forms: list[str] = []
        self.family = self.pick(FAMILIES) if self.random() < PROPOSING else ""
        self.pool: dict[str, list[Any]] = {}
        self.escaped: list[tuple[str, int]] = []  #: values of arms and functions that were left
        self.varying: set[int] = set()
        self.limits: dict[int, int] = {}  #: clamp -> the largest value
        self.divergent = 0  #: constructs around us whose condition varies
        self.depth = 0
        self.label = 0
        self.inputs: dict[int, None] = {}
        self.kinds: list[str] = []
        self.floats: list[str] = []
        self.arrays: list[Array] = []
        self.buffers: list[Memory] = []
        self.bindings: list[tuple[str, int]] = []
        self.parameters = 0
        self.size = (1, 1, 1)

    # choices

    def pick(self, options: Any) -> Any:
        return options[int(self.random() * len(options))]

    def proposes(self, family: str) -> bool:
        return family == self.family and self.random() < (AGAIN if self.proposals else PROPOSAL)

    def propose(self, name: str) -> bool:
        self.proposals.append(name)
        return True

    def proposal(self, forms: dict[str, Any]) -> Any:
        """One of a table of `shader_proposals`."""
        name = self.pick([name for name in forms for _ in range(shader_proposals.OFTEN.get(name, 1))])
        self.proposals.append(name)
        return forms[name]

    def value(self, kind: str) -> int:
        """A visible value, more often a recent one, or a constant."""
        pool = self.pool.get(kind)
        if pool and self.random() < 0.8:
            share = self.random()
            return pool[-1 - int(share * share * len(pool))]  # type: ignore[no-any-return]
        return self.edge(kind)

    def uniform_value(self, kind: str) -> int:
        """A value that is the same for the whole workgroup."""
        found = self.value(kind)
        return found if found not in self.varying else self.edge(kind)

    def hostile(self) -> int:
        """A u32 that is large or negative more often than not: a parameter, an edge, or any value."""
        share = self.random()
        if share < 0.3 and self.parameters:
            return self.load_parameter()
        return self.words.constant("u32", self.pick(_EDGES[-5:])) if share < 0.5 else self.value("u32")

    def edge(self, kind: str) -> int:
        if kind == "u32" and self.arrays and self.random() < 0.3:
            length = self.arrays[int(self.random() * len(self.arrays))].length
            return self.words.constant(kind, length + int(self.random() * 3) - 1)
        return self.words.constant(kind, self.pick(EDGES[kind]))

    # the module

    def shader(self) -> Shader:
        self.declare()
        functions = 2 if self.random() < 0.05 else 1
        entries = tuple(self.function(f"f{number}") for number in range(functions))
        words = self.words.words()
        if not self.family and self.random() < MUTANTS:
            self.proposals += [mutate(words, self.rng) for _ in range(self.pick((1, 1, 1, 2)))]
        payload = struct.pack(f"<{len(words)}I", *words)
        return Shader(payload, entries, tuple(self.proposals), tuple(self.forms))

    def declare(self) -> None:
        """Chooses kinds, workgroup arrays, buffers and parameters."""
        draw = self.random
        self.kinds = ["u32", "u32", "u32"]
        for kind in ("u8", "u16", "u64"):
            if draw() < 0.15:
                self.kinds.append(kind)
        if draw() < 0.35:
            self.floats.append("f32")
            if draw() < 0.3:
                self.floats.append("f64")
        self.size = self.pick(SIZES)
        self.parameters = int(draw() * 4)
        for _ in range(1 + int(draw() * 2.5)):
            self.arrays.append(self.array(self.memory_kind(), self.pick(LENGTHS)))
        for binding in range(1 + int(draw() * 2)):
            self.buffer(binding)

    def array(self, kind: str, length: int) -> Array:
        return Array(self.words.workgroup(kind, length), kind, length)

    def memory_kind(self) -> str:
        return "u32" if self.random() < 0.6 else str(self.pick(self.kinds + self.floats))

    def buffer(self, binding: int) -> None:
        """A binding; at times seen through two variables, one of vectors."""
        kind, access = self.memory_kind(), self.pick(("read", "readwrite", "readwrite", "write"))
        self.bindings.append((access, 16))
        kinds = [kind] if self.random() < 0.8 else [f"{kind}x4"] if self.random() < 0.5 else [kind, f"{kind}x4"]
        for content in kinds:
            variable = self.words.buffer(binding, content, access != "read")
            self.buffers.append(Memory(variable, content, access != "read"))

    def function(self, name: str) -> Entry:
        self.inputs = {}
        function = self.words.begin_function()
        self.begin(self.words.new())
        marks = self.open()
        self.prologue()
        self.block(6 + int(self.random() * self.random() * 40))
        self.epilogue()
        self.code += (1 << 16 | OP_BY_NAME["OpReturn"].code, 1 << 16 | OP_BY_NAME["OpFunctionEnd"].code)
        self.close(marks)
        self.words.entry_point(function, name, self.inputs, self.size)
        return Entry(name, tuple(self.bindings), self.parameters, self.size)

    def prologue(self) -> None:
        """Something that differs among invocations to begin with."""
        if self.random() < 0.9:
            self.load_input("LocalInvocationIndex")
        if self.parameters and self.random() < 0.7:
            self.load_parameter()

    def epilogue(self) -> None:
        """What follows the statements; tests that look at results store them here."""

    # blocks and scopes

    def begin(self, label: int) -> None:
        self.code += (2 << 16 | 248, label)
        self.label = label

    def open(self) -> dict[str, int]:
        return {kind: len(values) for kind, values in self.pool.items()}

    def close(self, marks: dict[str, int]) -> None:
        """Values made since are visible no more."""
        for kind, values in self.pool.items():
            mark = marks.get(kind, 0)
            if len(values) > mark:
                if kind in BITS or kind == "clamp":
                    self.escaped.append((kind, values[-1]))
                del values[mark:]

    def block(self, budget: int) -> None:
        for _ in range(budget):
            STATEMENTS[int(self.random() * len(STATEMENTS))](self)

    def make(self, kind: str, code: int, operands: tuple[int, ...], *literals: int) -> int:
        """An instruction with a result, whose operands are ids and then literals."""
        made = self.words.new()
        count = 3 + len(operands) + len(literals)
        self.code += (count << 16 | code, self.words.type(kind), made, *operands, *literals)
        return self.note(kind, made, operands)

    def extended(self, kind: str, code: int, operands: tuple[int, ...]) -> int:
        made = self.words.new()
        type_id, library = self.words.type(kind), self.words.library()
        self.code += ((5 + len(operands)) << 16 | 12, type_id, made, library, code, *operands)
        return self.note(kind, made, operands)

    def note(self, kind: str, made: int, operands: tuple[int, ...]) -> int:
        pool = self.pool.get(kind)
        if pool is None:
            pool = self.pool[kind] = []
        pool.append(made)
        if not self.varying.isdisjoint(operands):
            self.varying.add(made)
        return made

    # statements

    def arithmetic(self) -> None:
        row, rule = ARITHMETIC[int(self.random() * len(ARITHMETIC))]
        rule(self, row)

    def apply(self, row: Op | ExtInst, kind: str, operands: tuple[int, ...]) -> int:
        if isinstance(row, ExtInst):
            made = self.extended(kind, row.code, operands)
        else:
            made = self.make(kind, row.code, operands)
        if kind in FLOAT_BITS and self.random() < 0.5:
            self.words.decorate(made, "NoContraction")
        return made

    def clamp(self, limit: int, kind: str = "u32", value: int = 0) -> int:
        """UMin with a constant, on either side."""
        operands = (value or self.value(kind), self.words.constant(kind, limit))
        made = self.extended(kind, EXT_BY_NAME["UMin"].code, operands if self.random() < 0.5 else operands[::-1])
        if kind == "u32":
            self.limits[made] = limit
            self.pool.setdefault("clamp", []).append(made)
        return made

    def index(self, array: Array) -> int:
        """An index into workgroup memory: a constant, an old clamp, a clamp, or what a checker refuses."""
        if self.proposes("index"):
            return self.proposal(shader_proposals.INDICES)(self, array)  # type: ignore[no-any-return]
        share, last = self.random(), array.length - 1
        if share < 0.2:
            self.forms.append("index: constant")
            return self.words.constant("u32", self.pick((0, last, last // 2)))
        clamps = [made for made in self.pool.get("clamp", ()) if self.limits[made] <= last]
        if clamps and share < 0.4:
            self.forms.append("index: clamp again")
            return clamps[-1]  # type: ignore[no-any-return]
        self.forms.append("index: clamp")
        return self.clamp(last if share < 0.85 else last // 2)

    def chain(self, storage: str, kind: str, variable: int, *indices: int) -> int:
        pointer = self.words.pointer(storage, self.words.type(kind))
        made = self.words.new()
        self.code += ((4 + len(indices)) << 16 | 65, pointer, made, variable, *indices)
        return made

    def workgroup_pointer(self) -> tuple[int, str]:
        """A pointer into a workgroup array, at times one that was made before."""
        again = self.pool.get("pointer")
        if again and self.random() < 0.15:
            self.forms.append("index: pointer again")
            return self.pick(again)  # type: ignore[no-any-return]
        array = self.pick(self.arrays)
        made = self.chain("Workgroup", array.kind, array.variable, self.index(array))
        self.pool.setdefault("pointer", []).append((made, array.kind))
        return made, array.kind

    def load(self, kind: str, pointer: int) -> int:
        made = self.make(kind, 61, (pointer,))
        self.varying.add(made)
        return made

    def store(self, pointer: int, value: int) -> None:
        self.code += (3 << 16 | 62, pointer, value)

    def load_workgroup(self) -> None:
        pointer, kind = self.workgroup_pointer()
        self.forms.append("load Workgroup")
        self.load(kind, pointer)

    def store_workgroup(self) -> None:
        pointer, kind = self.workgroup_pointer()
        self.forms.append("store Workgroup")
        self.store(pointer, self.value(kind))

    def buffer_pointer(self, memory: Memory) -> int:
        kind = "u64" if "u64" in self.kinds and self.random() < 0.3 else "u32"
        return self.chain(
            "StorageBuffer", memory.kind, memory.variable, self.words.constant("u32", 0), self.value(kind)
        )

    def load_buffer(self) -> None:
        memory = self.pick(self.buffers)
        loaded = self.load(memory.kind, self.buffer_pointer(memory))
        self.forms.append("load StorageBuffer")
        if "x" in memory.kind:
            row = OP_BY_NAME["OpCompositeExtract"]
            self.make(memory.kind.partition("x")[0], row.code, (loaded,), int(self.random() * 4))

    def store_buffer(self) -> None:
        memory = self.pick(self.buffers)
        if not memory.writable and not (self.proposes("store") and self.propose("store: into a binding that is read")):
            return
        self.forms.append("store StorageBuffer")
        scalar, vector, _ = memory.kind.partition("x")
        value = self.value(scalar)
        if vector:
            lanes = tuple(self.value(scalar) for _ in range(4))
            value = self.make(memory.kind, OP_BY_NAME["OpCompositeConstruct"].code, lanes)
        self.store(self.buffer_pointer(memory), value)

    def change_buffer(self) -> None:
        """An atomic instruction."""
        found = [memory for memory in self.buffers if memory.kind == "u32"]
        if not found:
            return
        memory = self.pick(found)
        if not memory.writable and not (self.proposes("store") and self.propose("store: into a binding that is read")):
            return
        self.forms.append("atomic")
        scope, semantics = (self.words.constant("u32", value) for value in (SCOPE_DEVICE, RELAXED))
        row = self.pick((OP_BY_NAME["OpAtomicAnd"], OP_BY_NAME["OpAtomicOr"]))
        value, pointer = self.value("u32"), self.buffer_pointer(memory)
        self.varying.add(self.make("u32", row.code, (pointer, scope, semantics, value)))

    def load_parameter(self) -> int:
        member = self.words.constant("u32", int(self.random() * self.parameters))
        pointer = self.chain("PushConstant", "u32", self.words.parameters(self.parameters), member)
        self.forms.append("load PushConstant")
        return self.make("u32", 61, (pointer,))

    def any_parameter(self) -> None:
        if self.parameters:
            self.load_parameter()

    def load_input(self, name: str) -> int:
        """A word of a built-in input."""
        variable, kind = self.words.input(name), input_kind(name)
        self.inputs[variable] = None
        self.forms.append(f"load Input {name}")
        loaded = self.make(kind, 61, (variable,))
        if kind == "u32":
            self.varying.add(loaded)
            return loaded
        row = OP_BY_NAME["OpCompositeExtract"]
        return self.make("u32", row.code, (loaded,), int(self.random() * 3))

    def any_input(self) -> None:
        self.load_input(self.pick(list(BUILTINS)))

    def barrier(self) -> None:
        if self.divergent and not (self.proposes("barrier") and self.propose("barrier: in a divergent construct")):
            return
        self.forms.append(f"barrier: {min(self.depth, 2)} deep")
        scope, semantics = (self.words.constant("u32", value) for value in (SCOPE_WORKGROUP, WORKGROUP_MEMORY))
        self.code += (4 << 16 | 224, scope, scope, semantics)

    # control flow

    def condition(self) -> int:
        """A fresh comparison, or a bool that was made before; half of them uniform where that can be."""
        share = self.random()
        if share < 0.3:
            return self.value("bool")
        row = self.pick(COMPARISONS)
        choose = self.uniform_value if share < 0.65 else self.value
        return self.make("bool", row.code, (choose("u32"), choose("u32")))

    def control(self) -> int:
        """The control mask: 0."""
        return 1 + int(self.random() * 3) if self.proposes("control") and self.propose("control: a mask") else 0

    def branch(self) -> None:
        """A selection with one arm, or with two and phis."""
        if self.depth >= NESTING:
            return
        condition, both = self.condition(), self.random() < 0.6
        varies = condition in self.varying
        yes, no, merge = self.words.new(), self.words.new(), self.words.new()
        if not both:
            no = merge
        self.forms.append(f"selection: {1 + both} arms, {'divergent' if varies else 'uniform'}")
        self.code += (3 << 16 | 247, merge, self.control(), 4 << 16 | 250, condition, yes, no)
        self.divergent += varies
        self.depth += 1
        kinds = [self.pick(self.kinds + self.floats) for _ in range(int(self.random() * 3))] if both else []
        arms = [self.arm(label, merge, kinds) for label in ((yes, no) if both else (yes,))]
        self.depth -= 1
        self.divergent -= varies
        self.begin(merge)
        for position, kind in enumerate(kinds):
            pairs = [word for values, label in arms for word in (values[position], label)]
            if self.proposes("phi") and self.propose("phi: ways swapped"):
                pairs[1], pairs[3] = pairs[3], pairs[1]
            made = self.make(kind, OP_BY_NAME["OpPhi"].code, tuple(pairs))
            if varies:
                self.varying.add(made)

    def arm(self, label: int, merge: int, kinds: list[str]) -> tuple[list[int], int]:
        """An arm's values of these kinds, and the block it ends with."""
        marks = self.open()
        self.begin(label)
        self.block(int(self.random() * 5))
        values = [self.value(kind) for kind in kinds]
        self.close(marks)
        if self.proposes("arm"):
            self.proposal(shader_proposals.LEAVES)(self)
        else:
            self.code += (2 << 16 | 249, merge)
        return values, self.label

    def loop(self) -> None:
        """header: phis, condition -> body ... -> continue block -> header; merge block."""
        if self.depth >= NESTING:
            return
        words = self.words
        header, body, onward, merge = words.new(), words.new(), words.new(), words.new()
        uniform = self.random() < 0.6
        choose = self.uniform_value if uniform else self.value
        kinds = ["u32", *(self.pick(self.kinds + self.floats) for _ in range(int(self.random() * 3)))]
        bound = (
            words.constant("u32", self.pick((1, 2, 2, 3)))
            if self.random() < 0.7
            else self.clamp(3, value=choose("u32"))
        )
        starts = [words.constant("u32", 0) if self.random() < 0.8 else choose("u32"), *map(choose, kinds[1:])]
        self.code += (2 << 16 | 249, header)
        before, made = self.label, self.words.bound
        self.begin(header)
        slots = [self.phi(kind, start, before, onward) for kind, start in zip(kinds, starts, strict=True)]
        counter = self.code[slots[0] - 3]
        if self.random() < 0.3:
            self.arithmetic()
        condition = self.make("bool", OP_BY_NAME["OpULessThan"].code, (counter, bound))
        varies = condition in self.varying
        self.forms.append(f"loop: {'divergent' if varies else 'uniform'}")
        ways = (merge, body) if self.proposes("loop") and self.propose("loop: ways swapped") else (body, merge)
        self.code += (4 << 16 | 246, merge, onward, self.control(), 4 << 16 | 250, condition, *ways)
        self.divergent += varies
        self.depth += 1
        self.body(body, onward, merge, counter, header, kinds, slots)
        self.depth -= 1
        self.divergent -= varies
        self.begin(merge)
        if varies:
            self.varying.update(range(made, self.words.bound))

    def phi(self, kind: str, start: int, before: int, onward: int) -> int:
        """A loop's phi; gives where in the code the word of its next value stands."""
        self.make(kind, OP_BY_NAME["OpPhi"].code, (start, before, 0, onward))
        return len(self.code) - 2

    def body(
        self, body: int, onward: int, merge: int, counter: int, header: int, kinds: list[str], slots: list[int]
    ) -> None:
        """The body and the continue block, which gives the phis their next values."""
        marks = self.open()
        self.begin(body)
        self.block(int(self.random() * 6))
        if self.proposes("body"):
            self.proposal(shader_proposals.EXITS)(self, onward, merge)
        else:
            self.code += (2 << 16 | 249, onward)
        self.begin(onward)
        if self.random() < 0.2:
            self.arithmetic()
        if self.proposes("loop") and self.propose("loop: a store in the continue block"):
            pointer, kind = self.workgroup_pointer()
            self.store(pointer, self.value(kind))
        following = [self.make("u32", OP_BY_NAME["OpIAdd"].code, (counter, self.words.constant("u32", 1)))]
        following += [self.value(kind) for kind in kinds[1:]]
        for slot, value in zip(slots, following, strict=True):
            self.code[slot] = value
            if value in self.varying:
                self.varying.add(self.code[slot - 3])
        self.code += (2 << 16 | 249, header)
        self.close(marks)

    def propose_statement(self) -> None:
        """A statement that a checker refuses."""
        if self.proposes("statement"):
            self.proposal(shader_proposals.STATEMENTS)(self)


_WEIGHTS: tuple[tuple[Callable[[Grower], None], int], ...] = (
    (Grower.arithmetic, 50),
    (Grower.load_workgroup, 10),
    (Grower.store_workgroup, 12),
    (Grower.load_buffer, 6),
    (Grower.store_buffer, 6),
    (Grower.change_buffer, 2),
    (Grower.any_parameter, 4),
    (Grower.any_input, 5),
    (Grower.barrier, 8),
    (Grower.branch, 7),
    (Grower.loop, 6),
    (Grower.propose_statement, 5),
)
#: statements as often as they are taken
STATEMENTS = [statement for statement, weight in _WEIGHTS for _ in range(weight)]
