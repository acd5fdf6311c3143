"""Instructions on references: null, copies, selection, identity."""

from .table import Factory, Op, Registers
from .value import copy, select


def _null(d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = None

    return op


def _is_null(a: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = 1 if regs[a] is None else 0

    return op


def _eq(a: int, b: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = 1 if regs[a] is regs[b] else 0

    return op


OPS: dict[str, Factory] = {
    "ref.null": _null,
    "ref.copy": copy,
    "ref.select": select,
    "ref.is_null": _is_null,
    "ref.eq": _eq,
}
