"""The assembler: the module of a text, disassembly and reassembly to the same bytes, errors with line and column."""

from pathlib import Path
from typing import Any

import pytest

from orchestrion.schema.assembler import AssemblyError, assemble
from orchestrion.schema.container import Attachment, Section
from orchestrion.schema.decoder import read_module
from orchestrion.schema.disassembler import disassemble
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.encoding import decode
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.rows import Access, InitializerKind
from orchestrion.schema.writer import (
    Binding,
    Function,
    Global,
    Initializer,
    Module,
    Parameter,
    Program,
    Value,
    write,
)

VM_TESTS = Path(__file__).parents[1] / "vm"

SOURCE = """
// everything there is, with comments
producer "somebody"
attribute "licence" = "Apache-2.0"
attribute "a \\"quoted\\" key" = "line\\nbreak"
attribute "icon" = hex "89 50"
custom "org.example" = hex "00ff"
custom "nothing" = hex ""
attachment "SIGN" = hex "0102"
attachment "NEXT" flags 2 = hex ""
section "appended" = hex "030405"
section "x" flags 256 = hex ""
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @"strange name" (i32, (any, i64)*) -> (i32, any) optional
export @main doc "does it" (x: tensor<4x0xf32>, "1y": tensor<i1>) -> (z: tensor<4x0xf32> alias 0, w: tensor<ui64>)
export @plain attributes ["task" = "none", "labels" = hex "00"]
program @one profile "reference" features [int64, robust] minor 7 {
  attribute "tuned" = "no"
  global @g : i64 mutable = -5
  global @h : hal.recording mutable
  global @k : f32 = -0.0
  global @n : f64 = 0x7ff8000000000001
  constant @w : tensor<2x2xi8> = hex "01 02 03 04"
  parameter @"layer['p']" : tensor<2x3xbf16>
  parameter @q : tensor<i8> digest "01 02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
  executable @e {
    entry @d parameters 2 bindings [read 16, write 16, readwrite 0]
    entry @f bindings [] from "stablehlo.add stablehlo.reduce(maximum)"
    variant "tensor-bytecode" workgroups [(1, 1, 1), (8, 2, 1)] payload hex "0011"
    variant "spirv" features [int8] minor 3 shared 64 workgroups [(64, 1, 1), (8, 8, 1)] payload hex ""
  }
  func @main (hal.view, hal.view, hal.view, hal.view) -> (hal.view, hal.view) {
    return (%r2, move %r3)
  }
  func @plain () -> () registers (3, 0, 0, 0, 1) {
    %i0 = i32.const -7  loc "a.mlir:1:2"
    br_table %i0, ^end, [^end, ^back]
  ^back:
    %i0, %r0 = call @pair(%i0, move %r0)  loc "a.mlir:3:4"
    check %i0, "\\"é\\""
    global.store.ref %r0, @h
    br ^back
  ^end:
    return ()
  }
  func @pair (i32, any) -> (i32, any) {
    %i0, %r0 = call_import @"strange name"(%i0, %r0, %l0)
    %f0 = f32.const 0x7fa00001
    %f0 = f32.const 1e-45
    %d0 = f64.const -inf
    %r1 = buffer.constant @w, %l0, %l0
    return (%i0, %r0)
  }
  func @twice () -> () { return () }
  func @twice () -> () { call #3() return () }
  initializer program @pair
  initializer context #3
  entry @main
  entry @plain
}
program @two profile "spirv" {
  func @twice () -> () { return () }
  entry @twice
  entry #0
}
"""


