"""Instructions on typed lists. An op traps unless its operand is a list of its element type, so
elements need no check.
"""

from orchestrion.schema.isa import BANKS
from orchestrion.vm.errors import Trap
from orchestrion.vm.refs import LIST_TYPES, TypedList, type_name

from .table import CALL, Factory, Op, Registers


def _wrong(value: object, wanted: type[TypedList]) -> Trap:
    return Trap(f"expected {wanted.type_name}, got {type_name(value)}")


def _outside(index: int, size: int) -> Trap:
    return Trap(f"index {index} is outside a list of {size} elements")


def _new(cls: type[TypedList]) -> Factory:
    def make(size: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            call = regs[CALL]
            call.spend_bytes(regs[size])
            regs[d] = cls(call.memory, regs[size])

        return op

    return make


def _size(cls: type[TypedList]) -> Factory:
    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x = regs[a]
            if type(x) is not cls:
                raise _wrong(x, cls)
            regs[d] = len(x.items)

        return op

    return make


def _resize(cls: type[TypedList]) -> Factory:
    def make(a: int, size: int) -> Op:
        def op(regs: Registers) -> None:
            x = regs[a]
            if type(x) is not cls:
                raise _wrong(x, cls)
            regs[CALL].spend_bytes(regs[size])
            x.resize(regs[size])

        return op

    return make


def _get(cls: type[TypedList]) -> Factory:
    def make(a: int, index: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x, i = regs[a], regs[index]
            if type(x) is not cls:
                raise _wrong(x, cls)
            if not 0 <= i < len(x.items):
                raise _outside(i, len(x.items))
            regs[d] = x.items[i]

        return op

    return make


def _set(cls: type[TypedList]) -> Factory:
    def make(a: int, index: int, value: int) -> Op:
        def op(regs: Registers) -> None:
            x, i = regs[a], regs[index]
            if type(x) is not cls:
                raise _wrong(x, cls)
            if not 0 <= i < len(x.items):
                raise _outside(i, len(x.items))
            x.items[i] = regs[value]

        return op

    return make


_MAKERS = {"new": _new, "size": _size, "resize": _resize, "get": _get, "set": _set}

OPS: dict[str, Factory] = {
    f"list.{bank}.{name}": maker(LIST_TYPES[bank]) for bank in BANKS for name, maker in _MAKERS.items()
}
