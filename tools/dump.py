"""vm-dump: lists the contents of a module, without running any of it.

The listing and `--json` are made from one description (`describe`). `--disassemble` adds the assembler's text, with
each executable's payload in the readable form of its format.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrion.schema.container import Attachment, open_file
from orchestrion.schema.decoder import decode
from orchestrion.schema.dtypes import BY_CODE
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.module import Module
from orchestrion.schema.native_image import decode as decode_image
from orchestrion.schema.printable import printable
from orchestrion.schema.profiles import feature_names
from orchestrion.schema.rows import NONE, Access, Attribute, Program, SegmentKind
from orchestrion.schema.segments import verify_whole
from orchestrion.schema.tensor_bytecode import FORMATS as TENSOR_FORMATS
from orchestrion.schema.trust.signature_set import decode as decode_set
from orchestrion.schema.versions import MAJOR

from . import cli
from .arguments import Parser

EXAMPLES = (
    ("vm-dump m.fb", "Lists functions, programs, executables, constants and sizes."),
    ("vm-dump m.fb --disassemble", "Adds bytecode and the code of each executable."),
    ("vm-dump m.fb --json", "The same data as JSON, for other programs."),
    ("vm-dump m.fb --html=m.html", "Writes a page for a browser: graph, memory, code."),
)

Description = dict[str, Any]


def describe(module: Module) -> Description:
    """The module as plain data: signatures, programs, executables, constants, sizes in bytes, digests."""
    header, strings = module.header, module.strings
    return {
        "format": f"{header.major}.{header.minor}",
        "producer": strings[header.producer],
        "bytes": len(module.container.data),
        "root_bytes": len(module.container.root),
        "digest": module.container.digest.hex(),
        "attributes": _attributes(module, module.attributes),
        "exports": [_export(module, ordinal) for ordinal in range(len(module.exports))],
        "imports": [{"name": strings[row.name], "signature": strings[row.signature]} for row in module.imports],
        "programs": [_program(module, program) for program in module.programs],
        "segments": [
            {
                "kind": _kind(row.kind),
                "name": None if row.name == NONE else strings[row.name],
                "bytes": row.size,
                "digest": row.digest.hex(),
                "chunks": row.chunks_end - row.chunks_start,
                "missing": module.missing(ordinal),
            }
            for ordinal, row in enumerate(module.segments)
        ],
        "attachments": [
            {"tag": row.tag, "flags": row.flags, "bytes": len(row.data), "keys": _keys(row)}
            for row in module.container.attachments
        ],
        "sections": [
            {"name": row.name, "flags": row.flags, "bytes": len(row.data)} for row in module.container.sections
        ],
    }


def _keys(row: Attachment) -> list[str]:
    """The ids of the keys of a signature set; empty for other attachments, and for a malformed one."""
    if row.tag != "SIGN":
        return []
    try:
        return [signature.key_id.hex() for signature in decode_set(row.data).signatures]
    except ModuleError:
        return []


def _kind(code: int) -> str:
    return SegmentKind(code).name.lower() if code in tuple(SegmentKind) else f"unknown {code}"


def _attributes(module: Module, rows: Sequence[Attribute]) -> Description:
    """Attributes: texts unchanged, bytes as hexadecimal digits."""
    found = {module.strings[row.key]: module.attribute_value(row) for row in rows}
    return {key: value if isinstance(value, str) else f"hex {value.hex()}" for key, value in found.items()}


def _export(module: Module, ordinal: int) -> Description:
    row, strings = module.exports[ordinal], module.strings
    arguments = module.arguments[row.arguments_start : row.arguments_end]
    results = module.results[row.results_start : row.results_end]
    return {
        "name": strings[row.name],
        "doc": strings[row.doc],
        "attributes": _attributes(module, module.export_attributes[row.attributes_start : row.attributes_end]),
        "arguments": [
            {"name": strings[value.name], "type": tensor(module, value.dtype, value.dims_start, value.dims_end)}
            for value in arguments
        ],
        "results": [
            {
                "name": strings[value.name],
                "type": tensor(module, value.dtype, value.dims_start, value.dims_end),
                "alias": None if value.alias == NONE else value.alias,
            }
            for value in results
        ],
    }


def tensor(module: Module, dtype: int, start: int, end: int) -> str:
    """`4x8xf32`; `?x8xf32[batch]` with the expressions of dynamic dimensions."""
    dims = module.dims[start:end]
    texts = [module.strings[module.expressions[-1 - dim]] for dim in dims if dim < 0]
    sizes = "x".join([*("?" if dim < 0 else str(dim) for dim in dims), BY_CODE[dtype].name])
    return f"{sizes}[{', '.join(texts)}]" if texts else sizes


def _program(module: Module, program: Program) -> Description:
    strings = module.strings
    functions = module.functions[program.functions_start : program.functions_end]
    executables = module.executables[program.executables_start : program.executables_end]
    constants = module.constants[program.constants_start : program.constants_end]
    return {
        "name": strings[program.name],
        "profile": strings[program.profile],
        "features": list(feature_names(program.features)),
        "bytecode": f"{MAJOR}.{program.bytecode_minor}",
        "attributes": _attributes(module, module.program_attributes[program.attributes_start : program.attributes_end]),
        "functions": [
            {"name": strings[row.name], "bytecode_bytes": row.bytecode_end - row.bytecode_start} for row in functions
        ],
        "initializers": program.initializers_end - program.initializers_start,
        "globals": program.globals_end - program.globals_start,
        "executables": [_executable(module, program.executables_start + i) for i in range(len(executables))],
        "constants": [
            {
                "name": strings[row.name],
                "type": tensor(module, row.dtype, row.dims_start, row.dims_end),
                "bytes": module.segments[row.segment].size,
                "segment": row.segment,
                "parameter": module.segments[row.segment].kind == SegmentKind.Parameter,
            }
            for row in constants
        ],
    }


def _executable(module: Module, ordinal: int) -> Description:
    row, strings = module.executables[ordinal], module.strings
    return {
        "name": strings[row.name],
        "entries": [
            {
                "name": strings[entry.name],
                "bindings": [
                    {"access": Access(binding.access).name.lower(), "bytes": binding.length}
                    for binding in module.bindings[entry.bindings_start : entry.bindings_end]
                ],
                "parameter_words": entry.parameter_words,
            }
            for entry in module.executable_entries[row.entries_start : row.entries_end]
        ],
        "variants": [
            {
                "format": strings[variant.format],
                "version": f"{MAJOR}.{variant.format_minor}",
                "features": list(feature_names(variant.features)),
                "bytes": module.segments[variant.payload].size,
                "segment": variant.payload,
            }
            for variant in module.variants[row.variants_start : row.variants_end]
        ],
    }


def listing(found: Description) -> Iterator[str]:
    """The description as lines of text."""
    digest = found["digest"][:16]
    yield f"module: {found['bytes']:,} bytes, format {found['format']}, by {found['producer']}, digest {digest}"
    yield from _lines(found["attributes"], "  ")
    yield "exports:"
    for export in found["exports"]:
        yield f"  {signature(export)}" + (f"  // {export['doc']}" if export["doc"] else "")
        yield from _lines(export["attributes"], "    ")
    for program in found["programs"]:
        payload = sum(variant["bytes"] for row in program["executables"] for variant in row["variants"])
        constants = _bytes(program, False)
        outside = f", parameters {size:,} bytes outside the module" if (size := _bytes(program, True)) else ""
        code = sum(row["bytecode_bytes"] for row in program["functions"])
        needs = f", needs {', '.join(program['features'])}" if program["features"] else ""
        yield (
            f"program {program['name']}: profile {program['profile']}{needs}; bytecode {code:,} bytes in "
            f"{len(program['functions'])} functions, {program['initializers']} initializers, executables {payload:,} "
            f"bytes, constants {constants:,} bytes{outside}"
        )
        yield from _lines(program["attributes"], "  ")
        for row in program["executables"]:
            bindings = "; ".join(
                ", ".join(f"{b['access']} {b['bytes']:,}" for b in entry["bindings"]) for entry in row["entries"]
            )
            formats = ", ".join(f"{v['format']} {v['bytes']:,} bytes" for v in row["variants"])
            yield f"  executable {row['name']}: {formats} (bindings: {bindings})"
        for row in program["constants"]:
            word = "parameter" if row["parameter"] else "constant"
            yield f"  {word} {row['name']}: {row['type']}, {row['bytes']:,} bytes, segment {row['segment']}"
    total = sum(row["bytes"] for row in found["segments"])
    missing = sum(row["missing"] for row in found["segments"])
    taken = f", {missing} of them taken out of this file" if missing else ""
    yield f"segments: {len(found['segments'])}, {total:,} bytes{taken}"
    for row in found["segments"]:
        if row["kind"] not in ("constant", "executable", "debug", "parameter"):
            yield f"  {row['kind']} segment {row['name'] or ''}: {row['bytes']:,} bytes"
    for row in found["attachments"]:
        keys = f", by {', '.join(key[:16] for key in row['keys'])}, not verified" if row["keys"] else ""
        yield f"attachment {row['tag']}: {row['bytes']:,} bytes{keys}"
    for row in found["sections"]:
        yield f"section {row['name']}: {row['bytes']:,} bytes"


def _bytes(program: Description, parameters: bool) -> int:
    """Bytes of a program's constants, or of its parameters; each segment counts once."""
    rows = [row for row in program["constants"] if row["parameter"] == parameters]
    return sum({row["segment"]: row["bytes"] for row in rows}.values())


