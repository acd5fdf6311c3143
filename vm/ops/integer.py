"""Integer instructions: arithmetic, bits, comparison, for both widths.

A register holds the signed value; `u` in the doc of a row is `x & mask` here. Each factory gives the op of one row for
one width; the op works on the frame's registers and assumes what the verifier proved.
"""

from collections.abc import Callable
from operator import add, mul, sub

from orchestrion.vm.errors import Trap

from .table import Factory, Op, Registers

Maker = Callable[[int], Factory]


def _add(bits: int) -> Factory:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x = regs[a] + regs[b]
            regs[d] = x if -half <= x < half else (x & mask ^ half) - half

        return op

    return make


def _sub(bits: int) -> Factory:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x = regs[a] - regs[b]
            regs[d] = x if -half <= x < half else (x & mask ^ half) - half

        return op

    return make


def _mul(bits: int) -> Factory:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x = regs[a] * regs[b]
            regs[d] = x if -half <= x < half else (x & mask ^ half) - half

        return op

    return make


def _div_s(bits: int) -> Factory:
    half = 1 << bits - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x, y = regs[a], regs[b]
            if y == 0:
                raise Trap("integer divide by zero")
            q = abs(x) // abs(y)
            if (x < 0) != (y < 0):
                q = -q
            if q == half:
                raise Trap("integer overflow")
            regs[d] = q

        return op

    return make


def _div_u(bits: int) -> Factory:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            y = regs[b] & mask
            if y == 0:
                raise Trap("integer divide by zero")
            regs[d] = ((regs[a] & mask) // y ^ half) - half

        return op

    return make


def _rem_s(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x, y = regs[a], regs[b]
            if y == 0:
                raise Trap("integer divide by zero")
            r = abs(x) % abs(y)
            regs[d] = -r if x < 0 else r

        return op

    return make


def _rem_u(bits: int) -> Factory:
    half, mask = 1 << bits - 1, (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            y = regs[b] & mask
            if y == 0:
                raise Trap("integer divide by zero")
            regs[d] = ((regs[a] & mask) % y ^ half) - half

        return op

    return make


def _and(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = regs[a] & regs[b]

        return op

    return make


def _or(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = regs[a] | regs[b]

        return op

    return make


def _xor(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = regs[a] ^ regs[b]

        return op

    return make


def _shl(bits: int) -> Factory:
    half, mask, last = 1 << bits - 1, (1 << bits) - 1, bits - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = ((regs[a] << (regs[b] & last)) & mask ^ half) - half

        return op

    return make


def _shr_s(bits: int) -> Factory:
    last = bits - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = regs[a] >> (regs[b] & last)

        return op

    return make


def _shr_u(bits: int) -> Factory:
    half, mask, last = 1 << bits - 1, (1 << bits) - 1, bits - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = ((regs[a] & mask) >> (regs[b] & last) ^ half) - half

        return op

    return make


def _rotl(bits: int) -> Factory:
    half, mask, last = 1 << bits - 1, (1 << bits) - 1, bits - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x, n = regs[a] & mask, regs[b] & last
            regs[d] = ((x << n | x >> bits - n) & mask ^ half) - half

        return op

    return make


def _rotr(bits: int) -> Factory:
    half, mask, last = 1 << bits - 1, (1 << bits) - 1, bits - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x, n = regs[a] & mask, regs[b] & last
            regs[d] = ((x >> n | x << bits - n) & mask ^ half) - half

        return op

    return make


def _clz(bits: int) -> Factory:
    mask = (1 << bits) - 1

    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = bits - (regs[a] & mask).bit_length()

        return op

    return make


def _ctz(bits: int) -> Factory:
    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x = regs[a]
            regs[d] = (x & -x).bit_length() - 1 if x else bits

        return op

    return make


def _popcnt(bits: int) -> Factory:
    mask = (1 << bits) - 1

    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = (regs[a] & mask).bit_count()

        return op

    return make


def _eqz(bits: int) -> Factory:
    def make(a: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 0 if regs[a] else 1

        return op

    return make


def _eq(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 1 if regs[a] == regs[b] else 0

        return op

    return make


def _ne(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 1 if regs[a] != regs[b] else 0

        return op

    return make


def _lt_s(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 1 if regs[a] < regs[b] else 0

        return op

    return make


def _lt_u(bits: int) -> Factory:
    mask = (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 1 if regs[a] & mask < regs[b] & mask else 0

        return op

    return make


def _le_s(bits: int) -> Factory:
    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 1 if regs[a] <= regs[b] else 0

        return op

    return make


def _le_u(bits: int) -> Factory:
    mask = (1 << bits) - 1

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            regs[d] = 1 if regs[a] & mask <= regs[b] & mask else 0

        return op

    return make


def _swapped(maker: Maker) -> Maker:
    """The comparison with swapped operands: a > b is b < a."""

    def swapped(bits: int) -> Factory:
        make = maker(bits)
        return lambda a, b, d: make(b, a, d)

    return swapped


def _checked(compute: Callable[[int, int], int], sign: str) -> Factory:
    """64-bit arithmetic that traps on overflow."""
    half = 1 << 63

    def make(a: int, b: int, d: int) -> Op:
        def op(regs: Registers) -> None:
            x = compute(regs[a], regs[b])
            if not -half <= x < half:
                raise Trap(f"integer overflow: {regs[a]} {sign} {regs[b]}")
            regs[d] = x

        return op

    return make


def _extend(source: int) -> Maker:
    half, mask = 1 << source - 1, (1 << source) - 1

    def for_width(bits: int) -> Factory:
        def make(a: int, d: int) -> Op:
            def op(regs: Registers) -> None:
                regs[d] = (regs[a] & mask ^ half) - half

            return op

        return make

    return for_width


_MAKERS: dict[str, Maker] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div_s": _div_s,
    "div_u": _div_u,
    "rem_s": _rem_s,
    "rem_u": _rem_u,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "shl": _shl,
    "shr_s": _shr_s,
    "shr_u": _shr_u,
    "rotl": _rotl,
    "rotr": _rotr,
    "clz": _clz,
    "ctz": _ctz,
    "popcnt": _popcnt,
    "eqz": _eqz,
    "eq": _eq,
    "ne": _ne,
    "lt_s": _lt_s,
    "lt_u": _lt_u,
    "gt_s": _swapped(_lt_s),
    "gt_u": _swapped(_lt_u),
    "le_s": _le_s,
    "le_u": _le_u,
    "ge_s": _swapped(_le_s),
    "ge_u": _swapped(_le_u),
    "extend8_s": _extend(8),
    "extend16_s": _extend(16),
}

OPS: dict[str, Factory] = {
    **{f"i32.{name}": maker(32) for name, maker in _MAKERS.items()},
    **{f"i64.{name}": maker(64) for name, maker in _MAKERS.items()},
    "i64.extend32_s": _extend(32)(64),
    "i64.add_checked": _checked(add, "+"),
    "i64.sub_checked": _checked(sub, "-"),
    "i64.mul_checked": _checked(mul, "*"),
}
