"""Tensor types and the shape rules of tensor bytecode: the result types of each op.

A rule takes the operands' types and the op's attributes and returns the result types, or raises ShapeError (lower case,
both values). It only assumes the Python types of the attributes, because they may come from an untrusted file. The
sizes of a file are Python integers and cannot overflow; a type that NumPy could not represent is refused. The compiler
applies the rules to symbolic sizes, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Generic, Never, Protocol, Self, TypeAlias

from .dtypes import BOOL, SIGNED, UNSIGNED, DType

#: NumPy's limit of dimensions
MAX_RANK = 64
MAX_BYTES = 2**63 - 1
#: bytes of the widest element. An empty tensor must be representable with it, too, because it may be converted to any
#: type, and NumPy counts a dimension of 0 as 1 when it checks whether an array is too large
WIDEST = 16

Ints = tuple[int, ...]


class Expression(Protocol):
    """A size that a call determines, as the compiler has them. A file holds numbers only."""

    def __add__(self, other: int | Self) -> int | Self: ...
    def __radd__(self, other: int) -> int | Self: ...
    def __sub__(self, other: int | Self) -> int | Self: ...
    def __rsub__(self, other: int) -> int | Self: ...
    def __neg__(self) -> int | Self: ...
    def __mul__(self, other: int | Self) -> int | Self: ...
    def __rmul__(self, other: int) -> int | Self: ...
    def __floordiv__(self, other: int | Self) -> int | Self: ...
    def __rfloordiv__(self, other: int) -> int | Self: ...
    def __lt__(self, other: int | Self) -> bool: ...
    def __le__(self, other: int | Self) -> bool: ...
    def __ge__(self, other: int | Self) -> bool: ...

    def greater(self, other: int | Self) -> int | Self:
        """The greater of two sizes."""


if TYPE_CHECKING:  # Python has defaults of type variables from 3.13 on
    from typing_extensions import TypeVar

    E = TypeVar("E", bound=Expression, default=Never, covariant=True)
else:
    from typing import TypeVar

    E = TypeVar("E")

#: Sizes are numbers, or also expressions of a class, if it is given.
Size: TypeAlias = int | E
Sizes: TypeAlias = tuple[int | E, ...]


class ShapeError(Exception):
    """Operands or attributes violate a rule of the op."""


@dataclass(frozen=True, slots=True)
class TensorType(Generic[E]):
    """An element type and a shape. All sizes are numbers in `TensorType`; `TensorType[E]` may have expressions."""

    dtype: DType
    shape: Sizes[E]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> Size[E]:
        return prod(self.shape)

    @property
    def bytes(self) -> Size[E]:
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return "tensor<" + "".join(f"{size}x" for size in self.shape) + f"{self.dtype.name}>"


Types: TypeAlias = Sequence[TensorType[E]]


def is_negative(size: Size[E]) -> bool:
    """Whether a size is negative. A symbolic size is checked when its value is known."""
    return isinstance(size, int) and size < 0


def greater(x: Size[E], y: int) -> Size[E]:
    """The greater of a size and a number; expressions implement it."""
    return max(x, y) if isinstance(x, int) else x.greater(y)


def tensor_type(dtype: DType, shape: Sizes[E]) -> TensorType[E]:
    """Returns a type. Raises ShapeError for everything that an untrusted file may get wrong."""
    if len(shape) > MAX_RANK:
        raise ShapeError(f"rank {len(shape)} above {MAX_RANK}")
    width = WIDEST if 0 in shape else dtype.itemsize
    span: Size[E] = width
    for size in shape:
        if is_negative(size):
            raise ShapeError(f"negative dimension in shape {list(shape)}")
        span *= 1 if size == 0 else size
    if isinstance(span, int) and span > MAX_BYTES:  # symbolic sizes are checked when their values are known
        raise ShapeError(f"shape {list(shape)} of {dtype} spans {span} bytes, more than {MAX_BYTES}")
    return TensorType(dtype, shape)


def given(_: Types[E], *attributes: Any) -> Types[E]:
    """The type is an attribute, which was checked when it was created: load_input."""
    return (attributes[-1],)


def nothing(_: Types[E], *attributes: Any) -> Types[E]:
    return ()


def constant(_: Types[E], result: TensorType[E], data: bytes) -> Types[E]:
    if len(data) != result.bytes:
        raise ShapeError(f"{len(data)} bytes for {result}, which takes {result.bytes}")
    if result.dtype.kind == BOOL and bytes(data).strip(b"\0\1"):
        raise ShapeError("an i1 constant holds bytes other than 0 and 1")
    return (result,)


def iota(_: Types[E], result: TensorType[E], axis: int) -> Types[E]:
    if result.dtype.kind == BOOL:
        raise ShapeError("iota of i1")
    _check_axes("axis", (axis,), result.rank)
    return (result,)


def number(_: Types[E], result: TensorType[E], numbers: Ints) -> Types[E]:
    if len(numbers) != 1 or result.dtype.kind not in (SIGNED, UNSIGNED):
        raise ShapeError(f"{len(numbers)} numbers for {result}, one in a type of integers is expected")
    return (result,)


def broadcast_in_dim(operands: Types[E], shape: Sizes[E], axes: Ints) -> Types[E]:
    (operand,) = operands
    if len(axes) != operand.rank:
        raise ShapeError(f"{len(axes)} axes for an operand of rank {operand.rank}")
    _check_axes("axes", axes, len(shape))
    for size, axis in zip(operand.shape, axes, strict=True):
        if size not in (1, shape[axis]):
            raise ShapeError(f"dimension {size} cannot be broadcast to {shape[axis]} (axis {axis})")
    return (tensor_type(operand.dtype, shape),)


def reshape(operands: Types[E], shape: Sizes[E]) -> Types[E]:
    (operand,) = operands
    result = tensor_type(operand.dtype, shape)
    if result.elements != operand.elements:
        raise ShapeError(f"{operand.elements} elements of {operand} into {result.elements} of {result}")
    return (result,)


def transpose(operands: Types[E], permutation: Ints) -> Types[E]:
    (operand,) = operands
    if sorted(permutation) != list(range(operand.rank)):
        raise ShapeError(f"{list(permutation)} is not a permutation of rank {operand.rank}")
    return (TensorType(operand.dtype, tuple(operand.shape[axis] for axis in permutation)),)


def slice_(operands: Types[E], starts: Sizes[E], limits: Sizes[E], strides: Sizes[E]) -> Types[E]:
    (operand,) = operands
    _check_ranks(operand, starts=starts, limits=limits, strides=strides)
    shape = []
    for size, start, limit, stride in zip(operand.shape, starts, limits, strides, strict=True):
        if not (0 <= start <= limit <= size and stride >= 1):
            raise ShapeError(f"slice {start}:{limit}:{stride} of a dimension of {size}")
        shape.append((limit - start + stride - 1) // stride)
    return (TensorType(operand.dtype, tuple(shape)),)


def window_count(size: Size[E], window: Size[E], stride: Size[E], dilation: Size[E]) -> Size[E]:
    """The number of windows in an axis: `window` elements each, `dilation` apart, and `stride` between windows."""
    span = (window - 1) * dilation + 1
    return greater((size - span) // stride + 1, 0)


def windows(operands: Types[E], axes: Ints, sizes: Sizes[E], strides: Sizes[E], dilations: Sizes[E]) -> Types[E]:
    """Along `axes` the result has the windows; the elements of a window lie along additional axes after
    the operand's.
    """
    (operand,) = operands
    _check_axes("axes", axes, operand.rank)
    for name, numbers in (("sizes", sizes), ("strides", strides), ("dilations", dilations)):
        if len(numbers) != len(axes) or any(number < 1 for number in numbers):
            raise ShapeError(f"{name} {list(numbers)} for {len(axes)} axes, must be positive")
    shape = list(operand.shape)
    for axis, *window in zip(axes, sizes, strides, dilations, strict=True):
        shape[axis] = window_count(shape[axis], *window)
    return (tensor_type(operand.dtype, (*shape, *sizes)),)


def spread(size: Size[E], gap: Size[E]) -> Size[E]:
    """The size of an axis with `gap` additional elements between neighbours."""
    return size if gap == 0 else size + greater(size - 1, 0) * gap


def pad(operands: Types[E], low: Sizes[E], high: Sizes[E], interior: Sizes[E]) -> Types[E]:
    operand, value = operands
    if value != TensorType(operand.dtype, ()):
        raise ShapeError(f"padding value of type {value} for {operand}")
    _check_ranks(operand, low=low, high=high, interior=interior)
    shape = []
    for size, before, after, between in zip(operand.shape, low, high, interior, strict=True):
        padded = before + spread(size, between) + after
        if between < 0 or is_negative(padded):
            raise ShapeError(f"padding ({before}, {after}, {between}) of a dimension of {size}")
        shape.append(padded)
    return (tensor_type(operand.dtype, tuple(shape)),)


def concatenate(operands: Types[E], axis: int) -> Types[E]:
    if not operands:
        raise ShapeError("no operands")
    first = operands[0]
    _check_axes("axis", (axis,), first.rank)
    for operand in operands:
        same = operand.dtype is first.dtype and operand.rank == first.rank
        if not same or _without(operand.shape, (axis,)) != _without(first.shape, (axis,)):
            raise ShapeError(f"{operand} beside {first} along axis {axis}")
    shape = list(first.shape)
    shape[axis] = sum(operand.shape[axis] for operand in operands)
    return (tensor_type(first.dtype, tuple(shape)),)


def reverse(operands: Types[E], axes: Ints) -> Types[E]:
    _check_axes("axes", axes, operands[0].rank)
    return (operands[0],)


def reduce(operands: Types[E], axes: Ints, *_: Any) -> Types[E]:
    """Inputs of one shape, then as many rank-0 initial values. The body is checked when it is built."""
    inputs, initial = halves(operands)
    _check_axes("axes", axes, inputs[0].rank)
    for operand, start in zip(inputs, initial, strict=True):
        if operand.shape != inputs[0].shape or start != TensorType(operand.dtype, ()):
            raise ShapeError(f"input {operand} with initial value {start} beside {inputs[0]}")
    return tuple(TensorType(operand.dtype, _without(operand.shape, axes)) for operand in inputs)


def dot_general(
    operands: Types[E], left_batch: Ints, right_batch: Ints, left_contract: Ints, right_contract: Ints, dtype: DType
) -> Types[E]:
    """Result dimensions: the batch ones, then the free ones of the left, then those of the right."""
    left, right = operands
    if left.dtype is not right.dtype or dtype.kind != left.dtype.kind:
        raise ShapeError(f"{left.dtype} times {right.dtype} giving {dtype}")
    _check_axes("left axes", left_batch + left_contract, left.rank)
    _check_axes("right axes", right_batch + right_contract, right.rank)
    for what, left_axes, right_axes in (
        ("batch", left_batch, right_batch),
        ("contracting", left_contract, right_contract),
    ):
        ours, theirs = [left.shape[axis] for axis in left_axes], [right.shape[axis] for axis in right_axes]
        if ours != theirs:
            raise ShapeError(f"{what} dimensions {ours} of the left, {theirs} of the right")
    batch = tuple(left.shape[axis] for axis in left_batch)
    free = _without(left.shape, left_batch + left_contract) + _without(right.shape, right_batch + right_contract)
    return (tensor_type(dtype, batch + free),)


def dynamic_slice(operands: Types[E], sizes: Sizes[E]) -> Types[E]:
    operand, *starts = operands
    _check_window(operand, sizes, starts)
    return (TensorType(operand.dtype, sizes),)


def dynamic_update_slice(operands: Types[E]) -> Types[E]:
    operand, update, *starts = operands
    if update.dtype is not operand.dtype or update.rank != operand.rank:
        raise ShapeError(f"update {update} of {operand}")
    _check_window(operand, update.shape, starts)
    return (operand,)


def store_slice(operands: Types[E], _: Size[E], whole: Sizes[E]) -> Types[E]:
    update, *starts = operands
    operand = tensor_type(update.dtype, whole)
    if update.rank != operand.rank:
        raise ShapeError(f"update {update} of {operand}")
    _check_window(operand, update.shape, starts)
    return ()


@dataclass(frozen=True, slots=True)
class GatherAxes:
    """Which axes of a gather's operand, indices and result correspond, in StableHLO's terms.

    An index vector lies along axis `index_vector_dim` of the indices (if that is their rank, each element is a vector),
    and gives the start of a slice along the operand axes `start_index_map`. The result has the other axes of the
    indices, and in between, at `offset_dims`, those axes of the slice that are neither collapsed nor batching.
    """

    offset_dims: Ints
    collapsed_slice_dims: Ints
    operand_batching_dims: Ints
    start_indices_batching_dims: Ints
    start_index_map: Ints
    index_vector_dim: int

    def batch_dims(self, rank: int) -> Ints:
        """The axes of a result of this rank that correspond to the indices."""
        return tuple(axis for axis in range(rank) if axis not in self.offset_dims)

    def kept_dims(self, rank: int) -> Ints:
        """The axes of an operand of this rank that appear in the result, at `offset_dims`."""
        gone = self.collapsed_slice_dims + self.operand_batching_dims
        return tuple(axis for axis in range(rank) if axis not in gone)

    def batch_place(self, axis: int) -> int:
        """The position, among the batch axes of the result, of an axis of the indices."""
        return axis - (axis > self.index_vector_dim)


def gather(operands: Types[E], *attributes: Any) -> Types[E]:
    """Gather. `attributes` are the fields of `GatherAxes` in order, then the slice sizes."""
    operand, indices = operands
    axes, sizes = GatherAxes(*attributes[:-1]), attributes[-1]
    if indices.dtype.kind not in (SIGNED, UNSIGNED):
        raise ShapeError(f"indices of type {indices}")
    _check_ranks(operand, sizes=sizes)
    _check_gathered(operand, indices, axes, sizes)
    batch = [size for axis, size in enumerate(indices.shape) if axis != axes.index_vector_dim]
    kept = [sizes[axis] for axis in axes.kept_dims(operand.rank)]
    if len(kept) != len(axes.offset_dims):
        raise ShapeError(f"{len(axes.offset_dims)} offset_dims for {len(kept)} axes of the slice")
    rank = len(batch) + len(kept)
    _check_sorted("offset_dims", axes.offset_dims, rank)
    rest, own = iter(batch), iter(kept)
    shape = tuple(next(own) if axis in axes.offset_dims else next(rest) for axis in range(rank))
    _check_window(operand, sizes, None, nothing=0 in shape)
    return (tensor_type(operand.dtype, shape),)


def _check_gathered(operand: TensorType[E], indices: TensorType[E], axes: GatherAxes, sizes: Sizes[E]) -> None:
    vector = axes.index_vector_dim
    if not 0 <= vector <= indices.rank:
        raise ShapeError(f"index_vector_dim {vector} for indices of rank {indices.rank}")
    length = indices.shape[vector] if vector < indices.rank else 1
    if len(axes.start_index_map) != length:
        raise ShapeError(f"start_index_map has {len(axes.start_index_map)} axes for index vectors of {length}")
    _check_axes(
        "start_index_map and operand_batching_dims", axes.start_index_map + axes.operand_batching_dims, operand.rank
    )
    gone = axes.collapsed_slice_dims + axes.operand_batching_dims
    _check_axes("collapsed_slice_dims and operand_batching_dims", gone, operand.rank)
    for name in ("collapsed_slice_dims", "operand_batching_dims"):
        _check_sorted(name, getattr(axes, name), operand.rank)
    for axis in gone:
        if sizes[axis] != 1:
            raise ShapeError(f"slice of {sizes[axis]} along axis {axis}, which the result does not have; must be 1")
    ours, theirs = axes.operand_batching_dims, axes.start_indices_batching_dims
    _check_axes("start_indices_batching_dims", theirs, indices.rank)
    if vector in theirs:
        raise ShapeError(f"index_vector_dim {vector} is among start_indices_batching_dims {list(theirs)}")
    if [operand.shape[axis] for axis in ours] != [indices.shape[axis] for axis in theirs]:
        raise ShapeError(f"batching axes {list(ours)} of {operand} and {list(theirs)} of {indices} differ")


def _check_window(operand: TensorType[E], sizes: Sizes[E], starts: Types[E] | None, nothing: bool = False) -> None:
    """Checks that sizes fit, and that there is one start per axis, an integer of rank 0. None: the starts are
    elsewhere. `nothing`: no window is taken, so any size is accepted.
    """
    _check_ranks(operand, sizes=sizes)
    for whole, size in zip(operand.shape, sizes, strict=True):
        if is_negative(size) or is_negative(whole - size) and not nothing:
            raise ShapeError(f"slice of {size} of a dimension of {whole}")
    if starts is None:
        return
    if len(starts) != operand.rank:
        raise ShapeError(f"{len(starts)} starts for an operand of rank {operand.rank}")
    for start in starts:
        if start.shape or start.dtype.kind not in (SIGNED, UNSIGNED):
            raise ShapeError(f"start of type {start}")


def scatter(operands: Types[E], *_: Any) -> Types[E]:
    """Inputs [groups, rows, row], indices [groups, updates], updates [groups, updates, row]. The body is checked when
    it is built.
    """
    count = len(operands) // 2
    if len(operands) % 2 == 0 or not count:
        raise ShapeError(f"{len(operands)} operands, expected inputs, indices and as many updates")
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    if indices.dtype.name not in ("i32", "i64"):
        raise ShapeError(f"indices of type {indices}")
    for operand, update in zip(inputs, updates, strict=True):
        if operand.rank != 3 or operand.shape != inputs[0].shape:
            raise ShapeError(f"operand {operand} beside {inputs[0]}")
        groups, row = operand.shape[::2]
        wanted = TensorType(operand.dtype, (groups, *indices.shape[1:], row))
        if update != wanted or indices.shape[:1] != (groups,) or indices.rank != 2:
            raise ShapeError(f"updates {update} for indices {indices} of {operand}")
    return tuple(inputs)


def halves(operands: Types[E]) -> tuple[Types[E], Types[E]]:
    """The inputs and the initial values of a reduce."""
    count = len(operands) // 2
    if not operands or len(operands) % 2:
        raise ShapeError(f"{len(operands)} operands, expected inputs and as many initial values")
    return operands[:count], operands[count:]


def _without(shape: Sizes[E], axes: Ints) -> Sizes[E]:
    left_out = set(axes)
    return tuple(size for axis, size in enumerate(shape) if axis not in left_out)


def _check_axes(what: str, axes: Ints, rank: int) -> None:
    if len(set(axes)) != len(axes) or any(not 0 <= axis < rank for axis in axes):
        raise ShapeError(f"{what} {list(axes)} for rank {rank}")


def _check_sorted(what: str, axes: Ints, rank: int) -> None:
    _check_axes(what, axes, rank)
    if list(axes) != sorted(axes):
        raise ShapeError(f"{what} {list(axes)} are not in order")


def _check_ranks(operand: TensorType[E], **attributes: Sizes[E]) -> None:
    for name, numbers in attributes.items():
        if len(numbers) != operand.rank:
            raise ShapeError(f"{len(numbers)} {name} for an operand of rank {operand.rank}")
