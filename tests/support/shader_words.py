"""Words of a SPIR-V module for `random_shaders`: types and constants by name, each declared when it is first used.

A kind is the name of a type: `bool`, `u8` to `u64`, `f32`, `f64`, signed `i32`, or a vector of one (`u32x3`). Unlike
the compiler's assembler, this one also writes what the checker has to refuse, so it takes opcodes as numbers.
"""

from collections.abc import Iterable
from itertools import chain

from orchestrion.schema.spirv import (
    ADDRESSING_LOGICAL,
    BUILTINS,
    CAPABILITY_BY_NAME,
    DECORATIONS,
    EXT_INST_SET,
    MAGIC,
    MEMORY_GLSL450,
    MODE_LOCAL_SIZE,
    MODEL_GLCOMPUTE,
    STORAGE_CLASSES,
    VERSION,
)

INT_BITS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64, "i32": 32, "i8": 8}
FLOAT_BITS = {"f32": 32, "f64": 64}
BITS = INT_BITS | FLOAT_BITS | {"bool": 1}
#: kind -> capabilities of a value, of a storage buffer
_VALUE_NEEDS = {"u8": "Int8", "i8": "Int8", "u16": "Int16", "u64": "Int64", "f64": "Float64"}
_BUFFER_NEEDS = {"u8": "StorageBuffer8BitAccess", "u16": "StorageBuffer16BitAccess"}
_CODES = {name: code for name, (code, _, _) in DECORATIONS.items()}


def text_words(text: str) -> list[int]:
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 4)
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def lanes_of(kind: str) -> tuple[str, int]:
    """The scalar kind and the number of lanes."""
    scalar, _, lanes = kind.partition("x")
    return scalar, int(lanes or 1)


