"""Parses text into module rows (`writer.Module`). The text can express any module file, also what no compiler emits.

    import @hal.execute (hal.recording, hal.buffer*) -> () [optional]
    export @main [doc "text"] [attributes ["key" = "text", ...]] [(x: tensor<4xf32>, ...) -> (y: tensor<4xf32> alias 0)]
    attribute "licence" = "Apache-2.0" or hex "00"
    custom "name" = hex "00"
    attachment "SIGN" [flags 1] = hex "00"
    section "name" [flags 1] = hex "00"
    program @reference profile "reference" [features [int64, ...]] [minor 1] {
      attribute "key" = "text"
      global @counter : i64 [mutable] [= 5]
      constant @w : tensor<4xi8> = hex "01020304"
      parameter @p : tensor<4xi8> [digest "00..."]
      executable @e { entry @f [parameters 2] bindings [read 16, write 16] [from "op other"] [on "type; type"]
                      variant "tensor-bytecode" [features [...]] [minor 1] [shared 64] workgroups [(1, 1, 1)]
                        payload hex "00" }
      func @main (hal.view, i32) -> hal.view { ... }
      initializer program @setup
      entry @main
    }

Names may be used before they are defined. `entry` lines name the function of each export, in the order of exports.
Imports, exports and programs may be mixed; each kind keeps its own order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from .assembler_code import Body, encode_body, read_float_bits, read_function, read_signature, resolve_symbol
from .container import Attachment, Section
from .dtypes import BY_NAME as DTYPES
from .dtypes import DType
from .encoding import float_of_bits
from .isa import BANKS
from .lexer import AssemblyError, Reader, Token
from .profiles import FEATURES
from .rows import ACCESSES, InitializerKind
from .segments import DIGEST
from .signature import is_value_type
from .writer import (
    Binding,
    Constant,
    Entry,
    Executable,
    Export,
    Function,
    Global,
    Import,
    Initializer,
    Module,
    Parameter,
    Program,
    Value,
    Variant,
)

__all__ = ["AssemblyError", "assemble"]

_BIG = (1 << 63) - 1
_KINDS = {kind.name.lower(): kind for kind in InitializerKind}


@dataclass(slots=True)
class _Program:
    """A parsed program whose functions are not encoded yet."""

    name: str
    profile: str
    features: frozenset[str]
    minor: int
    attributes: dict[str, str | bytes] = field(default_factory=dict)
    globals: list[Global] = field(default_factory=list)
    constants: list[Constant | Parameter] = field(default_factory=list)
    executables: list[Executable] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    initializers: list[tuple[InitializerKind, Token]] = field(default_factory=list)
    entries: list[Token] = field(default_factory=list)


@dataclass(slots=True)
class _Module:
    producer: str = "orchestrion"
    imports: list[Import] = field(default_factory=list)
    exports: list[Export] = field(default_factory=list)
    attributes: dict[str, str | bytes] = field(default_factory=dict)
    programs: list[_Program] = field(default_factory=list)
    custom: dict[str, bytes] = field(default_factory=dict)
    attachments: list[Attachment] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)


def assemble(source: str) -> Module:
    """Parses a module's text. Raises AssemblyError with line and column."""
    reader = Reader(source)
    module = _Module()
    while reader.token.kind != "end":
        statement = _STATEMENTS.get(reader.token.text)
        if statement is None:
            reader.fail(f"one of {', '.join(_STATEMENTS)} expected, got {reader.token}")
        reader.take()
        statement(reader, module)
    imports: dict[str, list[int]] = {}
    for at, row in enumerate(module.imports):
        imports.setdefault(row.name, []).append(at)
    return Module(
        programs=tuple(_finish(reader, program, imports) for program in module.programs),
        exports=tuple(module.exports),
        imports=tuple(module.imports),
        attributes=module.attributes,
        producer=module.producer,
        custom=module.custom,
        attachments=tuple(module.attachments),
        sections=tuple(module.sections),
    )


def _producer(reader: Reader, module: _Module) -> None:
    module.producer = reader.text("the producer's name")


def _attribute(reader: Reader, owner: _Module | _Program) -> None:
    _read_attribute(reader, owner.attributes)


def _read_attribute(reader: Reader, found: dict[str, str | bytes]) -> None:
    token = reader.token
    key = reader.text("a key")
    if key in found:
        reader.fail(f"attribute {token} is there twice", token)
    reader.expect("=")
    found[key] = reader.text("a value", nul=True) if reader.token.kind == "text" else _hex(reader)


def _custom(reader: Reader, module: _Module) -> None:
    token = reader.token
    name = reader.text("a custom segment's name")
    if name in module.custom:
        reader.fail(f"custom segment {token} is there twice", token)
    reader.expect("=")
    module.custom[name] = _hex(reader)


def _attachment(reader: Reader, module: _Module) -> None:
    name, flags, data = _flagged(reader, "an attachment's tag")
    module.attachments.append(Attachment(name, data, flags))


def _section(reader: Reader, module: _Module) -> None:
    name, flags, data = _flagged(reader, "a section's name")
    module.sections.append(Section(name, data, flags))


