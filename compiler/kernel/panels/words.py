"""Panels of words for dots: a word has some neighbours of an operand along the innermost contracted axis.

An instruction multiplies the elements of two words and adds the products to a lane. Places along the innermost axis
count words; `PanelDot` does not know that they have several elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import ClassVar

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import numbers
from orchestrion.compiler.kernel.products.operands import is_read, lies_along
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral

from .dot import Panel, PanelDot, contracted


def innermost(dot: DotGeneral) -> int:
    """The elements along the last contracted axis, which words divide."""
    return numbers(contracted(dot))[-1]


def reads_words(dot: DotGeneral, left: bool, source: Value, per_word: int) -> bool:
    """Whether the elements of a word are neighbours in memory, and no word ends behind the last element. `source`: the
    narrow elements of the operand.
    """
    in_order = lies_along(*dot.sides[not left]) and innermost(dot) % per_word == 0
    return in_order and is_read(source, encoded=False)


class WordPanelDot(PanelDot, ABC):
    """A block of results under construction, with vectors along `n` and both operands in panels of words."""

    #: elements of a word
    per_word: ClassVar[int]
    in_strips = False

    @abstractmethod
    def _source(self, left: bool) -> Value:
        """The value of narrow elements whose elements, moved and widened, are those of an operand."""

    @abstractmethod
    def _loaded(self, word: Value) -> Value:
        """The word of the panel, or the vector of such, for elements as they lie in memory."""

    @abstractmethod
    def _joined(self, left: bool, number: Value, outer: Sequence[Value], first: Value) -> Value:
        """A word of elements that are computed one by one, from `first` on."""

    def _panel(self, left: bool) -> Panel:
        size, depth = self._panel_rows() if left else self.columns, prod(self.slice[1:])
        along = self._reads_words(left) and self._fills_lanes(left)
        return Panel(self.builder, self.builder.shared(depth * size, "ui32"), size, depth, left and along, along)

    def _panel_rows(self) -> int:
        """Rows of the left panel."""
        return self.rows

    def _reads_words(self, left: bool) -> bool:
        return reads_words(self.dot, left, self._source(left), self.per_word)

    def _factor(self, left: bool, number: Value, along: Sequence[Value]) -> Value:
        """The word of an operand at a row or column of the block."""
        b, (*outer, word) = self.builder, along
        first = b.op("multiply", word, b.index(self.per_word))
        if not self._reads_words(left):
            return self._joined(left, number, outer, first)
        return self._loaded(b.load_bytes(self._load(left, number, [*outer, first])))

    def _neighbours(self, number: Value, along: Sequence[Value]) -> Value:
        b, (*outer, word) = self.builder, along
        load = self._load(False, number, [*outer, b.op("multiply", word, b.index(self.per_word))])
        return self._loaded(b.load_bytes(load, self.lanes))
