"""Values of narrow types while `expand-narrow` replaces them: their forms, made on demand.

A form follows directly after the definition of its value, so that all uses can share it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from orchestrion.compiler.ir.attributes import INLINE_BYTES, DenseElements
from orchestrion.compiler.ir.core import BlockArgument, Operation, Value
from orchestrion.compiler.ir.locations import UNKNOWN, Location
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import F32, TensorType, Type, scalar
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import BY_NAME, FLOAT, FLOAT_FORMATS, SIGNED, UNSIGNED, DType

from .floats import decode, encode, round_to_format
from .integers import is_packed, normal_bytes, unpack, unsigned, wrap

_KINDS: Final = (FLOAT, SIGNED, UNSIGNED)


def narrow_dtype(type: Type) -> DType | None:
    """The row of a narrow element type; None for any other type."""
    if not isinstance(type, TensorType):
        return None
    dtype = BY_NAME.get(str(type.element))
    return dtype if dtype is not None and not dtype.computed and dtype.kind in _KINDS else None


def stored_type(type: Type) -> Type:
    """The type that holds a tensor of a narrow type; any other type unchanged."""
    dtype = narrow_dtype(type)
    return type.with_element(scalar(dtype.storage)) if dtype is not None and isinstance(type, TensorType) else type


def replace_operands(op: Operation, form: Callable[[Value], Value]) -> None:
    op.set_operands([form(value) for value in op.operands])


class NarrowValues:
    """The narrow values of one function.

    `unrounded`: inside a reducer, where computed values stay unrounded in f32.
    """

    def __init__(self) -> None:
        self.dtypes: dict[Value, DType] = {}  #: original type of each value
        self.unrounded = False
        self.loc: Location = UNKNOWN  #: location of the op that needs a form
        self._stored: dict[Value, Value] = {}
        self._wide: dict[Value, Value] = {}
        self._raw: dict[Value, Value] = {}  #: f32 that is not rounded yet

    def dtype(self, value: Value) -> DType | None:
        """The original narrow type of a value; None if it was not narrow."""
        return self.dtypes.get(value) or narrow_dtype(value.type)

    def is_wide(self, value: Value) -> bool:
        """Whether a value was computed, so that its stored form does not exist yet."""
        return value not in self._stored

    def register_stored(self, value: Value) -> None:
        """Makes a value hold its bits from now on."""
        dtype = narrow_dtype(value.type)
        if dtype is not None:
            self.dtypes[value] = dtype
            self._stored[value] = value
            value.type = stored_type(value.type)

    def register_argument(self, argument: Value) -> None:
        """Registers a function argument, whose bits above an integer's width are ignored."""
        self.register_stored(argument)
        dtype = self.dtypes.get(argument)
        if dtype is not None and dtype.bits < 8:
            self._stored[argument] = self._after_definition(argument, lambda x: wrap(x, dtype))

    def register_wide(self, value: Value) -> None:
        """Makes a value hold its number from now on: a float in f32, an integer in its storage."""
        dtype = narrow_dtype(value.type)
        if dtype is None or dtype.kind != FLOAT:
            return self.register_stored(value)
        self.dtypes[value] = dtype
        self._wide[value] = value
        value.type = tensor_of(value).with_element(F32)

    def register_computed(self, value: Value, exact: bool = False) -> None:
        """Registers a computed value, in f32 or in an integer's storage; it is rounded or wrapped unless `exact`."""
        dtype = narrow_dtype(value.type)
        if dtype is None:
            return
        value.type = tensor_of(value).with_element(F32 if dtype.kind == FLOAT else scalar(dtype.storage))
        self.register_replacement(value, value, dtype, exact)

    def register_replacement(self, value: Value, given: Value, dtype: DType, exact: bool) -> None:
        """Makes `given`, an f32 or a stored integer, stand for a value; it is rounded or wrapped unless `exact`."""
        self.dtypes[value] = dtype
        if dtype.kind != FLOAT:
            self._stored[value] = given if exact else self._after_definition(given, lambda x: wrap(x, dtype))
        elif exact or self.unrounded:
            self._wide[value] = given
            if not exact:
                self._raw[value] = given
        else:
            self._raw[value] = given

    def register_bits(self, value: Value, bits: Value, dtype: DType) -> None:
        """Makes `bits` the stored form of a value."""
        self.dtypes[value] = dtype
        self._stored[value] = bits

    def stored_form(self, value: Value) -> Value:
        """The stored form of a value; a value that is not narrow unchanged."""
        dtype = self.dtypes.get(value)
        if dtype is None:
            return value
        if value not in self._stored:
            number = self._rounded(value, dtype)
            self._stored[value] = self._after_definition(number, lambda x: encode(x, dtype))
        return self._stored[value]

    def returned_form(self, value: Value) -> Value:
        """The form of a value that the function returns, with zeros above the width of an integer."""
        dtype, bits = self.dtypes.get(value), self.stored_form(value)
        if dtype is None or dtype.bits == 8 or dtype.kind != SIGNED:
            return bits
        return self._after_definition(bits, lambda x: unsigned(x, dtype))

    def wide_form(self, value: Value) -> Value:
        """The f32 of a float, the stored form of an integer; a value that is not narrow unchanged."""
        dtype = self.dtypes.get(value)
        if dtype is None or dtype.kind != FLOAT:
            return self.stored_form(value)
        if value not in self._wide:
            if value in self._raw:
                self._wide[value] = self._rounded(value, dtype)
            else:
                self._wide[value] = self._decoded(self._stored[value], FLOAT_FORMATS[dtype.name].value, dtype)
        return self._wide[value]

    def _rounded(self, value: Value, dtype: DType) -> Value:
        raw = self._raw.get(value)
        if raw is None:
            return self._wide[value]
        return self._after_definition(raw, lambda x: round_to_format(x, dtype))

    def _decoded(self, bits: Value, number: Callable[[int], float], dtype: DType) -> Value:
        maker = bits.defining_op
        if isinstance(maker, Constant) and 4 * len(maker.value.data) // dtype.itemsize <= INLINE_BYTES:
            type = tensor_of(bits).with_element(F32)
            data = _numbers(maker.value, number)
            return self._after_definition(bits, lambda x: x.build(Constant, value=DenseElements(type, data), out=type))
        return self._after_definition(bits, lambda x: decode(x, dtype))

    def constant(self, op: Constant) -> None:
        """A constant of a narrow type as one of its storage type; elements of up to 4 bits are packed."""
        dtype = narrow_dtype(op.out.type)
        if dtype is None:
            return
        given = op.value
        type = tensor_of(op.out).with_element(scalar(dtype.storage))
        data = normal_bytes(given.data, dtype) if dtype.bits < 8 else given.data
        elements = DenseElements(type, data)
        if dtype.bits <= 4 and is_packed(elements):
            bits = self._after_definition(op.result, lambda x: unpack(x.rewriter, elements, dtype))
            self.register_bits(op.result, bits, dtype)
            return
        self.register_stored(op.result)
        op.properties["value"] = elements

    def _after_definition(self, value: Value, make: Callable[[Tensor], Tensor]) -> Value:
        """Builds a form directly after the definition of a value."""
        if isinstance(value, BlockArgument):
            anchor: Operation | None = value.block.first
            loc = self.loc
        else:
            assert value.defining_op is not None
            anchor, loc = value.defining_op.next_op, value.loc
        assert anchor is not None, "a block ends with a terminator"
        return make(Tensor(Rewriter.before(anchor, loc), value)).value


def _numbers(elements: DenseElements, number: Callable[[int], float]) -> bytes:
    """The bytes of the f32 numbers for the bits in a constant."""
    bits = elements.scalars()
    return struct.pack(f"<{len(bits)}f", *(number(int(item)) for item in bits))
