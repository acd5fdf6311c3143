"""How the elements of a tensor lie in memory, according to the encoding of its type.

A type without an encoding is in row-major order. `#util.encoding<...>` is symbolic: it states the role of the tensor in
a dot, but not yet an order in memory. `#util.layout<...>` is concrete. It has groups of axes; a group counts as one
dimension, with its axes in row-major order. Dimension g is divided into tiles of `tiles[g]` elements. The last tile is
padded with zeros, which only loops over whole tiles read. The order in memory is row-major over the tile numbers, in
the order of the groups, and then over the places inside a tile along the divided dimensions, in the order `inner`.

    tensor<64x100xf32, #util.layout<axes = [[1], [0]], tiles = [8, 1], inner = [0]>>

has 13 x 64 x 8 elements. Element (i, j) lies at (j / 8, i, j mod 8), and the last four of tile j / 8 = 12 are zero. A
dimension of dynamic size is not divided; tiles of one element only order the groups. Each encoding has one text, and
other texts are refused, so that equal types have equal texts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Final, TypeGuard

from orchestrion.compiler.ir.attributes import ELEMENT_BYTES
from orchestrion.compiler.ir.dims import AnySize, Shape, Size, ceildiv, is_dynamic, typical
from orchestrion.compiler.ir.types import TensorType, Type

#: roles of a tensor in a dot. `weights`: a constant right operand of a dot whose left operand has no encoding
ROLES: Final = ("lhs", "rhs", "weights")
#: greatest tile along one dimension, in elements
MAX_LAYOUT_TILE: Final = 1024

_INTS: Final = r"\[(?:[0-9]{1,15}(?:, [0-9]{1,15})*)?\]"
_LISTS: Final = rf"\[(?:{_INTS}(?:, {_INTS})*)?\]"
_ENCODING: Final = re.compile(
    rf"#util\.encoding<role = (\w+), batch = ({_INTS}), free = ({_INTS}), contract = ({_INTS}), sizes = ({_INTS})>"
)
_LAYOUT: Final = re.compile(rf"#util\.layout<axes = ({_LISTS}), tiles = ({_INTS}), inner = ({_INTS})>")


class EncodingError(ValueError):
    """A text that is no encoding, or an encoding that does not fit its tensor."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Symbolic encoding: the axes of an operand of a dot by role, and the typical (rows, columns, depth) of the dot."""

    role: str
    batch: tuple[int, ...]
    free: tuple[int, ...]
    contract: tuple[int, ...]
    sizes: tuple[int, int, int]

    def __str__(self) -> str:
        axes = f"batch = {list(self.batch)}, free = {list(self.free)}, contract = {list(self.contract)}"
        return f"#util.encoding<role = {self.role}, {axes}, sizes = {list(self.sizes)}>"

    def check(self, shape: Shape) -> None:
        """Raises EncodingError unless the encoding fits a tensor of that shape."""
        _each_axis_once((self.batch, self.free, self.contract), len(shape))
        rows, columns, depth = self.sizes
        free = rows if self.role == "lhs" else columns
        for name, axes, size in (("free", self.free, free), ("contract", self.contract, depth)):
            found = typical(prod(shape[axis] for axis in axes))
            if found != size:
                raise EncodingError(f"the {name} axes have {found} elements, sizes say {size}")

    @property
    def ordered(self) -> Layout:
        """The layout without tiles: batch axes, contracted axes, free axes."""
        groups = (*self._batches, self.contract, self.free)
        return Layout(groups, (1,) * len(groups), ())

    def tiled(self, shape: Shape, tile: int) -> Layout:
        """The layout with tiles along the free axes: batch axes, tile numbers, contracted axes, places in a tile.
        `ordered` if the size of the free axes is dynamic.
        """
        if not may_be_cut(self.free, shape):
            return self.ordered
        before = len(self._batches)
        return Layout((*self._batches, self.free, self.contract), (*(1,) * before, tile, 1), (before,))

    @property
    def _batches(self) -> tuple[tuple[int, ...], ...]:
        return (self.batch,) if self.batch else ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Concrete layout, see the docstring of the module. `inner` lists groups."""

    axes: tuple[tuple[int, ...], ...]
    tiles: tuple[int, ...]
    inner: tuple[int, ...]

    def __str__(self) -> str:
        axes = [list(group) for group in self.axes]
        return f"#util.layout<axes = {axes}, tiles = {list(self.tiles)}, inner = {list(self.inner)}>"

    def check(self, shape: Shape) -> None:
        """Raises EncodingError unless the layout fits a tensor of that shape."""
        _each_axis_once(self.axes, len(shape))
        if len(self.tiles) != len(self.axes):
            raise EncodingError(f"{len(self.axes)} groups of axes, {len(self.tiles)} tiles")
        if not all(1 <= tile <= MAX_LAYOUT_TILE for tile in self.tiles):
            raise EncodingError(f"tiles {list(self.tiles)} are not between 1 and {MAX_LAYOUT_TILE}")
        cut = [group for group, tile in enumerate(self.tiles) if tile > 1]
        if sorted(self.inner) != cut:
            raise EncodingError(f"inner {list(self.inner)} must be the groups that are cut, {cut}, in some order")
        for axes in (self.axes[group] for group in cut):
            if not may_be_cut(axes, shape):
                raise EncodingError(f"axes {list(axes)} have a dynamic size and cannot be cut into tiles")

    def sizes(self, shape: tuple[AnySize, ...]) -> tuple[AnySize, ...]:
        """Number of elements along each group."""
        return tuple(prod(shape[axis] for axis in group) for group in self.axes)

    def tile_counts(self, shape: tuple[AnySize, ...]) -> tuple[AnySize, ...]:
        """Number of tiles along each group."""
        return tuple(ceildiv(size, tile) for size, tile in zip(self.sizes(shape), self.tiles, strict=True))

    def padded_sizes(self, shape: tuple[AnySize, ...]) -> tuple[AnySize, ...]:
        """Number of elements along each group, padding included."""
        return tuple(count * tile for count, tile in zip(self.tile_counts(shape), self.tiles, strict=True))

    def pieces(self, shape: tuple[AnySize, ...]) -> tuple[AnySize, ...]:
        """The padded groups, each as two dimensions: number of tiles, size of a tile."""
        pairs = zip(self.tile_counts(shape), self.tiles, strict=True)
        return tuple(number for pair in pairs for number in pair)

    @property
    def order(self) -> tuple[int, ...]:
        """The order in memory of the dimensions of `pieces`. Tiles of one element come last."""
        groups = range(len(self.axes))
        rest = [group for group in groups if group not in self.inner]
        return (*(2 * group for group in groups), *(2 * group + 1 for group in (*self.inner, *rest)))

    def physical_shape(self, shape: tuple[AnySize, ...]) -> tuple[AnySize, ...]:
        """The dimensions in memory: tile numbers, then places inside a tile."""
        return self.tile_counts(shape) + tuple(self.tiles[group] for group in self.inner)


def may_be_cut(group: tuple[int, ...], shape: Shape) -> bool:
    """Whether the number of elements along a group of axes is static."""
    return not is_dynamic(prod(shape[axis] for axis in group))


def encoding_of(type: TensorType) -> Encoding | Layout | None:
    """The encoding of a tensor type; None without one. Raises EncodingError for any other text."""
    return _parsed(type.encoding, type.shape) if type.encoding else None


def layout_of(type: TensorType) -> Layout | None:
    """The layout of a type; None for row-major order. The encoding must not be symbolic."""
    found = encoding_of(type)
    if isinstance(found, Encoding):
        raise EncodingError(f"{type} has no layout yet")
    return found


def has_layout(type: Type) -> TypeGuard[TensorType]:
    """Whether a type is a tensor type with a layout that fits it."""
    if not isinstance(type, TensorType) or not type.encoding or problem(type):
        return False
    return isinstance(encoding_of(type), Layout)


def plain(type: TensorType) -> TensorType:
    """The type without its encoding."""
    return TensorType(type.shape, type.element)


def encoded(type: TensorType, encoding: Encoding | Layout) -> TensorType:
    """The type with this encoding in place of its own. Raises EncodingError if it does not fit."""
    encoding.check(type.shape)
    return TensorType(type.shape, type.element, str(encoding))


def storage_elements(type: TensorType) -> Size:
    """Number of elements in memory, padding included. A symbolic encoding has no padding."""
    layout = encoding_of(type)
    return prod(layout.physical_shape(type.shape)) if isinstance(layout, Layout) else type.num_elements


def storage_bytes(type: TensorType) -> Size:
    """Number of bytes in memory, padding included. A symbolic encoding has no padding."""
    return storage_elements(type) * ELEMENT_BYTES[str(type.element)]


def problem(type: TensorType) -> str | None:
    """Why the encoding of a tensor type is invalid; None if it is valid."""
    try:
        encoding_of(type)
    except EncodingError as error:
        return f"{type}: {error}"
    return None


def _each_axis_once(groups: tuple[tuple[int, ...], ...], rank: int) -> None:
    if sorted(axis for group in groups for axis in group) != list(range(rank)):
        raise EncodingError(f"axes {[list(group) for group in groups]} are not those of rank {rank}, each once")


@cache
def _parsed(text: str, shape: Shape) -> Encoding | Layout:
    found = _read(text)
    if found is None or str(found) != text:
        raise EncodingError(f"the encoding {text} is neither #util.encoding<...> nor #util.layout<...>")
    found.check(shape)
    return found


def _read(text: str) -> Encoding | Layout | None:
    try:
        if match := _ENCODING.fullmatch(text):
            role, (batch, free, contract, sizes) = match[1], map(_ints, match.groups()[1:])
            if role in ROLES and len(sizes) == 3:
                return Encoding(role, batch, free, contract, (sizes[0], sizes[1], sizes[2]))
        elif match := _LAYOUT.fullmatch(text):
            axes = tuple(tuple(group) for group in json.loads(match[1]))
            return Layout(axes, _ints(match[2]), _ints(match[3]))
    except ValueError:  # a number that starts with zero
        pass
    return None


def _ints(text: str) -> tuple[int, ...]:
    return tuple(json.loads(text))
