"""Templates: tensor bytecode with sizes that depend on the parameters of a dispatch.

A template is a payload for the least sizes, and a list of patches, each an offset in it and an expression. To run an
entry with parameters, the values of the expressions are written at the offsets, and the result is decoded and verified
like any payload. So a template can express nothing that bytecode cannot. Layout, little endian, without padding:

    template     "OTBT" | u16 major | u16 minor | u32 entries | entry* | payload
    entry        u16 parameters | u32 patches | patch*
    patch        u64 offset in the payload of an i64 | u16 bytes | expression
    expression   postfix: u8 of `OPS`; NUMBER is followed by an i64, PARAMETER by a u16

Version rule and versions as in `tensor_bytecode.py`: the header states the least minor version that template and
payload need.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from .errors import ModuleError
from .tensor_bytecode import MAJOR, MINOR, EntryCode
from .tensor_encoding import decode, encode_marked

MAGIC = b"OTBT"
NUMBER, PARAMETER = 0, 1
#: code -> name, and function of the last two numbers
OPS: dict[int, tuple[str, Callable[[int, int], int]]] = {
    2: ("add", lambda x, y: x + y),
    3: ("multiply", lambda x, y: x * y),
    4: ("floordiv", lambda x, y: x // y),
    5: ("mod", lambda x, y: x % y),
    6: ("max", max),
    7: ("min", min),
}
CODES = {name: code for code, (name, _) in OPS.items()}
#: the limit of intermediate numbers of an expression
MAX_SIZE = 1 << 63

_HEADER, _ENTRY, _PATCH = Struct("<4sHHI"), Struct("<HI"), Struct("<QH")
_NUMBER, _PARAMETER, _MINOR = Struct("<q"), Struct("<H"), Struct("<H")


class SymbolicNumber(int):
    """A number of a template: its value for the least sizes, and its expression."""

    code: bytes

    def __new__(cls, value: int, code: bytes) -> "SymbolicNumber":
        made = super().__new__(cls, value)
        made.code = code
        return made


def number(value: int) -> bytes:
    """The expression of a constant."""
    return bytes([NUMBER]) + _NUMBER.pack(value)


def parameter(ordinal: int) -> bytes:
    """The expression of a parameter."""
    return bytes([PARAMETER]) + _PARAMETER.pack(ordinal)


def operation(name: str, lhs: bytes, rhs: bytes) -> bytes:
    """The expression of an op with two operands."""
    return lhs + rhs + bytes([CODES[name]])


@dataclass(frozen=True, slots=True)
class Patch:
    """The offset of an i64 in the payload, and the expression that replaces it."""

    offset: int
    code: bytes


@dataclass(frozen=True, slots=True)
class Template:
    """A payload; for each of its entries the number of parameters and the patches."""

    payload: bytes
    entries: tuple[tuple[int, tuple[Patch, ...]], ...]

    def entry(self, ordinal: int, words: Sequence[int]) -> EntryCode:
        """The code of an entry with these parameters. Raises ModuleError if it is not valid."""
        patched = bytearray(self.payload)
        for patch in self.entries[ordinal][1]:
            _NUMBER.pack_into(patched, patch.offset, _evaluate(patch, words))
        entries = decode(patched).entries
        if len(entries) != len(self.entries):
            raise ModuleError(
                f"tensor bytecode template: parameters {list(words)} make {len(entries)} entries of {len(self.entries)}"
            )
        return entries[ordinal]


def is_template(payload: bytes | memoryview) -> bool:
    return bytes(payload[:4]) == MAGIC


def encode_template(entries: Sequence[EntryCode], parameters: Sequence[int]) -> bytes:
    """Encodes entries whose numbers may be symbolic, each with the number of its parameters."""
    payload, marks = encode_marked(entries)
    (minor,) = _MINOR.unpack_from(payload, 6)
    out = [_HEADER.pack(MAGIC, MAJOR, minor, len(entries))]
    for count, patches in zip(parameters, marks, strict=True):
        out.append(_ENTRY.pack(count, len(patches)))
        for offset, marked in patches:
            assert isinstance(marked, SymbolicNumber)
            out += (_PATCH.pack(offset, len(marked.code)), marked.code)
    return b"".join((*out, payload))


def decode_template(data: bytes | memoryview) -> Template:
    """Decodes and verifies a template. Raises ModuleError."""
    data = bytes(data)
    try:
        return _decoded(data)
    except struct.error:
        raise ModuleError(f"tensor bytecode template: truncated ({len(data)} bytes)", len(data)) from None


def _decoded(data: bytes) -> Template:
    magic, major, minor, count = _HEADER.unpack_from(data)
    if magic != MAGIC or major != MAJOR or minor > MINOR:
        raise ModuleError(
            f"tensor bytecode template: starts with {magic!r} {major}.{minor}, expected {MAGIC!r} {MAJOR}.{MINOR}", 0
        )
    at, rows = _HEADER.size, []
    for _ in range(count):
        parameters, patches = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        found = []
        for _ in range(patches):
            offset, length = _PATCH.unpack_from(data, at)
            at += _PATCH.size
            code = data[at : at + length]
            _check(code, length, parameters, at)
            found.append(Patch(offset, code))
            at += length
        rows.append((parameters, tuple(found)))
    payload = data[at:]
    _check_patches(rows, payload, at)
    return Template(payload, tuple(rows))


def _check_patches(rows: Sequence[tuple[int, Sequence[Patch]]], payload: bytes, at: int) -> None:
    entries = decode(payload).entries
    if len(entries) != len(rows):
        raise ModuleError(f"tensor bytecode template: {len(rows)} entries, its payload has {len(entries)}", at)
    for _, patches in rows:
        for patch in patches:
            if patch.offset + _NUMBER.size > len(payload):
                raise ModuleError(
                    f"tensor bytecode template: patch {patch.offset} is outside of {len(payload)} bytes", at
                )


def _check(code: bytes, length: int, parameters: int, at: int) -> None:
    """Checks that the expression is complete, uses existing parameters, and has one result."""
    if len(code) != length:
        raise struct.error
    depth = patch = 0
    while patch < length:
        op = code[patch]
        patch += 1
        if op == NUMBER:
            patch, depth = patch + _NUMBER.size, depth + 1
        elif op == PARAMETER and patch + _PARAMETER.size <= length:
            (ordinal,) = _PARAMETER.unpack_from(code, patch)
            if ordinal >= parameters:
                raise ModuleError(f"tensor bytecode template: parameter {ordinal} of {parameters}", at)
            patch, depth = patch + _PARAMETER.size, depth + 1
        elif op in OPS and depth >= 2:
            depth -= 1
        else:
            raise ModuleError(f"tensor bytecode template: expression byte {op:#x} with {depth} numbers before it", at)
    if patch != length or depth != 1:
        raise ModuleError(f"tensor bytecode template: an expression of {length} bytes gives {depth} numbers", at)


#: op -> its text form
_WRITTEN = {"add": "({} + {})", "multiply": "{} * {}", "floordiv": "floor({} / {})", "mod": "({} mod {})"}


def expression_text(code: bytes) -> str:
    """A verified expression as text, where p0 is the first parameter: `16 * p0`."""
    stack: list[str] = []
    at = 0
    while at < len(code):
        op = code[at]
        at += 1
        if op == NUMBER:
            stack.append(str(_NUMBER.unpack_from(code, at)[0]))
            at += _NUMBER.size
        elif op == PARAMETER:
            stack.append(f"p{_PARAMETER.unpack_from(code, at)[0]}")
            at += _PARAMETER.size
        else:
            rhs, lhs = stack.pop(), stack.pop()
            name = OPS[op][0]
            plain = rhs if lhs == "1" and name == "multiply" else ""
            stack.append(plain or _WRITTEN.get(name, name + "({}, {})").format(lhs, rhs))
    return stack[0]


def _evaluate(patch: Patch, words: Sequence[int]) -> int:
    stack: list[int] = []
    code, at = patch.code, 0
    while at < len(code):
        op = code[at]
        at += 1
        if op == NUMBER:
            stack.append(_NUMBER.unpack_from(code, at)[0])
            at += _NUMBER.size
        elif op == PARAMETER:
            stack.append(words[_PARAMETER.unpack_from(code, at)[0]])
            at += _PARAMETER.size
        else:
            rhs, lhs = stack.pop(), stack.pop()
            name, function = OPS[op]
            if rhs <= 0 and name in ("floordiv", "mod"):
                raise ModuleError(f"tensor bytecode template: {lhs} divided by {rhs}", patch.offset)
            stack.append(function(lhs, rhs))
        if not -MAX_SIZE <= stack[-1] < MAX_SIZE:
            raise ModuleError(f"tensor bytecode template: a size of {stack[-1]}", patch.offset)
    return stack[0]
