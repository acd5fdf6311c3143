"""Versions: the constants agree with the tables, and a file states the lowest version that it needs."""

from dataclasses import replace

import pytest
from later_format import base

from orchestrion.schema import encoding, isa, needs, rows, spirv, spirv_needs, tensor_bytecode, versions, writer
from orchestrion.schema.decoder import read_module
from orchestrion.schema.profiles import FORMATS


def test_the_versions_are_those_of_the_latest_rows() -> None:
    assert max(row.since for row in isa.INSTRUCTIONS) == versions.BYTECODE_MINOR
    assert max(row.since for row in tensor_bytecode.ROWS) == versions.FORMAT_MINORS["tensor-bytecode"]
    subset = (*spirv.OPS, *spirv.EXT_INSTS, *spirv.CAPABILITIES)
    assert max([row.since for row in subset] + list(spirv.ENUMERANTS_SINCE.values())) == versions.FORMAT_MINORS["spirv"]
    assert set(FORMATS) == set(versions.FORMAT_MINORS)
    assert max((row.since for row in needs.ADDITIONS), default=0) == versions.MINOR


def test_enumerants_that_came_later_are_there() -> None:
    known = {*spirv.DECORATIONS, *spirv.BUILTINS, *spirv.STORAGE_CLASSES}
    assert set(spirv.ENUMERANTS_SINCE) <= known
    assert len(known) == len(spirv.DECORATIONS) + len(spirv.BUILTINS) + len(spirv.STORAGE_CLASSES)


def test_a_file_states_the_least_format_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    later = needs.Addition(4, "custom segments, say", lambda module: bool(module.custom))
    monkeypatch.setattr(needs, "ADDITIONS", (later, needs.Addition(9, "nobody's", lambda module: False)))
    assert needs.header_minor(base()) == 0
    assert needs.header_minor(replace(base(), custom={"a": b""})) == 4


def code(*names: str) -> bytes:
    return b"".join(isa.BY_NAME[name].opcode.to_bytes(2, "little") + bytes(2) for name in names)


def test_a_program_states_the_least_bytecode_that_its_functions_need(monkeypatch: pytest.MonkeyPatch) -> None:
    row = isa.BY_NAME["i32.zero"]
    later = replace(row, since=6)
    monkeypatch.setattr(needs, "BYTECODE_MINOR", 6)
    assert needs.bytecode_minor([code("i32.zero")]) == 0
    monkeypatch.setitem(encoding.READERS, row.opcode, (later, *encoding.READERS[row.opcode][1:]))
    assert needs.bytecode_minor([code("i64.zero"), code("i64.zero", "i32.zero")]) == 6
    assert needs.bytecode_minor([code("i64.zero")]) == needs.bytecode_minor([]) == 0
    assert needs.bytecode_minor([b"no instructions"]) == 0, "who loads it says what is wrong"
    program = base().programs[0]
    program = replace(program, functions=(replace(program.functions[0], bytecode=code("i32.zero")),))
    made = read_module(writer.write(replace(base(), programs=(program, replace(program, name="b", bytecode_minor=8)))))
    assert [row.bytecode_minor for row in made.programs] == [6, 8]


def test_tensor_bytecode_states_its_own_minor() -> None:
    payload = b"OTBC" + (1).to_bytes(2, "little") + (2).to_bytes(2, "little") + bytes(4)
    assert needs.format_minor("tensor-bytecode", payload) == 2
    assert needs.format_minor("tensor-bytecode", b"OTBT" + payload[4:]) == 2
    assert needs.format_minor("tensor-bytecode", b"") == needs.format_minor("tensor-bytecode", b"other bytes") == 0
    assert needs.format_minor("opencl-c", payload) == needs.format_minor("another", payload) == 0


def words(*numbers: int) -> memoryview:
    header = (spirv.MAGIC, spirv.VERSION, 0, 9, 0)
    return memoryview(b"".join(number.to_bytes(4, "little") for number in (*header, *numbers)))


def instruction(name: str, *operands: int) -> tuple[int, ...]:
    return (1 + len(operands)) << 16 | spirv.OP_BY_NAME[name].code, *operands


SHADER = (
    *instruction("OpCapability", 1),
    *instruction("OpDecorate", 3, spirv.DECORATIONS["BuiltIn"][0], spirv.BUILTINS["WorkgroupId"]),
    *instruction("OpMemberDecorate", 3, 0, spirv.DECORATIONS["Offset"][0], 0),
    *instruction("OpVariable", 1, 2, spirv.STORAGE_CLASSES["Workgroup"]),
    *instruction("OpTypePointer", 4, spirv.STORAGE_CLASSES["PushConstant"], 2),
    *instruction("OpExtInst", 1, 5, 2, spirv.EXT_BY_NAME["UMin"].code, 6, 7),
    *instruction("OpReturn"),
)


def test_a_shader_needs_what_its_rows_came_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spirv_needs.least_minor(words(*SHADER)) == 0
    for name in ("WorkgroupId", "BuiltIn", "Offset", "Workgroup", "PushConstant"):
        monkeypatch.setitem(spirv.ENUMERANTS_SINCE, name, 3)
        assert spirv_needs.least_minor(words(*SHADER)) == 3, name
        monkeypatch.delitem(spirv.ENUMERANTS_SINCE, name)
    for table, key in (
        (spirv.OP_BY_CODE, spirv.OP_BY_NAME["OpReturn"].code),
        (spirv.EXT_BY_CODE, spirv.EXT_BY_NAME["UMin"].code),
        (spirv.CAPABILITY_BY_CODE, 1),
    ):
        row = table[key]  # type: ignore[index]
        monkeypatch.setitem(table, key, replace(row, since=5))  # type: ignore[arg-type, type-var]
        assert spirv_needs.least_minor(words(*SHADER)) == 5, row
        monkeypatch.setitem(table, key, row)  # type: ignore[arg-type]


def test_what_is_no_shader_of_the_subset_needs_nothing() -> None:
    """The checker reports the reason later."""
    for numbers in ((0,), (0xFFFF,), (5 << 16 | spirv.OP_BY_NAME["OpReturn"].code,), (0x7FFF_0001, 1)):
        assert spirv_needs.least_minor(words(*numbers)) == 0
    assert spirv_needs.least_minor(memoryview(b"")) == spirv_needs.least_minor(memoryview(b"abc")) == 0


def test_compiled_modules_state_what_they_need() -> None:
    module = read_module(writer.write(base()))
    assert (module.header.minor, module.programs[0].bytecode_minor, module.variants[0].format_minor) == (0, 0, 0)
    assert rows.NONE == module.segments[0].name
