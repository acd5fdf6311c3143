"""unify-encodings: keeps a constant that several dots want in different layouts only once.

A layout suits a dot if it groups the axes as the dot's encoding does; the kernel handles any tile sizes. If the layouts
of a constant's encodings differ in more than tile sizes (a matrix and its transpose, contracted over different axes),
the constant is not stored twice. The dots then read it in row-major order, and so they do their other operands, unless
other dots need those encoded.

For a target that packs constants only, operands that are no constants lose their encodings here.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.flow.dialect import Dispatch, HoistableDispatch, SetEncoding
from orchestrion.compiler.flow.layout import Encoding, Layout, encoding_of, plain
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.util import GlobalLoad, GlobalStore, Initializer
from orchestrion.compiler.options import Options
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .layouts import erase_identity_encodings, fit_entries, packs_constants_only, resolver, retype

NO_CONSTANT: Final = "it is no constant, and kernels copy it to panels themselves"
TWO_LAYOUTS: Final = "dots want it in layouts that differ in more than tiles, and it is kept once"


def run(program: hl_seq.Program, options: Options) -> None:
    resolve, recorder = resolver(program, options.encodings), options.recorder
    changed = options.encodings == "default" and _forget_variables(program, options)
    for values in _encodings_of_constants(program).values():
        layouts = {value: encoding_of(resolve(tensor_of(value))) for value in values}
        if len(set(layouts.values())) < 2:
            continue
        tiled = {value: layout for value, layout in layouts.items() if isinstance(layout, Layout)}
        chosen = max(values, key=lambda value: tiled[value].tiles if value in tiled else ())
        serves = len({tiled[value].axes if value in tiled else None for value in values}) == 1
        partners = [] if serves else _partners(values, program)
        if recorder is not None and not serves:
            for value in values:
                recorder.not_taken(program.sym_name.value, "another layout for a constant", value.loc, TWO_LAYOUTS)
        for value in values:
            retype(value, tensor_of(chosen) if serves else plain(tensor_of(chosen)), program)
        for value in partners:
            retype(value, plain(tensor_of(value)), program)
        changed = True
    if changed:
        fit_entries(program)
        erase_identity_encodings(program)


def _forget_variables(program: hl_seq.Program, options: Options) -> bool:
    """Leaves operands that are no constants in row-major order, if the target packs constants only. Returns whether
    there are any.
    """
    if not packs_constants_only(program):
        return False
    makers = list(program.walk(HoistableDispatch))
    variables = [output for op in makers if not isinstance(op.parent_op, Initializer) for output in op.outputs]
    found = [value for value in variables if isinstance(encoding_of(tensor_of(value)), Encoding)]
    for value in found:
        if options.recorder is not None:
            name = program.sym_name.value
            options.recorder.not_taken(name, "another layout for an operand of a dot", value.loc, NO_CONSTANT)
        retype(value, plain(tensor_of(value)), program)
    return bool(found)


def _partners(values: list[Value], program: hl_seq.Program) -> list[Value]:
    """Results of hoistable dispatches that only dispatches reading one of `values` use."""
    names = {user.ref.root for value in values for user in value.users() if isinstance(user, GlobalStore)}
    loads = [op.value for op in program.walk(GlobalLoad) if op.ref.root in names]
    readers = {user for value in (*values, *loads) for user in value.users() if isinstance(user, Dispatch)}
    makers = dict.fromkeys(value.defining_op for reader in readers for value in reader.operands)
    made = [maker.outputs[0] for maker in makers if isinstance(maker, HoistableDispatch) and len(maker.outputs) == 1]
    return [value for value in made if value not in values and readers.issuperset(value.users())]


def _encodings_of_constants(program: hl_seq.Program) -> dict[str | Value, list[Value]]:
    """Each constant (name of its global, or value in an initializer) -> its encoded forms."""
    found: dict[str | Value, list[Value]] = {}
    for op in program.walk():
        if not isinstance(op, HoistableDispatch) or not isinstance(op.parent_op, Initializer):
            continue
        inside = op.body.block.ops
        if isinstance(inside[0], SetEncoding) and len(inside) == 2:
            source = inside[0].source
            maker = source.defining_op
            key = maker.ref.root if isinstance(maker, GlobalLoad) else source
            found.setdefault(key, []).append(op.outputs[0])
    return found
