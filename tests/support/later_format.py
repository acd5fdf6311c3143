"""Files of a synthetic version 1.9: what later versions may add, for readers of 1.0 to open or to refuse by name.

`files` builds them from a small program with the writer of today and what a later one would write beside it. For a
reader that is installed elsewhere: `python tests/support/later_format.py FOLDER` writes them and `expected.json`.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import flatbuffers

from orchestrion.schema import container, writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import MUST_UNDERSTAND, Attachment, Section
from orchestrion.schema.isa import BY_NAME
from orchestrion.schema.layout import layout

#: `seven` gives 7
PROGRAM = """
export @seven
program @today profile "reference" {
  constant @c : tensor<4xi8> = hex "01020304"
  executable @e { entry @x bindings [] variant "tensor-bytecode" workgroups [(1, 1, 1)] payload hex "00" }
  func @seven () -> (i32) { %i0 = i32.const 7 return (%i0) }
  entry @seven
}
"""
#: an instruction that this version does not know
LATER_CODE = (0x7777).to_bytes(2, "little") + bytes(8)


class Later(NamedTuple):
    """`refusal`: what a reader of 1.0 says; empty where it opens the file, and `seven` gives 7."""

    data: bytes
    refusal: str = ""


class _Tables(writer._Tables):
    """A root with fields behind those that are known."""

    def __init__(self, module: writer.Module, further: int = 0) -> None:
        super().__init__(module)
        self.further = further

    def set(self, vector: str, row: int, column: str, value: Any) -> None:
        position = next(c.position for c in layout().vector(vector).columns if c.name == column)
        values = list(self.rows[vector][row])
        values[position] = value
        self.rows[vector][row] = tuple(values)

    def needs(self, minor: int = 0, features: int = 0, *names: str) -> None:
        """The header's version and features, and the names of these."""
        _, major, _, producer = self.header
        self.rows["feature_names"] += [(self.string(name),) for name in names]
        self.header = (features, major, minor, producer)

    def root(self) -> bytes:
        if not self.further:
            return super().root()
        return _with_further_fields(super().root(), self.further)


def _with_further_fields(root: bytes, count: int) -> bytes:
    """The root with fields behind the last one: by turns a vector, a number and a struct."""
    plan = layout()
    blobs = {v.name: _vector_of(root, v.slot, v.format.size) for v in plan.vectors}
    builder = flatbuffers.Builder(2 * len(root))
    placed = {v.slot: writer._vector(builder, v, blobs[v.name]) for v in plan.vectors if blobs[v.name] is not None}
    first = 1 + len(plan.vectors)
    vectors = {first + at: builder.CreateByteVector(b"later " * 9) for at in range(0, count, 3)}
    builder.StartObject(first + count)
    builder.Prep(plan.header.alignment, plan.header.format.size)
    writer._place(builder, _header_of(root))
    builder.PrependStructSlot(plan.header.slot, builder.Offset(), 0)
    for slot, offset in (placed | vectors).items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for at in range(1, count, 3):
        builder.PrependUint64Slot(first + at, 2**64 - 1, 0)
    for at in range(2, count, 3):
        builder.Prep(8, 24)
        writer._place(builder, b"a later struct          ")
        builder.PrependStructSlot(first + at, builder.Offset(), 0)
    builder.FinishSizePrefixed(builder.EndObject(), file_identifier=plan.identifier)
    return bytes(builder.Output())


def _field(root: bytes, slot: int) -> int:
    table = 4 + int.from_bytes(root[4:8], "little")
    vtable = table - int.from_bytes(root[table : table + 4], "little", signed=True)
    if 4 + 2 * slot >= int.from_bytes(root[vtable : vtable + 2], "little"):
        return 0
    field = int.from_bytes(root[vtable + 4 + 2 * slot : vtable + 6 + 2 * slot], "little")
    return table + field if field else 0


def _header_of(root: bytes) -> bytes:
    at = _field(root, 0)
    return root[at : at + layout().header.format.size]


def _vector_of(root: bytes, slot: int, width: int) -> bytes | None:
    at = _field(root, slot)
    if not at:
        return None
    start = at + int.from_bytes(root[at : at + 4], "little")
    count = int.from_bytes(root[start : start + 4], "little")
    return root[start + 4 : start + 4 + count * width]


def base() -> writer.Module:
    return assemble(PROGRAM)


def packed(
    change: Callable[[_Tables], None] = lambda _: None,
    module: writer.Module | None = None,
    further: int = 0,
    attachments: tuple[Attachment, ...] = (),
    sections: tuple[Section, ...] = (),
) -> bytes:
    """The file of a module whose rows were changed; the reader of today has not looked at it."""
    tables = _Tables(module or base(), further)
    change(tables)
    return b"".join(container.build(tables.root(), tables.segments, attachments, sections))


def _later_program(name: str = "later", minor: int = 9) -> writer.Program:
    """A program whose instructions came with a later version."""
    (program,) = base().programs
    function = replace(program.functions[0], bytecode=LATER_CODE + program.functions[0].bytecode)
    return replace(program, name=name, functions=(function,), bytecode_minor=minor)


def _with(*programs: writer.Program) -> writer.Module:
    """The module with these programs before its own."""
    module = base()
    return replace(module, programs=(*programs, *module.programs))


def _only(program: writer.Program) -> writer.Module:
    return replace(base(), programs=(program,))


