"""The decoder: the same rows as flatc's reader, a refusal for each check of the schema, no other error
for any bytes.
"""

import os
import random
import re
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import later_format
import module_generated
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrion.schema import (
    container,
    decoder,
    root_generated,
    root_generator,
    rows,
    structure,
    writer,
)
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.layout import Column, Vector, layout
from orchestrion.schema.module import Module

Patch = Callable[[bytes, str, int, int, int], bytes]


def test_gives_back_what_was_written(data: bytes) -> None:
    module = decoder.read_module(data)
    strings = module.strings
    assert [strings[row.name] for row in module.exports] == ["main", "add", "grow"]
    assert strings[module.exports[0].doc] == "multiplies, größer als nichts"
    assert strings[module.header.producer] == "tests"
    assert [strings[row.profile] for row in module.programs] == ["reference", "spirv", "opencl"]
    spirv = module.programs[1]
    assert spirv.features == 0b1100
    functions = module.functions[spirv.functions_start : spirv.functions_end]
    assert [strings[row.name] for row in functions] == ["main", "add", "setup", "prepare"]
    assert module.entries[spirv.entries_start : spirv.entries_end] == (0, 1, 0)
    add = functions[1]
    types = [strings[module.types[t]] for t in module.value_types[add.arguments_start : add.results_end]]
    assert types == ["i32", "i64", "i64", "f32"]
    assert bytes(module.bytecode[add.bytecode_start : add.bytecode_end]) == bytes(range(100, 130))
    assert (add.i32, add.i64, add.f32, add.f64, add.ref) == (4, 3, 2, 1, 6)
    result = module.results[0]
    assert (module.dims[result.dims_start : result.dims_end], result.alias) == ((4,), 1)
    assert module.results[1].alias == rows.NONE
    grown = module.results[-1]
    assert module.dims[grown.dims_start : grown.dims_end] == (-2, -1)
    assert [strings[text] for text in module.expressions] == ["batch", "2 * batch"]
    attributes = {strings[row.key]: module.attribute_value(row) for row in module.attributes}
    assert attributes == {"licence": "Apache-2.0", "card": "ein Modell", "icon": b"\x89PNG"}
    assert (module.attribute("card"), module.attribute("cards")) == ("ein Modell", None)
    assert (module.export_attribute(0, "task"), module.export_attribute(0, "labels")) == ("größer", b"\xff\0")
    assert module.export_attribute(1, "task") is None
    assert [module.program_attribute(i, "tuned.for") for i in range(3)] == ["reference", "spirv", "opencl"]
    assert (module.custom("org.example.tokens"), module.custom("org.example.empty")) == (b"a b c", b"")
    assert module.custom("org.example") is None


def test_globals_start_with_their_values(data: bytes) -> None:
    module = decoder.read_module(data)
    found = {
        module.strings[row.name]: decoder.initial_value(module.strings[module.types[row.type]], row.value)
        for row in module.globals
    }
    assert found == {"executable": None, "count": -7, "long": 2**40, "half": 0.5, "third": 1 / 3}


def test_segments_are_zero_copy_and_equal_ones_are_one(data: bytes) -> None:
    module = decoder.read_module(data)
    for program in module.programs:
        weights = module.constants[program.constants_start]
        view = module.segment(weights.segment, verify=False)
        assert view.obj is data
        assert np.array_equal(np.frombuffer(view, np.float32), np.arange(20))
    assert len({row.segment for row in module.constants}) == 3


