"""Rules after the hl_seq phase: one program per target, all with the same exports; resources have the right sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.dialect import Dispatch, Empty, Executable, SetEncoding, Splat, UnsetEncoding
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import ELEMENT_BYTES
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import BlockArgument, Operation, Value
from orchestrion.compiler.ir.dims import Size, symbols_of
from orchestrion.compiler.ir.parameters import bytes_of
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import I32, TensorType, Type
from orchestrion.compiler.profiles import DEFAULT, known_profile, program_name
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.sequencer.hl_seq import Clone, Export, Import, Program, is_resource, lifetime_of, size_of
from orchestrion.compiler.stablehlo.ops.base import StablehloOp
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.contraction import Return as ReducerReturn
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.function_dims import dims_of
from orchestrion.compiler.targets.target import target

from . import dims
from .blocks import blocks
from .encodings import encoded_values, is_entry_type
from .engine import Children, Rules
from .flow import dispatch, entry, imported_call, same_ties, stored_elements
from .globals import stored_once
from .schedules import well_formed
from .stablehlo import has_functions, signature

#: Ops of functions and initializers that every program may have.
COMMANDS: Final = (Dispatch, Clone, Splat, Empty, util.GlobalLoad, util.GlobalStore)
CHILDREN: Final[Children] = {
    Module: (Program,),
    Program: (Executable, util.Global, util.Initializer, Func),
    util.Initializer: (*COMMANDS, util.Return),
    Executable: (Func,),
    Func: (StablehloOp, SetEncoding, UnsetEncoding, Return),
    (Func, Program): (Import, Export, util.Assert, *COMMANDS, *util.HOST_OPS, util.BranchOp, Return),
    Reduce: (StablehloOp, ReducerReturn),
    Scatter: (StablehloOp, ReducerReturn),
}


def problems(op: Operation, tables: SymbolTables) -> Iterator[str]:
    yield from encoded_values(op)
    match op:
        case Module():
            yield from programs(op)
        case Program():
            yield from has_functions(op)
            yield from stored_once(op)
            yield from same_exports(op)
            yield from same_ties(op)
        case Func() if isinstance(op.parent_op, Executable):
            yield from entry(op, is_entry_type, fused=True)
            yield from well_formed(op.schedules)
        case Func():
            yield from signature(op)
            yield from dims.function_dims(op)
            yield from _sizes(op)
            yield from blocks(op.body)
            yield from _imports(op)
            yield from _block_arguments(op)
        case util.CondBranch() | util.Switch():
            yield from _choice(op)
        case util.ImportedCallBranch():
            yield from imported_call(
                op, tables, lambda variable, type: not is_resource(variable) or _holds(variable, type)
            )
        case util.Initializer():
            if len(op.body.blocks) != 1:
                yield f"needs one block, has {len(op.body.blocks)}"
            if op.kind.value != "program":
                yield f"is of kind {op.kind.value}: what a context has of its own is a mutable global"
        case util.GlobalStore():
            yield from _store(op, tables)
        case Dispatch() | Splat() | Empty() if not all(is_resource(v.type) for v in (*op.operands, *op.results)):
            yield "is over tensors: in a program it must be over resources"
        case Dispatch():
            yield from dispatch(op, tables, _holds)
            yield from _made(op)
        case Clone() | Splat() | Empty():
            yield from _made(op)
            yield from _fits(op)
        case util.Global() | Import() | Export() | Return():
            yield from _fits(op)


def _sizes(func: Func) -> Iterator[str]:
    """The sizes of resources use only the function's symbols."""
    try:
        known = {symbol for symbol, _ in dims_of(func)}
    except ValueError:  # reported already
        return
    values: list[Value] = [value for op in func.body.walk() for value in op.results]
    values += [argument for block in func.body.blocks for argument in block.arguments]
    sizes = [size_of(value.type) for value in values if is_resource(value.type)]
    for symbol in symbols_of(*sizes):
        if symbol not in known:
            yield f"has resources of sizes in {symbol}, which dims does not define"


def _imports(func: Func) -> Iterator[str]:
    """Arguments are imported once each, before all other ops."""
    ops = [op for block in func.body.blocks for op in block]
    imports = [op for op in ops if isinstance(op, Import)]
    if ops[: len(imports)] != imports:
        yield "imports an argument after other ops"
    if len({op.source for op in imports}) != len(imports):
        yield "imports an argument twice"


def _block_arguments(func: Func) -> Iterator[str]:
    """A block argument is a transient resource, or a number on the host."""
    for number, block in enumerate(func.body.blocks[1:], 1):
        for argument in block.arguments:
            own = is_resource(argument.type) and lifetime_of(argument.type) == "transient"
            if not own and argument.type != I32:
                yield f"block {number} takes {argument.type}, which is neither transient nor a number"


def _choice(op: util.CondBranch | util.Switch) -> Iterator[str]:
    """A predicate is one byte on the device, an index or counter four bytes; or the selector is on the host."""
    given, sizes = op.operands[0].type, (1, 4) if isinstance(op, util.CondBranch) else (4,)
    if given != I32 and not (is_resource(given) and size_of(given) in sizes):
        yield f"branches on {given}, expected a resource of {' or '.join(map(str, sizes))} bytes or {I32}"


