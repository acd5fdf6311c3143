"""Constants, copies and selection of numbers. Numbers are immutable objects, so a copy is the same object."""

from orchestrion.schema.encoding import float_of_bits

from .table import Factory, Op, Registers


def _store(value: int | float, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = value

    return op


def _const_f32(bits: int, d: int) -> Op:
    return _store(float_of_bits(bits, "f32"), d)


def _const_f64(bits: int, d: int) -> Op:
    return _store(float_of_bits(bits, "f64"), d)


def _zero_integer(d: int) -> Op:
    return _store(0, d)


def _zero_float(d: int) -> Op:
    return _store(0.0, d)


def copy(a: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = regs[a]

    return op


def select(c: int, a: int, b: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = regs[a] if regs[c] else regs[b]

    return op


OPS: dict[str, Factory] = {
    "i32.const": _store,
    "i64.const": _store,
    "f32.const": _const_f32,
    "f64.const": _const_f64,
    "i32.zero": _zero_integer,
    "i64.zero": _zero_integer,
    "f32.zero": _zero_float,
    "f64.zero": _zero_float,
    **{f"{bank}.copy": copy for bank in ("i32", "i64", "f32", "f64")},
    **{f"{bank}.select": select for bank in ("i32", "i64", "f32", "f64")},
}
