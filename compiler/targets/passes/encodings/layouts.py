"""Shared by the passes over encodings: the layout that a program's target gives an encoding, and changing encodings.

A `flow.hoistable_dispatch` produces an encoded value. A global may store it, and dispatches read it.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrion.compiler.flow.deduplicate_executables import erase_unused
from orchestrion.compiler.flow.dialect import Dispatch, Executable, HoistableDispatch, SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.layout import Encoding, Layout, encoded, encoding_of, may_be_cut, plain
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import StringAttr, SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Shape
from orchestrion.compiler.ir.types import FunctionType, TensorType, Type
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import target

#: Maps a tensor type with a symbolic encoding to the type with the target's layout, without encoding for row-major.
Resolve = Callable[[TensorType], TensorType]


def odd_layout(encoding: Encoding, shape: Shape) -> Layout:
    """A layout for tests: tiles of odd sizes, all axes in another order."""
    groups = (encoding.contract, encoding.free, *((encoding.batch,) if encoding.batch else ()))
    tiles = tuple(tile if may_be_cut(group, shape) else 1 for group, tile in zip(groups, (3, 5, 1), strict=False))
    return Layout(groups, tiles, tuple(group for group in (1, 0) if tiles[group] > 1))


def layout_or_reason(program: hl_seq.Program, encodings: str, encoding: Encoding, shape: Shape) -> Layout | str:
    """The layout of an encoding for a program's target under an option of `options.ENCODINGS`, or why it is row-major
    order.
    """
    made_for = target(program.profile)
    machine = made_for.machine(program.machine_name)
    match encodings:
        case "none":
            return "--encodings=none"
        case "test":
            return odd_layout(encoding, shape)
        case "always":
            return made_for.tiled(encoding, shape) or f"target {made_for.name} has no tiles for it"
        case _ if encoding.role == "weights" and not made_for.packs_constants_only:
            return "kernels read tiles of both operands of a dot"
        case _ if machine is not None and not machine.packs:
            return f"kernels for machine {program.machine_name} read row-major order"
        case _:
            return made_for.layout(encoding, shape) or made_for.row_major_because(encoding, shape)


def packs_constants_only(program: hl_seq.Program) -> bool:
    """Whether layouts do not pay for operands that are no constants, on a program's target."""
    return target(program.profile).packs_constants_only


def resolver(program: hl_seq.Program, encodings: str) -> Resolve:
    """The function that resolves symbolic encodings for a program's target under an option of `options.ENCODINGS`."""

    def resolve(type: TensorType) -> TensorType:
        encoding = encoding_of(type)
        if not isinstance(encoding, Encoding):
            return type
        layout = layout_or_reason(program, encodings, encoding, type.shape)
        return encoded(plain(type), layout) if isinstance(layout, Layout) else plain(type)

    return resolve


def retype(value: Value, type: TensorType, program: hl_seq.Program) -> None:
    """Gives the encoded result of a hoistable dispatch another type, and all globals and loads that hold it.

    Dispatches may then have arguments that do not match their entry; `fit_entries` repairs them.
    """
    maker = value.defining_op
    assert isinstance(maker, HoistableDispatch)
    for encoding in maker.body.block.of(SetEncoding):
        encoding.output.type = type
    value.type = type
    names = {user.ref.root for user in value.users() if isinstance(user, util.GlobalStore)}
    for op in program.walk():
        if isinstance(op, util.Global) and op.sym_name.value in names:
            op.type = type
        elif isinstance(op, util.GlobalLoad) and op.ref.root in names:
            op.value.type = type


def fit_entries(program: hl_seq.Program) -> None:
    """Gives each dispatch with retyped arguments a copy of its executable that takes the new types."""
    executables = {op.sym_name.value: op for op in program.body.block.of(Executable)}
    names, made = Names.of(program), dict[tuple[str, tuple[Type, ...]], str]()
    for dispatch in list(program.walk(Dispatch)):
        executable = executables[dispatch.entry.root]
        types = tuple(value.type for value in dispatch.arguments)
        if _entry(executable, dispatch.entry).function_type.inputs == types:
            continue
        key = dispatch.entry.root, types
        if key not in made:
            made[key] = names.fresh(executable.sym_name.value)
            Builder.before(executable).insert(_variant(executable, made[key], types))
        dispatch.entry = SymbolRef(made[key], (made[key],))
    erase_unused(program)


def _entry(executable: Executable, ref: SymbolRef) -> Func:
    entry = next(op for op in executable.body.block if op.symbol == ref.nested[0])
    assert isinstance(entry, Func)
    return entry


def _variant(executable: Executable, name: str, types: tuple[Type, ...]) -> Operation:
    """A copy of a single-entry executable that takes arguments of these types."""
    copy = executable.clone()
    entry = copy.regions[0].block.first
    assert isinstance(entry, Func) and entry.next_op is None
    copy.properties["sym_name"] = entry.properties["sym_name"] = StringAttr(name)
    entry.function_type = FunctionType(types, entry.function_type.results)
    for argument, type in zip(entry.body.block.arguments, types, strict=True):
        argument.type = type
    erase_identity_encodings(copy)
    return copy


def erase_identity_encodings(top: Operation) -> None:
    """Erases encodings that change nothing, and hoistable dispatches that then compute nothing."""
    for op in top.walk():
        if isinstance(op, SetEncoding | UnsetEncoding) and op.source.type == op.output.type:
            op.output.replace_by(op.source)
            op.erase()
    for op in list(top.walk(HoistableDispatch)):
        terminator = op.body.block.end
        if op.body.block.first is terminator:
            for output, value in zip(op.outputs, list(terminator.operands), strict=True):
                output.replace_by(value)
            op.erase()