def _later_variant(program: writer.Program, before: bool, **changes: Any) -> writer.Program:
    """The program with a variant that is changed before its own, or in place of it."""
    (executable,) = program.executables
    (variant,) = executable.variants
    variants = (replace(variant, **changes), *([variant] if before else []))
    return replace(program, executables=(replace(executable, variants=variants),))


def _unknown_feature(vector: str) -> Callable[[_Tables], None]:
    return lambda tables: tables.set(vector, 0, "features", 1 << 63)


def _segment(kind: int, name: str = "") -> Callable[[_Tables], None]:
    """A segment of a kind that came later."""

    def change(tables: _Tables) -> None:
        data = memoryview(b"what a later version keeps in a segment")
        tables.segments.append(data)
        named = tables.string(name) if name else 0xFFFFFFFF
        tables.rows["segments"].append((len(data), sha256(data).digest(), 0, 0, kind, named))

    return change


def _attribute(tables: _Tables) -> None:
    tables.attributes("attributes", {"later.table": b"\xff\0"})
    tables.set("attributes", 0, "kind", 9)


def optional() -> Iterator[tuple[str, Later]]:
    """Additions that a reader skips."""
    for count in (1, 2, 9, 300):
        yield f"{count} fields behind the last", Later(packed(further=count))
    yield "attachment", Later(packed(attachments=(Attachment("NEW1", b"data"), Attachment("NEW2", b"", 6))))
    yield "section", Later(packed(sections=(Section("later", b"data"), Section("later", b"", 0x80000002))))
    yield "segment kind", Later(packed(_segment(57)))
    yield "named segment kind", Later(packed(_segment(2**32 - 1, "later")))
    yield "attribute kind", Later(packed(_attribute))
    yield "another program's bytecode", Later(packed(module=_with(_later_program())))
    yield "another program's features", Later(packed(_unknown_feature("programs"), _with(_later_program(minor=0))))
    two = replace(base().programs[0], name="two")
    yield "another program's devices", Later(packed(lambda t: t.set("programs", 0, "devices", 2), _with(two)))
    yield "another program's profile", Later(packed(module=_with(replace(two, profile="wgsl"))))
    both = _only(_later_variant(base().programs[0], True))
    yield "another variant's features", Later(packed(_unknown_feature("variants"), both))
    yield (
        "another variant's version",
        Later(packed(module=_only(_later_variant(base().programs[0], True, format_minor=9)))),
    )
    yield (
        "another variant's format",
        Later(packed(module=_only(_later_variant(base().programs[0], True, format="wgsl")))),
    )


def required() -> Iterator[tuple[str, Later]]:
    """Additions without which the file means something else."""
    yield "minor version", Later(packed(lambda t: t.needs(9)), "the module needs format 1.9, this version reads 1.0")
    yield (
        "minor version and fields",
        Later(packed(lambda t: t.needs(9), further=5), "the module needs format 1.9, this version reads 1.0"),
    )
    for features, names, words in (
        (1 << 5, ("compressed strings",), "0x20 of the format (compressed strings)"),
        (1 << 63 | 1, ("first", "last"), "0x8000000000000001 of the format (first, last)"),
        (1 << 4, (), "0x10 of the format (bit 4)"),
    ):
        data = packed(lambda t, f=features, n=names: t.needs(0, f, *n))  # type: ignore[misc]
        yield f"features {features:#x}", Later(data, f"the module needs features {words}, which this version does not")
    attachment = packed(attachments=(Attachment("NEW1", b"data", MUST_UNDERSTAND),))
    yield "attachment to understand", Later(attachment, "attachment 'NEW1' must be understood")
    section = packed(sections=(Section("later", b"data", MUST_UNDERSTAND),))
    yield "section to understand", Later(section, "section 'later' must be understood")
    data = packed(module=_only(_later_program()))
    yield "bytecode", Later(data, "later (wants bytecode 1.9, this version runs up to 1.0)")
    data = packed(_unknown_feature("programs"))
    yield "features of a program", Later(data, "today (wants features 0x8000000000000000, which this version does not")
    data = packed(lambda t: t.set("programs", 0, "devices", 2))
    yield "devices", Later(data, "today (wants 2 devices, this version runs on 1)")
    data = packed(module=_only(replace(base().programs[0], profile="wgsl")))
    yield "profile", Later(data, "today (its profile wgsl is unknown to this version)")
    data = packed(_unknown_feature("variants"))
    yield "features of a variant", Later(data, "tensor-bytecode: wants features 0x8000000000000000, which this version")
    data = packed(module=_only(_later_variant(base().programs[0], False, format_minor=9)))
    yield "version of a variant", Later(data, "wants tensor-bytecode 1.9, this version runs up to 1.2")
    data = packed(module=_only(_later_variant(base().programs[0], False, format="wgsl")))
    yield "format of a variant", Later(data, "wgsl: the device runs tensor-bytecode")


def files() -> dict[str, Later]:
    return {**dict(optional()), **dict(required())}


def main(folder: Path) -> None:
    """Writes N.fb, and in `expected.json` what each holds and how it is refused."""
    expected = []
    for at, (name, (data, refusal)) in enumerate(files().items()):
        (folder / f"{at}.fb").write_bytes(data)
        expected.append({"file": f"{at}.fb", "holds": name, "refusal": refusal})
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


assert int.from_bytes(LATER_CODE[:2], "little") not in {row.opcode for row in BY_NAME.values()}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
