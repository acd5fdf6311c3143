"""Text to IR and back: every kind of attribute, type and location, errors with line and column, and no other exception.

`jaxlib.mlir` is the oracle: what we print must parse there and print as it prints the original.
"""

import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.compiler.errors import ParseError
from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, StringAttr
from orchestrion.compiler.ir.core import UnregisteredOp
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module

ATTRIBUTES = [
    "1 : i32", "-7 : i64", "true", "false", "unit", "1.5 : f32", "-0.0 : f64", "0x7FC00001 : f32",
    "0xFFF0000000000000 : f64", "1.0 : f16", "0x7F80 : bf16", "5 : index",
    '"a \\"quoted\\" \\\\ line\\0A\\09 \\C3\\A9"', "[]", "[1 : i8, [true], {}]",
    '{a, b = 1 : i64, "not bare" = 2 : i64}', "@a", '@a::@"b c"::@d', "array<i64>", "array<i64: 1, -2>",
    "array<i1: true, false>", "array<f32: 1.5, -0.0>", "tensor<4x?xf32>", "() -> ()",
    "(i32, (f32) -> ()) -> (i32, i32)", "(i32) -> ((i32) -> i32)", "tensor<2xcomplex<f32>>", "memref<4xf32, 3>",
    "vector<[4]xf32>", "tuple<i32, tensor<f32>>", "tensor<4xf32, #stablehlo.bounds<?>>", "!some.type",
    '!some.type<a, b<c>, "<">', "#some.attr<a -> b>", "#some<word>", "affine_map<(d0) -> (d0 + 1)>",
    "dense<1> : tensor<3xi32>", "dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>", "dense<> : tensor<0x4xf32>",
    "dense<[true, false]> : tensor<2xi1>", "dense<(1.0, 2.0)> : tensor<complex<f32>>",
    "dense<[1.0, 0x7FC00001]> : tensor<2xf32>", 'dense<"0x000102030405"> : tensor<6xi8>',
    "dense<255> : tensor<ui8>", "dense<-1.5> : tensor<2x2xf64>", "dense<1> : vector<4xi32>", "f8E4M3FN", "si16",
    "none", "255 : i8", "-128 : i8", "0xFF : i8", "18446744073709551615 : i64", "1 : i1", "dense<-1> : tensor<i1>",
    "dense<[255, -128, 0x80]> : tensor<3xi8>", "dense<0xFFFFFFFFFFFFFFFF> : tensor<i64>", "dense<0x1> : tensor<2xi1>",
    "dense<[[], []]> : tensor<2x0xf32>", "dense<[]> : tensor<0xi1>", "array<i8: 255>",
]  # fmt: skip

LOCATIONS = [
    "unknown", '"file":1:2', '"file":1:2 to 3:4', '"file":1:2 to :9', '"name"', '"name"("file":1:2)',
    'callsite("f":1:2 at "g":3:4)', 'fused["a", "b"]', 'fused<"meta">["a", unknown]',
    'callsite("jit(f)/add"(callsite("f":1:2 at "g":3:4)) at "with \\"quotes\\"")',
]  # fmt: skip


def module_with(attribute: str) -> str:
    return f'"builtin.module"() ({{\n  "some.op"() {{key = {attribute}}} : () -> ()\n}}) : () -> ()\n'


def round_trip(text: str) -> str:
    """Printed, and once more from that: both must be the same."""
    once = print_module(parse(text, "t.mlir"))
    assert print_module(parse(once, "u.mlir")) == once
    return once


def as_jaxlib_prints(text: str) -> str:
    ir = pytest.importorskip("jaxlib.mlir.ir")
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        return str(
            module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True, use_local_scope=True)
        ).replace('"t.mlir":', '"-":')


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_attributes_survive(attribute: str) -> None:
    text = module_with(attribute)
    assert as_jaxlib_prints(round_trip(text)).split("loc(")[0] == as_jaxlib_prints(text).split("loc(")[0]