def programs(module: Operation) -> Iterator[str]:
    """There is at least one program; each is for a known target, and for a machine of that target."""
    found = module.regions[0].block.of(Program)
    if not found:
        yield "has no program"
    for op in found:
        yield from made_for(op.sym_name.value, op.profile, op.machine_name)


def made_for(name: str, profile: str, machine: str) -> Iterator[str]:
    """The program's name agrees with its target and machine."""
    try:
        known_profile(profile)
        row = target(profile).machine(machine)
    except CompileError as error:
        yield str(error)
        return
    if machine != DEFAULT and row is None:
        yield f"target {profile} has no machine {machine}; it has {', '.join(target(profile).machines) or 'none'}"
    if name != program_name(profile, machine):
        yield f"a program of {profile} for {machine} is called {program_name(profile, machine)}, not {name}"


def same_exports(program: Program) -> Iterator[str]:
    """All programs of a module export the same functions: names, types, attributes of arguments and of results."""
    module = program.parent_op
    assert module is not None
    first = next(op for op in module.regions[0].block if isinstance(op, Program))
    if _signatures(first) != _signatures(program):
        yield f"does not export what program @{first.sym_name.value} exports"


def _signatures(program: Program) -> list[list[str]]:
    functions = [op for op in program.body.block if isinstance(op, Func | ll_seq.Function)]
    return [[str(op.get(name)) for name in _SIGNATURE] for op in functions]


_SIGNATURE: Final = ("sym_name", "function_type", "signature", "arg_attrs", "res_attrs")


def _store(op: util.GlobalStore, tables: SymbolTables) -> Iterator[str]:
    """Initializers store to globals without a value, functions to mutable ones."""
    variable = tables.lookup(op, op.ref)
    if not isinstance(variable, util.Global):
        yield f"{op.ref} is not a global"
    elif isinstance(op.parent_op, util.Initializer) and (variable.is_constant or variable.mutable is not None):
        yield f"{op.ref} is not a global that an initializer may store to"
    elif isinstance(op.parent_op, Func) and variable.mutable is None:
        yield f"{op.ref} is not mutable"
    elif not is_resource(op.value.type) or size_of(op.value.type) != size_of(variable.type):
        yield f"{op.ref} is of type {variable.type}, stored to as {op.value.type}"


def _made(op: Operation) -> Iterator[str]:
    """A produced resource is transient, or external and then exported once."""
    for result in op.results:
        lifetime = lifetime_of(result.type)
        exported = sum(isinstance(user, Export) for user in result.users())
        if lifetime == "constant":
            yield "makes a constant"
        elif lifetime == "external" and exported != 1:
            yield f"makes an external resource that is exported {exported} times"


def _fits(op: Operation) -> Iterator[str]:
    match op:
        case util.Global() if not is_resource(op.type) or lifetime_of(op.type) != (
            "variable" if op.mutable else "constant"
        ):
            yield f"must be a constant, or mutable and a variable, is {op.type}"
        case util.Global() if op.value is not None and op.value.nbytes != size_of(op.type):
            yield f"is of {size_of(op.type)} bytes, its value of {op.value.nbytes}"
        case util.Global() if op.parameter is not None and bytes_of(op.parameter) != size_of(op.type):
            yield f"is of {size_of(op.type)} bytes, its parameter of {bytes_of(op.parameter)}"
        case util.Global() if op.mutable is None and size_of(op.type) == 0:
            yield f"is of type {op.type}, which has no bytes: create it where it is used"
        case Import() if not isinstance(op.source, BlockArgument) or not isinstance(op.source.type, TensorType):
            yield "imports a value that is not an argument"
        case Import() if _bytes(op.source.type) != size_of(op.output.type):
            yield f"imports {op.source.type} as {op.output.type}"
        case Export() if _bytes(op.output.type) != size_of(op.source.type):
            yield f"exports {op.source.type} as {op.output.type}"
        case Export() if not isinstance(op.source.defining_op, Dispatch | Clone | Splat | Empty):
            yield "exports a resource that no command of the function produced: clone it"
        case Clone() if size_of(op.source.type) != size_of(op.output.type):
            yield f"clones {op.source.type} into {op.output.type}"
        case Splat() if op.value.type.shape or size_of(op.output.type) % op.value.itemsize != 0:
            yield f"value of type {op.value.type} does not fill {op.output.type}"
        case Empty() if size_of(op.output.type) != 0:
            yield f"makes {op.output.type}, which has bytes"
        case Return() if isinstance(op.parent_op, Func) and isinstance(op.parent_op.parent_op, Program):
            if not all(isinstance(value.defining_op, Export) for value in op.values):
                yield "returns a value that is not exported"


def _holds(resource: Type, type: Type) -> bool:
    """Whether a resource has the size of a tensor. Another message reports a value that is no resource."""
    return not is_resource(resource) or size_of(resource) == _bytes(type)


def _bytes(type: Type) -> Size:
    elements = stored_elements(type)
    return elements * ELEMENT_BYTES.get(str(type.element), 0) if isinstance(type, TensorType) else elements


RULES: Final = Rules(CHILDREN, problems)
