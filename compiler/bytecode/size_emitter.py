"""Emits symbolic sizes as instructions: 64-bit arithmetic that traps on overflow instead of wrapping.

The arguments of a setup function are the measured sizes. A symbol is computed from them when an expression first needs
it; every computed value is reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Atom, Call, Dim, Factors, Size, Symbol, bounds
from orchestrion.compiler.ir.types import I32, I64

from .emitter import Emitter

#: Predicate of an assertion -> comparison of signed numbers.
_COMPARE: Final[dict[str, str]] = {"eq": "eq", "ne": "ne", "lt": "lt_s", "le": "le_s", "gt": "gt_s", "ge": "ge_s"}


class SizeEmitter:
    """The sizes of one function. `measured`: measured size -> its value; `symbols`: symbol -> its expression."""

    def __init__(self, emitter: Emitter, measured: Mapping[str, Value], symbols: Mapping[str, Size]) -> None:
        self.emitter = emitter
        self.symbols = symbols
        self._named = dict(measured)
        self._made: dict[object, Value] = {}  #: size, product or atom -> its value

    def number(self, size: Size) -> Value | int:
        """A size as an i64 operand; static sizes stay numbers."""
        return self.value(size) if isinstance(size, Dim) else size

    def word(self, size: Size) -> Value:
        """The low 32 bits of a size, as an i32."""
        return self.emitter.op("i32.wrap_i64", a=self.value(size), d=I32).result

    def value(self, size: Size) -> Value:
        """A size as an i64."""
        if not isinstance(size, Dim):
            return self.emitter.constant("i64", size)
        if size not in self._made:
            terms = [self._term(count, factors) for count, factors in size.terms]
            self._made[size] = reduce(lambda a, b: self._op("add_checked", a, b), terms)
        return self._made[size]

    def at_most(self, size: Size, most: int) -> Value:
        """i32: whether a size is at most `most`."""
        return self.emitter.op("i64.le_s", a=self.value(size), b=self.value(most), d=I32).result

    def require(self, op: util.Assert) -> None:
        """Emits an assertion."""
        lhs, rhs = self.value(op.lhs.sizes[0]), self.value(op.rhs.sizes[0])
        holds = self.emitter.op(f"i64.{_COMPARE[op.predicate.value]}", a=lhs, b=rhs, d=I32).result
        numbers = [self.value(number) for number in op.numbers.sizes]
        self.emitter.op("require", a=holds, values=numbers, message=op.message)

    def _term(self, count: int, factors: Factors) -> Value:
        if not factors:
            return self.emitter.constant("i64", count)
        product = self._product(factors)
        return product if count == 1 else self._op("mul_checked", product, self.emitter.constant("i64", count))

    def _product(self, factors: Factors) -> Value:
        if factors not in self._made:
            self._made[factors] = reduce(lambda a, b: self._op("mul_checked", a, b), map(self._atom, factors))
        return self._made[factors]

    def _atom(self, atom: Atom) -> Value:
        if isinstance(atom, Symbol):
            if atom.name not in self._named:
                self._named[atom.name] = self.value(self.symbols[atom.name])
            return self._named[atom.name]
        assert isinstance(atom, Call)
        if atom not in self._made:
            self._made[atom] = self._call(atom)
        return self._made[atom]

    def _call(self, atom: Call) -> Value:
        lhs, rhs = self.value(atom.lhs), self.value(atom.rhs)
        if atom.op in ("max", "min"):
            first = self.emitter.op(f"i64.{'gt_s' if atom.op == 'max' else 'lt_s'}", a=lhs, b=rhs, d=I32).result
            return self.emitter.op("i64.select", c=first, a=lhs, b=rhs, d=I64).result
        rest = self._op("rem_s", lhs, rhs)
        if bounds(atom.lhs)[0] < 0:  # the remainder has the sign of the dividend
            rest = self._op("rem_s", self._op("add_checked", rest, rhs), rhs)
        return rest if atom.op == "mod" else self._op("div_s", self._op("sub_checked", lhs, rest), rhs)

    def _op(self, name: str, a: Value, b: Value) -> Value:
        return self.emitter.op(f"i64.{name}", a=a, b=b, d=I64).result
