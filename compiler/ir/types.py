"""Types of the IR: immutable, compared by value, printed as MLIR text.

A type is also an attribute, so that `function_type = (tensor<4xf32>) -> tensor<4xf32>` needs no wrapper. Types that the
compiler never inspects (`memref<..>`) are kept as text in `RawType`; a dialect's own types
(`!hl_seq.resource<external>`) are `DialectType`s: a name and the text between `<` and `>`. NumPy is not imported here:
reading IR must stay cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import TYPE_CHECKING, Final

from .dims import Dim, Shape, Size, numbers

if TYPE_CHECKING:
    from .attributes import Resources

#: A dimension of unknown size, printed as `?`.
DYNAMIC: Final = -1
#: The text before the symbolic sizes of a shape or an array.
DIMS: Final = "#util.dims<"


class Attribute:
    """Data that an operation carries besides its operands. Subclasses are frozen, and may be shared."""

    __slots__ = ()

    def text(self, resources: Resources | None = None) -> str:
        """The MLIR text. Large elements are added to `resources` and print as a name; without it, in full."""
        raise NotImplementedError(type(self).__name__)

    def __str__(self) -> str:
        return self.text()


class Type(Attribute):
    """The type of a value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ScalarType(Type):
    """A scalar type: `f32`, `i1`, `ui8`, `complex<f32>`, `index`, `none`."""

    name: str

    def text(self, resources: Resources | None = None) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TensorType(Type):
    """`tensor<4x?xf32>`: shape (DYNAMIC for `?`), element type, encoding text (usually empty).

    A size may be a `Dim`. It prints as `?`, and its expression follows: `tensor<4x?xf32, #util.dims<2 * b>>`.
    """

    shape: Shape
    element: Type
    encoding: str = ""

    def text(self, resources: Resources | None = None) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        sizes = [str(d) for d in self.shape if isinstance(d, Dim)]
        dims = "".join("?x" if isinstance(d, Dim) or d == DYNAMIC else f"{d}x" for d in self.shape)
        encoding = f"{DIMS}{', '.join(sizes)}>" if sizes else self.encoding
        return f"tensor<{dims}{self.element}{', ' + encoding if encoding else ''}>"

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def is_known(self) -> bool:
        """Whether every size is a number or an expression."""
        return DYNAMIC not in self.shape

    @cached_property
    def is_static(self) -> bool:
        """Whether every size is a number."""
        return all(type(d) is int for d in self.shape) and DYNAMIC not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as numbers. Raises UndecidedError if a size is an expression."""
        return numbers(self.shape)

    @cached_property
    def num_elements(self) -> Size:
        """Number of elements, an expression if a size is one. Raises ValueError if a size is unknown."""
        if not self.is_known:
            raise ValueError(f"{self} has no fixed number of elements")
        return prod(self.shape)

    def with_shape(self, shape: Shape) -> TensorType:
        return TensorType(shape, self.element, self.encoding)

    def with_element(self, element: Type) -> TensorType:
        return TensorType(self.shape, element, self.encoding)


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    """`(a, b) -> (c)`."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def text(self, resources: Resources | None = None) -> str:
        return f"({', '.join(map(str, self.inputs))}) -> {results_text(self.results)}"


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """`tuple<a, b>`: several values as one; elements may be tuples."""

    elements: tuple[Type, ...]

    def text(self, resources: Resources | None = None) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class DialectType(Type):
    """`!dialect.name<body>`: `name` is `dialect.name`, `body` the text between the brackets or empty."""

    name: str
    body: str = ""

    def text(self, resources: Resources | None = None) -> str:
        return f"!{self.name}<{self.body}>" if self.body else f"!{self.name}"


#: StableHLO's type of values without content, which order effects.
TOKEN: Final = "!stablehlo.token"


def is_token(type: Type) -> bool:
    """Whether this is StableHLO's token type."""
    return isinstance(type, DialectType) and str(type) == TOKEN


@dataclass(frozen=True, slots=True)
class RawType(Type):
    """A type that is kept as text."""

    source: str

    def text(self, resources: Resources | None = None) -> str:
        return self.source


def results_text(results: tuple[Type, ...]) -> str:
    """The right side of `->`: a single type without parentheses, unless it is a function type."""
    if len(results) == 1 and not isinstance(results[0], FunctionType):
        return str(results[0])
    return f"({', '.join(map(str, results))})"


@cache
def scalar(name: str) -> ScalarType:
    """The scalar type of that name; always the same object."""
    return ScalarType(name)


def tensor(shape: Shape, element: str) -> TensorType:
    """Short form: `tensor((4, 8), "f32")`."""
    return TensorType(shape, scalar(element))


I1, I32, I64 = (scalar(name) for name in ("i1", "i32", "i64"))
F32, F64, NONE = (scalar(name) for name in ("f32", "f64", "none"))