def _flagged(reader: Reader, what: str) -> tuple[str, int, bytes]:
    name = reader.text(what)
    flags = reader.integer("flags", 0, 0xFFFFFFFF) if reader.accept("flags") else 0
    reader.expect("=")
    return name, flags, _hex(reader)


def _import(reader: Reader, module: _Module) -> None:
    name = reader.name("an import's name")
    signature = read_signature(reader)
    module.imports.append(Import(name, str(signature), reader.accept("optional")))


def _export(reader: Reader, module: _Module) -> None:
    name = reader.name("an export's name")
    doc = reader.text("a doc text") if reader.accept("doc") else ""
    attributes: dict[str, str | bytes] = {}
    if reader.accept("attributes"):
        reader.expect("[")
        while not reader.accept("]"):
            if attributes:
                reader.expect(",")
            _read_attribute(reader, attributes)
    arguments: list[Value] = []
    results: list[Value] = []
    if reader.accept("("):
        _values(reader, arguments)
        reader.expect("->")
        reader.expect("(")
        _values(reader, results)
    module.exports.append(Export(name, tuple(arguments), tuple(results), doc, attributes))


def _values(reader: Reader, found: list[Value]) -> None:
    while not reader.accept(")"):
        if found:
            reader.expect(",")
        name = reader.text("a name") if reader.token.kind == "text" else reader.kind("word", "a name").text
        reader.expect(":")
        dtype, dims = _tensor(reader)
        expressions = tuple(reader.text("what a dynamic dimension is") for dim in dims if dim < 0)
        alias = reader.integer("an argument's number", 0, 0xFFFFFFFE) if reader.accept("alias") else None
        found.append(Value(name, dtype, dims, alias, expressions))


def _tensor(reader: Reader) -> tuple[DType, tuple[int, ...]]:
    """`tensor<2x?xf32>`: the element type and the dimensions, -1 for `?`."""
    token = reader.kind("word", "a tensor type such as tensor<4xf32>")
    if not token.text.startswith("tensor<"):
        reader.fail(f"a tensor type such as tensor<4xf32> expected, got {token}", token)
    *dims, element = token.text[7:-1].split("x")
    if element not in DTYPES:
        reader.fail(f"{element!r} is not an element type", token)
    for dim in dims:
        if dim != "?" and not (dim.isascii() and dim.isdigit() and int(dim) <= _BIG):
            reader.fail(f"{dim!r} is not a dimension", token)
    return DTYPES[element], tuple(-1 if dim == "?" else int(dim) for dim in dims)


def _features(reader: Reader) -> frozenset[str]:
    found: set[str] = set()
    if not reader.accept("features"):
        return frozenset()
    reader.expect("[")
    while not reader.accept("]"):
        if found:
            reader.expect(",")
        token = reader.kind("word", "a feature")
        if token.text not in FEATURES:
            reader.fail(f"unknown feature {token}; there are {', '.join(FEATURES)}", token)
        found.add(token.text)
    return frozenset(found)


def _minor(reader: Reader) -> int:
    """Parses a minor version above the one that the instructions need."""
    return reader.integer("a minor version", 0, 0xFFFF) if reader.accept("minor") else 0


def _program(reader: Reader, module: _Module) -> None:
    name = reader.name("a program's name")
    reader.expect("profile")
    program = _Program(name, reader.text("a profile's name"), _features(reader), _minor(reader))
    module.programs.append(program)
    reader.expect("{")
    while not reader.accept("}"):
        item = _ITEMS.get(reader.token.text)
        if item is None:
            reader.fail(f"one of {', '.join(_ITEMS)} expected, got {reader.token}")
        reader.take()
        item(reader, program)


def _global(reader: Reader, program: _Program) -> None:
    name = reader.name("a global's name")
    reader.expect(":")
    token = reader.kind("word", "a value type")
    if not is_value_type(token.text):
        reader.fail(f"{token} is not a value type", token)
    mutable = reader.accept("mutable")
    value: int | float = 0
    if reader.accept("="):
        value = _initial(reader, token)
    program.globals.append(Global(name, token.text, mutable, value))


def _initial(reader: Reader, type_token: Token) -> int | float:
    if type_token.text in ("i32", "i64"):
        bits = int(type_token.text[1:])
        return reader.integer(f"an i{bits}", -1 << (bits - 1), (1 << (bits - 1)) - 1)
    if type_token.text not in BANKS:
        reader.fail("a reference starts as null, it has no initial value")
    return float_of_bits(read_float_bits(reader, int(type_token.text[1:])), type_token.text)


def _constant(reader: Reader, program: _Program) -> None:
    name = reader.name("a constant's name")
    reader.expect(":")
    dtype, dims = _tensor(reader)
    reader.expect("=")
    program.constants.append(Constant(name, _hex(reader), dtype, dims))


def _parameter(reader: Reader, program: _Program) -> None:
    name = reader.name("a parameter's name")
    reader.expect(":")
    dtype, dims = _tensor(reader)
    digest = _digits(reader) if reader.accept("digest") else bytes(DIGEST)
    if len(digest) != DIGEST:
        reader.fail(f"a digest of {len(digest)} bytes, {DIGEST} wanted")
    program.constants.append(Parameter(name, dtype, dims, digest=digest))


