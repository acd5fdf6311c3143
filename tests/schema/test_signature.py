"""Function signatures as text: read, printed, expanded, and refused with the column of the error."""

import pytest

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.signature import Signature, is_value_type, parse_signature

SIGNATURES = {
    "() -> ()": Signature((), (), ()),
    "(i32) -> i64": Signature(("i32",), (), ("i64",)),
    "(hal.view, i32, i64*) -> hal.buffer": Signature(("hal.view", "i32"), ("i64",), ("hal.buffer",)),
    "(any, (buffer, list<i32>)*) -> (f32, f64)": Signature(("any",), ("buffer", "list<i32>"), ("f32", "f64")),
    "(i32*) -> ()": Signature((), ("i32",), ()),
}


@pytest.mark.parametrize("text", SIGNATURES)
def test_read_and_print(text: str) -> None:
    assert parse_signature(text) == SIGNATURES[text]
    assert str(SIGNATURES[text]) == text


def test_spaces_and_parentheses_are_free() -> None:
    assert parse_signature(" ( i32 ,i64 )->( i32 ) ") == Signature(("i32", "i64"), (), ("i32",))


@pytest.mark.parametrize("row", HAL_IMPORTS.values(), ids=lambda row: row.name)
def test_hal_table_is_canonical(row: object) -> None:
    assert str(parse_signature(row.signature)) == row.signature  # type: ignore[attr-defined]


def test_expand() -> None:
    grouped = SIGNATURES["(any, (buffer, list<i32>)*) -> (f32, f64)"]
    assert grouped.expand(0) is None
    assert grouped.expand(1) == ("any",)
    assert grouped.expand(2) is None
    assert grouped.expand(5) == ("any", "buffer", "list<i32>", "buffer", "list<i32>")
    assert SIGNATURES["(i32) -> i64"].expand(2) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'(' expected at column 1"),
        ("(i32", "',' expected at column 5"),
        ("(i31) -> ()", "a type expected at column 2"),
        ("(i32*, i32) -> ()", "')' expected at column 6"),
        ("((i32, i64), i32) -> ()", "'*' expected at column 12"),
        ("(()*) -> ()", "a type in the group before '*' expected at column 5"),
        ("(i32)", "'->' expected at column 6"),
        ("(i32) -> () x", "the end expected at column 12"),
        ("(i32) -> hal.", "a type expected at column 9"),
        ("(list<hal.view>) -> ()", "a type expected at column 2"),
        ("(plain) -> ()", "a type expected at column 2"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ModuleError) as caught:
        parse_signature(text)
    assert str(caught.value) == f"signature {text!r}: {message}"


def test_value_types() -> None:
    assert all(is_value_type(name) for name in ("i32", "f64", "any", "buffer", "list<any>", "hal.view", "a.b.c"))
    assert not any(
        is_value_type(name) for name in ("", "i16", "ref", "list", "list<buffer>", "hal", "hal..view", "a b.c")
    )
