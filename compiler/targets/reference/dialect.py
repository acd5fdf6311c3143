"""The tensor_bytecode dialect: the rows of `schema/tensor_bytecode.py` as operations, a class per row.

Operands are the values of the row; a binding is a block argument of the entry. If the row has a type, an element type
or a shape, the result types hold it; other fields are properties. A `reduce` has a region that ends with `yield`.
`check` compares the result types with those that the rule of the row computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, DictAttr, IntegerAttr, StringAttr
from orchestrion.compiler.ir.core import Operation, Region, Trait, Value
from orchestrion.compiler.ir.declare import Field, attr, operand, operands, region, results
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.dims import Dim, UndecidedError
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.sequencer.ll_seq import BINDING
from orchestrion.compiler.stablehlo.ops.custom_call import attribute_values
from orchestrion.schema import tensor_shapes
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.tensor_bytecode import ROWS, TensorOp, body_parameters
from orchestrion.schema.tensor_shapes import ShapeError

NAME: Final = "tensor_bytecode"

#: kind of field -> how the class declares it; other kinds follow from the type of the result
_DECLARED: Final[dict[str, Callable[[], Field]]] = {
    "value": lambda: operand(TensorType),
    "values": lambda: operands(TensorType),
    "binding": lambda: operand(BINDING),
    "axis": lambda: attr(IntegerAttr),
    "ints": lambda: attr(DenseArray),
    "data": lambda: attr(DenseElements),
    "body": region,
    "function": lambda: attr(StringAttr),
    "named": lambda: attr(DictAttr),
}


class BytecodeOp(Operation):
    """An instruction. `row`: its row."""

    row: TensorOp

    @property
    def values(self) -> list[Value]:
        """The operands that are tensors, without the binding."""
        return [value for value in self.operands if isinstance(value.type, TensorType)]

    def attribute(self, name: str, kind: str) -> Any:
        """The field of that name and kind, as the rule of the row takes it. Not for bindings and bodies."""
        if kind == "type":
            return schema_type(self.results[0])
        if kind == "dtype":
            return schema_type(self.results[0]).dtype
        if kind == "types":
            return tuple([schema_type(result) for result in self.results])
        if name == "shape":
            return schema_type(self.results[0]).shape
        value = self.properties[name]
        if isinstance(value, IntegerAttr | StringAttr):
            return value.value
        if isinstance(value, DictAttr):
            return attribute_values(value)
        if isinstance(value, DenseArray):
            return value.sizes
        assert isinstance(value, DenseElements)
        return whole(value)

    def check(self) -> Iterator[str]:
        try:
            attributes = [
                None if kind in ("binding", "body") else self.attribute(name, kind)
                for name, kind in self.row.attributes
            ]
            wanted = self.row.rule([schema_type(value) for value in self.values], *attributes)
        except (ShapeError, UndecidedError) as error:
            yield str(error)
            return
        yield from _differ("result types", wanted, self.results)
        for body in self.regions:
            yield from self._check_body(body)

    def _check_body(self, region: Region) -> Iterator[str]:
        if len(region.blocks) != 1 or not isinstance(region.block.last, Yield):
            yield f"the body must be one block that ends with {Yield.name}"
            return
        wanted = body_parameters([schema_type(value) for value in self.values])
        yield from _differ("the body's arguments", wanted, region.block.arguments)
        yield from _differ("what the body yields", wanted[: len(wanted) // 2], region.block.last.operands)


class Yield(Operation):
    """Ends the body of a reduce or scatter with its results."""

    name = f"{NAME}.yield"
    values = operands(TensorType)
    traits = frozenset({Trait.TERMINATOR})


def schema_type(value: Value) -> tensor_shapes.TensorType[Dim]:
    """The type of a tensor value as a type of the schema."""
    assert isinstance(value.type, TensorType)
    return tensor_shapes.TensorType(DTYPES[str(value.type.element)], value.type.shape)


def _differ(what: str, wanted: Sequence[tensor_shapes.TensorType[Dim]], values: Sequence[Value]) -> Iterator[str]:
    found = [schema_type(value) for value in values]
    if found != list(wanted):
        yield f"{what} must be ({', '.join(map(str, wanted))}), are ({', '.join(map(str, found))})"


def whole(elements: DenseElements) -> bytes:
    """All elements, with a splat repeated."""
    data = bytes(elements.data)
    return data * elements.type.num_elements if elements.is_splat else data


def _class(row: TensorOp) -> type[BytecodeOp]:
    declared: dict[str, object] = {
        name: _DECLARED[kind]() for name, kind in row.fields if kind in _DECLARED and name != "shape"
    }
    if not row.writes:
        declared["out"] = results(TensorType)
        declared["traits"] = frozenset({Trait.PURE, Trait.ISOLATED})
    made = {"name": f"{NAME}.{row.name}", "row": row, "__doc__": row.doc}
    return type(row.name.title().replace("_", ""), (BytecodeOp,), declared | made)


OPS: Final[dict[str, type[BytecodeOp]]] = {row.name: _class(row) for row in ROWS}


DIALECT: Final = Dialect(NAME, [*OPS.values(), Yield])
