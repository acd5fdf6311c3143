"""SPIR-V words as lines of text, by the rows of `schema/spirv.py`. Unknown opcodes are shown as numbers.

Made for reading, not for assembling; the Khronos tools' `spirv-dis` does that.
"""

import struct
from collections.abc import Iterator

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import MAGIC, OP_BY_CODE

HEADER_WORDS = 5


def disassemble(payload: memoryview | bytes) -> str:
    """The whole module. `ModuleError` when it is not made of whole instructions."""
    if len(payload) % 4 or len(payload) < 4 * HEADER_WORDS:
        raise ModuleError(f"spirv: {len(payload)} bytes are not a header and whole words")
    words = struct.unpack(f"<{len(payload) // 4}I", payload)
    if words[0] != MAGIC:
        raise ModuleError(f"spirv: starts with {words[0]:#x}, not {MAGIC:#x}", 0)
    return "\n".join(_lines(words)) + "\n"


def _lines(words: tuple[int, ...]) -> Iterator[str]:
    version = words[1]
    yield f"; SPIR-V {version >> 16 & 255}.{version >> 8 & 255}, {words[3]} ids"
    at = HEADER_WORDS
    while at < len(words):
        count, code = words[at] >> 16, words[at] & 0xFFFF
        if count == 0 or at + count > len(words):
            raise ModuleError(f"spirv: instruction of {count} words, {len(words) - at} left", 4 * at)
        yield _instruction(code, words[at + 1 : at + count])
        at += count


def _instruction(code: int, operands: tuple[int, ...]) -> str:
    row = OP_BY_CODE.get(code)
    if row is None:
        return f"Op{code} {' '.join(map(str, operands))}"
    letters = row.layout.replace("(", "").replace(")*", "*").split()
    result, shown = "", []
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
        else:
            shown.append(str(word) if letter == "n" else f"%{word}")
    return f"{result:>8}{row.name} {' '.join(shown)}".rstrip()


def _string(operands: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A null-terminated string and what follows it."""
    raw = struct.pack(f"<{len(operands)}I", *operands)
    end = raw.find(b"\0")
    text = raw[: end if end >= 0 else len(raw)]
    return text.decode("utf-8", "backslashreplace"), operands[len(text) // 4 + 1 :]
