"""What the verifier refuses, each beside its message. Code that no text can express is encoded by hand."""

from collections.abc import Sequence

import pytest

from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.encoding import Operand, encode
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BY_NAME, MOVE_BIT
from orchestrion.schema.module import Module
from orchestrion.schema.rows import InitializerKind
from orchestrion.schema.writer import Function, Global, Initializer, Program, write
from orchestrion.schema.writer import Module as Rows
from orchestrion.vm.verifier import verify

Code = Sequence[tuple[str, Sequence[Operand]]]
RETURN: tuple[str, Sequence[Operand]] = ("return", ((),))


def module_of(
    code: Code | bytes,
    registers: tuple[int, int, int, int, int],
    arguments: Sequence[str] = (),
    results: Sequence[str] = (),
) -> Module:
    data = code if isinstance(code, bytes) else b"".join(encode(BY_NAME[name], operands) for name, operands in code)
    function = Function("f", data, arguments, results, registers)
    rows = [Global("a", "i32", mutable=True), Global("b", "hal.view", mutable=True), Global("c", "i32")]
    setup = Function("setup", encode(BY_NAME["return"], ((),)))
    initializers = [Initializer(1, InitializerKind.Program)]
    program = Program("p", "reference", [function, setup], [], rows, initializers)
    return read_module(write(Rows([program])))


