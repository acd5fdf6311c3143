"""Globals: one list per context, reached through the frame. The verifier has checked types and mutability."""

from orchestrion.schema.isa import BANKS

from .table import GLOBALS, Factory, Op, Registers


def _load(place: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        regs[d] = regs[GLOBALS][place]

    return op


def _store(a: int, place: int) -> Op:
    def op(regs: Registers) -> None:
        regs[GLOBALS][place] = regs[a]

    return op


OPS: dict[str, Factory] = {
    **{f"global.load.{bank}": _load for bank in BANKS},
    **{f"global.store.{bank}": _store for bank in BANKS},
}
