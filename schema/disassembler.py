"""A decoded module as the assembler's text. Assembling the text gives the same file, byte for byte.

- A name that occurs twice in its table is referred to by ordinal, `#3`.
- Labels are generated: `^a` and the pc, in hexadecimal, of each branch target.
- `disassemble` requires bytecode that the decoder of the encoding accepts; its meaning is not checked.
- `listing` is for reading: device code in readable form, constants by their segment.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from . import sourcemap
from .dtypes import BY_CODE
from .encoding import Decoded, Operand, decode, float_of_bits
from .errors import ModuleError
from .isa import BANKS, MOVE_BIT
from .lexer import quote, symbol
from .module import Module
from .needs import bytecode_minor, format_minor
from .profiles import FEATURES, feature_names
from .rows import (
    ACCESSES,
    NONE,
    Attribute,
    AttributeKind,
    Exported,
    Function,
    Global,
    GlobalFlags,
    ImportFlags,
    InitializerKind,
    Program,
    SegmentKind,
)
from .signature import Signature, bank_of, is_value_type, parse_signature

_LETTERS = "ilfdr"
_ACCESS: dict[int, str] = {code: name for name, code in ACCESSES.items()}


#: an executable's format and payload -> its text
Readable = Callable[[str, memoryview], str]


def disassemble(module: Module) -> str:
    """The text of the whole module. Raises ModuleError if bytecode or locations are malformed."""
    return "\n".join(_module(module, None)) + "\n"


def listing(module: Module, readable: Readable) -> str:
    """As `disassemble`, but with every payload as `readable` shows it, and without constants. It cannot
    be assembled.
    """
    return "\n".join(_module(module, readable)) + "\n"


def _module(module: Module, readable: Readable | None) -> Iterator[str]:
    strings = module.strings
    yield f"producer {quote(strings[module.header.producer])}"
    yield from (f"attribute {text}" for text in _attributes(module, module.attributes))
    for segment in module.segments:
        if segment.kind == SegmentKind.Custom:
            data = module.custom(strings[segment.name]) or b""
            yield f"custom {quote(strings[segment.name])} = {_data(data, readable)}"
    for row in module.imports:
        optional = " optional" if row.flags & ImportFlags.Optional else ""
        yield f"import {symbol(strings[row.name])} {parse_signature(strings[row.signature])}{optional}"
    for export in module.exports:
        doc = f" doc {quote(strings[export.doc])}" if strings[export.doc] else ""
        rows = module.export_attributes[export.attributes_start : export.attributes_end]
        attributes = f" attributes [{', '.join(_attributes(module, rows))}]" if rows else ""
        yield f"export {symbol(strings[export.name])}{doc}{attributes}{_export_values(module, export)}"
    for program in module.programs:
        yield from _program(module, program, readable)
    for attachment in module.container.attachments:
        data = attachment.verified()
        yield f"attachment {quote(attachment.tag)}{_flags(attachment.flags)} = {_data(data, readable)}"
    for section in module.container.sections:
        yield f"section {quote(section.name)}{_flags(section.flags)} = {_data(section.data, readable)}"


def _attributes(module: Module, rows: Sequence[Attribute]) -> Iterator[str]:
    for row in rows:
        if row.kind not in tuple(AttributeKind):
            raise ModuleError(f"attribute {quote(module.strings[row.key])} is of kind {row.kind}, unknown here")
        value = module.attribute_value(row)
        yield f"{quote(module.strings[row.key])} = {quote(value) if isinstance(value, str) else _data(value, None)}"


def _data(data: bytes | memoryview, readable: Readable | None) -> str:
    return f"hex {quote(bytes(data).hex())}" if readable is None else f"{len(data)} bytes"


def _flags(flags: int) -> str:
    return f" flags {flags}" if flags else ""


def _minor(stated: int, counted: int) -> str:
    """The minor version, if it is above the one that the writer would compute."""
    return f" minor {stated}" if stated > counted else ""


def _tensor(module: Module, dtype: int, start: int, end: int) -> str:
    """A tensor type, followed by the expression of each dynamic dimension."""
    dims = module.dims[start:end]
    sizes = "".join("?x" if dim < 0 else f"{dim}x" for dim in dims)
    texts = [f" {quote(module.strings[module.expressions[-1 - dim]])}" for dim in dims if dim < 0]
    return f"tensor<{sizes}{BY_CODE[dtype].name}>{''.join(texts)}"


def _value_name(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else quote(name)


def _export_values(module: Module, export: Exported) -> str:
    arguments = module.arguments[export.arguments_start : export.arguments_end]
    results = module.results[export.results_start : export.results_end]
    if not arguments and not results:
        return ""
    given = [
        f"{_value_name(module.strings[row.name])}: {_tensor(module, row.dtype, row.dims_start, row.dims_end)}"
        for row in arguments
    ]
    taken = [
        f"{_value_name(module.strings[row.name])}: {_tensor(module, row.dtype, row.dims_start, row.dims_end)}"
        + ("" if row.alias == NONE else f" alias {row.alias}")
        for row in results
    ]
    return f" ({', '.join(given)}) -> ({', '.join(taken)})"


class _Names:
    """The references to each table's rows: by name if that is unique, otherwise by ordinal."""

    def __init__(self, module: Module, program: Program) -> None:
        strings = module.strings
        tables = {
            "import": [strings[row.name] for row in module.imports],
            "function": [
                strings[row.name] for row in module.functions[program.functions_start : program.functions_end]
            ],
            "global": [strings[row.name] for row in module.globals[program.globals_start : program.globals_end]],
            "constant": [
                strings[row.name] for row in module.constants[program.constants_start : program.constants_end]
            ],
        }
        self.tables = {kind: _references(names) for kind, names in tables.items()}

    def __call__(self, kind: str, ordinal: int) -> str:
        table = self.tables[kind]
        return table[ordinal] if ordinal < len(table) else f"#{ordinal}"