def test_a_damaged_segment_is_refused_when_verified(data: bytes) -> None:
    module = decoder.read_module(data)
    for ordinal, (offset, size) in enumerate(module.container.spans):
        assert module.segment(ordinal).nbytes == size
        if size:
            damaged = bytearray(data)
            damaged[offset + size // 2] ^= 1
            other = decoder.read_module(damaged)
            other.segment(ordinal, verify=False)
            with pytest.raises(ModuleError, match=rf"segment {ordinal} is damaged: .*at byte {offset}\)"):
                other.segment(ordinal)


def test_locations(data: bytes) -> None:
    module = decoder.read_module(data)
    assert module.location(2, 1, 7) == "add.py:1:2"
    assert module.location(2, 1, 8) == "add.py:3:4"
    assert module.location(0, 9, 0) is None


# flatc's reader is the outside oracle for the structure.


def _generated(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _read(row: Any, column: Column) -> tuple[Any, ...]:
    access = getattr(row, _generated(column.name))
    if column.type == "Range":
        value = access(module_generated.Range())
        return value.Start(), value.End()
    if column.type == "Digest":
        return (_digest(access(module_generated.Digest())),)
    return (access(),)


def _digest(row: Any) -> bytes:
    return struct.pack("<4Q", row.A(), row.B(), row.C(), row.D())


def test_agrees_with_flatc(data: bytes) -> None:
    ours = decoder.read_module(data)
    root = bytes(ours.container.root)
    assert module_generated.Module.ModuleBufferHasIdentifier(root, 0, size_prefixed=True)
    theirs = module_generated.Module.GetRootAs(root, 4)
    for vector in (layout().header, *layout().vectors):
        access = getattr(theirs, _generated(vector.name))
        if vector.name == "header":
            assert ours.header == tuple(v for column in vector.columns for v in _read(access(), column))
            continue
        count = getattr(theirs, _generated(vector.name) + "Length")()
        elements = [access(i) for i in range(count)]
        assert count or vector.name in EMPTY, f"{vector.name} is empty in the test module"
        if vector.name == "strings":
            assert ours.strings == bytes(elements).decode().split("\0")
        elif vector.element == "Digest":
            assert bytes(ours.chunks) == b"".join(map(_digest, elements))
        elif vector.row is None:
            assert list(getattr(ours, vector.name)) == elements
        else:
            found = [tuple(v for column in vector.columns for v in _read(row, column)) for row in elements]
            assert getattr(ours, vector.name) == found


# Every check that the schema asks for refuses what it should.

VECTORS = layout().vectors
CHECKED = ("string", "index", "local", "owns", "range", "kind", "dtype")
#: without rows in this version
EMPTY = ("feature_names",)
CASES = [
    (vector, column, attribute)
    for vector in VECTORS
    for column in vector.columns
    for attribute in [*column.attributes, *(["enum"] if column.type in layout().enums else [])]
    if attribute in (*CHECKED, "enum") and "open" not in column.attributes and vector.name not in EMPTY
]


MESSAGES = {
    "string": r"{}.*: \d+ is out of range \(\d+ strings\)",
    "index": r"{}.*: \d+ is out of range",
    "local": r"{}.*: \d+ is out of range .* of its owner",
    "owns": r"\[[01]\].*: \d+ to \d+ does not continue at \d+|rows; \d+ of them have owners",
    "range": r"{}.*: \d+ to \d+ is out of range",
    "kind": r"{}.*: segments\[\d+\] is no [\w ]+ segment",
    "dtype": r"{}.*: no element type of format 1.0 has code \d+; a newer one may",
    "enum": r"{}.*: no \w+ of format 1.0 has code \d+; a newer one may",
}


def test_no_attribute_is_without_a_check() -> None:
    text = (Path(container.__file__).parent / "module.fbs").read_text(encoding="utf-8")
    declared = set(re.findall(r'attribute "(\w+)"', text))
    assert declared == {*CHECKED, "open", "optional", "pad"}


def _values(attribute: str, data: bytes, vector: Vector, column: Column) -> list[tuple[int, int]]:
    """(position, value) of changes that the check of this attribute must refuse."""
    module = decoder.read_module(data)
    position = column.position
    if attribute in ("owns", "range"):
        start, end = getattr(module, vector.name)[0][position : position + 2]
        beyond = len(getattr(module, column.attributes[attribute])) + 1
        return [(position, end + 1), (position + 1, beyond), (position + 1, 2**32 - 1)] + (
            [(position, start + 1), (position + 1, end + 1)] if attribute == "owns" else []
        )
    if attribute == "kind":
        other = next(
            i
            for i, row in enumerate(module.segments)
            if rows.SegmentKind(row.kind).name not in column.attributes["kind"].split("|")
        )
        return [(position, other)]
    if attribute in ("dtype", "enum"):
        return [(position, 77), (position, 2**32 - 1)]
    target = "strings" if attribute == "string" else column.attributes[attribute]
    count = (
        4
        if attribute == "local" and target == "functions"
        else 2
        if attribute == "local"
        else len(getattr(module, target))
    )
    return [(position, count), (position, 2**32 - 2)] + (
        [] if "optional" in column.attributes else [(position, rows.NONE)]
    )


@pytest.mark.parametrize(("vector", "column", "attribute"), CASES, ids=lambda x: getattr(x, "name", x))
def test_every_check_refuses(data: bytes, patch: Patch, vector: Vector, column: Column, attribute: str) -> None:
    for position, value in _values(attribute, data, vector, column):
        damaged = patch(data, vector.name, 0, position, value)
        with pytest.raises(ModuleError, match=MESSAGES[attribute].format(re.escape(f"{vector.name}[0]"))) as caught:
            decoder.read_module(damaged)
        assert caught.value.offset is not None


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.name not in EMPTY], ids=lambda v: v.name)
def test_a_count_beyond_the_root_is_refused_at_no_cost(data: bytes, vector: Vector) -> None:
    _, tables = structure.structure(container.open_bytes(data).root)
    offset = tables.offsets[vector.slot] - 4
    for count in (2**32 - 1, len(data) // vector.format.size):
        damaged = container.reseal(data[:offset] + struct.pack("<I", count) + data[offset + 4 :])
        tracemalloc.start()
        with pytest.raises(ModuleError, match=f"{vector.name} has {count} elements"):
            decoder.read_module(damaged)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * len(data)


def _with_header(data: bytes, **fields: int) -> bytes:
    root = container.open_bytes(data).root
    header = decoder.read_module(data).header
    old = layout().header.format.pack(*header)
    offset = bytes(root).index(old)
    return container.reseal(
        data[:offset] + layout().header.format.pack(*header._replace(**fields)) + data[offset + 16 :]
    )


def test_versions(data: bytes) -> None:
    with pytest.raises(ModuleError, match=r"needs format 2\.0, this version reads 1\.0 to 1\.0"):
        decoder.read_module(_with_header(data, major=2))
    with pytest.raises(ModuleError, match=r"format 0\.9"):
        decoder.read_module(_with_header(data, major=0, minor=9))
    with pytest.raises(ModuleError, match=r"format 1\.1"):
        decoder.read_module(_with_header(data, minor=1))
    with pytest.raises(ModuleError, match=r"needs features 0x8000000000000001 of the format \(bit 0, bit 63\)"):
        decoder.read_module(_with_header(data, features=1 << 63 | 1))
    with pytest.raises(ModuleError, match="header.producer: 99999 is out of range"):
        decoder.read_module(_with_header(data, producer=99999))


def test_strings_must_be_utf8(data: bytes) -> None:
    offset = data.index("größer als".encode()) + 2
    damaged = container.reseal(data[:offset] + b"\xff" + data[offset + 1 :])
    with pytest.raises(ModuleError, match=rf"strings are not UTF-8: .*at byte {offset}\)"):
        decoder.read_module(damaged)


def test_root_and_directory_must_agree(data: bytes, patch: Patch) -> None:
    module = decoder.read_module(data)
    size = module.segments[0].size
    with pytest.raises(ModuleError, match=rf"segment 0 has {size} bytes in the directory, {size + 1} in the root"):
        decoder.read_module(patch(data, "segments", 0, 0, size + 1))
    root = bytes(module.container.root)
    middle, offsets = container.directory(root, [4])
    with pytest.raises(ModuleError, match=rf"the root has {len(module.segments)} segments, the directory 1"):
        decoder.read_module(root + middle + bytes(offsets[0] - len(root + middle)) + b"code")


# Any bytes give a module or the one error.


def _agree(root: memoryview) -> None:
    """Checks that the generated decoder accepts the same roots, with the same rows, as the one that interprets the
    schema.
    """
    quick = root_generated.decode(root)
    try:
        slow = structure.decode(root)
    except ModuleError:
        assert quick is None
        return
    assert quick is not None
    for name in ("header", *(vector.name for vector in layout().vectors)):
        assert list(getattr(quick, name)) == list(getattr(slow, name))


@pytest.mark.parametrize("file", later_format.files().values(), ids=list(later_format.files()))
def test_both_decoders_take_the_same_roots_of_later_versions(file: later_format.Later) -> None:
    try:
        root = container.open_bytes(file.data).root
    except ModuleError as error:
        assert file.refusal in str(error)
        return
    _agree(root)


def test_the_written_decoder_is_up_to_date() -> None:
    path = Path(root_generated.__file__)
    if os.environ.get("BLESS"):
        path.write_text("\n".join(root_generator.generate()) + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == "\n".join(root_generator.generate()).splitlines()


def _decodes(data: bytes) -> Module | None:
    try:
        _agree(container.open_bytes(data).root)
        module = decoder.read_module(data)
        for ordinal in range(len(module.segments)):
            module.segment(ordinal)
        for program in range(len(module.programs)):
            module.location(program, 0, 0)
    except ModuleError:
        return None
    return module


INTERESTING = [0, 1, 2, 3, 4, 7, 8, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]


def _mutant(data: bytes, choose: random.Random) -> bytes:
    """A file in which some words or bytes of root, directory or segments are replaced, moved or swapped, with digests
    updated.
    """
    changed = bytearray(data)
    end = decoder.read_module(data).container.spans[0][0] if choose.random() < 0.9 else len(data)
    for _ in range(choose.choice((1, 1, 1, 2, 5))):
        offset = choose.randrange(8, end - 4)
        match choose.randrange(5):
            case 0:
                changed[offset] ^= 1 << choose.randrange(8)
            case 1:
                struct.pack_into("<I", changed, offset & ~3, choose.choice(INTERESTING))
            case 2:
                word = struct.unpack_from("<I", changed, offset & ~3)[0]
                struct.pack_into("<I", changed, offset & ~3, (word + choose.choice((-8, -4, -1, 1, 4, 8))) % 2**32)
            case 3:
                other = choose.randrange(4, end - 4)
                changed[offset & ~3 : (offset & ~3) + 4] = changed[other & ~3 : (other & ~3) + 4]
            case _:
                struct.pack_into("<Q", changed, min(offset & ~7, end - 8), choose.choice((2**63 - 1, 2**64 - 1, 2**40)))
    try:
        return writer.reseal(bytes(changed))
    except ModuleError:
        return container.reseal(bytes(changed))


def test_mutants_give_a_module_or_the_one_error(data: bytes) -> None:
    choose = random.Random(7)
    decoded = sum(_decodes(_mutant(data, choose)) is not None for _ in range(3000))
    assert 30 < decoded < 1500, "mutants must reach both ends"


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(4, 5000), st.binary(min_size=1, max_size=8)), min_size=1, max_size=6))
def test_edited_bytes_give_a_module_or_the_one_error(data: bytes, edits: list[tuple[int, bytes]]) -> None:
    changed = bytearray(data)
    for offset, new in edits:
        offset = min(offset, len(changed) - len(new))
        changed[offset : offset + len(new)] = new
    _decodes(container.reseal(bytes(changed)))


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=400))
def test_any_root_gives_a_module_or_the_one_error(body: bytes) -> None:
    root = struct.pack("<I", len(body) + 8) + body[:4].ljust(4, b"\0") + b"ORCH" + body[4:].ljust(len(body) - 4, b"\0")
    root = struct.pack("<I", len(root) - 4) + root[4:]
    _decodes(root + container.directory(root, [])[0])


def _steps(function: Callable[[], object]) -> int:
    """The number of Python bytecode instructions of a call: a measure of work that does not depend on
    other processes.
    """
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return steps


def test_work_is_linear_in_the_root() -> None:
    """Rows shared by all programs and executables would make the checks quadratic, so ranges may not overlap."""
    program = writer.Program("p", "reference", [writer.Function("f", b"")], [0])

    def work(count: int) -> int:
        programs = [writer.Program(f"p{i}", "reference", program.functions, [0]) for i in range(count)]
        data = writer.write(writer.Module(programs, [writer.Export("f")]))
        decoder.read_module(data)
        return _steps(lambda: decoder.read_module(data))

    assert work(1600) < 9 * work(200)