def _lines(attributes: Description, indent: str) -> Iterator[str]:
    """Attributes, a line each; a long text is cut to the beginning of its first line."""
    for key, value in attributes.items():
        first = value.partition("\n")[0][:100]
        yield f"{indent}{key}: {first}" + (f"... ({len(value):,} characters)" if first != value else "")


def signature(export: Description) -> str:
    """`main(x: 4xf32) -> (4xf32)`."""
    arguments = ", ".join(
        f"{value['name']}: {value['type']}" if value["name"] else value["type"] for value in export["arguments"]
    )
    results = ", ".join(
        value["type"] + (f" in place of argument {value['alias']}" if value["alias"] is not None else "")
        for value in export["results"]
    )
    return f"{export['name']}({arguments}) -> ({results})"


def readable(format: str, payload: memoryview) -> str:
    if format in TENSOR_FORMATS:
        from orchestrion.schema.tensor_disassembler import disassemble

        return disassemble(payload)
    if format == "spirv":
        from .spirv_text import disassemble as spirv

        return spirv(payload)
    if format == "opencl-c":
        return bytes(payload).decode("utf-8", "backslashreplace")
    if format == "native-image":
        return native_image_text(payload)
    return f"// {len(payload)} bytes"


def native_image_text(payload: memoryview) -> str:
    """The entries of a native image, a line each: where their code starts, and the bytes up to the next entry."""
    image = decode_image(payload)
    starts = sorted(entry.offset for entry in image.entries)
    ends = dict(zip(starts, [*starts[1:], len(image.code)], strict=True))
    lines = [f"// {image.architecture}, {len(image.code):,} bytes of code and constants"]
    for number, entry in enumerate(image.entries):
        size = ends[entry.offset] - entry.offset
        lines.append(
            f"// entry {number} at {entry.offset:#x}: {size:,} bytes, bindings: {entry.bindings}, "
            f"parameters: {entry.parameters}, stack: {entry.stack:,} bytes"
        )
    return "\n".join(lines)


