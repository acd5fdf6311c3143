"""convert-to-ll-seq: setup, run, teardown.

Setup is a program initializer (executables, constants) and a context initializer (the arena, one recording per
function); run is a function that checks its arguments and destinations and executes its recording; teardown is the
release of globals. Arguments and results are slots of the recording, so results are written straight into their
destinations. Constants below `POOLED_BELOW` share one buffer. All functions share one arena: the calls of a context
never overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrion.compiler.flow import util
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, SymbolRef, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.locations import UNKNOWN
from orchestrion.compiler.ir.types import FunctionType, TensorType
from orchestrion.compiler.stablehlo.func import Func

from . import hl_seq, ll_seq
from .arena import align
from .plan import ARENA, Command, Place, Plan, plan

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: bytes; a module's segments of this size and more are page aligned, so that devices can import them
POOLED_BELOW: Final = 64 * 1024
POOL: Final = "constants"


def run(module: Module, options: Options) -> None:
    for program in module.block:
        if isinstance(program, hl_seq.Program):
            _Program(program).convert()


class _Program:
    """The conversion of one program."""

    def __init__(self, program: hl_seq.Program) -> None:
        self.block = program.body.block
        self.loc = program.loc
        self.functions = [op for op in self.block if isinstance(op, Func)]
        self.globals = [op for op in self.block if isinstance(op, util.Global)]
        self.executables = [op for op in self.block if isinstance(op, ll_seq.Executable)]
        self.anchor = self.functions[0]
        self.names = Names.of(program)
        self.stored: dict[str | int, util.Global] = {}

    def convert(self) -> None:
        places, buffers = self._constants()
        plans = {func: plan(func.regions[0].block, places) for func in self.functions}
        program = self._program_initializer(buffers)
        context = self._context_initializer(plans)
        builder = Builder(self.block, self.anchor, self.loc)
        for variable in self.stored.values():
            builder.insert(variable)
        for kind, body in (("program", program), ("context", context)):
            if len(body.ops) > 1:
                builder.build(util.Initializer, kind=kind, body=Region([body]))
        for func, found in plans.items():
            recording = self.stored.get(id(func))
            Builder.before(func).insert(_run_function(func, found, recording))
        for op in (*self.globals, *self.functions):
            op.erase()

    def _constants(self) -> tuple[dict[str, Place], dict[str, list[tuple[DenseElements, int]]]]:
        """The place of each constant, and the content of each buffer: name -> (value, offset)."""
        places: dict[str, Place] = {}
        buffers: dict[str, list[tuple[DenseElements, int]]] = {}
        end = 0
        for variable in self.globals:
            name, value = variable.sym_name.value, variable.value
            assert value is not None
            if value.nbytes >= POOLED_BELOW:
                places[name] = Place(name, 0, value.nbytes)
                buffers[name] = [(value, 0)]
                continue
            places[name] = Place(POOL, end, value.nbytes)
            buffers.setdefault(POOL, []).append((value, end))
            end += align(value.nbytes)
        return places, buffers

    def _store(self, builder: Builder, home: str | int, value: Value, name: str) -> None:
        """Keeps a value in a new global; `home` is what it will be looked up by."""
        name = self.names.fresh(name)
        self.stored[home] = util.Global.build(sym_name=name, type=value.type, loc=builder.loc)
        builder.build(util.GlobalStore, ref=SymbolRef(name), value=value)

    def _program_initializer(self, buffers: dict[str, list[tuple[DenseElements, int]]]) -> Block:
        block = Block()
        builder = Builder(block, loc=self.loc)
        for executable in self.executables:
            name = executable.sym_name.value
            with builder.at(executable.loc):
                built = builder.build(ll_seq.CreateExecutable, executable=SymbolRef(name), output=ll_seq.EXECUTABLE)
                self._store(builder, name, built.output, f"{name}_executable")
        for name, content in buffers.items():
            last, offset = content[-1]
            constant = builder.build(
                ll_seq.Constant,
                label=name,
                values=ArrayAttr(tuple(value for value, _ in content)),
                offsets=dense_ints(*(offset for _, offset in content)),
                size=offset + last.nbytes,
                output=ll_seq.BUFFER,
            )
            self._store(builder, name, constant.output, f"{name}_buffer")
        builder.build(util.Return)
        return block

    def _context_initializer(self, plans: dict[Func, Plan]) -> Block:
        block = Block()
        builder = Builder(block, loc=self.loc)
        size = max(found.arena_size for found in plans.values())
        values: dict[str, Value] = {}
        if size:
            values[ARENA] = builder.build(ll_seq.Allocate, size=size, output=ll_seq.BUFFER).output
            self._store(builder, ARENA, values[ARENA], "arena")
        for func, found in plans.items():
            if found.commands:
                with builder.at(func.loc):
                    recording = _Recorder(builder, found, self.stored, values).record()
                    self._store(builder, id(func), recording, f"{func.symbol}_recording")
        builder.build(util.Return)
        return block


class _Recorder:
    """Emits the recording of one function. `values` are the globals that the initializer has loaded or made."""

    def __init__(
        self, builder: Builder, plan: Plan, stored: dict[str | int, util.Global], values: dict[str, Value]
    ) -> None:
        self.outer = builder
        self.plan = plan
        self.stored = stored
        self.values = values
        self.body = Block([ll_seq.SLOT] * len(plan.slots))
        self.inner = Builder(self.body, loc=builder.loc)

    def record(self) -> Value:
        for command in self.plan.commands:
            self._command(command)
        self.inner.build(ll_seq.End)
        return self.outer.build(ll_seq.Record, body=Region([self.body]), output=ll_seq.RECORDING).output

    def _command(self, command: Command) -> None:
        op = command.op
        if op is None:
            self.inner.build(ll_seq.Barrier)
            return
        with self.inner.at(op.loc):
            match op:
                case hl_seq.Dispatch():
                    self._dispatch(op, (*command.reads, *command.writes))
                case hl_seq.Clone():
                    self._copy(command.reads[0], command.writes[0])
                case hl_seq.Splat():
                    self._fill(op, command.writes[0])
                case _:
                    raise AssertionError(f"{op.name} among the commands of a plan")

    def _dispatch(self, op: hl_seq.Dispatch, places: tuple[Place, ...]) -> None:
        self.inner.build(
            ll_seq.Dispatch,
            entry=op.entry,
            offsets=dense_ints(*(place.offset for place in places)),
            executable=self._load(op.entry.root),
            bindings=[self._home(place) for place in places],
        )

    def _copy(self, source: Place, target: Place) -> None:
        self.inner.build(
            ll_seq.Copy,
            source=self._home(source),
            source_offset=source.offset,
            target=self._home(target),
            target_offset=target.offset,
            length=target.size,
        )

    def _fill(self, op: hl_seq.Splat, target: Place) -> None:
        self.inner.build(
            ll_seq.Fill, target=self._home(target), offset=target.offset, length=target.size, value=op.value
        )

    def _home(self, place: Place) -> Value:
        if isinstance(place.home, int):
            return self.body.arguments[place.home]
        return self._load(place.home)

    def _load(self, home: str) -> Value:
        if home not in self.values:
            self.values[home] = _load(self.outer, self.stored[home])
        return self.values[home]


def _load(builder: Builder, variable: util.Global) -> Value:
    return builder.build(util.GlobalLoad, ref=SymbolRef(variable.sym_name.value), value=variable.type).value


def _run_function(func: Func, plan: Plan, recording: util.Global | None) -> Operation:
    """Checks, destinations, execution, return."""
    signature = func.properties["function_type"]
    assert isinstance(signature, FunctionType)
    arguments = func.regions[0].block.arguments
    locs = [argument.loc for argument in arguments] + [func.loc] * len(signature.results)
    block = Block([ll_seq.VIEW] * len(locs), locs)
    builder = Builder(block, loc=func.loc)
    buffers: dict[tuple[str, int], Value] = {}
    for index, type in enumerate(signature.inputs):
        assert isinstance(type, TensorType)
        view = block.arguments[index]
        with builder.at(func.loc if view.loc is UNKNOWN else view.loc):
            checked = builder.build(ll_seq.Check, type=type, view=view, output=ll_seq.BUFFER)
        buffers["argument", index] = checked.output
    results = []
    for index, type in enumerate(signature.results):
        view = block.arguments[len(signature.inputs) + index]
        results.append(builder.build(ll_seq.Destination, type=type, view=view, output=ll_seq.VIEW).output)
    for kind, index in plan.slots:
        if kind == "result":
            storage = builder.build(ll_seq.Storage, view=results[index], output=ll_seq.BUFFER)
            buffers[kind, index] = storage.output
    if recording is not None:
        slots = [buffers[slot] for slot in plan.slots]
        builder.build(ll_seq.Execute, recording=_load(builder, recording), slots=slots)
    builder.build(ll_seq.Return, values=results)
    return ll_seq.Function.build(
        sym_name=func.sym_name,
        signature=signature,
        arg_attrs=func.arg_attrs,
        res_attrs=func.res_attrs,
        body=Region([block]),
        attributes=func.attributes,
        loc=func.loc,
    )