def _references(names: list[str]) -> list[str]:
    count = Counter(names)
    return [symbol(name) if count[name] == 1 else f"#{at}" for at, name in enumerate(names)]


def _locations(module: Module, program: Program) -> dict[int, dict[int, str]]:
    """Returns function -> pc -> source location. Executables, numbered from `OPS` and `BINDINGS` on, map entry -> text
    instead.
    """
    found: dict[int, dict[int, str]] = {}
    if program.source_map != NONE:
        source = sourcemap.decode(module.segment(program.source_map))
        for function, pc, location in source.rows:
            found.setdefault(function, {})[pc] = source.texts[location]
    return found


def _program(module: Module, program: Program, readable: Readable | None) -> Iterator[str]:
    strings = module.strings
    names = _Names(module, program)
    features = _features(program.features, readable)
    rows = module.functions[program.functions_start : program.functions_end]
    counted = bytecode_minor(bytes(module.bytecode[row.bytecode_start : row.bytecode_end]) for row in rows)
    minor = _minor(program.bytecode_minor, counted)
    yield f"program {symbol(strings[program.name])} profile {quote(strings[program.profile])}{features}{minor} {{"
    attributes = module.program_attributes[program.attributes_start : program.attributes_end]
    yield from (f"  attribute {text}" for text in _attributes(module, attributes))
    for row in module.globals[program.globals_start : program.globals_end]:
        yield "  " + _global(module, row)
    for constant in module.constants[program.constants_start : program.constants_end]:
        tensor = _tensor(module, constant.dtype, constant.dims_start, constant.dims_end)
        segment = constant.segment
        if module.segments[segment].kind == SegmentKind.Parameter:
            digest = module.segments[segment].digest
            known = f" digest {quote(digest.hex())}" if any(digest) else ""
            yield f"  parameter {symbol(strings[constant.name])} : {tensor}{known}"
            continue
        value = f"= hex {quote(bytes(module.segment(segment)).hex())}" if readable is None else f"segment {segment}"
        yield f"  constant {symbol(strings[constant.name])} : {tensor} {value}"
    locations = _locations(module, program)
    yield from _executables(module, program, readable, locations)
    for at, function in enumerate(module.functions[program.functions_start : program.functions_end]):
        yield from _function(module, function, names, locations.pop(at, {}))
    if locations:
        raise ModuleError(f"the source map speaks of {_owner(min(locations))}, which the program does not have")
    for initializer in module.initializers[program.initializers_start : program.initializers_end]:
        kind = InitializerKind(initializer.kind).name.lower()
        yield f"  initializer {kind} {names('function', initializer.function)}"
    for entry in module.entries[program.entries_start : program.entries_end]:
        yield f"  entry {names('function', entry)}"
    yield "}"


