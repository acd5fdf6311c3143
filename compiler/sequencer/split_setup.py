"""split-setup: turns an instance into init, run and fini.

- *Init* is two initializers. The program's makes what all users share: executables, constants, and everything that is
  computed from constants, unless the user's cache has it. The context's makes what belongs to one user: arena, loop
  states, variables, recordings.
- *Run* is a function per run loop: it takes views of arguments, then of destinations, and returns views of the results.
  Its ops that depend only on the sizes of a request move into a separate function, the *setup function*; later requests
  with the same sizes reuse what it returns.
- *Fini* is two finalizers, which release whatever the initializers stored, in reverse order, the context's first.

Values pass between them in globals that are stored once. This is the ABI of every program: `docs/architecture.md`.
"""

from __future__ import annotations

from orchestrion.compiler.flow.captures import inputs
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.symbols import table_of

from . import hl_seq, ll_seq
from .cache_initializers import cache_computed_buffers
from .size_assertions import measured_axes


def run(program: hl_seq.Program) -> None:
    _Split(program).run()


#: Ops that depend on sizes only.
_OF_SIZES = (util.Assert, util.DimValue, ll_seq.Size, ll_seq.Allocate, ll_seq.Record)


class _Split:
    """Splits the instance of one program."""

    def __init__(self, program: hl_seq.Program) -> None:
        self.program = program
        self.block = program.body.block
        instance = self.block.last
        assert isinstance(instance, ll_seq.Instance)
        self.instance = instance
        run_loop_names = [op.sym_name.value for op in instance.body.block.of(ll_seq.RunLoop)]
        self.names = Names([*table_of(program), *run_loop_names])
        self.bodies = {kind: Block() for kind in util.KINDS}
        self.kinds: dict[Operation, str] = {}
        self.globals: dict[Value, util.Global] = {}
        self.loaded: dict[tuple[Block, Value], Value] = {}  #: (block, value of an initializer) -> its load in the block

    def run(self) -> None:
        run_loops = self.instance.body.block.of(ll_seq.RunLoop)
        for op in self.instance.body.block.ops:
            if op not in run_loops:
                self.kinds[op] = self._kind(op)
        for op in self.kinds:
            self._move_to_initializer(op)
        setups = [self._outline(run_loop) for run_loop in run_loops]
        for outer in (*filter(None, setups), *run_loops):
            self._load_in(outer.regions[0])
        builder = Builder(self.block, self.instance, self.program.loc)
        for variable in self.globals.values():
            builder.insert(variable)
        for kind, body in self.bodies.items():
            if body.first is not None:
                Builder(body, loc=self.program.loc).build(util.Return)
                blocks = cache_computed_buffers(body) if kind == "program" else [body]
                builder.build(util.Initializer, kind=kind, body=Region(blocks))
        for setup, run_loop in zip(setups, run_loops, strict=True):
            if setup is not None:
                builder.insert(setup)
            builder.insert(_function(run_loop))
        for kind in reversed(util.KINDS):
            self._finalizer(kind, builder)
        self.instance.erase()

    def _kind(self, op: Operation) -> str:
        """The initializer of an op: the context's if an operand is, or if run loops replay the recording."""
        if isinstance(op, ll_seq.Allocate):
            return ll_seq.LIFETIMES[op.lifetime.value].initializer
        if any(self.kinds.get(value.defining_op) == "context" for value in inputs(op) if value.defining_op):
            return "context"
        run_loop_names = any(user.parent is not op.parent for result in op.results for user in result.users())
        return "context" if isinstance(op, ll_seq.Record) and run_loop_names else "program"

    def _move_to_initializer(self, op: Operation) -> None:
        """Moves an op into its initializer; results that others use are stored in globals."""
        kind = self.kinds[op]
        body = self.bodies[kind]
        body.take([op])
        self._load_used(op, body)
        for value in op.results:
            if any(self._is_used_elsewhere(user, kind) for user in value.users()):
                self._store(op, value, Builder(body, loc=op.loc))

    def _is_used_elsewhere(self, user: Operation, kind: str) -> bool:
        outer = next(op for op in user.enclosing() if op in self.kinds or isinstance(op, ll_seq.RunLoop))
        return self.kinds.get(outer) != kind

    def _store(self, op: Operation, value: Value, builder: Builder) -> None:
        name = self.names.fresh(_global_name(op))
        self.globals[value] = util.Global.build(sym_name=name, type=value.type, loc=op.loc)
        builder.build(util.GlobalStore, ref=SymbolRef(name), value=value)

    def _load_used(self, op: Operation, body: Block) -> None:
        """Loads the values of other initializers that an op uses, before the first op in `body` that uses them."""
        for inner in op.walk():
            for index, value in enumerate(inner.operands):
                variable = self.globals.get(value)
                if variable is None or value.parent_block is body:
                    continue
                if (body, value) not in self.loaded:
                    ref = SymbolRef(variable.sym_name.value)
                    load = Builder.before(op).build(util.GlobalLoad, ref=ref, value=variable.type)
                    self.loaded[body, value] = load.value
                inner.set_operand(index, self.loaded[body, value])

    def _outline(self, run_loop: ll_seq.RunLoop) -> ll_seq.SetupFunc | None:
        """Moves ops that depend only on measured sizes into a setup function. None if the run loop measures none."""
        measures = run_loop.body.blocks[0].of(ll_seq.Measure)
        if not measures:
            return None
        ops = dict.fromkeys(op for block in run_loop.body.blocks for op in block.ops if isinstance(op, _OF_SIZES))

        def stays(user: Operation) -> bool:
            return ops.keys().isdisjoint(user.enclosing())

        given = [value for op in ops for value in op.results if any(map(stays, value.users()))]
        name = self.names.fresh(f"{run_loop.sym_name.value}_setup")
        sizes = [op.output for op in measures]
        call = Builder.after(measures[-1]).build(
            ll_seq.CallSetup, callee=SymbolRef(name), sizes=sizes, outputs=[value.type for value in given]
        )
        body = Block([value.type for value in sizes])
        body.take(ops)
        for value, output in zip(given, call.outputs, strict=True):
            for user, index in list(value.uses):
                if stays(user):
                    user.set_operand(index, output)
        Builder(body, loc=run_loop.loc).build(ll_seq.Return, values=given)
        names = [axis.name for axis in measured_axes(run_loop.signature)]
        return ll_seq.SetupFunc.build(
            sym_name=name, sizes=names, dims=run_loop.dims, body=Region([body]), loc=run_loop.loc
        )

    def _load_in(self, body: Region) -> None:
        """Loads, in each block, the globals that it uses."""
        for block in body.blocks:
            for op in block.ops:
                self._load_used(op, block)

    def _finalizer(self, kind: str, builder: Builder) -> None:
        stores = [op for op in self.bodies[kind] if isinstance(op, util.GlobalStore)]
        if not stores:
            return
        body = Block()
        release = Builder(body, loc=self.program.loc)
        for store in reversed(stores):
            release.build(util.GlobalRelease, ref=store.ref)
        release.build(util.Return)
        builder.build(util.Finalizer, kind=kind, body=Region([body]))


def _global_name(op: Operation) -> str:
    """Name of the global that holds the result of an op."""
    match op:
        case ll_seq.CreateExecutable():
            return f"{op.executable.root}_executable"
        case ll_seq.Constant():
            return f"{op.label.value}_buffer"
        case ll_seq.Allocate():
            return op.label.value
        case ll_seq.Record():
            outside = (outer for user in op.output.users() for outer in user.enclosing())
            return f"{next(outer.sym_name.value for outer in outside if isinstance(outer, ll_seq.RunLoop))}_recording"
        case _:
            raise AssertionError(f"{op.name} makes nothing that is kept")


def _function(run_loop: ll_seq.RunLoop) -> Operation:
    body = Region()
    for block in run_loop.body.blocks:
        body.add(block)
    run_loop.regions[0] = Region([Block()])
    run_loop.regions[0].owner = run_loop
    fields = run_loop.properties
    return ll_seq.Function.build(**fields, body=body, attributes=run_loop.attributes, loc=run_loop.loc)
