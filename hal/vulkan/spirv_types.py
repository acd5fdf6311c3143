"""The declarations of a SPIR-V module: types, constants, variables, decorations, and the facts about each id.

`Scope` holds them while a module is verified; the rules at the end check one declaration each. A type is a `Type`
object, one per declaration. Scalars and vectors may be declared once, so the same type is the same object. Every
refusal is a ModuleError with the byte offset of the instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from orchestrion.hal.backend import Entry
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import BUILTINS, DECORATIONS, STORAGE_CLASSES, Op

INPUT, WORKGROUP = STORAGE_CLASSES["Input"], STORAGE_CLASSES["Workgroup"]
PUSH_CONSTANT, STORAGE_BUFFER = STORAGE_CLASSES["PushConstant"], STORAGE_CLASSES["StorageBuffer"]
STORAGE_NAMES = {code: name for name, code in STORAGE_CLASSES.items()}
BUILTIN_NAMES = {code: name for name, code in BUILTINS.items()}
CODES = {name: code for name, (code, _, _) in DECORATIONS.items()}

NUMERIC = ("int", "float")
#: lanes of vectors in storage buffers, and of vectors that are built-in inputs
BUFFER_LANES, INPUT_LANES = 4, 3
#: built-in inputs that are a number, not a vector
SCALAR_INPUTS = ("LocalInvocationIndex",)


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A type. `base` is "bool", "int" or "float" for scalars and vectors, otherwise the kind of type."""

    base: str
    width: int = 0
    lanes: int = 0  #: 1 for a scalar, 3 or 4 for a vector, 0 for all other types
    element: Type | None = None  #: of a vector, an array, a pointer
    members: tuple[Type, ...] = ()
    length: int = 0  #: of an array
    storage: int = 0  #: of a pointer
    id: int = 0

    @property
    def bytes(self) -> int:
        if self.base == "array":
            assert self.element is not None
            return self.length * self.element.bytes
        return self.lanes * max(4 if self.base == "bool" else 1, self.width // 8)

    def __str__(self) -> str:
        letter = {"int": "u", "float": "f"}.get(self.base)
        scalar = f"{letter}{self.width}" if letter else self.base
        if self.lanes > 1:
            return f"vector of {self.lanes} {scalar}"
        if self.base == "pointer":
            return f"pointer to {self.element} in {STORAGE_NAMES[self.storage]}"
        return scalar


@dataclass(slots=True)
class Variable:
    """A variable of the module: the type of its content, and its decorations."""

    storage: int
    content: Type
    binding: int = -1
    builtin: str = ""
    writable: bool = True

    @property
    def element(self) -> Type:
        """The element type of a storage buffer's array."""
        element = self.content.members[0].element
        assert element is not None, "a storage buffer holds a runtime array"
        return element

    @property
    def uniform(self) -> bool:
        """Whether all invocations of a workgroup load the same value from the same address."""
        return self.storage == PUSH_CONSTANT or bool(self.builtin) and self.builtin not in SCALAR_INPUTS


@dataclass(slots=True)
class EntryPoint:
    """An OpEntryPoint, and the variables that its function uses."""

    name: str
    entry: Entry
    function: int
    interface: frozenset[int]
    local_size: tuple[int, ...] | None = None
    used: set[int] = field(default_factory=set)  #: variables


class Scope:
    """Everything known about a module so far. `at` is the word of the instruction being checked."""

    def __init__(self, bound: int, entries: tuple[Entry, ...]) -> None:
        self.bound = bound
        self.at = 0
        self.op = ""
        self.table = {entry.name: entry for entry in entries}
        self.capabilities: set[str] = set()
        self.extensions: set[str] = set()
        self.imports: set[int] = set()
        self.has_memory_model = False
        self.entry_points: dict[int, EntryPoint] = {}  # by function
        self.decorations: dict[int, dict[int, int]] = {}
        self.member_decorations: dict[int, dict[int, dict[int, int]]] = {}
        self.defined: set[int] = set()
        self.types: dict[int, Type] = {}
        self.unique: dict[tuple[Any, ...], Type] = {}
        self.values: dict[int, Type] = {}
        self.constants: dict[int, int] = {}  # of integers
        self.clamped: dict[int, int] = {}  # result of UMin with a constant -> the constant
        self.variables: dict[int, Variable] = {}
        self.builtins: dict[str, int] = {}
        self.roots: dict[int, int] = {}  # pointer -> the variable it points into
        self.entry: EntryPoint | None = None  # the entry point whose function is being checked

    def refuse(self, message: str) -> NoReturn:
        raise ModuleError(f"SPIR-V {self.op}: {message}", 4 * self.at)

    def need(self, capability: str) -> None:
        if capability not in self.capabilities:
            self.refuse(f"capability {capability} is not declared")

    def constant(self, id: int, what: str, wanted: int) -> None:
        value = self.constants.get(id)
        if value != wanted or self.values[id].width != 32:
            self.refuse(f"{what} {value}, expected {wanted}")

    def decorated(self, id: int, name: str) -> int | None:
        """The literal of a decoration (0 without a literal); None without the decoration."""
        return self.decorations.get(id, {}).get(CODES[name])

    def declare(self, id: int, type: Type) -> None:
        self.types[id] = type

    def scalar(self, type: Type | None) -> Type:
        if type is None or type.lanes != 1:
            self.refuse(f"{type} where a scalar belongs")
        return type


def type_once(scope: Scope, id: int, type: Type) -> None:
    """Declare a type that may only be declared once."""
    key = (type.base, type.width, type.lanes)
    if key in scope.unique:
        scope.refuse(f"{type} is declared twice")
    scope.unique[key] = type
    scope.declare(id, type)


def type_int(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    width, signed = operands
    if width not in (8, 16, 32, 64) or signed:
        scope.refuse(f"width {width}, signedness {signed}: integers are declared unsigned")
    if width != 32:
        scope.need(f"Int{width}")
    type_once(scope, id, Type("int", width, 1, id=id))


def type_float(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    width = operands[0]
    if width not in (32, 64):
        scope.refuse(f"width {width}")
    if width == 64:
        scope.need("Float64")
    type_once(scope, id, Type("float", width, 1, id=id))


def type_vector(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    element, lanes = scope.scalar(scope.types[operands[0]]), operands[1]
    if lanes not in (INPUT_LANES, BUFFER_LANES) or element.base not in NUMERIC:
        scope.refuse(f"{lanes} lanes of {element}")
    type_once(scope, id, Type(element.base, element.width, lanes, element, id=id))


def type_array(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    element, length = scope.types[operands[0]], scope.constants.get(operands[1])
    if element.lanes != 1:
        scope.refuse(f"array of {element}")
    if not length or length >= 1 << 31 or scope.values[operands[1]].width != 32:  # indices are compared with it
        scope.refuse(f"length {length} of type {scope.values[operands[1]]}")
    scope.declare(id, Type("array", element=element, length=length, id=id))


def type_runtime_array(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    """An array of numbers, or of vectors of four, whose alignment is their size."""
    element = scope.types[operands[0]]
    if element.base not in NUMERIC or element.lanes not in (1, BUFFER_LANES):
        scope.refuse(f"runtime array of {element}")
    if scope.decorated(id, "ArrayStride") != element.bytes:
        scope.refuse(f"ArrayStride {scope.decorated(id, 'ArrayStride')}, an element has {element.bytes} bytes")
    scope.declare(id, Type("runtime array", element=element, id=id))


def type_struct(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    """A Block of one runtime array, or of consecutive u32 members."""
    members = tuple(scope.types[member] for member in operands)
    array = len(members) == 1 and members[0].base == "runtime array"
    words = members and all((row.base, row.lanes, row.width) == ("int", 1, 32) for row in members)
    if not array and not words:
        scope.refuse("neither one runtime array nor u32")
    if scope.decorated(id, "Block") is None:
        scope.refuse("not decorated as Block")
    for index in range(len(members)):
        offset = scope.member_decorations.get(id, {}).get(index, {}).get(CODES["Offset"])
        if offset != 4 * index:
            scope.refuse(f"member {index} has Offset {offset}, expected {4 * index}")
    scope.declare(id, Type("struct", members=members, id=id))


def type_pointer(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    storage, content = operands[0], scope.types[operands[1]]
    if storage not in STORAGE_NAMES:
        scope.refuse(f"storage class {storage}")
    if content.base in ("void", "function", "pointer"):
        scope.refuse(f"pointer to {content}")
    scope.declare(id, Type("pointer", element=content, storage=storage, id=id))


def type_function(scope: Scope, op: Op, id: int, operands: list[Any]) -> None:
    if scope.types[operands[0]].base != "void":
        scope.refuse(f"returns {scope.types[operands[0]]}, expected void")
    type_once(scope, id, Type("function", id=id))


def constant_bool(scope: Scope, op: Op, type: Type, id: int, operands: list[Any]) -> None:
    if (type.base, type.lanes) != ("bool", 1):
        scope.refuse(f"of {type}")


def constant(scope: Scope, op: Op, type: Type, id: int, operands: list[Any]) -> None:
    if type.lanes != 1 or type.base not in NUMERIC or len(operands) != (2 if type.width == 64 else 1):
        scope.refuse(f"{type} of {len(operands)} words")
    if type.base != "int":
        return
    value = sum(word << 32 * index for index, word in enumerate(operands))
    if value >> type.width:
        scope.refuse(f"{value:#x} is not a {type}")
    scope.constants[id] = value


def variable(scope: Scope, op: Op, type: Type, id: int, operands: list[Any]) -> None:
    storage = operands[0]
    if type.base != "pointer" or type.storage != storage or type.element is None:
        scope.refuse(f"storage class {storage} in a {type}")
    made = Variable(storage, type.element)
    _VARIABLES[storage](scope, id, made)
    scope.variables[id] = made
    scope.roots[id] = id


def _buffer(scope: Scope, id: int, made: Variable) -> None:
    if made.content.base != "struct" or made.content.members[0].base != "runtime array":
        scope.refuse(f"a storage buffer holds a struct of a runtime array, not {made.content}")
    element = made.content.members[0].element
    assert element is not None
    if element.width in (8, 16):
        scope.need(f"StorageBuffer{element.width}BitAccess")
    binding = scope.decorated(id, "Binding")
    if scope.decorated(id, "DescriptorSet") != 0 or binding is None:
        scope.refuse(f"descriptor set {scope.decorated(id, 'DescriptorSet')}, binding {binding}")
    made.binding = binding
    made.writable = scope.decorated(id, "NonWritable") is None


def _parameters(scope: Scope, id: int, made: Variable) -> None:
    if made.content.base != "struct" or made.content.members[0].base == "runtime array":
        scope.refuse(f"parameters are a struct of u32, not {made.content}")
    made.writable = False


def _input(scope: Scope, id: int, made: Variable) -> None:
    made.builtin = BUILTIN_NAMES.get(scope.decorated(id, "BuiltIn") or -1, "")
    if not made.builtin:
        scope.refuse(f"input with BuiltIn {scope.decorated(id, 'BuiltIn')}")
    if made.builtin in scope.builtins:
        scope.refuse(f"a second {made.builtin}")
    scope.builtins[made.builtin] = id
    lanes = 1 if made.builtin in SCALAR_INPUTS else INPUT_LANES
    content = made.content
    if (content.base, content.width, content.lanes) != ("int", 32, lanes):
        scope.refuse(f"{made.builtin} is a {content}")
    made.writable = False


def _workgroup(scope: Scope, id: int, made: Variable) -> None:
    if made.content.base != "array":
        scope.refuse(f"{made.content} in workgroup memory, expected an array")


_VARIABLES: dict[int, Callable[[Scope, int, Variable], None]] = {
    STORAGE_BUFFER: _buffer,
    PUSH_CONSTANT: _parameters,
    INPUT: _input,
    WORKGROUP: _workgroup,
}

#: rules of type declarations, by the rule's name in the table: (scope, op, result, operands)
TYPE_RULES: dict[str, Callable[[Scope, Op, int, list[Any]], None]] = {
    "type_void": lambda scope, op, id, operands: type_once(scope, id, Type("void", id=id)),
    "type_bool": lambda scope, op, id, operands: type_once(scope, id, Type("bool", 1, 1, id=id)),
    "type_int": type_int,
    "type_float": type_float,
    "type_vector": type_vector,
    "type_array": type_array,
    "type_runtime_array": type_runtime_array,
    "type_struct": type_struct,
    "type_pointer": type_pointer,
    "type_function": type_function,
}

#: rules of what has a type and stands among the globals: (scope, op, type, result, operands)
GLOBAL_RULES: dict[str, Callable[[Scope, Op, Type, int, list[Any]], None]] = {
    "constant_bool": constant_bool,
    "constant": constant,
    "variable": variable,
}
