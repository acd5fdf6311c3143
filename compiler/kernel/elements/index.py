"""Indices: the place of an element in a tensor, as coordinates, as row-major position, or both.

Each form is computed from the other on first use, so an elementwise kernel over flat positions never divides. It is
computed again if the region that holds it has been closed. Components are values of the builder's index type and always
in range.
"""

from collections.abc import Hashable, Sequence
from math import gcd

from orchestrion.compiler.flow.structure import aligned
from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.dims import Dim, Shape, Size, dim_max, is_dynamic, is_less
from orchestrion.compiler.kernel.code.affine import Sum, added, emit, sum_of
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.schema.dtypes import BY_NAME


class Index:
    """A place in a tensor of `shape`, as values of a builder."""

    __slots__ = ("builder", "shape", "_coordinates", "_linear", "_given", "_region", "key")

    def __init__(
        self, builder: KernelBuilder, shape: Shape, coordinates: Sequence[Value] | None, linear: Value | None = None
    ) -> None:
        if not shape:
            coordinates, linear = (), builder.index(0)
        self.builder = builder
        self.shape = shape
        self._coordinates = None if coordinates is None else tuple(coordinates)
        self._linear = linear
        self._given = self._coordinates, linear
        #: where the other form was computed
        self._region: Block | None = None
        #: equal for two indices that were made from the same values
        self.key: Hashable = linear if linear is not None else self._coordinates

    @property
    def coordinates(self) -> tuple[Value, ...]:
        """The coordinates."""
        self._forget()
        if self._coordinates is None:
            self._region = self.builder.block
            self._coordinates = tuple(delinearize(self.builder, self.linear, self.shape))
        return self._coordinates

    @property
    def linear(self) -> Value:
        """The row-major position."""
        self._forget()
        if self._linear is None:
            self._region = self.builder.block
            self._linear = linearize(self.builder, self.coordinates, self.shape)
        return self._linear

    def _forget(self) -> None:
        """Forgets a form that was computed in a region that is closed."""
        if self._region is not None and not self.builder.is_open(self._region):
            self._coordinates, self._linear = self._given
            self._region = None

    def at(self, shape: Shape, coordinates: Sequence[Value]) -> "Index":
        """A place in a tensor of another shape."""
        return Index(self.builder, shape, coordinates)

    def reshaped(self, shape: Shape) -> "Index":
        """The same position in a tensor with as many elements."""
        if shape == self.shape:
            return self
        self._forget()
        if self._coordinates is not None and is_dynamic(*shape) and len(groups := aligned(shape, self.shape)) > 1:
            return Index(self.builder, shape, self._by_groups(shape, groups), self._linear)
        if self._coordinates is None or _without_ones(shape) != _without_ones(self.shape):
            return Index(self.builder, shape, None, self.linear)
        rest = iter([c for c, size in zip(self._coordinates, self.shape, strict=True) if size != 1])
        coordinates = [self.builder.index(0) if size == 1 else next(rest) for size in shape]
        return Index(self.builder, shape, coordinates, self._linear)

    def _by_groups(self, shape: Shape, groups: Sequence[tuple[slice, slice]]) -> list[Value]:
        """The coordinates in a tensor of another shape, without divisions where groups of axes stay as they are."""
        b, coordinates = self.builder, self._coordinates
        assert coordinates is not None
        return [
            one
            for own, new in groups
            for one in delinearize(b, linearize(b, coordinates[new], self.shape[new]), shape[own])
        ]


def _without_ones(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def delinearize(b: KernelBuilder, linear: Value, shape: Shape) -> list[Value]:
    """The coordinates of a position. Dimensions of size 1 have coordinate 0; the outermost other one needs no
    remainder.
    """
    coordinates = [b.index(0)] * len(shape)
    rest, outermost = linear, next((axis for axis, size in enumerate(shape) if size != 1), None)
    for axis in reversed(range(len(shape))):
        size = shape[axis]
        if size == 1:
            continue
        if axis == outermost:
            coordinates[axis] = rest
            break
        divisor = b.index(size if is_less(0, size) else dim_max(size, 1))  # no position is asked for of nothing
        coordinates[axis] = b.op("unchecked_remainder", rest, divisor)
        rest = b.op("unchecked_divide", rest, divisor)
    return coordinates


def linearize(b: KernelBuilder, coordinates: Sequence[Value], shape: Shape) -> Value:
    """The row-major position of coordinates."""
    parts = []
    stride: Size = 1
    for coordinate, size in zip(reversed(coordinates), reversed(shape), strict=True):
        if size != 1:
            parts.append(_times(b, coordinate, stride))
            stride *= size
    return emit(b, added(reversed(parts), BY_NAME[b.index_type].bits))


def _times(b: KernelBuilder, coordinate: Value, stride: Size) -> tuple[Sum, int]:
    """A sum and a factor whose product is `coordinate * stride`. The sum includes the dynamic part of the stride."""
    if not isinstance(stride, Dim):
        return sum_of(coordinate), stride
    known = gcd(*(count for count, _ in stride.terms))
    return sum_of(b.op("multiply", coordinate, b.index(stride // known))), known


def invocation_index(b: KernelBuilder, workgroup_size: int) -> Value:
    """The linear index of the invocation in the dispatch."""
    local = b.index(b.local_id())
    return b.place(b.workgroup_id(), workgroup_size, local)