def _hex(reader: Reader) -> bytes:
    reader.expect("hex")
    return _digits(reader)


def _digits(reader: Reader) -> bytes:
    token = reader.token
    try:
        return bytes.fromhex(reader.text("hexadecimal digits in quotes"))
    except ValueError as error:
        reader.fail(f"bad hexadecimal digits: {error}", token)


def _executable(reader: Reader, program: _Program) -> None:
    name = reader.name("an executable's name")
    entries: list[Entry] = []
    variants: list[Variant] = []
    reader.expect("{")
    while not reader.accept("}"):
        if reader.accept("entry"):
            entries.append(_executable_entry(reader))
        elif reader.accept("variant"):
            variants.append(_variant(reader))
        else:
            reader.fail(f"'entry' or 'variant' expected, got {reader.token}")
    program.executables.append(Executable(name, tuple(entries), tuple(variants)))


def _executable_entry(reader: Reader) -> Entry:
    name = reader.name("an entry point's name")
    words = reader.integer("a number of words", 0, 0xFFFFFFFF) if reader.accept("parameters") else 0
    bindings: list[Binding] = []
    reader.expect("bindings")
    reader.expect("[")
    while not reader.accept("]"):
        if bindings:
            reader.expect(",")
        token = reader.kind("word", "read, write or readwrite")
        if token.text not in ACCESSES:
            reader.fail(f"read, write or readwrite expected, got {token}", token)
        bindings.append(Binding(ACCESSES[token.text], reader.integer("a length", 0, (1 << 64) - 1)))
    ops = reader.text("the names of ops") if reader.accept("from") else ""
    types = reader.text("the types of tensors") if reader.accept("on") else ""
    return Entry(name, tuple(bindings), words, tuple(ops.split()), tuple(filter(None, types.split("; "))))


def _variant(reader: Reader) -> Variant:
    name = reader.text("a format")
    features, minor = _features(reader), _minor(reader)
    shared = reader.integer("a number of bytes", 0, 0xFFFFFFFF) if reader.accept("shared") else 0
    sizes: list[tuple[int, int, int]] = []
    reader.expect("workgroups")
    reader.expect("[")
    while not reader.accept("]"):
        if sizes:
            reader.expect(",")
        reader.expect("(")
        x = reader.integer("a workgroup size", 0, 0xFFFFFFFF)
        reader.expect(",")
        y = reader.integer("a workgroup size", 0, 0xFFFFFFFF)
        reader.expect(",")
        sizes.append((x, y, reader.integer("a workgroup size", 0, 0xFFFFFFFF)))
        reader.expect(")")
    reader.expect("payload")
    return Variant(name, _hex(reader), tuple(sizes), features, shared, minor)


def _function(reader: Reader, program: _Program) -> None:
    program.bodies.append(read_function(reader))


def _initializer(reader: Reader, program: _Program) -> None:
    token = reader.kind("word", "'program' or 'context'")
    if token.text not in _KINDS:
        reader.fail(f"'program' or 'context' expected, got {token}", token)
    program.initializers.append((_KINDS[token.text], reader.kind("symbol", "a function such as @setup")))


def _entry(reader: Reader, program: _Program) -> None:
    program.entries.append(reader.kind("symbol", "a function such as @main"))


def _names(names: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        found.setdefault(name, []).append(at)
    return found


def _finish(reader: Reader, program: _Program, imports: dict[str, list[int]]) -> Program:
    symbols = {
        "import": imports,
        "function": _names([body.name for body in program.bodies]),
        "global": _names([row.name for row in program.globals]),
        "constant": _names([row.name for row in program.constants]),
    }
    functions = []
    for body in program.bodies:
        code, locations = encode_body(reader, body, symbols)
        i32, i64, f32, f64, ref = body.registers
        signature = body.signature
        functions.append(
            Function(body.name, code, signature.arguments, signature.results, (i32, i64, f32, f64, ref), locations)
        )
    return Program(
        name=program.name,
        profile=program.profile,
        functions=tuple(functions),
        entries=tuple(resolve_symbol(reader, "function", token, symbols) for token in program.entries),
        globals=tuple(program.globals),
        initializers=tuple(
            Initializer(resolve_symbol(reader, "function", token, symbols), kind)
            for kind, token in program.initializers
        ),
        executables=tuple(program.executables),
        constants=tuple(program.constants),
        features=program.features,
        attributes=program.attributes,
        bytecode_minor=program.minor,
    )


_STATEMENTS: dict[str, Callable[[Reader, _Module], None]] = {
    "producer": _producer,
    "attribute": _attribute,
    "custom": _custom,
    "attachment": _attachment,
    "section": _section,
    "import": _import,
    "export": _export,
    "program": _program,
}
_ITEMS: dict[str, Callable[[Reader, _Program], None]] = {
    "attribute": _attribute,
    "global": _global,
    "constant": _constant,
    "parameter": _parameter,
    "executable": _executable,
    "func": _function,
    "initializer": _initializer,
    "entry": _entry,
}