def _refuse_together(options: argparse.Namespace) -> None:
    """Raises UsageError for flags of a listing together with those of a page."""
    for flag in ("json", "disassemble") if options.html is not None else ():
        if getattr(options, flag):
            raise cli.UsageError(f"--{flag} cannot be combined with --html")
    for flag in ("profile", "compare") if options.html is None else ():
        if getattr(options, flag) is not None:
            raise cli.UsageError(f"--{flag} needs --html=FILE: it adds to that page")


def dump(options: argparse.Namespace) -> int:
    _refuse_together(options)
    try:
        module = decode(open_file(options.module, **cli.part(options)))
    except ValueError as error:
        raise cli.InputError(f"{options.module}: {error}") from None
    if options.verify:
        for ordinal, (offset, _) in enumerate(module.container.spans):
            if offset:
                data = module.segment(ordinal, verify=False)
                verify_whole(module.segments[ordinal], module.chunks, data, f"segment {ordinal}")
        for attachment in module.container.attachments:
            attachment.verified()
    if options.json:
        json.dump(describe(module), sys.stdout, indent=2)
        print()
        return cli.DONE
    if options.html is not None:
        from .html.page import write

        write(options.html, module, options.module, options.profile, options.compare)
        return cli.DONE
    for line in listing(describe(module)):
        print(printable(line))
    if options.disassemble:
        from orchestrion.schema.disassembler import listing as code

        print("\n" + code(module, readable), end="")
    return cli.DONE


def parser() -> Parser:
    made = cli.parser("vm-dump", "Lists what a module holds.", EXAMPLES)
    made.add_argument("module", metavar="MODULE.fb", help="what vm-compile wrote")
    group = made.group("what is listed")
    group.add_argument("--json", action="store_true", help="the same, as JSON")
    group.add_argument("--disassemble", action="store_true", help="also bytecode and executables, as text to read")
    group.add_argument("--verify", action="store_true", help="read every segment and check its digest")
    cli.add_part(made)
    pictures = made.group("a page for a browser (docs/pictures.md)")
    pictures.add_argument("--html", metavar="FILE", help="write one page with graph, memory and code; - is stdout")
    pictures.add_argument("--profile", metavar="FILE.json", help="add the times of a trace that vm-run --trace wrote")
    pictures.add_argument("--compare", metavar="FILE.json", help="add the errors that vm-run --compare-report wrote")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-dump", parser(), dump, argv)


if __name__ == "__main__":
    sys.exit(main())
