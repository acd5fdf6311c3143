"""SPIR-V words as a program of the interpreter: types agree, blocks are found, each instruction is one tuple.

Knows the specification and the rows' layouts, and nothing of the checker. What the checker accepted and this file
cannot read is a `Finding`: of kind "type" where types do not agree, "form" where the form is unknown.

A step is (function, ...): the interpreter calls `function(run, values, step)`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spirv_memory import Finding
from spirv_steps import access, apply, apply_one, apply_two, array_length, atomic, load, store
from spirv_values import BEYOND, MEANINGS, from_bits, meaning

from orchestrion.schema.spirv import EXT_BY_CODE, OP_BY_CODE, RELAXED, SCOPE_DEVICE, STORAGE_CLASSES

STORAGE_NAMES = {code: name for name, code in STORAGE_CLASSES.items()}
#: opcodes that the loader writes
NULL, ARRAY_LENGTH = 46, 68
ARRAY_STRIDE, BUILTIN, NON_WRITABLE, BINDING, OFFSET = 6, 11, 24, 33, 35


@dataclass(slots=True)
class Type:
    """`name` says the whole type: `u32`, `u32x4`, `u32[16]`, `*Workgroup u32`."""

    name: str
    element: str = ""
    lanes: int = 1
    length: int = 0
    members: tuple[str, ...] = ()
    storage: str = ""

    @property
    def bytes(self) -> int:
        """Of a scalar, a vector or an array of scalars."""
        scalar = (self.element or self.name).partition("x")[0]
        return (32 if scalar == "bool" else int(scalar[1:])) // 8 * max(self.lanes, self.length)


@dataclass(slots=True)
class Variable:
    """A module-scope variable. `zero`: it has a null initializer."""

    storage: str
    content: Type
    binding: int = -1
    builtin: int = -1
    writable: bool = True
    zero: bool = False


@dataclass(slots=True)
class Block:
    """A basic block: phis, then runs of steps between barriers, then where it goes."""

    label: int
    phis: list[tuple[int, dict[int, int]]] = field(default_factory=list)  #: result, value by predecessor
    parts: list[list[tuple[Any, ...]]] = field(default_factory=lambda: [[]])
    condition: int = 0
    targets: tuple[int, ...] = ()
    merge: int = 0  #: of a loop's header
    defined: list[int] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)  #: of a header: values of the loop, made anew each turn
    loops: tuple[int, ...] = ()  #: headers of the loops around it


class Program:
    """One module. `wrap` may replace the function of each instruction; it gets its types' names, too."""

    def __init__(self, words: list[int], wrap: Callable[..., Any] | None = None) -> None:
        self.wrap = wrap
        self.types: dict[int, Type] = {}
        self.kinds: dict[int, Type] = {}  #: of values
        self.constants: dict[int, Any] = {}
        self.literal: set[int] = set()  #: results of OpConstant
        self.variables: dict[int, Variable] = {}
        self.decorations: dict[tuple[int, int], int] = {}
        self.offsets: dict[tuple[int, int], int] = {}  #: of a struct's members
        self.used: dict[int, set[int]] = {}  #: variables by function
        self.entries: dict[str, int] = {}
        self.sizes: dict[int, tuple[int, int, int]] = {}
        self.interfaces: dict[int, list[int]] = {}
        self.functions: dict[int, dict[int, Block]] = {}
        self.codes: list[int] = []
        self.extended: list[int] = []
        self._blocks: dict[int, Block] = {}
        self._block = Block(0)
        self._function = 0
        at = 5
        while at < len(words):
            count, code = words[at] >> 16, words[at] & 0xFFFF
            self.codes.append(code)
            read = _READERS.get(code)
            if read is not None:
                read(self, words[at + 1 : at + count])
            elif code in OP_BY_CODE:
                self.arithmetic(OP_BY_CODE[code].name, words[at + 1 : at + count])
            else:
                raise Finding("form", f"opcode {code}")
            at += count
        for blocks in self.functions.values():
            _find_loops(list(blocks.values()))

    def typed(self, id: int) -> Type:
        found = self.kinds.get(id)
        if found is None:
            raise Finding("undefined value", f"id {id} has no type")
        return found

    def step(self, result: int, kind: Type, *step: Any) -> None:
        """One more step, with a result."""
        self.kinds[result] = kind
        self._block.defined.append(result)
        self._block.parts[-1].append(step)

    # values

    def arithmetic(self, name: str, words: list[int]) -> None:
        if name not in MEANINGS:
            raise Finding("form", name)
        type_id, result, *operands = words
        self.apply(name, type_id, result, operands)

    def ext_inst(self, words: list[int]) -> None:
        type_id, result, _, code, *operands = words
        row = EXT_BY_CODE.get(code)
        self.extended.append(code)
        name = row.name if row is not None else BEYOND.get(code, "")
        if name not in MEANINGS:
            raise Finding("form", f"extended instruction {code}")
        self.apply(name, type_id, result, operands)

    def apply(self, name: str, type_id: int, result: int, operands: list[int]) -> None:
        kind = self.types[type_id]
        names = [self.typed(operand).name for operand in operands]
        try:
            function = meaning(name, kind.name, *names)
        except (IndexError, TypeError) as error:
            raise Finding("type", f"{name} of {names}") from error
        if function is None:
            raise Finding("type", f"{name} of {names} as {kind.name}")
        if self.wrap is not None:
            function = self.wrap(function, kind.name, names)
        if len(operands) == 2:
            self.step(result, kind, apply_two, function, result, operands[0], operands[1], kind.name)
        elif len(operands) == 1:
            self.step(result, kind, apply_one, function, result, operands[0], kind.name)
        else:
            self.step(result, kind, apply, function, result, operands, kind.name)

    def construct(self, words: list[int]) -> None:
        type_id, result, *operands = words
        kind = self.types[type_id]
        if kind.lanes != len(operands) or {self.typed(operand).name for operand in operands} != {kind.element}:
            raise Finding("type", f"{kind.name} of {len(operands)} parts")
        self.step(result, kind, apply, lambda *parts: parts, result, operands, kind.name)

    def extract(self, words: list[int]) -> None:
        type_id, result, composite, lane = words
        source, kind = self.typed(composite), self.types[type_id]
        if lane >= source.lanes or source.lanes < 2 or source.element != kind.name:
            raise Finding("type", f"lane {lane} of {source.name} as {kind.name}")
        self.step(result, kind, apply_one, lambda parts: parts[lane], result, composite, kind.name)

    # memory

    def access_chain(self, words: list[int]) -> None:
        type_id, result, base, *indices = words
        variable = self.variables.get(base)
        if variable is None:
            raise Finding("form", "an access chain from no variable")
        self.used[self._function].add(base)
        content = variable.content
        if variable.storage == "StorageBuffer":
            if len(indices) != 2 or self.constants.get(indices[0]) != 0:
                raise Finding("form", f"an access chain into a buffer with {len(indices)} indices")
            reached, index = content.members[0][:-2], indices[1]
        elif variable.storage == "PushConstant":
            member = self.constants.get(indices[0]) if indices[0] in self.literal else None
            if len(indices) != 1 or member is None or member >= len(content.members):
                raise Finding("access", f"member {member} of {len(content.members)} parameters")
            reached, index = content.members[member], indices[0]
        else:
            if len(indices) != 1 or not content.element:
                raise Finding("form", f"an access chain into {content.name} with {len(indices)} indices")
            reached, index = content.element, indices[0]
        pointer, number = self.types[type_id], self.typed(index)
        if pointer.name != f"*{variable.storage} {reached}" or number.name[0] not in "ui" or number.lanes > 1:
            raise Finding("type", f"{number.name} into {content.name} as {pointer.name}")
        bits = int(number.name[1:])
        self.step(result, pointer, access, result, base, index, 1 << bits - 1, 1 << bits)

    def load(self, words: list[int]) -> None:
        type_id, result, pointer = words
        kind = self.types[type_id]
        variable = self.variables.get(pointer)
        if variable is not None and variable.storage == "Input" and pointer not in self.interfaces[self._function]:
            raise Finding("form", f"input {pointer} is not in the entry's interface")
        if self.typed(pointer).element != kind.name or self.typed(pointer).name[0] != "*":
            raise Finding("type", f"{kind.name} from a {self.typed(pointer).name}")
        self.step(result, kind, load, result, pointer, kind)

    def store(self, words: list[int]) -> None:
        pointer, value = words
        if self.typed(pointer).element != self.typed(value).name or self.typed(pointer).name[0] != "*":
            raise Finding("type", f"{self.typed(value).name} to a {self.typed(pointer).name}")
        self._block.parts[-1].append((store, pointer, value))

    def atomic(self, name: str, words: list[int]) -> None:
        """Reads a word of a buffer, and stores what the instruction `name` makes of it and a value."""
        type_id, result, pointer, scope, semantics, value = words
        kind = self.types[type_id]
        if (kind.name, self.typed(value).name, self.typed(pointer).name) != ("u32", "u32", "*StorageBuffer u32"):
            raise Finding("type", f"an atomic {self.typed(value).name} to a {self.typed(pointer).name}")
        if (self.constants.get(scope), self.constants.get(semantics)) != (SCOPE_DEVICE, RELAXED):
            raise Finding("form", "an atomic instruction of another scope or order")
        function = meaning(name, "u32", "u32", "u32")
        assert function is not None
        if self.wrap is not None:
            function = self.wrap(function, "u32", ["u32", "u32"])
        self.step(result, kind, atomic, function, result, pointer, value, kind)

    def array_length(self, words: list[int]) -> None:
        type_id, result, variable, member = words
        if self.types[type_id].name != "u32" or self.variables[variable].storage != "StorageBuffer" or member:
            raise Finding("type", "OpArrayLength")
        self.step(result, self.types[type_id], array_length, result, variable)

    def barrier(self, words: list[int]) -> None:
        self._block.parts.append([])

    # declarations

    def declare(self, id: int, name: str, **more: Any) -> None:
        self.types[id] = Type(name, **more)

    def type_array(self, words: list[int]) -> None:
        id, element, length = words
        name, count = self.types[element].name, self.constants[length]
        self.declare(id, f"{name}[{count}]", element=name, length=count)

    def type_pointer(self, words: list[int]) -> None:
        id, storage, content = words
        name, held = STORAGE_NAMES[storage], self.types[content]
        self.declare(id, f"*{name} {held.name}", element=held.name, storage=name)
        self.types[id].members = (str(content),)

    def type_runtime_array(self, words: list[int]) -> None:
        id, element = words
        kind = self.types[element]
        if self.decorations.get((id, ARRAY_STRIDE)) != kind.bytes:
            raise Finding("layout", f"stride {self.decorations.get((id, ARRAY_STRIDE))} of {kind.name}")
        self.declare(id, f"{kind.name}[]")

    def type_struct(self, words: list[int]) -> None:
        id, *members = words
        for member in range(len(members)):
            if self.offsets.get((id, member)) != 4 * member:
                raise Finding("layout", f"member {member} at {self.offsets.get((id, member))}")
        names = tuple(self.types[member].name for member in members)
        self.declare(id, f"{{{', '.join(names)}}}", members=names)

    def constant(self, words: list[int]) -> None:
        type_id, id, *literal = words
        kind = self.types[type_id]
        pattern = sum(word << 32 * place for place, word in enumerate(literal))
        bits = int(kind.name[1:])
        value = from_bits(pattern, bits) if kind.name[0] == "f" else pattern & (1 << bits) - 1
        self.literal.add(id)
        self.constants[id], self.kinds[id] = value, kind

    def constant_bool(self, value: bool, words: list[int]) -> None:
        type_id, id = words
        self.constants[id], self.kinds[id] = value, self.types[type_id]

    def constant_null(self, words: list[int]) -> None:
        type_id, id = words
        kind = self.types[type_id]
        zero = {"f": 0.0, "b": False}.get(kind.name[0], 0)
        self.constants[id], self.kinds[id] = zero, kind

    def variable(self, words: list[int]) -> None:
        type_id, id, storage, *initializer = words
        content = self.types[int(self.types[type_id].members[0])]
        binding = self.decorations.get((id, BINDING), -1)
        writable = (id, NON_WRITABLE) not in self.decorations
        builtin = self.decorations.get((id, BUILTIN), -1)
        name = STORAGE_NAMES[storage]
        self.variables[id] = Variable(name, content, binding, builtin, writable, bool(initializer))
        self.kinds[id] = self.types[type_id]

    def decorate(self, words: list[int]) -> None:
        id, code, *literals = words
        self.decorations[id, code] = literals[0] if literals else 0

    def decorate_member(self, words: list[int]) -> None:
        id, member, code, *literals = words
        if code == OFFSET:
            self.offsets[id, member] = literals[0]

    def entry_point(self, words: list[int]) -> None:
        data = b"".join(word.to_bytes(4, "little") for word in words[2:])
        name = data.partition(b"\0")[0]
        self.entries[name.decode()] = words[1]
        self.interfaces[words[1]] = words[3 + len(name) // 4 :]

    def mode(self, words: list[int]) -> None:
        self.sizes[words[0]] = (words[2], words[3], words[4])

    # blocks

    def function(self, words: list[int]) -> None:
        self._function = words[1]
        self.used[words[1]] = set()
        self._blocks = self.functions[words[1]] = {}

    def label(self, words: list[int]) -> None:
        self._block = self._blocks[words[0]] = Block(words[0])

    def phi(self, words: list[int]) -> None:
        type_id, result, *pairs = words
        self._block.phis.append((result, dict(zip(pairs[1::2], pairs[::2], strict=True))))
        self._block.defined.append(result)
        self.kinds[result] = self.types[type_id]

    def loop_merge(self, words: list[int]) -> None:
        self._block.merge = words[0]

    def branch(self, words: list[int]) -> None:
        self._block.targets = (words[0],)

    def branch_conditional(self, words: list[int]) -> None:
        if self.typed(words[0]).name != "bool":
            raise Finding("type", f"a branch on a {self.typed(words[0]).name}")
        self._block.condition, self._block.targets = words[0], (words[1], words[2])


def _find_loops(blocks: list[Block]) -> None:
    """A loop is what stands from its header to its merge block."""
    places = {block.label: place for place, block in enumerate(blocks)}
    for place, header in enumerate(blocks):
        if header.merge:
            for block in blocks[place : places[header.merge]]:
                header.inner += block.defined
                block.loops = (*block.loops, header.label)


def _ignore(program: Program, words: list[int]) -> None:
    """Says nothing of what runs."""


#: opcode -> what reads it; all other rows are arithmetic
_READERS: dict[int, Callable[[Program, list[int]], None]] = {
    5: _ignore,
    10: _ignore,
    11: _ignore,
    12: Program.ext_inst,
    14: _ignore,
    15: Program.entry_point,
    16: Program.mode,
    17: _ignore,
    19: lambda program, words: program.declare(words[0], "void"),
    20: lambda program, words: program.declare(words[0], "bool"),
    21: lambda program, words: program.declare(words[0], f"{'i' if words[2] else 'u'}{words[1]}"),
    22: lambda program, words: program.declare(words[0], f"f{words[1]}"),
    23: lambda program, words: program.declare(
        words[0], f"{program.types[words[1]].name}x{words[2]}", element=program.types[words[1]].name, lanes=words[2]
    ),
    28: Program.type_array,
    29: Program.type_runtime_array,
    30: Program.type_struct,
    32: Program.type_pointer,
    33: lambda program, words: program.declare(words[0], "function"),
    41: lambda program, words: program.constant_bool(True, words),
    42: lambda program, words: program.constant_bool(False, words),
    43: Program.constant,
    NULL: Program.constant_null,
    54: Program.function,
    56: _ignore,
    59: Program.variable,
    61: Program.load,
    62: Program.store,
    240: lambda program, words: program.atomic("OpBitwiseAnd", words),
    241: lambda program, words: program.atomic("OpBitwiseOr", words),
    65: Program.access_chain,
    ARRAY_LENGTH: Program.array_length,
    71: Program.decorate,
    72: Program.decorate_member,
    80: Program.construct,
    81: Program.extract,
    224: Program.barrier,
    245: Program.phi,
    246: Program.loop_merge,
    247: _ignore,
    248: Program.label,
    249: Program.branch,
    250: Program.branch_conditional,
    253: lambda program, words: program.branch([0]),
}