I4 = (4, 0, 0, 0, 0)
REJECTED: dict[str, tuple[Code | bytes, tuple[int, int, int, int, int], str]] = {
    "no code": (b"", (0, 0, 0, 0, 0), "function[0] has no instructions: control would run off its end"),
    "odd": (b"\6\0\0", (0, 0, 0, 0, 0), "function[0]: 3 bytes of bytecode, an even count wanted"),
    "opcode": (b"\xff\xff\6\0", (0, 0, 0, 0, 0), "function[0] pc 0x0: unknown opcode 0xffff"),
    "truncated": (b"\0\2\0\0", (0, 0, 0, 0, 0), "function[0] pc 0x0: the code ends inside i32.add"),
    "truncated count": (b"\6\0\5\0", (0, 0, 0, 0, 0), "function[0] pc 0x0: the code ends inside return"),
    "off the end": (
        [("i32.zero", (0,))],
        (1, 0, 0, 0, 0),
        "function[0] ends with i32.zero: control would run off its end",
    ),
    "register": (
        [("i32.add", (0, 9, 1)), RETURN],
        (2, 2, 2, 0, 0),
        "function[0] pc 0x0: register 9 out of range (6 registers)",
    ),
    "bank": ([("i32.add", (0, 2, 1)), RETURN], (2, 2, 0, 0, 0), "function[0] pc 0x0: register 2 is i64, expected i32"),
    "result bank": (
        [("i64.extend_i32_s", (0, 1)), RETURN],
        (2, 2, 0, 0, 0),
        "function[0] pc 0x0: register 1 is i32, expected i64",
    ),
    "move of a number": (
        [("i32.copy", (MOVE_BIT, 1)), RETURN],
        (2, 0, 0, 0, 0),
        "function[0] pc 0x0: register 0 must not have a move bit",
    ),
    "move of a result": (
        [("ref.copy", (0, 1 | MOVE_BIT)), RETURN],
        (0, 0, 0, 0, 2),
        "function[0] pc 0x0: register 1 must not have a move bit",
    ),
    "target inside": (
        [("br", (3,)), RETURN],
        (0, 0, 0, 0, 0),
        "function[0] pc 0x0: branch target 0x3 is not the start of an instruction",
    ),
    "target outside": (
        [("br_if", (0, 10, 400)), RETURN],
        (1, 0, 0, 0, 0),
        "function[0] pc 0x0: branch target 0xa is not the start of an instruction",
    ),
    "table target": (
        [("br_table", (0, 0, (0, 2))), RETURN],
        (1, 0, 0, 0, 0),
        "function[0] pc 0x0: branch target 0x2 is not the start of an instruction",
    ),
    "function": ([("call", (7, (), ())), RETURN], I4, "function[0] pc 0x0: function 7 out of range (2 functions)"),
    "import": ([("call_import", (0, (), ())), RETURN], I4, "function[0] pc 0x0: import 0 out of range (0 imports)"),
    "global": ([("global.load.i32", (3, 0)), RETURN], I4, "function[0] pc 0x0: global 3 out of range (3 globals)"),
    "global type": (
        [("global.load.i32", (1, 0)), RETURN],
        I4,
        "function[0] pc 0x0: global 1 is hal.view, expected i32",
    ),
    "immutable": ([("global.store.i32", (0, 2)), RETURN], I4, "function[0] pc 0x0: global 2 is not mutable"),
    "constant": (
        [("buffer.constant", (0, 0, 0, 1)), RETURN],
        (0, 1, 0, 0, 1),
        "function[0] pc 0x0: constant 0 out of range (0 constants)",
    ),
    "results": ([("return", ((0,),))], (1, 0, 0, 0, 0), "function[0] pc 0x0: 1 results, expected 0"),
    "ref type": (
        [("list.i32.new", (0, 1)), ("list.i64.size", (1, 0)), RETURN],
        (0, 1, 0, 0, 1),
        "function[0] pc 0x6: operand a of list.i64.size: register 1 holds list<i32>, expected list<i64>",
    ),
    "ref type through copies": (
        [("buffer.alloc", (0, 1)), ("ref.copy", (1, 2)), ("ref.copy", (2, 3)), ("global.store.ref", (3, 1)), RETURN],
        (0, 1, 0, 0, 3),
        "function[0] pc 0x12: value of global 1: register 3 holds buffer, expected hal.view",
    ),
    "registers": (
        [RETURN],
        (0, 0, 0, 0, 9),
        "function[0] has 9 registers for 0 arguments and 4 bytes of code",
    ),
    "program initializer called": (
        [("call", (1, (), ())), RETURN],
        I4,
        "function[1] is a program initializer: no function may call it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_rejected(case: str) -> None:
    code, registers, message = REJECTED[case]
    with pytest.raises(ModuleError) as caught:
        verify(module_of(code, registers), 0)
    assert str(caught.value) == message


# program text between braces -> message
PROGRAMS = {
    "func @f (i32) -> () { return () } func @g () -> () { call @f() return () }": "0 arguments, expected 1",
    "func @f (i32) -> () { return () } func @g () -> () { call @f(%l0) return () }": "register 0 is i64, expected i32",
    "func @f () -> i32 { return (%i0) } func @g () -> () { call @f() return () }": "0 results, expected 1",
    "func @f () -> i32 { return (%l0) }": "register 0 is i64, expected i32",
    "func @f () -> () { call_import @a.b() return () }": "0 arguments do not fit a.b (i32, (i64, any)*) -> buffer",
    "func @f () -> () { %r0 = call_import @a.b(%i0, %l0) return () }": "2 arguments do not fit",
    "func @f () -> () { %l1 = call_import @a.b(%i0) return () }": "register 2 is i64, expected ref",
    "func @f () -> () { %r0 = call_import @a.b(%i0, %l0, %f0) return () }": "register 2 is f32, expected ref",
    "func @f (list<i32>) -> () { await %r0 return () }": "register 0 holds list<i32>, expected hal.fence",
    "func @f (i32) -> () { return () } initializer context @f": "is an initializer: it has arguments or results",
    "func @f () -> () { %i0 = i32.const 1 global.store.i32 %i0, @m return () } initializer program @f": (
        "a program initializer stores to mutable global 0"
    ),
    "func @g () -> () { %i0 = i32.const 1 global.store.i32 %i0, @m return () }"
    "func @f () -> () { call @g() return () } initializer program @f": (
        "function[0] pc 0x8: a program initializer stores to mutable global 0"
    ),
    "func @f () -> () { return () } initializer program @f initializer context @f": "no function may call it",
}


@pytest.mark.parametrize("source", PROGRAMS)
def test_rejected_program(source: str) -> None:
    text = f"""import @a.b (i32, (i64, any)*) -> buffer
    program @p profile "reference" {{ global @m : i32 mutable {source} }}"""
    with pytest.raises(ModuleError) as caught:
        verify(read_module(write(assemble(text))), 0)
    assert PROGRAMS[source] in str(caught.value)


def test_rejected_export() -> None:
    text = """export @main (x: tensor<4xf32>) -> (y: tensor<4xf32>)
    program @p profile "reference" { func @f (hal.view) -> hal.view { return (%r0) } entry @f }"""
    with pytest.raises(ModuleError, match=r"'main': expected 2 hal.view arguments and 1 hal.view results"):
        verify(read_module(write(assemble(text))), 0)


def test_import_signature_is_read_when_used() -> None:
    body = "func @f () -> () { call_import @a.b(%i0) return () }"
    text = f'import @a.b (i32) -> () program @p profile "reference" {{ {body} }}'
    data = write(assemble(text))
    broken = read_module(data)
    broken.strings = ["(i32 -> ()" if row == "(i32) -> ()" else row for row in broken.strings]
    with pytest.raises(ModuleError, match=r"signature '\(i32 -> \(\)': '\)' expected|',' expected"):
        verify(broken, 0)


def test_accepted_ref_types() -> None:
    """What is not known statically is left to run time; null fits everywhere."""
    text = """program @p profile "reference" {
      func @f (any, list<i32>) -> (any, hal.view) {
        %r2 = ref.null
        %l0 = list.i64.size %r0
        %l0 = list.i32.size %r2
        %i0 = i32.const 0
        %r3 = ref.select %i0, %r0, %r1
        %l0 = list.f64.size %r3
        return (%r1, %r2)
      } }"""
    assert len(verify(read_module(write(assemble(text))), 0).functions) == 1


def test_time_is_linear() -> None:
    """A long function with as many blocks as instructions, and a long chain of copies, backwards."""
    count = 2000
    chain = "".join(f"%r{at} = ref.copy %r{at + 1}\n" for at in range(count))
    text = (
        f'program @p profile "reference" {{ func @f () -> () {{ {chain} %r{count} = list.i32.new %l0\n return () }} }}'
    )
    module = read_module(write(assemble(text)))
    assert len(verify(module, 0).functions[0].decoded) == count + 2
