"""Emits vm instructions into a block: shared constants, and calls of the native module `hal`.

`imports` collects the names of the called native functions. Constants are shared inside a scope: the whole function
where every instruction counts, or one command of a recording where registers would run out.
"""

from __future__ import annotations

from typing import Any

from orchestrion.compiler.ir.attributes import IntegerAttr, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.locations import UNKNOWN, Location
from orchestrion.compiler.ir.types import Type, scalar
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.signature import bank_of, parse_signature

from .vm import OPS, type_name, value_type

#: Argument of a call: a value, a number that becomes a constant, or None for a null reference.
Argument = Value | int | None


class Emitter:
    """Appends instructions to a block."""

    def __init__(self, block: Block, imports: set[str], loc: Location = UNKNOWN) -> None:
        self.builder = Builder(block, loc=loc)
        self.imports = imports
        self._constants: dict[tuple[str, int | None], Value] = {}

    def new_scope(self) -> None:
        """Starts a scope: later instructions share no constants with earlier ones."""
        self._constants.clear()

    def op(self, row: str, **fields: Any) -> Operation:
        """Appends an instruction by the name of its row."""
        return self.builder.build(OPS[row], **fields)

    def constant(self, type: str, value: int | None) -> Value:
        """A constant of type i32 or i64, or a null reference for None."""
        key = type, value
        if key not in self._constants:
            row = "ref.null" if value is None else f"{type}.const"
            fields = {} if value is None else {"value": IntegerAttr(value, scalar(type))}
            self._constants[key] = self.op(row, d=value_type(type), **fields).result
        return self._constants[key]

    def call(self, name: str, *arguments: Argument) -> Value | None:
        """Calls a function of the `hal` module; returns its result, or None."""
        signature = parse_signature(HAL_IMPORTS[name].signature)
        types = signature.expand(len(arguments))
        assert types is not None, f"{name} does not take {len(arguments)} arguments"
        self.imports.add(name)
        values = [
            argument if isinstance(argument, Value) else self.constant(type, argument)
            for type, argument in zip(types, arguments, strict=True)
        ]
        results = [value_type(type) for type in signature.results]
        op = self.op("call_import", callee=SymbolRef(name), arguments=values, outputs=results)
        return op.results[0] if results else None

    def call_function(self, name: str, views: list[Value]) -> None:
        """Calls a function of another module with views of its arguments and results."""
        self.op("call_import", callee=SymbolRef(name), arguments=views, outputs=[])

    def value(self, name: str, *arguments: Argument) -> Value:
        """Same as `call`, for a function with a result."""
        result = self.call(name, *arguments)
        assert result is not None, f"{name} gives nothing"
        return result

    def load(self, variable: str, type: Type) -> Value:
        """Loads a global of this type."""
        bank = bank_of(type_name(type))
        return self.op(f"global.load.{bank}", **{"from": SymbolRef(variable), "d": type}).result

    def store(self, variable: str, value: Value) -> None:
        """Stores a value to a global."""
        bank = bank_of(type_name(value.type))
        self.op(f"global.store.{bank}", to=SymbolRef(variable), a=value)
