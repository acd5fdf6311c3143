"""What an hl_seq program computes: its ops one after the other over NumPy arrays, which never share memory.

It reads the IR as the parser gives it and nothing of what the phases behind make of it.
"""

from typing import Any

import numpy as np

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func

Array = np.ndarray[Any, Any]
DTYPES = {"i32": np.dtype(np.int32), "i1": np.dtype(np.bool_)}


class TooLong(Exception):
    """A program that runs for longer than a test waits."""


class Oracle:
    """A program, and its globals as one context has them."""

    def __init__(self, text: str) -> None:
        module = parse(text, "program")
        assert isinstance(module, Module)
        (self.program,) = module.block.ops
        self.tables = SymbolTables()
        self.functions: dict[str, Func] = {}
        self.globals: dict[str, Array] = {}
        for op in self.program.regions[0].block:
            if isinstance(op, util.Global):
                self.globals[op.sym_name.value] = _first(op)
            elif isinstance(op, util.Initializer):
                self._run(op.body.blocks[0], {})
            elif isinstance(op, Func):
                self.functions[op.sym_name.value] = op

    def arguments(self, name: str, random: np.random.Generator) -> list[Array]:
        """Small numbers: loops of a program count to some of them."""
        types = [(t.shape, DTYPES[str(t.element)]) for t in self.functions[name].function_type.inputs]
        return [np.asarray(random.integers(0, 2 if kind == np.bool_ else 5, shape), kind) for shape, kind in types]

    def call(self, name: str, *arguments: Array) -> list[Array]:
        entry = self.functions[name].body.blocks[0]
        return self._run(entry, dict(zip(entry.arguments, arguments, strict=True)))

    def _run(self, block: Any, values: dict[Value, Any]) -> list[Array]:
        for _ in range(3000):
            for op in block.ops[:-1]:
                values.update(zip(op.results, self._op(op, values), strict=True))
            last = block.last
            if not isinstance(last, util.BranchOp):
                return [values[v] for v in last.operands]
            edge = last.edges[_way(last, values)]
            given = [values[v] for v in edge.values]
            block = edge.target
            values.update(zip(block.arguments, given, strict=True))
        raise TooLong

    def _op(self, op: Operation, values: dict[Value, Any]) -> list[Any]:
        given = [values[v] for v in op.operands]
        match op:
            case hl_seq.Import() | hl_seq.Export() | hl_seq.Clone():
                return given
            case flow.Splat():
                return [np.frombuffer(op.value.data * (hl_seq.size_of(op.output.type) // len(op.value.data)), np.uint8)]
            case flow.Empty():
                return [np.zeros(0, np.uint8)]
            case util.GlobalLoad():
                return [self.globals[op.ref.root]]
            case util.GlobalStore():
                self.globals[op.ref.root] = given[0]
                return []
            case util.Constant():
                return [op.value.value]
            case util.Add():
                return [given[0] + given[1]]
            case util.CompareLt():
                return [int(given[0] < given[1])]
            case flow.Dispatch():
                entry = self.tables.lookup(op, op.entry)
                assert isinstance(entry, Func)
                return _compute(entry, given)
        raise AssertionError(op.name)


def _first(op: util.Global) -> Array:
    size = hl_seq.size_of(op.type)
    value = op.value.array().reshape(-1) if op.value is not None else np.zeros(size, np.uint8)
    return np.ascontiguousarray(value).view(np.uint8)


def _way(op: util.BranchOp, values: dict[Value, Any]) -> int:
    if isinstance(op, util.Branch):
        return 0
    chosen = values[op.operands[0]]
    if not isinstance(chosen, int):
        kind = np.uint8 if isinstance(op, util.CondBranch) else np.int32
        chosen = int(np.ascontiguousarray(chosen).reshape(-1).view(kind)[-1])  # the last byte of a counter
    if isinstance(op, util.CondBranch):
        return 0 if chosen else 1
    return chosen if 0 <= chosen < len(op.successors) else len(op.successors) - 1


def typed(value: Array, type: Any) -> Array:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8).view(DTYPES[str(type.element)]).reshape(type.shape)


def _compute(entry: Func, arguments: list[Array]) -> list[Array]:
    block = entry.body.blocks[0]
    values: dict[Value, Array] = {a: typed(x, a.type) for a, x in zip(block.arguments, arguments, strict=True)}
    for op in block.ops[:-1]:
        (out,) = op.results
        assert isinstance(out.type, TensorType)
        values[out] = _math(op, [values[v] for v in op.operands], out.type)
    assert block.last is not None
    return [values[v] for v in block.last.operands]


def _math(op: Operation, given: list[Array], type: TensorType) -> Array:
    match op.name.removeprefix("stablehlo."):
        case "constant":
            value = op.properties["value"]
            assert isinstance(value, DenseElements)
            return np.broadcast_to(value.array(), type.shape)
        case "add":
            return given[0] + given[1]
        case "subtract":
            return given[0] - given[1]
        case "xor":
            return given[0] ^ given[1]
        case "and":
            return given[0] & given[1]
        case "compare":
            return np.asarray(given[0] < given[1])
        case "reverse":
            return given[0][::-1]
        case "broadcast_in_dim":
            return np.broadcast_to(given[0], type.shape)
        case "slice":
            return given[0][: type.shape[0]]
        case "reshape":
            return given[0].reshape(type.shape)
        case "dynamic_update_slice":
            out, update = given[0].copy(), given[1]
            start = min(max(int(given[2]), 0), len(out) - len(update))
            out[start : start + len(update)] = update
            return out
    raise AssertionError(op.name)