class ModuleWords:
    """Collects the instructions of a module by section; `code` is the functions' section and is written directly."""

    def __init__(self) -> None:
        self.bound = 1
        self.code: list[int] = []
        self.declared: dict[object, int] = {}
        self.constants: dict[int, int] = {}  #: id -> value of integer constants
        self._capabilities = {"Shader"}
        self._heads: list[int] = []
        self._modes: list[int] = []
        self._annotations: list[int] = []
        self._globals: list[int] = []

    def new(self) -> int:
        self.bound += 1
        return self.bound - 1

    def words(self) -> list[int]:
        """The whole module."""
        rows = [CAPABILITY_BY_NAME[name] for name in sorted(self._capabilities)]
        head = [MAGIC, VERSION, 0, self.bound, 0]
        for row in rows:
            head += (2 << 16 | 17, row.code)
        for extension in dict.fromkeys(row.extension for row in rows if row.extension):
            text = text_words(extension)
            head += ((1 + len(text)) << 16 | 10, *text)
        library = self.declared.get("library")
        if library is not None:
            text = text_words(EXT_INST_SET)
            head += ((2 + len(text)) << 16 | 11, library, *text)
        head += (3 << 16 | 14, ADDRESSING_LOGICAL, MEMORY_GLSL450)
        return list(chain(head, self._heads, self._modes, self._annotations, self._globals, self.code))

    def library(self) -> int:
        return self._once("library")

    def _once(self, key: object) -> int:
        found = self.declared.get(key)
        if found is None:
            found = self.declared[key] = self.new()
        return found

    def decorate(self, id: int, name: str, *literals: int) -> None:
        self._annotations += ((3 + len(literals)) << 16 | 71, id, _CODES[name], *literals)

    def declare(self, code: int, *operands: int) -> None:
        """An instruction among the globals."""
        self._globals += ((1 + len(operands)) << 16 | code, *operands)

    def type(self, kind: str) -> int:
        found = self.declared.get(kind)
        if found is not None:
            return found
        scalar, lanes = lanes_of(kind)
        if lanes > 1:
            element = self.type(scalar)
            made = self._once(kind)
            self.declare(23, made, element, lanes)
            return made
        made = self._once(kind)
        if kind in _VALUE_NEEDS:
            self._capabilities.add(_VALUE_NEEDS[kind])
        if kind == "bool":
            self.declare(20, made)
        elif kind in INT_BITS:
            self.declare(21, made, INT_BITS[kind], int(kind[0] == "i"))
        else:
            self.declare(22, made, FLOAT_BITS[kind])
        return made

    def constant(self, kind: str, pattern: int) -> int:
        """A scalar by its bits."""
        key = (kind, pattern)
        found = self.declared.get(key)
        if found is not None:
            return found
        type_id = self.type(kind)
        made = self._once(key)
        if kind == "bool":
            self.declare(41 if pattern else 42, type_id, made)
        elif BITS[kind] == 64:
            self.declare(43, type_id, made, pattern & 0xFFFFFFFF, pattern >> 32)
        else:
            self.declare(43, type_id, made, pattern)
        if kind in INT_BITS:
            self.constants[made] = pattern
        return made

    def null(self, kind: str) -> int:
        """An OpConstantNull, which the subset lacks."""
        type_id = self.type(kind)
        made = self.new()
        self.declare(46, type_id, made)
        return made

    def pointer(self, storage: str, content: int) -> int:
        key = ("pointer", storage, content)
        found = self.declared.get(key)
        if found is None:
            found = self._once(key)
            self.declare(32, found, STORAGE_CLASSES[storage], content)
        return found

    def variable(self, storage: str, content: int) -> int:
        type_id = self.pointer(storage, content)
        made = self.new()
        self.declare(59, type_id, made, STORAGE_CLASSES[storage])
        return made

    def buffer(self, binding: int, kind: str, writable: bool) -> int:
        """The variable of a storage buffer, an array of a kind of scalar or vector."""
        scalar, lanes = lanes_of(kind)
        if scalar in _BUFFER_NEEDS:
            self._capabilities.add(_BUFFER_NEEDS[scalar])
        struct = self.declared.get(("block", kind))
        if struct is None:
            element = self.type(kind)
            array = self.new()
            self.declare(29, array, element)
            struct = self._once(("block", kind))
            self.declare(30, struct, array)
            self.decorate(array, "ArrayStride", lanes * BITS[scalar] // 8)
            self._block(struct, 1)
        made = self.variable("StorageBuffer", struct)
        self.decorate(made, "DescriptorSet", 0)
        self.decorate(made, "Binding", binding)
        self.decorate(made, "Aliased")
        if not writable:
            self.decorate(made, "NonWritable")
        return made

    def _block(self, struct: int, members: int) -> None:
        self.decorate(struct, "Block")
        for member in range(members):
            self._annotations += (5 << 16 | 72, struct, member, _CODES["Offset"], 4 * member)

    def parameters(self, count: int) -> int:
        """The variable of the parameter block of so many u32."""
        found = self.declared.get("parameters")
        if found is None:
            word, struct = self.type("u32"), self.new()
            self.declare(30, struct, *[word] * count)
            self._block(struct, count)
            found = self.declared["parameters"] = self.variable("PushConstant", struct)
        return found

    def workgroup(self, kind: str, length: int) -> int:
        """The variable of a workgroup array."""
        element, count = self.type(kind), self.constant("u32", length)
        array = self.declared.get(("array", kind, length))
        if array is None:
            array = self._once(("array", kind, length))
            self.declare(28, array, element, count)
        return self.variable("Workgroup", array)

    def input(self, name: str) -> int:
        """The variable of a built-in input."""
        found = self.declared.get(name)
        if found is None:
            found = self.declared[name] = self.variable("Input", self.type(input_kind(name)))
            self.decorate(found, "BuiltIn", BUILTINS[name])
        return found

    def begin_function(self) -> int:
        void = self.declared.get("void")
        if void is None:
            void = self._once("void")
            self.declare(19, void)
            self.declare(33, self._once("function type"), void)
        made = self.new()
        self.code += (5 << 16 | 54, void, made, 0, self.declared["function type"])
        return made

    def entry_point(self, function: int, name: str, interface: Iterable[int], size: tuple[int, int, int]) -> None:
        rest = (*text_words(name), *interface)
        self._heads += ((3 + len(rest)) << 16 | 15, MODEL_GLCOMPUTE, function, *rest)
        self._modes += (6 << 16 | 16, function, MODE_LOCAL_SIZE, *size)


def input_kind(name: str) -> str:
    return "u32" if name == "LocalInvocationIndex" else "u32x3"