def test_rows() -> None:
    module = assemble(SOURCE)
    assert module.producer == "somebody"
    assert module.attributes == {"licence": "Apache-2.0", 'a "quoted" key': "line\nbreak", "icon": b"\x89P"}
    assert module.exports[1].attributes == {"task": "none", "labels": b"\0"}
    assert (module.programs[0].attributes, module.programs[0].bytecode_minor) == ({"tuned": "no"}, 7)
    assert module.custom == {"org.example": b"\0\xff", "nothing": b""}
    assert module.attachments == (Attachment("SIGN", b"\1\2"), Attachment("NEXT", b"", 2))
    assert module.sections == (Section("appended", b"\3\4\5"), Section("x", b"", 256))
    assert [(row.name, row.signature, row.optional) for row in module.imports] == [
        ("hal.execute", "(hal.recording, hal.buffer*) -> ()", False),
        ("strange name", "(i32, (any, i64)*) -> (i32, any)", True),
    ]
    main = module.exports[0]
    assert (main.doc, main.arguments[1].name, main.results[0].alias) == ("does it", "1y", 0)
    assert isinstance(main.arguments[0], Value) and main.arguments[0].dims == (4, 0)
    one, two = module.programs
    assert one.features == {"int64", "robust"} and one.globals[0] == Global("g", "i64", True, -5)
    assert one.constants[1:] == (
        Parameter("layer['p']", DTYPES["bf16"], (2, 3)),
        Parameter("q", DTYPES["i8"], (), digest=bytes(range(1, 33))),
    )
    assert one.executables[0].entries[0].bindings[2] == Binding(Access.ReadWrite, 0)
    assert one.executables[0].variants[1].workgroup_sizes == ((64, 1, 1), (8, 8, 1))
    assert one.initializers == (Initializer(2, InitializerKind.Program), Initializer(3, InitializerKind.Context))
    assert (one.entries, two.entries) == ((0, 1), (0, 0))
    plain = one.functions[1]
    assert plain.registers == (3, 0, 0, 0, 1)
    assert plain.locations == [(0, "a.mlir:1:2"), (0x1C, "a.mlir:3:4")]
    assert [row.name for _, row, _ in decode(plain.bytecode)] == [
        "i32.const", "br_table", "call", "check", "global.store.ref", "br", "return",
    ]  # fmt: skip


def round_trip(source: str) -> str:
    data = write(assemble(source))
    text = disassemble(read_module(data))
    assert write(assemble(text)) == data
    return text


def test_the_way_back() -> None:
    text = round_trip(SOURCE)
    assert round_trip(text) == text


@pytest.mark.parametrize("path", sorted(VM_TESTS.glob("programs/*.asm")), ids=lambda path: path.stem)
def test_the_way_back_of_test_programs(path: Path) -> None:
    round_trip(path.read_text())


PROGRAM = 'program @p profile "x" {{ func @f (i32) -> () {{ {} }} }}'
ERRORS = {
    "nonsense": (
        "1:1: one of producer, attribute, custom, attachment, section, import, export, program expected, got 'nonsense'"
    ),
    "import @a (i31) -> ()": "1:12: 'i31' is not a value type",
    "import @a\n  (i32": "2:7: ',' expected, got the end",
    'attribute "a" = "b"\nattribute "a" = "c"': "2:11: attribute '\"a\"' is there twice",
    'attribute "a" = "\\q"': '1:17: bad text: Invalid \\escape: line 1 column 2 (char 1)',
    'producer "a\\u0000b"': "1:10: bad text: a module's strings hold no NUL",
    'producer "\\ud800"': "1:10: bad text: 'utf-8' codec can't encode",
    'import @"a\\u0000b" () -> ()': "1:8: bad text: a module's strings hold no NUL",
    'producer "open': "1:10: unexpected '\"'",
    "export @a (x: f32) -> ()": "1:15: a tensor type such as tensor<4xf32> expected, got 'f32'",
    "export @a (x: tensor<4xf31>) -> ()": "1:15: 'f31' is not an element type",
    "export @a (x: tensor<-4xf32>) -> ()": "1:15: '-4' is not a dimension",
    "export #1": "1:8: an export's name such as @name expected, got '#1'",
    'program @p profile "x" features [int99] {}': "1:34: unknown feature 'int99'; there are int8",
    'program @p profile "x" { thing }': (
        "1:26: one of attribute, global, constant, parameter, executable, func, initializer, entry expected, "
        "got 'thing'"
    ),
    'program @p profile "x" { global @g : i32 = 2147483648 }': "1:44: an i32 2147483648 is not in -2147483648 ..",
    'program @p profile "x" { global @g : any = 1 }': "1:44: a reference starts as null, it has no initial value",
    'program @p profile "x" { constant @c : tensor<1xi8> = hex "0" }': "1:59: bad hexadecimal digits: ",
    'program @p profile "x" { initializer always @f }': "1:38: 'program' or 'context' expected, got 'always'",
    'program @p profile "x" { entry @f }': "1:32: there is no function @f",
    'program @p profile "x" { func @a () -> () { return () } func @a () -> () { return () } entry @a }': (
        "1:94: @a names 2 functions; write #0 or #1"
    ),
    'program @p profile "x" { func @f (i32*) -> () {} }': "1:31: a function takes a fixed number of arguments",
    'program @p profile "x" { func @f (i32) -> () registers (0, 0, 0, 0, 0) { } }': (
        "1:57: number of i32 registers 0 is not in 1 .. 32768"
    ),
    PROGRAM.format("i33.add"): "1:48: unknown instruction 'i33.add'",
    PROGRAM.format("%i0 = i32.add %i0 %i1"): "1:66: ',' expected, got '%i1'",
    PROGRAM.format("%i0 = i32.add %i0, %l1"): "1:67: b is an i32 register, got one of i64",
    PROGRAM.format("%l0 = i32.add %i0, %i1"): "1:54: d is an i32 register, got one of i64",
    PROGRAM.format("i32.add %i0, %i1"): "1:48: i32.add has 1 results, 0 registers stand before '='",
    PROGRAM.format("%i0 = check %i0, \"x\""): "1:54: check has 0 results, 1 registers stand before '='",
    PROGRAM.format("%i0 = i32.copy move %i0"): "1:68: %i0 is not a ref, only refs move",
    PROGRAM.format("%i0 = i32.const 4294967296"): "1:64: an i32 4294967296 is not in -2147483648 .. 4294967295",
    PROGRAM.format("%f0 = f32.const 1e40"): "1:64: 1e40 is out of range of f32",
    PROGRAM.format("%f0 = f32.const 0x1ffffffff"): "1:64: 0x1ffffffff has more than 32 bits",
    PROGRAM.format("%i40000 = i32.zero"): "1:48: register %i40000 is above the limit of 32768",
    PROGRAM.format("%i32767 = i32.zero %l0 = i64.zero"): "1:31: 32769 registers, the limit is 32768",
    PROGRAM.format("br ^x"): "1:51: label ^x is not in this function",
    PROGRAM.format("^x: ^x: br ^x"): "1:52: label ^x is there twice",
    PROGRAM.format("call @g()"): "1:53: there is no function @g",
    PROGRAM.format("call_import @g()"): "1:60: there is no import @g",
    PROGRAM.format("return %i0"): "1:55: '(' expected, got '%i0'",
    PROGRAM.format(f'fail "{"x" * 70000}"'): "1:48: fail",
}  # fmt: skip