def _features(bits: int, readable: Readable | None) -> str:
    """The names of features. A listing shows unnamed bits as numbers; text to assemble raises ModuleError for them."""
    names = feature_names(bits)
    unknown = bits >> len(FEATURES) << len(FEATURES)
    if unknown and readable is None:
        raise ModuleError(f"features {unknown:#x} have no names in this version")
    shown = [*names, f"{unknown:#x}"] if unknown else names
    return f" features [{', '.join(shown)}]" if bits else ""


def _owner(function: int) -> str:
    """The function or executable that a row of the source map refers to."""
    if function < sourcemap.OPS:
        return f"function {function}"
    return f"executable {function - (sourcemap.OPS if function < sourcemap.BINDINGS else sourcemap.BINDINGS)}"


def _global(module: Module, row: Global) -> str:
    name, type_name = module.strings[row.name], _type(module, row.type)
    mutable = " mutable" if row.flags & GlobalFlags.Mutable else ""
    value: int = row.value
    return f"global {symbol(name)} : {type_name}{mutable}" + (f" = {_number(value, type_name)}" if value else "")


def _number(bits: int, kind: str) -> str:
    """A number as text from its bits; a float as decimal if that gives the same bits."""
    if kind in ("i32", "i64"):
        half = 1 << (int(kind[1:]) - 1)
        return str((bits & 2 * half - 1 ^ half) - half)
    value = float_of_bits(bits, kind)
    if value != value:
        return f"{bits:#x}"
    return repr(value)


def _executables(
    module: Module, program: Program, readable: Readable | None, locations: dict[int, dict[int, str]]
) -> Iterator[str]:
    strings = module.strings
    for at, row in enumerate(module.executables[program.executables_start : program.executables_end]):
        yield f"  executable {symbol(strings[row.name])} {{"
        made_from = locations.pop(at + sourcemap.OPS, {})
        holding = locations.pop(at + sourcemap.BINDINGS, {})
        for number, entry in enumerate(module.executable_entries[row.entries_start : row.entries_end]):
            words = f" parameters {entry.parameter_words}" if entry.parameter_words else ""
            bindings = [
                f"{_ACCESS[binding.access]} {binding.length}"
                for binding in module.bindings[entry.bindings_start : entry.bindings_end]
            ]
            ops = f" from {quote(made_from.pop(number))}" if number in made_from else ""
            types = f" on {quote(holding.pop(number))}" if number in holding else ""
            yield f"    entry {symbol(strings[entry.name])}{words} bindings [{', '.join(bindings)}]{ops}{types}"
        if strange := made_from | holding:
            raise ModuleError(f"the source map speaks of entry {min(strange)}, which executable {at} does not have")
        for variant in module.variants[row.variants_start : row.variants_end]:
            features = _features(variant.features, readable)
            shared = f" shared {variant.shared_memory_bytes}" if variant.shared_memory_bytes else ""
            sizes = ", ".join(
                f"({size.x}, {size.y}, {size.z})"
                for size in module.workgroup_sizes[variant.workgroup_sizes_start : variant.workgroup_sizes_end]
            )
            payload = module.segment(variant.payload)
            minor = _minor(variant.format_minor, format_minor(strings[variant.format], payload))
            yield f"    variant {quote(strings[variant.format])}{features}{minor}{shared} workgroups [{sizes}]"
            if readable is None:
                yield f"      payload hex {quote(bytes(payload).hex())}"
            else:
                lines = readable(strings[variant.format], payload).splitlines()
                yield from (f"      {line}".rstrip() for line in lines)
        yield "  }"


def _types(module: Module, start: int, end: int) -> tuple[str, ...]:
    return tuple(_type(module, type) for type in module.value_types[start:end])


def _type(module: Module, type: int) -> str:
    """The name of a value type. Raises ModuleError for any other string, because the assembler would reject it."""
    name = module.strings[module.types[type]]
    if not is_value_type(name):
        raise ModuleError(f"{name!r:.60} is not a value type")
    return name


