"""hoist-into-initializers: computes values that depend only on constants when the program loads, not in every call.

An op is *derived* if it is pure and reads only constants, globals that never change, and results of derived ops. The
program's initializer computes the last derived values that a call needs, in any block, and stores them in globals. A
derived value stays in place if hoisting costs more than it saves:

- it is free to compute (splats, iotas, broadcasts of scalars), or reads no global and needs only cheap ops;
- it only selects elements of a constant (slices, broadcasts, reshapes), which a reader can do itself;
- it is larger than the globals that it depends on, so that it needs more memory and is no faster to read. It may be
  `SLACK` bytes larger if expensive ops (a dot, a reduction, a sine) compute it.

Equal results of several functions are stored once, and globals that nobody loads are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.cse import merge_equal
from orchestrion.compiler.ir.effects import erase_dead, is_pure
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.util import Global, GlobalLoad, GlobalStore, ImportedCallBranch, Initializer, Return
from orchestrion.compiler.stablehlo.ops.costs import is_expensive
from orchestrion.compiler.stablehlo.ops.flow_ops import Size
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Reshape, Slice

from .captures import inputs
from .dialect import DispatchRegion, Empty, Splat
from .fusion_reads import GENERATORS, HEROES, is_free
from .layout import storage_bytes
from .structure import keeps_order
from .symbols import Names

#: bytes by which the result of expensive ops may exceed the globals that it depends on
SLACK: Final = 1 << 20
#: ops that select elements of their operand
CHOOSING: Final = (BroadcastInDim, Reshape, Slice)
#: ops of a function that are in their final place
FIXED: Final = (DispatchRegion, Empty, Splat)


def run(module: Module) -> None:
    """Hoists the derived values of a module."""
    functions = module.block.of(Func)
    if not functions:
        return
    hoisting = _Hoisting(module, functions[0])
    for func in functions:
        hoisting.function(func)
    hoisting.finish()


@dataclass(frozen=True, slots=True)
class _History:
    """The globals that a derived value depends on, and whether ops compute it, or compute it expensively."""

    reads: frozenset[str] = frozenset()
    computes: bool = False
    costs: bool = False


class _Hoisting:
    """The initializer of a module, made with the first hoisted value unless the module has one."""

    def __init__(self, module: Module, first: Func) -> None:
        self.module = module
        self.globals = {op.sym_name.value: op for op in module.block.of(Global)}
        self.names = Names.of(module)
        self.number = sum(isinstance(op, GlobalStore) for op in module.walk())
        found = [op for op in module.block.of(Initializer) if op.kind.value == "program"]
        self.initializer = found[-1] if found else Initializer.build(kind="program", body=Region([Block()]))
        if not found:
            Builder.before(first).insert(self.initializer)
            Builder(self.initializer.body.block).build(Return, loc=first.loc)

    def function(self, func: Func) -> None:
        histories = self._histories(func)
        mapping: dict[Value, Value] = {}
        for value in self._wanted(func, histories):
            op = value.defining_op
            assert op is not None
            variable = self._keep(self._computed(value, mapping), op)
            entry = func.body.blocks[0]
            load = Builder(entry, entry.first, op.loc).build(GlobalLoad, ref=_ref(variable), value=value.type)
            value.replace_by(load.value)
        if mapping:
            erase_dead(func)

    def finish(self) -> None:
        """Merges equal globals and removes unused ones. Filled memory that is updated in place is never shared."""
        merge_equal(self.initializer, apart=(Splat,))
        merge_globals(self.module)
        drop_unused_globals(self.module)

    def _histories(self, func: Func) -> dict[Operation, _History]:
        """The derived ops of a function. A block comes after those that dominate it."""
        found: dict[Operation, _History] = {}
        for block in func.body.blocks:
            for op in block:
                history = self._history(op, found)
                if history is not None:
                    found[op] = history
        return found

    def _history(self, op: Operation, known: dict[Operation, _History]) -> _History | None:
        if isinstance(op, GlobalLoad):
            return None if self.globals[op.ref.root].mutable is not None else _History(frozenset({op.ref.root}))
        types = [result.type for result in op.results]
        if isinstance(op, Size) or not all(isinstance(type, TensorType) and type.is_static for type in types):
            return None
        if isinstance(op, GENERATORS):
            return _History()
        if isinstance(op, FIXED) or not is_pure(op):
            return None
        parts = []
        for value in inputs(op):
            part = None if value.defining_op is None else known.get(value.defining_op)
            if part is None:
                return None
            parts.append(part)
        if not parts:
            return None
        return _History(
            frozenset().union(*(part.reads for part in parts)),
            any(part.computes for part in parts) or not (isinstance(op, CHOOSING) or keeps_order(op)),
            any(part.costs for part in parts) or is_expensive(op) or isinstance(op, HEROES),
        )

    def _wanted(self, func: Func, histories: dict[Operation, _History]) -> list[Value]:
        """The values to hoist, in order: the last derived ones that the rest of the function needs."""
        wanted: dict[Value, None] = {}
        stays = {op for block in func.body.blocks for op in block if op not in histories}
        stack = [value for op in stays for value in inputs(op)]
        while stack:
            value = stack.pop()
            op = value.defining_op
            if op is None or op not in histories:
                continue
            if self._pays(op, histories[op]):
                wanted[value] = None
            elif op not in stays:
                stays.add(op)
                stack.extend(inputs(op))
        order = {op: place for place, op in enumerate(histories)}
        return sorted(wanted, key=lambda value: (order[value.owner], value.index))  # type: ignore[attr-defined]

    def _pays(self, op: Operation, history: _History) -> bool:
        if is_free(op) or not (history.costs or (history.reads and history.computes)):
            return False
        made = sum(_bytes_of(result.type) for result in op.results)
        read = sum(_bytes_of(self.globals[name].type) for name in history.reads)
        return made <= read + (SLACK if history.costs else 0)

    def _computed(self, value: Value, mapping: dict[Value, Value]) -> Value:
        """The value in the initializer, with all ops that it depends on. Values stored there are not loaded again."""
        block = self.initializer.body.block
        stored = {op.ref.root: op.value for op in block.of(GlobalStore)}
        stack = [value]
        while stack:
            op = stack[-1].defining_op
            assert op is not None
            missing = [source for source in inputs(op) if source not in mapping]
            if stack[-1] in mapping:
                stack.pop()
            elif isinstance(op, GlobalLoad) and op.ref.root in stored:
                mapping[op.value] = stored[op.ref.root]
            elif missing:
                stack.extend(reversed(missing))
            else:
                block.insert_before(op.clone(mapping), block.last)
        return mapping[value]

    def _keep(self, value: Value, made_by: Operation) -> Global:
        """A global to which the initializer stores this value."""
        name = self.names.fresh(f"hoisted_{self.number}")
        self.number += 1
        variable = Builder.before(self.initializer).build(Global, sym_name=name, type=value.type, loc=made_by.loc)
        self.globals[name] = variable
        block = self.initializer.body.block
        Builder(block, block.last, made_by.loc).build(GlobalStore, ref=_ref(variable), value=value)
        return variable


def merge_globals(scope: Operation) -> None:
    """Merges globals to which initializers store the same value. Removes globals that repeat another global."""
    first: dict[Value, SymbolRef] = {}
    instead: dict[str, SymbolRef] = {}
    mutable = {op.symbol for op in _members(scope) if isinstance(op, Global) and op.mutable is not None}
    for store in list(scope.walk(GlobalStore)):
        source = store.value.defining_op
        if store.ref.root in mutable or not isinstance(store.parent_op, Initializer):
            continue
        if isinstance(source, GlobalLoad) and source.ref.root not in mutable:
            instead[store.ref.root] = instead.get(source.ref.root, source.ref)
        elif store.value in first:
            instead[store.ref.root] = first[store.value]
        else:
            first[store.value] = store.ref
    for op in scope.walk(GlobalLoad):
        op.ref = instead.get(op.ref.root, op.ref)


def drop_unused_globals(scope: Operation) -> None:
    """Erases globals that nobody reads, the ops that compute them, and initializers that are then empty."""
    calls = list(scope.walk(ImportedCallBranch))
    named = {ref.root for call in calls for ref in call.globals}
    while True:
        loaded = {op.ref.root for op in scope.walk(GlobalLoad)} | named
        unused = {op.symbol for op in _members(scope) if isinstance(op, Global) and op.symbol not in loaded}
        if not unused:
            break
        for op in scope.walk():
            if isinstance(op, GlobalStore) and op.ref.root in unused:
                op.erase()
        for op in _members(scope):
            if isinstance(op, Global) and op.symbol in unused:
                op.erase()
            elif isinstance(op, Initializer):
                erase_dead(op)
    for op in _members(scope):
        if isinstance(op, Initializer) and len(op.body.blocks) == 1 and op.body.block.first is op.body.block.last:
            op.erase()


def _members(scope: Operation) -> list[Operation]:
    return scope.regions[0].block.ops


def _ref(variable: Global) -> SymbolRef:
    return SymbolRef(variable.sym_name.value)


def _bytes_of(type: object) -> int:
    assert isinstance(type, TensorType)
    return int(storage_bytes(type))