@pytest.mark.parametrize("location", LOCATIONS)
def test_locations_survive(location: str) -> None:
    text = f'"builtin.module"() ({{\n  "some.op"() : () -> () loc({location})\n}}) : () -> () loc(unknown)\n'
    assert as_jaxlib_prints(round_trip(text)) == as_jaxlib_prints(text)


def test_operations_survive() -> None:
    text = """
"builtin.module"() ({
  %0:2, %a = "some.op"() <{b = 1 : i64, a = 2 : i64}> ({}, {
  ^entry:
    "some.branch"()[^next, ^last] : () -> ()
  ^next:
    "some.branch"(%later)[^last] : (i32) -> ()
  ^last:
    %later = "some.value"() : () -> i32
    "some.region"() ({
      %inner = "some.value"() : () -> f32
      "some.use"(%inner, %later) : (f32, i32) -> ()
    }) : () -> ()
    "some.end"() : () -> ()
  }, {
  ^bb0(%x: i32 loc("x"), %y: tensor<4xf32> loc("y")):
    "some.use"(%x, %y) {discardable} : (i32, tensor<4xf32>) -> ()
  }) {c} : () -> (i32, i32, f32)
  "some.use"(%0#1, %0, %a, %0#0) : (i32, i32, f32, i32) -> ()
}) : () -> ()
"""
    printed = round_trip(text)
    # jaxlib refuses a use that its definition does not dominate
    plain = text.replace("(%later)[^last] : (i32)", "()[^last] : ()")
    assert as_jaxlib_prints(round_trip(plain)) == as_jaxlib_prints(plain)
    assert "%0#1, %0#0, %0#2, %0#0" in printed


def test_aliases_are_resolved_wherever_they_stand() -> None:
    text = """
#late = loc(callsite(#early at #early))
!pair = tuple<i32, !inner>
"builtin.module"() ({
  %0 = "some.op"() {a = #value, b = #some.attr<x = #value, y = !pair>} : () -> !pair loc(#late)
}) : () -> () loc(#unused)
!inner = i64
#value = dense<1> : tensor<2xi32>
#early = loc("f":1:2)
#unused = loc("g")
"""
    module = parse(text)
    op = module.block.first
    assert op is not None and str(op.results[0].type) == "tuple<i32, i64>"
    assert str(op.loc) == 'loc(callsite("f":1:2 at "f":1:2))'
    assert str(op.attributes["b"]) == "#some.attr<x = dense<1> : tensor<2xi32>, y = tuple<i32, i64>>"


def test_operations_without_location_get_their_place() -> None:
    module = parse('"builtin.module"() ({\n  // a comment\n  "some.op"() : () -> ()\n}) : () -> ()', "dir/f.mlir")
    assert module.block.first is not None
    assert [str(op.loc) for op in (module, module.block.first)] == ['loc("dir/f.mlir":1:1)', 'loc("dir/f.mlir":3:3)']


def test_operations_outside_of_a_module_get_one() -> None:
    module = parse('"some.a"() : () -> ()\n"some.b"() : () -> ()')
    assert [op.name for op in module.block] == ["some.a", "some.b"]


def test_declared_properties_are_properties_wherever_they_stand() -> None:
    text = '"func.func"() ({}) {function_type = () -> (), sym_name = "f", x.y} : () -> ()'
    func = parse(text).block.first
    assert (
        func is not None and set(func.properties) == {"function_type", "sym_name"} and set(func.attributes) == {"x.y"}
    )


@pytest.mark.parametrize("dtype", ["i1", "i8", "ui16", "i32", "ui64", "f32", "f64"])
def test_large_elements_travel_as_bytes(dtype: str) -> None:
    from orchestrion.schema.dtypes import BY_NAME

    array = np.random.default_rng(0).integers(0, 2 if dtype == "i1" else 100, (40, 5)).astype(BY_NAME[dtype].numpy)
    elements = DenseElements.of(array, dtype)
    op = UnregisteredOp("some.op", attributes={"value": elements, "again": elements})
    text = print_module(op)
    name = f"c_{elements.digest[:16].hex()}"
    assert text.count(f"{name}: ") == 1 and text.count(f"dense_resource<{name}> : tensor<40x5x{dtype}>") == 2
    first = parse(text).block.first
    assert first is not None
    found = first.attributes["value"]
    assert isinstance(found, DenseElements) and found == elements and hash(found) == hash(elements)
    np.testing.assert_array_equal(found.array(), array)
    as_jaxlib_prints(text)


