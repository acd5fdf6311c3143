"""How an operation class says what it is made of: fields in the class body, from which everything derives.

    class Dispatch(Operation):
        \"\"\"Runs an executable.\"\"\"
        name = "flow.dispatch"
        executable = attr(SymbolRef)             # op.executable -> SymbolRef
        workload = optional(DenseArray)          # op.workload -> DenseArray | None
        arguments = operands(TensorType)         # op.arguments -> tuple[Value, ...]
        outputs = results(TensorType)            # op.outputs -> tuple[OpResult, ...]
        traits = frozenset({Trait.PURE})

Operands, results, regions and successors are matched by position in the order of the fields. One variadic group takes
what is left over; with several of operands or results, sizes are in `operandSegmentSizes` / `resultSegmentSizes`, or,
when the class says `same_size = True`, all groups are equally long. A constraint is a type, a Type class or a
predicate over types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar, overload

from .attributes import DenseArray, DimArray, IntegerAttr, attribute_of, dense_ints
from .dims import Size
from .types import I32, Attribute, Type

if TYPE_CHECKING:
    from .core import Block, Operation, OpResult, Region, Value  # noqa: F401 the classes below name them in text

A = TypeVar("A", bound=Attribute)
T = TypeVar("T")
Constraint = type[Type] | Type | Callable[[Type], bool] | None

#: Kind of positional field -> the property that holds the sizes of its groups.
SEGMENTS = {"operand": "operandSegmentSizes", "result": "resultSegmentSizes"}


class Field:
    """One declared field. `kind` is operand, result, region, successor or attribute."""

    kind = ""
    variadic = False
    required = True

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        cls.kind = kind or cls.kind

    def __init__(self, constraint: Constraint = None) -> None:
        self.constraint = constraint
        #: whether the constraint accepts a type
        self.allows = _predicate(constraint)
        self.name = ""

    def attribute(self, value: Any) -> Attribute:
        """The property for a Python value (see `attribute_of`). Raises TypeError."""
        return attribute_of(value)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def wanted(self) -> str:
        """Description of the constraint, for messages."""
        if isinstance(self.constraint, Type):
            return str(self.constraint)
        doc = str(getattr(self.constraint, "__doc__", None) or getattr(self.constraint, "__name__", "?"))
        return doc.split("\n")[0]


def _predicate(constraint: Constraint) -> Callable[[Type], bool]:
    if constraint is None:
        return lambda given: True
    if isinstance(constraint, type):
        return lambda given: isinstance(given, constraint)
    return (lambda given: given == constraint) if isinstance(constraint, Type) else constraint


class _One(Field, Generic[T]):
    """A field of exactly one value."""

    @overload
    def __get__(self, op: None, owner: type) -> Self: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> T: ...
    def __get__(self, op: Operation | None, owner: type) -> Self | T:
        if op is None:
            return self
        items, positions = _HELD[self.kind](op), op.declaration.positional[self.kind]
        if not positions.variadic and len(items) == positions.single:  # nearly all ops, a hundred thousand times
            only: T = items[positions.numbers[self.name]]
            return only
        return op.declaration.group(op, self)[0]  # type: ignore[no-any-return]


class _Many(Field, Generic[T]):
    """A field of any number of values."""

    variadic = True

    @overload
    def __get__(self, op: None, owner: type) -> Self: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> tuple[T, ...]: ...
    def __get__(self, op: Operation | None, owner: type) -> Self | tuple[T, ...]:
        return self if op is None else tuple(op.declaration.group(op, self))


class operand(_One["Value"], kind="operand"):
    """One operand."""


class operands(_Many["Value"], kind="operand"):
    """Any number of operands."""


class result(_One["OpResult"], kind="result"):
    """One result."""


class results(_Many["OpResult"], kind="result"):
    """Any number of results."""


class region(_One["Region"], kind="region"):
    """One region."""


class regions(_Many["Region"], kind="region"):
    """Any number of regions."""


class successor(_One["Block"], kind="successor"):
    """One successor block."""


class successors(_Many["Block"], kind="successor"):
    """Any number of successor blocks."""


class Property(Field, Generic[A], kind="attribute"):
    """A property of the given attribute class."""

    def __init__(self, cls: type[A]) -> None:
        super().__init__()
        self.cls = cls

    def attribute(self, value: Any) -> Attribute:
        is_list = issubclass(self.cls, DenseArray) and not isinstance(value, Attribute)
        return dense_ints(*value) if is_list else attribute_of(value)

    def __set__(self, op: Operation, value: A) -> None:
        op.properties[self.name] = value


class attr(Property[A]):
    """A required property of the given attribute class."""

    @overload
    def __get__(self, op: None, owner: type) -> Self: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> A: ...
    def __get__(self, op: Operation | None, owner: type) -> Self | A:
        return self if op is None else op.properties[self.name]  # type: ignore[return-value]


class optional(Property[A]):
    """An optional property of the given attribute class."""

    required = False

    @overload
    def __get__(self, op: None, owner: type) -> Self: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> A | None: ...
    def __get__(self, op: Operation | None, owner: type) -> Self | A | None:
        return self if op is None else op.properties.get(self.name)  # type: ignore[return-value]


class size_attr(Field, kind="attribute"):
    """A required property that is a size, a number or an expression: `8 : i64`, `#util.dims<2 * b>`."""

    cls = IntegerAttr | DimArray

    @overload
    def __get__(self, op: None, owner: type) -> Self: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> Size: ...
    def __get__(self, op: Operation | None, owner: type) -> Self | Size:
        return self if op is None else size_in(op.properties[self.name])

    def __set__(self, op: Operation, value: Size) -> None:
        op.properties[self.name] = attribute_of(value)


def size_in(value: Attribute) -> Size:
    """The size in such a property."""
    if isinstance(value, DimArray):
        return value.sizes[0]
    assert isinstance(value, IntegerAttr)
    return value.value


class Positions(NamedTuple):
    """The fields of one kind, the numbers of variadic and of single fields, one 1 per field, and name -> number."""

    fields: tuple[Field, ...]
    variadic: int
    single: int
    ones: tuple[int, ...]
    numbers: dict[str, int]

    @classmethod
    def of(cls, fields: tuple[Field, ...]) -> Positions:
        """Counts the variadic and the single fields."""
        variadic = sum(field.variadic for field in fields)
        numbers = {field.name: number for number, field in enumerate(fields)}
        return cls(fields, variadic, len(fields) - variadic, (1,) * len(fields), numbers)


@dataclass(frozen=True)
class Declaration:
    """The fields of an operation class, by kind, in order."""

    operand: tuple[Field, ...] = ()
    result: tuple[Field, ...] = ()
    region: tuple[Field, ...] = ()
    successor: tuple[Field, ...] = ()
    attribute: tuple[Field, ...] = ()
    same_size: bool = False

    @cached_property
    def property_names(self) -> tuple[str, ...]:
        """The names of all declared properties, including the sizes of groups."""
        segments = [name for kind, name in SEGMENTS.items() if self.has_segments(kind)]
        return (*(field.name for field in self.attribute), *segments)

    @cached_property
    def positional(self) -> dict[str, Positions]:
        """Kind -> the fields that are matched by position."""
        return {kind: Positions.of(getattr(self, kind)) for kind in _HELD}

    def has_segments(self, kind: str) -> bool:
        """Whether a property holds the group sizes of that kind."""
        return self.positional[kind].variadic > 1 and not self.same_size

    def sizes(self, op: Operation, kind: str, total: int) -> Sequence[int]:
        """Number of the op's operands (results, ...) in each field of that kind. Raises ValueError for a mismatch."""
        fields, variadic, single, ones, _ = self.positional[kind]
        left = total - single
        if variadic == 0 and left or left < 0:
            raise ValueError(f"needs {'at least ' if variadic else ''}{single} {kind}s, has {total}")
        if variadic == 0:
            return ones
        if variadic == 1:
            return [left if field.variadic else 1 for field in fields]
        if self.same_size:
            if left % variadic:
                raise ValueError(f"its {total} {kind}s do not divide into {variadic} groups of equal length")
            return [left // variadic if field.variadic else 1 for field in fields]
        given = op.properties.get(SEGMENTS[kind])
        if not isinstance(given, DenseArray) or len(given) != len(fields):
            raise ValueError(f"needs {SEGMENTS[kind]} with {len(fields)} sizes")
        sizes = list(given.ints)
        fit = all(size == 1 or field.variadic for size, field in zip(sizes, fields, strict=True))
        if sum(sizes) != total or min(sizes) < 0 or not fit:
            raise ValueError(f"{SEGMENTS[kind]} {sizes} do not fit {total} {kind}s")
        return sizes

    def fields_of(self, op: Operation, kind: str, total: int) -> Sequence[Field]:
        """The field of each of the op's operands (results, ...). Raises ValueError if they do not match."""
        positions = self.positional[kind]
        if not positions.variadic and total == positions.single:
            return positions.fields
        sizes = self.sizes(op, kind, total)
        return [field for field, size in zip(positions.fields, sizes, strict=True) for _ in range(size)]

    def group(self, op: Operation, field: Field) -> Sequence[Any]:
        """The operands (results, ...) of `op` in `field`."""
        items: Sequence[Any] = _HELD[field.kind](op)
        positions, start = self.positional[field.kind], 0
        for other, size in zip(positions.fields, self.sizes(op, field.kind, len(items)), strict=True):
            if other is field:
                return items[start : start + size]
            start += size
        raise AssertionError(f"{field.name} is not a field of {op.name}")

    def arguments(self, op_name: str, given: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of `Operation.__init__` for values by field name. Raises TypeError."""
        values = dict(given)
        properties: dict[str, Attribute] = {}
        out: dict[str, Any] = {"properties": properties}
        for kind, key in _ARGUMENTS.items():
            out[key] = self._flatten(op_name, kind, values, properties)
        for field in self.attribute:
            value = values.pop(field.name, None)
            if value is not None:
                properties[field.name] = field.attribute(value)
            elif field.required:
                raise TypeError(f"{op_name}: field {field.name} is missing")
        if "attributes" in values:
            out["attributes"] = {key: attribute_of(value) for key, value in values.pop("attributes").items()}
        if values:
            raise TypeError(f"{op_name} has no field {', '.join(values)}")
        return out

    def _flatten(self, op_name: str, kind: str, values: dict[str, Any], properties: dict[str, Attribute]) -> list[Any]:
        flat: list[Any] = []
        sizes: list[int] = []
        fields: tuple[Field, ...] = getattr(self, kind)
        for field in fields:
            if field.name not in values and not field.variadic:
                raise TypeError(f"{op_name}: field {field.name} is missing")
            value = values.pop(field.name, ())
            items = list(value) if field.variadic else [value]
            flat += items
            sizes.append(len(items))
        if kind in SEGMENTS and self.has_segments(kind):
            properties[SEGMENTS[kind]] = DenseArray(tuple(sizes), I32)
        return flat


#: Kind -> the operation's list of that kind.
_HELD: dict[str, Callable[[Operation], Sequence[Any]]] = {
    "operand": attrgetter("operands"),
    "result": attrgetter("results"),
    "region": attrgetter("regions"),
    "successor": attrgetter("successors"),
}
#: Kind -> the argument of `Operation.__init__` for it.
_ARGUMENTS = {"operand": "operands", "result": "result_types", "region": "regions", "successor": "successors"}


def declaration_of(cls: type) -> Declaration:
    """The declaration of a class: the fields of its bases, then its own, in order."""
    fields: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        fields |= {name: value for name, value in vars(base).items() if isinstance(value, Field)}
    taken = [name for name in fields if any(name in getattr(base, "__slots__", ()) for base in cls.__mro__)]
    if taken:
        raise TypeError(f"{cls.__name__}: a field cannot be called {', '.join(taken)}, every operation has one")
    kinds = {kind: tuple(f for f in fields.values() if f.kind == kind) for kind in (*_ARGUMENTS, "attribute")}
    return Declaration(**kinds, same_size=bool(getattr(cls, "same_size", False)))
