"""The table of phases and passes.

A phase is a list of passes. Its IR can be printed, parsed and continued from to the same bytes. A pass is a function
`run(module)`, imported when it runs, that changes the module in place. Most passes of the phases `hl_seq` and `ll_seq`
are `run(program)`, called for each program. A pass that reads the options takes them as its second argument. A pass
raises CompileError for errors in the user's program. The verifier checks the IR after each phase; what it finds is a
fault of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import signature
from typing import Any, Final

from orchestrion.compiler.errors import ArgumentValueError, CompileError
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import UndecidedError
from orchestrion.compiler.ir.garbage import collect
from orchestrion.compiler.ir.verifier import check_own
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import parts_of
from orchestrion.compiler.sequencer import hl_seq

#: Phase -> description of its IR; in order.
PHASES: Final[dict[str, str]] = {
    "input": "what the frontend read: func, stablehlo, chlo, with locations and argument attributes",
    "stablehlo": "supported StableHLO ops only, calls inlined, simplified",
    "flow": "dispatches over tensors; executables as functions over tensors",
    "hl_seq": "one program per target; tensors are resources with lifetimes",
    "ll_seq": "setup, run and teardown; memory planned; the binding ABI of executables is frozen",
    "executables": "the bodies of executables in their target's IR",
    "bytecode": "vm: registers, instructions, payloads",
}
#: Phases in which a module may have parts (`parts.py`), and those in which it has programs.
PHASES_WITH_PARTS: Final = ("stablehlo", "flow")
PHASES_WITH_PROGRAMS: Final = ("hl_seq", "ll_seq")
#: Passes of these phases that run on the whole module.
PASSES_OF_MODULES: Final = ("form-programs", "choose-schedules")
FIRST_PHASE: Final = next(iter(PHASES))
LAST_PHASE: Final = list(PHASES)[-1]


@dataclass(frozen=True)
class Pass:
    """A pass: its name on the command line, its phase, `module` or `module:function` (default `run`), and the reason
    for its position in the table.

    `any_input`: the pass runs before a program from outside is verified, and accepts anything that parses.
    """

    name: str
    phase: str
    path: str
    why: str
    any_input: bool = False

    def subjects(self, module: Module) -> Sequence[Operation]:
        """The ops that the pass runs on, one after the other: the programs, the parts, or the module itself."""
        if self.phase in PHASES_WITH_PROGRAMS and self.name not in PASSES_OF_MODULES:
            return hl_seq.programs_of(module)
        return (parts_of(module) if self.phase in PHASES_WITH_PARTS and not self.any_input else ()) or (module,)

    @cached_property
    def run(self) -> Callable[[Any, Options], None]:
        """The function of the pass, imported at the first access."""
        module, _, function = self.path.partition(":")
        found: Callable[..., None] = getattr(import_module(f"orchestrion.compiler.{module}"), function or "run")
        return found if len(signature(found).parameters) > 1 else lambda subject, options: found(subject)


PASSES: Final[tuple[Pass, ...]] = (
    Pass("drop-callbacks", "stablehlo", "stablehlo.functions.callbacks", "their operands may be dead afterwards", True),
    Pass("expand-quantized", "stablehlo", "stablehlo.narrow.quantized", "all later passes see plain types", True),
    Pass("flatten-tuples", "stablehlo", "stablehlo.functions.tuples", "expand sees the elements of tuples", True),
    Pass("mark-parameters", "stablehlo", "stablehlo.functions.mark_parameters", "types are plain by now", True),
    Pass("expand", "stablehlo", "stablehlo.expansions.expand", "the legality check sees no derived ops", True),
    Pass("erase-private", "stablehlo", "stablehlo.functions.erase_private", "it may hold unsupported ops", True),
    Pass("dce", "stablehlo", "ir.effects", "unused ops may be unsupported", True),
    Pass("refine-shapes", "stablehlo", "stablehlo.shapes.refine", "all sizes become known or symbolic", True),
    Pass("check-legality", "stablehlo", "stablehlo.legality", "all refusals at once, before the lowering", True),
    Pass("drop-annotations", "stablehlo", "stablehlo.functions.annotations", "the legality check reads them last"),
    Pass("inline", "stablehlo", "stablehlo.functions.inline", "later passes work on one function"),
    Pass("take-parameters", "stablehlo", "stablehlo.functions.take_parameters", "no pass has folded constants yet"),
    Pass("split-by-libraries", "stablehlo", "stablehlo.linalg.split_by_libraries:split", "library calls are final"),
    Pass("expand-libraries", "stablehlo", "stablehlo.linalg.split_by_libraries:expand", "only one part gets loops"),
    Pass("expand-complex", "stablehlo", "stablehlo.complex.expand", "devices compute on parts; calls are inlined"),
    Pass("expand-narrow", "stablehlo", "stablehlo.narrow.expand", "later passes see only computed types"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize", "simplifies across former calls"),
    Pass("unroll-short-loops", "stablehlo", "stablehlo.control_flow.unroll_short_loops", "loop bounds are constants"),
    Pass("select-cheap-branches", "stablehlo", "stablehlo.control_flow.select_cheap_branches", "branches are small"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize", "selects meet the ops around them"),
    Pass("cse", "stablehlo", "ir.cse", "canonical operands make equal ops equal"),
    Pass("lower-sorts", "flow", "flow.lower_sorts", "the loop over the steps of a sort is one like others"),
    Pass("lower-scatters", "flow", "flow.lower_scatters", "the numbers of rows are arithmetic like other"),
    Pass("lower-control-flow", "flow", "flow.lower_control_flow", "all that follows knows blocks, not regions"),
    Pass("lower-imported-calls", "flow", "flow.lower_imported_calls", "a call ends a block, as a branch does"),
    Pass("lower-windows", "flow", "flow.lower_windows", "a convolution is a dot of windows: one hero less"),
    Pass("canonicalize", "flow", "stablehlo.canonicalize", "a predicate of what a loop starts with may be known"),
    Pass("cse", "flow", "ir.cse", "a loop's body and its predicate share work now"),
    Pass("split-reductions", "flow", "flow.split_reductions", "sums of windows are reductions now, and canonical"),
    Pass("simplify-branches", "flow", "flow.simplify_branches", "known predicates, and what blocks carry in vain"),
    Pass("hoist-parameters", "flow", "flow.hoist_parameters", "branches no longer hand arguments on"),
    Pass("split-large-constants", "flow", "flow.split_large_constants", "values of constants are at hand, and folded"),
    Pass("hoist-constants", "flow", "flow.hoist_constants", "constants are globals before regions form"),
    Pass("elide-empty", "flow", "flow.elide_empty", "tensors without elements need no dispatch"),
    Pass("split-wide-concatenates", "flow", "flow.split_wide_concatenates", "any op alone must fit a dispatch"),
    Pass("hoist-into-initializers", "flow", "flow.hoist_into_initializers", "a call computes only what it must"),
    Pass("form-dispatch-regions", "flow", "flow.form_dispatch_regions", "fusion decides what a launch computes"),
    Pass("set-encodings", "flow", "flow.set_encodings", "regions say which operands lie in memory"),
    Pass("hoist-into-initializers", "flow", "flow.hoist_into_initializers", "now encodings of constants, too"),
    Pass("outline-dispatch-regions", "flow", "flow.outline_dispatch_regions", "regions become executables"),
    Pass("share-scalars", "flow", "flow.share_scalars", "what differs in numbers only is equal then"),
    Pass("deduplicate-executables", "flow", "flow.deduplicate_executables", "equal executables are built once"),
    Pass("mark-in-place", "flow", "flow.mark_in_place", "executables are final, and so is who reads what"),
    Pass("form-programs", "hl_seq", "targets.passes.form_programs", "later passes work on one target's program"),
    Pass("limit-reductions", "hl_seq", "targets.passes.limit_reductions", "limits depend on the machine"),
    Pass("unify-encodings", "hl_seq", "targets.passes.encodings.unify_encodings", "keeps a constant in one layout"),
    Pass("specialize-encodings", "hl_seq", "targets.passes.encodings.specialize_encodings", "targets choose layouts"),
    Pass(
        "pack-constants",
        "hl_seq",
        "targets.passes.encodings.pack_constants",
        "layouts are final; nothing packs yet",
    ),
    Pass("materialize-encodings", "hl_seq", "targets.passes.encodings.materialize_encodings", "others are dispatches"),
    Pass("fuse-attention", "hl_seq", "targets.passes.fuse_attention", "only some machines keep scores in a workgroup"),
    Pass("split-dots", "hl_seq", "targets.passes.split_dots", "no dot is part of an attention any more"),
    Pass("convert-to-hl-seq", "hl_seq", "sequencer.convert_to_hl_seq", "layouts determine sizes in memory"),
    Pass("mark-kernel-loops", "hl_seq", "targets.passes.loops.mark_kernel_loops", "bodies are final; the host counts"),
    Pass("count-on-device", "hl_seq", "sequencer.count_on_device", "the counter is a resource of one program"),
    Pass("choose-schedules", "hl_seq", "targets.passes.choose_schedules", "bodies and updates in place are final"),
    Pass("group-by-barrier", "ll_seq", "sequencer.group_by_barrier", "the order precedes memory planning"),
    Pass("materialize-copies", "ll_seq", "sequencer.materialize_copies", "the order is final, the ABI is not"),
    Pass("freeze-abi", "ll_seq", "sequencer.freeze_abi", "dispatches still have the workloads"),
    Pass("link-executables", "ll_seq", "targets.passes.link_executables", "entries are final, and not yet code"),
    Pass("convert-to-ll-seq", "ll_seq", "sequencer.convert_to_ll_seq", "executables are final"),
    Pass("pack-arena", "ll_seq", "sequencer.pack_arena", "allocations still have their lifetimes"),
    Pass("share-bindings", "ll_seq", "sequencer.share_bindings", "offsets are final, and barriers are everywhere"),
    Pass("record-control-flow", "ll_seq", "sequencer.record_control_flow", "offsets of predicates are final"),
    Pass("coalesce-barriers", "ll_seq", "sequencer.coalesce_barriers", "offsets are final"),
    Pass("loops-to-kernels", "ll_seq", "targets.passes.loops.loops_to_kernels", "offsets and barriers are final"),
    Pass("hoist-allocations", "ll_seq", "sequencer.hoist_setup:allocations", "recordings use buffers"),
    Pass("hoist-executables", "ll_seq", "sequencer.hoist_setup:executables", "recordings use executables"),
    Pass("hoist-recordings", "ll_seq", "sequencer.hoist_setup:recordings", "their operands are hoisted"),
    Pass("split-setup", "ll_seq", "sequencer.split_setup", "setup precedes the run loops now"),
    Pass("lower-executables", "executables", "targets.passes.lower_executables", "emits code for the frozen ABI"),
    Pass("convert-to-vm", "bytecode", "bytecode.convert_to_vm", "executables are lowered"),
    Pass("assign-registers", "bytecode", "bytecode.assign_registers", "instructions are final"),
)

#: Called after each pass with the pass and the module, and after each phase with its name and the module.
AfterPass = Callable[[Pass, Module], None]
AfterPhase = Callable[[str, Module], None]


def passes_of(phase: str) -> list[Pass]:
    return [row for row in PASSES if row.phase == phase]


def passes_named(names: Sequence[str]) -> list[Pass]:
    """The passes of these names. Raises ArgumentValueError for an unknown name."""
    rows = {row.name: row for row in PASSES}
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise ArgumentValueError(f"no pass is called {', '.join(unknown)}; passes are {', '.join(rows)}")
    return [rows[name] for name in names]


def phases_between(start: str, stop: str) -> list[str]:
    """The phases after `start` up to `stop`. Raises ArgumentValueError for an unknown name or the wrong order."""
    order = list(PHASES)
    for name in (start, stop):
        if name not in PHASES:
            raise ArgumentValueError(f"no phase is called {name}; phases are {', '.join(PHASES)}")
    if order.index(stop) < order.index(start):
        raise ArgumentValueError(f"the input is of phase {start}, which comes after {stop}")
    return order[order.index(start) + 1 : order.index(stop) + 1]


def run_passes(module: Module, passes: Sequence[Pass], options: Options, after_pass: AfterPass | None = None) -> None:
    """Runs passes on the module or its parts. Raises CompileError, also if a comparison of sizes is undecided."""
    for row in passes:
        with options.steps.step(row.phase, row.name):
            try:
                for subject in row.subjects(module):
                    row.run(subject, options)
            except UndecidedError as error:
                raise CompileError(f"{row.name}: {error}, which is not supported") from None
            collect()
        if after_pass is not None:
            after_pass(row, module)


def run_phases(
    module: Module,
    phases: Sequence[str],
    options: Options,
    after_pass: AfterPass | None = None,
    after_phase: AfterPhase | None = None,
) -> None:
    """Runs the phases on the module, in order. Raises CompileError, or InternalError for faults of the compiler."""
    for phase in phases:
        run_passes(module, passes_of(phase), options, after_pass)
        with options.steps.step(phase, "verify"):
            check_own(module, f"phase {phase}")
        if after_phase is not None:
            after_phase(phase, module)
