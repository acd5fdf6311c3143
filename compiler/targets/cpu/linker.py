"""Links object files in ELF to a flat image: the code of their sections, with every relocation applied.

It takes what LLVM writes for position-independent code without external symbols, and refuses everything else by name:
undefined symbols, relocations without a row, sections that code may write. An object file refers to its own symbols
only. Code comes first, then read-only data.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct, pack_into, unpack_from
from typing import Final

from orchestrion.schema.native_image import ARCHITECTURES


class LinkError(Exception):
    """An object file that is no image."""


_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")

#: numbers of machines in ELF
_MACHINES: Final[dict[str, int]] = {"x86-64": 62, "aarch64": 183}
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _EXECUTABLE, _TLS = 1, 2, 4, 0x400
#: binding of a symbol that other files see
_GLOBAL = 1
#: section indices that are none
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1


@dataclass(frozen=True, slots=True)
class _Section:
    number: int
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    section: int
    value: int
    size: int
    is_global: bool


@dataclass(frozen=True, slots=True)
class Linked:
    """The bytes of an image, and for each global function its first byte and its size."""

    code: bytes
    functions: Mapping[str, tuple[int, int]]


def link(architecture: str, objects: Sequence[bytes], entries: Sequence[str]) -> Linked:
    """The image of object files. `entries`: global functions that they must define.

    Raises LinkError with the name of what does not fit.
    """
    code, found = bytearray(), dict[str, tuple[int, int]]()
    try:
        files = [_Object(architecture, data) for data in objects]
        for executable in (True, False):
            for file in files:
                file.place(code, executable)
        for file in files:
            file.relocate(code)
            found |= file.functions()
    except (IndexError, ValueError, struct.error) as error:
        raise LinkError(f"the object file is damaged: {error}") from error
    missing = [name for name in entries if name not in found]
    if missing:
        raise LinkError(f"no object file defines {', '.join(missing)}")
    return Linked(bytes(code), found)


class _Object:
    """An object file. `places`: section -> its first byte in the image, once it has one."""

    def __init__(self, architecture: str, data: bytes) -> None:
        self.architecture, self.data = architecture, data
        self.places: dict[int, int] = {}
        identity, kind, machine, _, _, _, sections, _, _, _, _, size, count, names = _HEADER.unpack_from(data)
        if identity[:6] != b"\x7fELF\x02\x01" or kind != 1 or size != _SECTION.size:
            raise LinkError("no relocatable object file of 64 bits in little-endian ELF")
        if machine != _MACHINES[architecture]:
            raise LinkError(f"an object file for machine {machine}, {architecture} is {_MACHINES[architecture]}")
        rows = [_SECTION.unpack_from(data, sections + number * size) for number in range(count)]
        texts = rows[names][4]
        self.sections = [
            _Section(number, self._string(texts, name), kind, flags, offset, length, link, info, max(alignment, 1))
            for number, (name, kind, flags, _, offset, length, link, info, alignment, _) in enumerate(rows)
        ]
        self.symbols = self._symbols()

    def _string(self, table: int, offset: int) -> str:
        start = table + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def _symbols(self) -> list[_Symbol]:
        found = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                texts = self.sections[section.link].offset
                for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                    name, info, _, place, value, size = _SYMBOL.unpack_from(self.data, at)
                    found.append(_Symbol(self._string(texts, name), place, value, size, info >> 4 == _GLOBAL))
        return found

    def place(self, code: bytearray, executable: bool) -> None:
        """Appends the code, or the read-only data."""
        for section in self.sections:
            if not section.flags & _ALLOC or not section.size or bool(section.flags & _EXECUTABLE) != executable:
                continue
            if section.flags & (_WRITE | _TLS) or section.kind != _PROGBITS:
                raise LinkError(f"section {section.name} is no read-only data")
            if not section.name.startswith((".text", ".rodata")):
                raise LinkError(f"section {section.name} has no place in an image")
            code += bytes(-len(code) % section.alignment)
            self.places[section.number] = len(code)
            code += self.data[section.offset : section.offset + section.size]

    def relocate(self, code: bytearray) -> None:
        """Applies the relocations of all sections. Every section has its place."""
        for section in self.sections:
            if section.kind == _REL:
                raise LinkError(f"section {section.name} has relocations without addends")
            if section.kind == _RELA and section.info in self.places:
                self._relocate(section, code)

    def functions(self) -> dict[str, tuple[int, int]]:
        """Global function -> its first byte in the image, and its size."""
        return {
            symbol.name: (self.places[symbol.section] + symbol.value, symbol.size)
            for symbol in self.symbols
            if symbol.is_global and symbol.section in self.places
        }

    def _relocate(self, section: _Section, code: bytearray) -> None:
        places, rows = self.places, RELOCATIONS[self.architecture]
        for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(self.data, at)
            symbol, number = self.symbols[info >> 32], info & 0xFFFFFFFF
            if number not in rows:
                raise LinkError(f"{section.name} has relocation {number}, of {symbol.name or 'a section'}")
            if symbol.section not in places:
                raise LinkError(f"symbol {symbol.name} is not defined")
            place = places[section.info] + offset
            name, apply = rows[number]
            try:
                apply(code, place, places[symbol.section] + symbol.value + addend)
            except OverflowError as error:
                raise LinkError(f"relocation {name} at {place} does not reach {symbol.name}: {error}") from None


def _signed(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError(f"{value} has more than {bits} bits")
    return value & ((1 << bits) - 1)


def _relative(code: bytearray, place: int, target: int) -> None:
    """The distance to the target in 32 bits."""
    pack_into("<I", code, place, _signed(target - place, 32))


def _jump(code: bytearray, place: int, target: int) -> None:
    """The distance to the target in instructions, in the low 26 bits of a branch."""
    distance = target - place
    if distance % 4:
        raise OverflowError(f"{distance} is no multiple of 4")
    _insert(code, place, _signed(distance // 4, 26), 0, 26)


def _page(code: bytearray, place: int, target: int) -> None:
    """The distance between pages of 4 KiB, in two fields of an `adrp`."""
    distance = _signed((target >> 12) - (place >> 12), 21)
    _insert(code, place, distance & 3, 29, 2)
    _insert(code, place, distance >> 2, 5, 19)


def _in_page(scale: int) -> Callable[[bytearray, int, int], None]:
    """The low 12 bits of the target, in units of `1 << scale` bytes, in the immediate of an instruction."""

    def apply(code: bytearray, place: int, target: int) -> None:
        low = target & 0xFFF
        if low % (1 << scale):
            raise OverflowError(f"{low} is no multiple of {1 << scale}")
        _insert(code, place, low >> scale, 10, 12)

    return apply


def _insert(code: bytearray, place: int, value: int, shift: int, bits: int) -> None:
    (word,) = unpack_from("<I", code, place)
    pack_into("<I", code, place, word & ~(((1 << bits) - 1) << shift) & 0xFFFFFFFF | value << shift)


#: architecture -> number of a relocation in ELF -> its name, and the function that applies it
RELOCATIONS: Final[dict[str, dict[int, tuple[str, Callable[[bytearray, int, int], None]]]]] = {
    "x86-64": {2: ("PC32", _relative), 4: ("PLT32", _relative)},
    "aarch64": {
        261: ("PREL32", _relative),
        275: ("ADR_PREL_PG_HI21", _page),
        277: ("ADD_ABS_LO12_NC", _in_page(0)),
        278: ("LDST8_ABS_LO12_NC", _in_page(0)),
        282: ("JUMP26", _jump),
        283: ("CALL26", _jump),
        284: ("LDST16_ABS_LO12_NC", _in_page(1)),
        285: ("LDST32_ABS_LO12_NC", _in_page(2)),
        286: ("LDST64_ABS_LO12_NC", _in_page(3)),
        299: ("LDST128_ABS_LO12_NC", _in_page(4)),
    },
}
assert RELOCATIONS.keys() == ARCHITECTURES.keys()
