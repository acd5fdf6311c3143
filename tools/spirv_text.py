"""SPIR-V words as text, using the rows of `schema/spirv.py`, in the form of `spirv-dis --raw-id`.

For reading: an opcode or enumerant without a row is shown as its number.
"""

import struct
from collections.abc import Iterator, Mapping

from orchestrion.schema import spirv
from orchestrion.schema.errors import ModuleError

HEADER_WORDS = 5

Names = Mapping[int, str]

_STORAGE: Names = {code: name for name, code in spirv.STORAGE_CLASSES.items()}
_DECORATIONS: Names = {code: name for name, (code, _, _) in spirv.DECORATIONS.items()}
_CONTROL: Names = {0: "None"}

#: op -> the names of its literal words, in order; a word past the end is a number
ENUMERANTS: dict[str, tuple[Names, ...]] = {
    "OpCapability": ({row.code: row.name for row in spirv.CAPABILITIES},),
    "OpMemoryModel": ({spirv.ADDRESSING_LOGICAL: "Logical"}, {spirv.MEMORY_GLSL450: "GLSL450"}),
    "OpEntryPoint": ({spirv.MODEL_GLCOMPUTE: "GLCompute"},),
    "OpExecutionMode": ({spirv.MODE_LOCAL_SIZE: "LocalSize"},),
    "OpDecorate": (_DECORATIONS,),
    "OpMemberDecorate": ({}, _DECORATIONS),
    "OpTypePointer": (_STORAGE,),
    "OpVariable": (_STORAGE,),
    "OpFunction": (_CONTROL,),
    "OpSelectionMerge": (_CONTROL,),
    "OpLoopMerge": (_CONTROL,),
    "OpExtInst": ({row.code: row.name for row in spirv.EXT_INSTS},),
}
_BUILTINS: Names = {code: name for name, code in spirv.BUILTINS.items()}


def disassemble(payload: memoryview | bytes) -> str:
    """The whole module as text. Raises ModuleError unless it consists of complete instructions."""
    if len(payload) % 4 or len(payload) < 4 * HEADER_WORDS:
        raise ModuleError(f"spirv: {len(payload)} bytes are not a header and whole words")
    words = struct.unpack(f"<{len(payload) // 4}I", payload)
    if words[0] != spirv.MAGIC:
        raise ModuleError(f"spirv: starts with {words[0]:#x}, not {spirv.MAGIC:#x}", 0)
    return "\n".join(_lines(words)) + "\n"


def _lines(words: tuple[int, ...]) -> Iterator[str]:
    version = words[1]
    yield f"; SPIR-V {version >> 16 & 255}.{version >> 8 & 255}, {words[3]} ids"
    formats: dict[int, str] = {}
    at = HEADER_WORDS
    while at < len(words):
        count, code = words[at] >> 16, words[at] & 0xFFFF
        if count == 0 or at + count > len(words):
            raise ModuleError(f"spirv: instruction of {count} words, {len(words) - at} left", 4 * at)
        operands = words[at + 1 : at + count]
        row = spirv.OP_BY_CODE.get(code)
        if row is None:
            yield f"Op{code} {' '.join(map(str, operands))}"
        elif row.name == "OpConstant" and len(operands) > 2 and operands[0] in formats:
            yield f"{f'%{operands[1]} = ':>8}OpConstant %{operands[0]} {_number(operands[2:], formats[operands[0]])}"
        else:
            yield _instruction(row, operands)
        if row is not None and row.name in ("OpTypeInt", "OpTypeFloat") and len(operands) > 1:
            formats[operands[0]] = _format(row.name, operands[1:])
        at += count


def _format(name: str, operands: tuple[int, ...]) -> str:
    """The `struct` letter of a constant of the type; narrow types fill a word."""
    if name == "OpTypeFloat":
        return "d" if operands[0] == 64 else "f"
    letter = "q" if operands[0] == 64 else "i"
    return letter if operands[-1] else letter.upper()


def _number(words: tuple[int, ...], format: str) -> str:
    raw = struct.pack(f"<{len(words)}I", *words)
    if len(raw) != struct.calcsize(f"<{format}"):
        return " ".join(map(str, words))
    return str(struct.unpack(f"<{format}", raw)[0])


def _instruction(row: spirv.Op, operands: tuple[int, ...]) -> str:
    letters = row.layout.replace("(", "").replace(")*", "*").split()
    names = iter(ENUMERANTS.get(row.name, ()))
    result, shown = "", list[str]()
    position = 0
    while operands:
        letter = letters[min(position, len(letters) - 1)][0] if letters else "n"
        position += 1
        if letter == "s":
            text, operands = _string(operands)
            shown.append(f'"{text}"')
            continue
        word, operands = operands[0], operands[1:]
        if letter == "R":
            result = f"%{word} = "
        elif letter == "n":
            known = _BUILTINS if shown[-1:] == ["BuiltIn"] else next(names, {})
            shown.append(known.get(word, str(word)))
        else:
            shown.append(f"%{word}")
    return f"{result:>8}{row.name} {' '.join(shown)}".rstrip()


def _string(operands: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A null-terminated string, and the words after it."""
    raw = struct.pack(f"<{len(operands)}I", *operands)
    end = raw.find(b"\0")
    text = raw[: end if end >= 0 else len(raw)]
    return text.decode("utf-8", "backslashreplace"), operands[len(text) // 4 + 1 :]