def _function(module: Module, row: Function, names: _Names, locations: dict[int, str]) -> Iterator[str]:
    signature = Signature(
        _types(module, row.arguments_start, row.arguments_end), (), _types(module, row.results_start, row.results_end)
    )
    name = module.strings[row.name]
    counts = [row.i32, row.i64, row.f32, row.f64, row.ref]
    code = decode(module.bytecode[row.bytecode_start : row.bytecode_end], f"function {symbol(name)}")
    needed = _inferred(signature, code, counts)
    registers = f" registers ({', '.join(map(str, counts))})" if counts != needed else ""
    if sum(counts) > MOVE_BIT or any(count < least for count, least in zip(counts, needed, strict=True)):
        raise ModuleError(f"function {symbol(name)}: registers {counts}, its arguments and code need {needed}")
    yield f"  func {symbol(name)} {signature}{registers} {{"
    unknown = locations.keys() - {decoded.pc for decoded in code}
    if unknown:
        raise ModuleError(f"function {symbol(name)}: a location at pc {min(unknown):#x}, inside an instruction")
    for line in body_lines(code, counts, names, locations):
        yield "  " + line
    yield "  }"


def _register_operands(code: list[Decoded]) -> Iterator[int]:
    for decoded in code:
        for spec, value in zip(decoded.row.operands, decoded.operands, strict=True):
            if spec.kind in BANKS and isinstance(value, int):
                yield value & ~MOVE_BIT
            elif spec.kind == "registers" and isinstance(value, tuple):
                yield from (register & ~MOVE_BIT for register in value)


def _inferred(signature: Signature, code: list[Decoded], counts: list[int]) -> list[int]:
    """The register counts that the assembler would infer."""
    found = [0] * len(BANKS)
    for type_name in signature.arguments:
        found[BANKS.index(bank_of(type_name))] += 1
    for register in _register_operands(code):
        bank, index = _bank_index(register, counts)
        found[bank] = max(found[bank], index + 1)
    return found


def _bank_index(register: int, counts: list[int]) -> tuple[int, int]:
    for bank, count in enumerate(counts):
        if register < count:
            return bank, register
        register -= count
    raise ModuleError(f"register {register + sum(counts)} out of range ({sum(counts)} registers)")


def body_lines(code: list[Decoded], counts: list[int], names: _Names, locations: dict[int, str]) -> Iterator[str]:
    """Yields the lines of a function, including labels."""
    targets: set[int] = set()
    for decoded in code:
        for spec, value in zip(decoded.row.operands, decoded.operands, strict=True):
            if spec.kind == "target" and isinstance(value, int):
                targets.add(value)
            elif spec.kind == "targets" and isinstance(value, tuple):
                targets.update(value)
    end = code[-1].pc if code else 0
    for decoded in code:
        if decoded.pc in targets:
            yield f"^a{decoded.pc:x}:"
        where = f" loc {quote(locations[decoded.pc])}" if decoded.pc in locations else ""
        yield "  " + _instruction(decoded, counts, names) + where
    if any(target > end for target in targets):
        raise ModuleError(f"a branch to pc {max(targets):#x}, behind the code")
    if strange := targets - {decoded.pc for decoded in code}:
        raise ModuleError(f"a branch to pc {min(strange):#x}, inside an instruction")


def _instruction(decoded: Decoded, counts: list[int], names: _Names) -> str:
    results: list[str] = []
    reads = ""
    for spec, value in zip(decoded.row.operands, decoded.operands, strict=True):
        text = _operand(spec.kind, value, counts, names, spec.result)
        if spec.result:
            results += [text] if text else []
        elif spec.kind == "registers":
            reads += f"({text})"
        else:
            reads += f", {text}" if reads else text
    left = f"{', '.join(results)} = " if results else ""
    return f"{left}{decoded.row.name} {reads}".rstrip()


def _operand(kind: str, value: Operand, counts: list[int], names: _Names, result: bool) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        if kind == "targets":
            return f"[{', '.join(f'^a{target:x}' for target in value)}]"
        return ", ".join(_register(register, counts, result) for register in value)
    if kind in BANKS:
        bank, _ = _bank_index(value & ~MOVE_BIT, counts)
        if BANKS[bank] != kind:
            raise ModuleError(f"register {value & ~MOVE_BIT} is one of {BANKS[bank]}, its instruction takes {kind}")
        return _register(value, counts, result)
    if kind == "target":
        return f"^a{value:x}"
    if kind.startswith("imm_"):
        return _number(value, kind[4:])
    return names(kind, value)


def _register(register: int, counts: list[int], result: bool) -> str:
    bank, index = _bank_index(register & ~MOVE_BIT, counts)
    if register & MOVE_BIT and (result or BANKS[bank] != "ref"):
        raise ModuleError(f"register {register:#x} has the move bit but is not a ref that is read")
    return ("move " if register & MOVE_BIT else "") + f"%{_LETTERS[bank]}{index}"
