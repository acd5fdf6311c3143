"""Function bodies as text: parses, resolves and encodes them, using the rows of `isa.py`.

    results = name operand, operand ...  [loc "file:1:2"]

- A register names its bank: `%i0` i32, `%l0` i64, `%f0` f32, `%d0` f64, `%r0` ref; a moved ref is `move %r0`.
- Variable-length register lists are in parentheses, target lists in brackets; result lists precede the `=`.
- Functions, globals, imports and constants are `@name`, or `#3` by ordinal, and may be defined later in the text.
- Float immediates are decimal, `inf`, `nan`, or the bits as `0x...`.
- A function has as many registers as it uses, or more if `registers (i32, i64, f32, f64, ref)` says so.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .encoding import Operand, encode, size
from .isa import BANKS, BY_NAME, MAX_REGISTERS, MOVE_BIT, Instruction
from .isa import Operand as Spec
from .lexer import Reader, Token
from .signature import Signature, bank_of, is_value_type

LETTERS = dict(zip("ilfdr", range(len(BANKS)), strict=True))
_REGISTER_KINDS = frozenset(BANKS)
_SYMBOL_KINDS = ("function", "import", "global", "constant")


@dataclass(slots=True)
class _Line:
    """A parsed instruction. Registers are (bank, index, moved); symbols and labels are still tokens."""

    row: Instruction
    token: Token
    operands: list[object]
    pc: int = 0


@dataclass(slots=True)
class Body:
    """A parsed function whose symbols are not resolved yet."""

    name: str
    token: Token
    signature: Signature
    registers: list[int]
    lines: list[_Line] = field(default_factory=list)
    labels: dict[str, tuple[Token, int]] = field(default_factory=dict)
    locations: list[tuple[int, str]] = field(default_factory=list)  #: (index of the line, source location)


def read_function(reader: Reader) -> Body:
    """Parses what follows the word `func`: name, signature, and body in braces."""
    token = reader.token
    name = reader.name("a function name")
    signature = read_signature(reader)
    if signature.repeated:
        reader.fail("a function takes a fixed number of arguments", token)
    body = Body(name, token, signature, _declared(reader, signature))
    reader.expect("{")
    while not reader.accept("}"):
        if reader.token.kind == "label":
            _label(reader, body)
        else:
            _line(reader, body)
    return body


def read_signature(reader: Reader) -> Signature:
    """Parses `(types, ...) -> results`."""
    arguments: list[str] = []
    repeated: tuple[str, ...] = ()
    reader.expect("(")
    while not reader.accept(")"):
        if arguments:
            reader.expect(",")
        group = _types(reader) if reader.accept("(") else (_type(reader),)
        if reader.accept("*"):
            repeated = group
            reader.expect(")")
            break
        if len(group) != 1:
            reader.fail("'*' expected")
        arguments += group
    reader.expect("->")
    results = _types(reader) if reader.accept("(") else (_type(reader),)
    return Signature(tuple(arguments), repeated, results)


def _types(reader: Reader) -> tuple[str, ...]:
    found: list[str] = []
    while not reader.accept(")"):
        if found:
            reader.expect(",")
        found.append(_type(reader))
    return tuple(found)


def _type(reader: Reader) -> str:
    token = reader.kind("word", "a value type")
    if not is_value_type(token.text):
        reader.fail(f"{token} is not a value type", token)
    return token.text


def _declared(reader: Reader, signature: Signature) -> list[int]:
    """The register counts so far: those of the parameters, or of `registers (...)`."""
    counts = [0] * len(BANKS)
    for type_name in signature.arguments:
        counts[BANKS.index(bank_of(type_name))] += 1
    if not reader.accept("registers"):
        return counts
    reader.expect("(")
    for at, least in enumerate(counts):
        if at:
            reader.expect(",")
        counts[at] = reader.integer(f"number of {BANKS[at]} registers", least, MAX_REGISTERS)
    reader.expect(")")
    return counts


def _label(reader: Reader, body: Body) -> None:
    token = reader.take()
    if token.text in body.labels:
        reader.fail(f"label {token.text} is there twice", token)
    reader.expect(":")
    body.labels[token.text] = (token, len(body.lines))


def _line(reader: Reader, body: Body) -> None:
    results: list[object] = []
    if reader.token.kind == "register":
        results.append(_register(reader, body))
        while reader.accept(","):
            results.append(_register(reader, body))
        reader.expect("=")
    token = reader.kind("word", "an instruction")
    row = BY_NAME.get(token.text)
    if row is None:
        reader.fail(f"unknown instruction {token.text!r}", token)
    operands: list[object] = []
    first = True
    for spec in row.operands:
        if spec.result:
            continue
        counted = spec.kind in ("registers", "targets")
        if not first and not (spec.kind == "registers" and reader.token.text == "("):
            reader.expect(",")
        first = False
        operands.append(_counted(reader, body, spec) if counted else _operand(reader, body, spec))
    body.lines.append(_Line(row, token, _with_results(reader, row, token, operands, results)))
    if reader.accept("loc"):
        body.locations.append((len(body.lines) - 1, reader.text("a location")))


def _with_results(
    reader: Reader, row: Instruction, token: Token, operands: list[object], results: list[object]
) -> list[object]:
    """All operands, in the order of the row."""
    found: list[object] = []
    reads = iter(operands)
    fixed = sum(1 for spec in row.operands if spec.result and spec.kind != "registers")
    if len(results) != fixed and not any(spec.result and spec.kind == "registers" for spec in row.operands):
        reader.fail(f"{row.name} has {fixed} results, {len(results)} registers stand before '='", token)
    for spec in row.operands:
        if not spec.result:
            found.append(next(reads))
        elif spec.kind == "registers":
            found.append(results)
        else:
            _check_bank(reader, spec, results[0], token)
            found.append(results[0])
    return found


_Register = tuple[int, int, bool]


def _register(reader: Reader, body: Body, moved: bool = False) -> _Register:
    token = reader.kind("register", "a register such as %i0")
    bank, index = LETTERS[token.text[1]], int(token.text[2:])
    if index >= MAX_REGISTERS:
        reader.fail(f"register {token.text} is above the limit of {MAX_REGISTERS}", token)
    if moved and BANKS[bank] != "ref":
        reader.fail(f"{token.text} is not a ref, only refs move", token)
    body.registers[bank] = max(body.registers[bank], index + 1)
    return bank, index, moved


def _check_bank(reader: Reader, spec: Spec, register: object, token: Token) -> None:
    assert isinstance(register, tuple)
    if BANKS[register[0]] != spec.kind:
        reader.fail(f"{spec.name} is an {spec.kind} register, got one of {BANKS[register[0]]}", token)


def _counted(reader: Reader, body: Body, spec: Spec) -> list[object]:
    opening, closing = ("(", ")") if spec.kind == "registers" else ("[", "]")
    found: list[object] = []
    reader.expect(opening)
    while not reader.accept(closing):
        if found:
            reader.expect(",")
        if spec.kind == "targets":
            found.append(reader.kind("label", "a label such as ^a"))
        else:
            found.append(_register(reader, body, reader.accept("move")))
    return found


def _operand(reader: Reader, body: Body, spec: Spec) -> object:
    token = reader.token
    if spec.kind in _REGISTER_KINDS:
        register = _register(reader, body, reader.accept("move"))
        _check_bank(reader, spec, register, token)
        return register
    if spec.kind in _SYMBOL_KINDS:
        return reader.kind("symbol", f"{spec.kind} such as @name")
    if spec.kind == "target":
        return reader.kind("label", "a label such as ^a")
    if spec.kind == "text":
        return reader.text("a text in quotes", nul=True)
    if spec.kind in ("imm_f32", "imm_f64"):
        return read_float_bits(reader, 32 if spec.kind == "imm_f32" else 64)
    bits = 32 if spec.kind == "imm_i32" else 64
    return reader.integer(f"an i{bits}", -1 << (bits - 1), (1 << bits) - 1)


def read_float_bits(reader: Reader, bits: int) -> int:
    """Parses a float as its bits, from decimal text or from the bits as `0x...`."""
    token = reader.kind("number", f"an f{bits}")
    if token.text.lower().startswith("0x"):
        value = int(token.text, 16)
        if value >> bits:
            reader.fail(f"{token.text} has more than {bits} bits", token)
        return value
    number = float(token.text)
    if math.isnan(number):
        return 0x7FC00000 if bits == 32 else 0x7FF8000000000000
    try:
        return int.from_bytes(struct.pack("<f" if bits == 32 else "<d", number), "little")
    except OverflowError:
        reader.fail(f"{token.text} is out of range of f{bits}", token)


Symbols = Mapping[str, Mapping[str, Sequence[int]]]


def encode_body(reader: Reader, body: Body, symbols: Symbols) -> tuple[bytes, list[tuple[int, str]]]:
    """Returns the bytecode and its locations. `symbols`: kind -> name -> ordinals of that name (more than one is
    ambiguous).
    """
    if sum(body.registers) > MAX_REGISTERS:
        reader.fail(f"{sum(body.registers)} registers, the limit is {MAX_REGISTERS}", body.token)
    bases = [sum(body.registers[:bank]) for bank in range(len(BANKS))]
    pc = 0
    for line in body.lines:
        line.pc = pc
        sized = [tuple(value) if isinstance(value, list) else value for value in line.operands]
        pc += size(line.row, sized)  # type: ignore[arg-type]
    pcs = [line.pc for line in body.lines] + [pc]
    targets = {label: pcs[at] for label, (_, at) in body.labels.items()}
    code = b""
    parts = []
    for line in body.lines:
        operands = [
            _resolve(reader, spec, value, bases, targets, symbols)
            for spec, value in zip(line.row.operands, line.operands, strict=True)
        ]
        try:
            parts.append(encode(line.row, operands))
        except ValueError as error:
            reader.fail(str(error), line.token)
    code = b"".join(parts)
    return code, [(pcs[at], text) for at, text in body.locations]


def _resolve(
    reader: Reader, spec: Spec, value: object, bases: list[int], targets: dict[str, int], symbols: Symbols
) -> Operand:
    if isinstance(value, list):
        return tuple(_resolve_one(reader, spec.kind, item, bases, targets, symbols) for item in value)
    if isinstance(value, int | str):
        return value
    return _resolve_one(reader, spec.kind, value, bases, targets, symbols)


def _resolve_one(
    reader: Reader, kind: str, value: object, bases: list[int], targets: dict[str, int], symbols: Symbols
) -> int:
    if not isinstance(value, Token):
        assert isinstance(value, tuple)
        bank, index, moved = value
        return int(bases[bank] + index) | (MOVE_BIT if moved else 0)
    if value.kind == "label":
        if value.text not in targets:
            reader.fail(f"label {value.text} is not in this function", value)
        return targets[value.text]
    return resolve_symbol(reader, kind, value, symbols)


def resolve_symbol(reader: Reader, kind: str, token: Token, symbols: Symbols) -> int:
    """The ordinal that `@name` or `#3` refers to."""
    if token.text.startswith("#"):
        return int(token.text[1:])
    found = symbols[kind].get(reader.symbol_name(token), ())
    if len(found) == 1:
        return found[0]
    if not found:
        reader.fail(f"there is no {kind} {token.text}", token)
    reader.fail(f"{token.text} names {len(found)} {kind}s; write #{found[0]} or #{found[1]}", token)
