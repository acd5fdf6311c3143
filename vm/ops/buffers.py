"""Host byte buffers: allocation, loads and stores, fill, copy, compare. Every range is checked before a byte is
touched.

The time of allocation, fill, copy and compare grows with the length, so they spend fuel first (`Call.spend_bytes`).
"""

import struct
from collections.abc import Callable

from orchestrion.schema.encoding import bits_of_float, float_of_bits
from orchestrion.vm.errors import Trap
from orchestrion.vm.refs import HostBuffer, type_name

from .table import CALL, Factory, Op, Registers


def _wrong(value: object) -> Trap:
    return Trap(f"expected buffer, got {type_name(value)}")


def _alloc(size: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        call = regs[CALL]
        call.spend_bytes(regs[size])
        regs[d] = HostBuffer.allocate(call.memory, regs[size])

    return op


def _constant(ordinal: int, offset: int, length: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        call = regs[CALL]
        whole = HostBuffer(call.program.constant(ordinal))
        start, count = regs[offset], regs[length]
        whole.check(start, count)
        call.program.verify_constant(ordinal, start, start + count)
        regs[d] = HostBuffer.constant(call.memory, whole.data[start : start + count])

    return op


def _slice(a: int, offset: int, length: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        x = regs[a]
        if type(x) is not HostBuffer:
            raise _wrong(x)
        regs[d] = x.slice(regs[CALL].memory, regs[offset], regs[length])

    return op


def _size(a: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        x = regs[a]
        if type(x) is not HostBuffer:
            raise _wrong(x)
        regs[d] = x.size

    return op


def _load(code: str) -> Factory:
    layout = struct.Struct("<" + code)
    width, unpack_from = layout.size, layout.unpack_from

    def make(a: int, offset: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x, at = regs[a], regs[offset]
            if type(x) is not HostBuffer:
                raise _wrong(x)
            x.check(at, width)
            regs[d] = unpack_from(x.data, at)[0]

        return op

    return make


def _load_f32(a: int, offset: int, d: int) -> Op:
    """Load a binary32. struct's "f" would quiet a signalling NaN."""
    unpack_from = struct.Struct("<I").unpack_from

    def op(regs: Registers) -> None:
        x, at = regs[a], regs[offset]
        if type(x) is not HostBuffer:
            raise _wrong(x)
        x.check(at, 4)
        regs[d] = float_of_bits(unpack_from(x.data, at)[0], "f32")

    return op


def _store(code: str, mask: int | None = None) -> Factory:
    layout = struct.Struct("<" + code)
    width, pack_into = layout.size, layout.pack_into

    def make(a: int, offset: int, value: int) -> Op:
        def op(regs: Registers) -> None:
            x, at = regs[a], regs[offset]
            if type(x) is not HostBuffer:
                raise _wrong(x)
            x.check_writable(at, width)
            pack_into(x.data, at, regs[value] if mask is None else regs[value] & mask)

        return op

    return make


def _store_f32(a: int, offset: int, value: int) -> Op:
    pack_into = struct.Struct("<I").pack_into

    def op(regs: Registers) -> None:
        x, at = regs[a], regs[offset]
        if type(x) is not HostBuffer:
            raise _wrong(x)
        x.check_writable(at, 4)
        pack_into(x.data, at, bits_of_float(regs[value], "f32"))

    return op


def _fill(width: int) -> Factory:
    mask = (1 << 8 * width) - 1

    def make(a: int, offset: int, length: int, value: int) -> Op:
        def op(regs: Registers) -> None:
            x, at, count = regs[a], regs[offset], regs[length]
            if type(x) is not HostBuffer:
                raise _wrong(x)
            x.check_writable(at, count)
            if count % width:
                raise Trap(f"fill of {count} bytes with a pattern of {width}: not whole patterns")
            regs[CALL].spend_bytes(count)
            x.data[at : at + count] = (regs[value] & mask).to_bytes(width, "little") * (count // width)

        return op

    return make


def _copy(a: int, a_offset: int, b: int, b_offset: int, length: int) -> Op:
    def op(regs: Registers) -> None:
        x, y, count = regs[a], regs[b], regs[length]
        source, target = regs[a_offset], regs[b_offset]
        if type(x) is not HostBuffer or type(y) is not HostBuffer:
            raise _wrong(y if type(x) is HostBuffer else x)
        x.check(source, count)
        y.check_writable(target, count)
        regs[CALL].spend_bytes(count)
        y.data[target : target + count] = x.data[source : source + count]

    return op


def _compare(a: int, a_offset: int, b: int, b_offset: int, length: int, d: int) -> Op:
    def op(regs: Registers) -> None:
        x, y, count = regs[a], regs[b], regs[length]
        left, right = regs[a_offset], regs[b_offset]
        if type(x) is not HostBuffer or type(y) is not HostBuffer:
            raise _wrong(y if type(x) is HostBuffer else x)
        x.check(left, count)
        y.check(right, count)
        regs[CALL].spend_bytes(count)
        one, two = x.data[left : left + count].tobytes(), y.data[right : right + count].tobytes()
        regs[d] = 0 if one == two else -1 if one < two else 1

    return op


_LOADS: dict[str, str] = {"8_s": "b", "8_u": "B", "16_s": "h", "16_u": "H", ".i32": "i", ".i64": "q", ".f64": "d"}
_STORES: dict[str, tuple[str, int | None]] = {
    "8": ("B", 0xFF),
    "16": ("H", 0xFFFF),
    ".i32": ("i", None),
    ".i64": ("q", None),
    ".f64": ("d", None),
}
_REST: dict[str, Callable[..., Op]] = {
    "alloc": _alloc,
    "constant": _constant,
    "slice": _slice,
    "size": _size,
    "load.f32": _load_f32,
    "store.f32": _store_f32,
    "copy": _copy,
    "compare": _compare,
}

OPS: dict[str, Factory] = {
    **{f"buffer.load{name}": _load(code) for name, code in _LOADS.items()},
    **{f"buffer.store{name}": _store(*row) for name, row in _STORES.items()},
    **{f"buffer.fill{8 * width}": _fill(width) for width in (1, 2, 4, 8)},
    **{f"buffer.{name}": make for name, make in _REST.items()},
}