def test_elements_in_hex_or_digits_are_the_same() -> None:
    digits = parse(module_with("dense<[1, 2, 3]> : tensor<3xi16>")).block.first
    hexadecimal = parse(module_with('dense<"0x010002000300"> : tensor<3xi16>')).block.first
    splat = parse(module_with('dense<"0x01000100"> : tensor<2xi16>')).block.first
    assert digits is not None and hexadecimal is not None and splat is not None
    assert digits.attributes == hexadecimal.attributes
    assert str(splat.attributes["key"]) == "dense<1> : tensor<2xi16>"


WRONG = [
    ('"builtin.module"() ({', 1, 22, "expected '}'"),
    ('"a.b"() : () -> (i32', 1, 21, "expected ')'"),
    ('"a.b"(%x) : (i32) -> ()', 1, 7, "%x is not defined"),
    ('%x = "a.b"() : () -> i32\n%x = "a.b"() : () -> i32', 2, 1, "%x is defined twice"),
    ('%x = "a.b"() : () -> i32\n"a.c"(%x) : (f32) -> ()', 2, 7, "%x is of type i32, used as f32"),
    ('"a.c"(%x) : (f32) -> ()\n%x = "a.b"() : () -> i32', 2, 1, "%x is of type i32, used before as f32"),
    ('"a.b"() : (i32) -> ()', 1, 1, "0 operands, but 1 operand types"),
    ('%x:2 = "a.b"() : () -> i32', 1, 1, "a.b has 1 results, 2 are named"),
    ('"a.b"()[^gone] : () -> ()', 1, 9, "block ^gone is not defined"),
    ('"a.b"() ({ "c.d"()[^gone] : () -> () }) : () -> ()', 1, 20, "block ^gone is not defined"),
    ('"a.b"() ({ ^x: "c.d"() : () -> () ^x: }) : () -> ()', 1, 35, "block ^x is defined twice"),
    ("func.func @main() { return }", 1, 1, "expected an operation in generic form, found 'func.func'"),
    ('"a.b"() {k = 1, k = 2} : () -> ()', 1, 17, "k is given twice"),
    ('"a.b"() {k = #gone} : () -> ()', 1, 14, "#gone is not defined"),
    ('"a.b"() {k = !gone} : () -> ()', 1, 14, "!gone is not defined"),
    ('#a = #b\n#b = #a\n"a.b"() {k = #a} : () -> ()', 1, 6, "#b is defined by itself"),
    ('#a = unit\n#a = unit', 2, 1, "#a is defined twice"),
    ('"a.b"() {k = dense<[1, 2]> : tensor<3xi32>} : () -> ()', 1, 14, "the list of 2 elements does not have the shape"),
    ('"a.b"() {k = dense<[[1], [2, 3]]> : tensor<3xi32>} : () -> ()', 1, 14, "does not have the shape"),
    ('"a.b"() {k = dense<300> : tensor<i8>} : () -> ()', 1, 14, ""),
    ('"a.b"() {k = dense<1e40> : tensor<f32>} : () -> ()', 1, 14, ""),
    ('"a.b"() {k = dense<1e400> : tensor<f64>} : () -> ()', 1, 14, "1e400 is too large"),
    ('"a.b"() {k = dense<-1> : tensor<ui8>} : () -> ()', 1, 14, "ui8 holds 0 to 255"),
    ('"a.b"() {k = 256 : i8} : () -> ()', 1, 14, "256 is not of type i8: i8 holds -128 to 255"),
    ('"a.b"() {k = 2 : i1} : () -> ()', 1, 14, "i1 holds -1 to 1"),
    ('"a.b"() {k = 9223372036854775808 : index} : () -> ()', 1, 14, "index holds -9223372036854775808 to"),
    ('"a.b"() {k = dense<[[]]> : tensor<2x0xi8>} : () -> ()', 1, 14, "does not have the shape"),
    ('"a.b"() {k = dense<[]> : tensor<2xi8>} : () -> ()', 1, 14, "does not have the shape"),
    ('"a.b"() {k = dense<"0x0102"> : tensor<3xi8>} : () -> ()', 1, 14, "needs 3 bytes or one element, got 2"),
    ('"a.b"() {k = dense_resource<r> : tensor<3xi8>} : () -> ()', 1, 14, "resource r is not in the text's"),
    ('"a.b"() {k = dense_resource<__elided__> : tensor<3xi8>} : () -> ()', 1, 14, "were left out"),
    ('"a.b"() {k = dense<1> : tensor<?xi8>} : () -> ()', 1, 14, "static shape"),
    ('"a.b"() {k = "\\q"} : () -> ()', 1, 14, "unknown escape"),
    ('"a.b"() {k = tensor<4xwhat>} : () -> ()', 1, 14, "expected an element type, found 'what'"),
    ('"a.b"() {k = array<i64: 1,>} : () -> ()', 1, 14, "'' is not a number"),
    ('"a.b"() : () -> () loc("f":1)', 1, 29, "expected ':'"),
    ('{-# dialect_resources: { builtin: { x: "0x00" } } #-}', 1, 40, "expected a resource"),
    ('"unclosed', 1, 1, "not closed"),
    ("\x00", 1, 1, ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG)
def test_errors_say_where(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError, match=r"^bad\.mlir:") as caught:
        parse(text, "bad.mlir")
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


def test_deep_nesting_is_an_error() -> None:
    for text in ("[" * 100_000, '"a.b"() ({' * 50_000, "tensor<" * 10_000, "!a.b" + "<" * 100_000):
        with pytest.raises(ParseError):
            parse(f'"a.b"() {{k = {text}}} : () -> ()')


PIECES = [
    '"a.b"', '"func.func"', "()", "(", ")", "{", "}", "<{", "}>", "%a", "%0:2", "%0#1", "=", ":", "->", "() -> ()",
    "i32", "tensor<4xf32>", "tensor<", "dense<", "dense<[1]> : tensor<1xi8>", "[", "]", ",", "^bb0",
    "^bb0(%a: i32):", "loc(", 'loc("f":1:2)', "#a = ", "#a", "!a = i32", "!a", "@f", "::", "array<i64: 1>", "1",
    "-0x1F", "1.5e3", "true", "{-#", "#-}", "dialect_resources", "builtin", ": {", '"0x40000000', '"', "\\", "\n",
    "//", "<", ">", "{k = ", "unit",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_pieces_of_ir_give_ir_or_the_one_error(pieces: list[str]) -> None:
    accepts_or_refuses(" ".join(pieces))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=string.printable + "é\x00", max_size=60))
def test_any_text_gives_ir_or_the_one_error(text: str) -> None:
    accepts_or_refuses(text)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_ir_gives_ir_or_the_one_error(data: Any) -> None:
    text = module_with(data.draw(st.sampled_from(ATTRIBUTES)))
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 4))
    accepts_or_refuses(text[:at] + data.draw(st.sampled_from(PIECES + [""])) + text[at + length :])


def accepts_or_refuses(text: str) -> None:
    try:
        module = parse(text)
    except ParseError as error:
        assert error.line >= 1 and error.column >= 1
        return
    once = print_module(module)
    assert print_module(parse(once)) == once


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_any_string_survives(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    op = UnregisteredOp("some.op", attributes={"key": StringAttr(value)})
    first = parse(print_module(op)).block.first
    assert first is not None and first.attributes["key"] == StringAttr(value)


def test_dialect_attributes_keep_their_text() -> None:
    first = parse(module_with("#stablehlo<comparison_direction GT>")).block.first
    assert first is not None
    assert first.attributes["key"] == DialectAttr("stablehlo", "comparison_direction GT")