@pytest.mark.parametrize("source", ERRORS, ids=lambda source: source[-30:])
def test_errors(source: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(source)
    assert str(caught.value).startswith(ERRORS[source])
    line, column, _ = str(caught.value).split(":", 2)
    assert (caught.value.line, caught.value.column) == (int(line), int(column))


def test_disassembler_refuses_what_no_text_can_say() -> None:
    def text_of(code: str, locations: tuple[tuple[int, str], ...] = ()) -> str:
        function = Function("f", bytes.fromhex(code), (), (), (1, 0, 0, 0, 1), locations)
        return disassemble(read_module(write(Module([Program("p", "x", [function], [])]))))

    assert "%i0 = i32.zero\n" in text_of("0101000006000000")
    for code, message in (
        ("01", "an even count wanted"),
        ("0101050006000000", r"register 5 out of range \(2 registers\)"),
        ("0101008006000000", "register 0x8000 has the move bit but is not a ref that is read"),
        ("010064000000", "a branch to pc 0x64, behind the code"),
        ("010002000000" + "06000000", "a branch to pc 0x2, inside an instruction"),
    ):
        with pytest.raises(ModuleError, match=message):
            text_of(code)
    with pytest.raises(ModuleError, match="a location at pc 0x2, inside an instruction"):
        text_of("0101000006000000", ((2, "x"),))


def test_disassembler_refuses_rows_that_no_text_can_say() -> None:
    """Found by fuzzing: the disassembled text was refused by the assembler or gave another module."""

    def text_of(function: Function, features: int = 0, **rows: Any) -> str:
        data = bytearray(write(Module([Program("p", "x", [function], [], **rows)])))
        module = read_module(bytes(data))
        module.programs = [row._replace(features=features) for row in module.programs]
        return disassemble(module)

    end = bytes.fromhex("06000000")
    plain = Function("f", end)
    assert "features [int8]" in text_of(plain, 1)
    for function, rows, message in (
        (
            Function("f", bytes.fromhex("0101010006000000"), (), (), (1, 0, 0, 0, 1)),
            {},
            "register 1 is one of ref, its",
        ),
        (Function("f", end, ("any",), (), (1, 0, 0, 0, 0)), {}, r"registers \[1, 0, 0, 0, 0\], its arguments and code"),
        (Function("f", end, (), (), (40000, 0, 0, 0, 0)), {}, "registers"),
        (Function("f", end, (), ("no type",)), {}, "'no type' is not a value type"),
        (plain, {"globals": [Global("g", "hal.", False)]}, "'hal.' is not a value type"),
        (plain, {"features": 1 << 60}, "features 0x1000000000000000 have no names"),
    ):
        with pytest.raises(ModuleError, match=message):
            text_of(function, **rows)
