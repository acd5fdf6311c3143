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
    Pass("drop-callbacks", "stablehlo", "stablehlo.functions.callbacks", "dce removes what only callbacks used", True),
    Pass("expand-quantized", "stablehlo", "stablehlo.narrow.quantized", "later passes see no quantized types", True),
    Pass("flatten-tuples", "stablehlo", "stablehlo.functions.tuples", "expand sees the elements of tuples", True),
    Pass("mark-parameters", "stablehlo", "stablehlo.functions.mark_parameters", "types are no longer quantized", True),
    Pass("expand", "stablehlo", "stablehlo.expansions.expand", "the legality check sees no other forms", True),
    Pass("erase-private", "stablehlo", "stablehlo.functions.erase_private", "unused ops may be unsupported", True),
    Pass("dce", "stablehlo", "ir.effects", "unused ops may be unsupported", True),
    Pass("refine-shapes", "stablehlo", "stablehlo.shapes.refine", "later passes need known or symbolic sizes", True),
    Pass("check-legality", "stablehlo", "stablehlo.legality", "reports all errors together, before lowering", True),
    Pass("drop-annotations", "stablehlo", "stablehlo.functions.annotations", "the legality check is the last reader"),
    Pass("inline", "stablehlo", "stablehlo.functions.inline", "later passes work on one function"),
    Pass("take-parameters", "stablehlo", "stablehlo.functions.take_parameters", "no pass has folded constants yet"),
    Pass("split-by-libraries", "stablehlo", "stablehlo.linalg.split_by_libraries:split", "library calls are final"),
    Pass("expand-libraries", "stablehlo", "stablehlo.linalg.split_by_libraries:expand", "the module has its parts"),
    Pass("expand-complex", "stablehlo", "stablehlo.complex.expand", "no device has complex types"),
    Pass("expand-narrow", "stablehlo", "stablehlo.narrow.expand", "later passes see only types that devices compute"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize", "simplifies across former calls"),
    Pass("unroll-short-loops", "stablehlo", "stablehlo.control_flow.unroll_short_loops", "loop bounds are constants"),
    Pass("select-cheap-branches", "stablehlo", "stablehlo.control_flow.select_cheap_branches", "branches are small"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize", "simplifies selects with the ops around them"),
    Pass("cse", "stablehlo", "ir.cse", "equal ops have equal operands after canonicalize"),
    Pass("lower-sorts", "flow", "flow.lower_sorts", "loops of sorts are lowered with all other loops"),
    Pass("lower-scatters", "flow", "flow.lower_scatters", "row numbers are computed by ops that fuse"),
    Pass("lower-control-flow", "flow", "flow.lower_control_flow", "later passes work on blocks, not on regions"),
    Pass("lower-imported-calls", "flow", "flow.lower_imported_calls", "the call ends a block, like a branch"),
    Pass("lower-windows", "flow", "flow.lower_windows", "later passes see dots and reductions only"),
    Pass("canonicalize", "flow", "stablehlo.canonicalize", "folds predicates of the first iteration"),
    Pass("cse", "flow", "ir.cse", "merges ops of loop bodies and predicates"),
    Pass("split-reductions", "flow", "flow.split_reductions", "window ops are reductions now"),
    Pass("simplify-branches", "flow", "flow.simplify_branches", "predicates are folded, and arguments may be unused"),
    Pass("hoist-parameters", "flow", "flow.hoist_parameters", "blocks no longer pass unchanged arguments on"),
    Pass("split-large-constants", "flow", "flow.split_large_constants", "constants are folded, and not yet globals"),
    Pass("hoist-constants", "flow", "flow.hoist_constants", "regions read constants from globals"),
    Pass("elide-empty", "flow", "flow.elide_empty", "tensors without elements need no dispatch"),
    Pass("split-wide-concatenates", "flow", "flow.split_wide_concatenates", "each op must fit into one dispatch"),
    Pass("hoist-into-initializers", "flow", "flow.hoist_into_initializers", "fusion sees only the work of calls"),
    Pass("form-dispatch-regions", "flow", "flow.form_dispatch_regions", "the ops of a function are final"),
    Pass("set-encodings", "flow", "flow.set_encodings", "regions show which operands are in memory"),
    Pass("hoist-into-initializers", "flow", "flow.hoist_into_initializers", "encodings of constants are hoisted, too"),
    Pass("outline-dispatch-regions", "flow", "flow.outline_dispatch_regions", "regions become executables"),
    Pass("share-scalars", "flow", "flow.share_scalars", "makes executables equal that differ in scalars"),
    Pass("deduplicate-executables", "flow", "flow.deduplicate_executables", "equal executables are built once"),
    Pass("mark-in-place", "flow", "flow.mark_in_place", "executables and their operands are final"),
    Pass("form-programs", "hl_seq", "targets.passes.form_programs", "later passes work on one target's program"),
    Pass("limit-reductions", "hl_seq", "targets.passes.limit_reductions", "limits depend on the machine"),
    Pass("unify-encodings", "hl_seq", "targets.passes.encodings.unify_encodings", "stores each constant only once"),
    Pass("specialize-encodings", "hl_seq", "targets.passes.encodings.specialize_encodings", "targets choose layouts"),
    Pass("pack-constants", "hl_seq", "targets.passes.encodings.pack_constants", "layouts are final"),
    Pass("materialize-encodings", "hl_seq", "targets.passes.encodings.materialize_encodings", "lowers the others"),
    Pass("fuse-attention", "hl_seq", "targets.passes.fuse_attention", "only some machines keep scores in a workgroup"),
    Pass("split-dots", "hl_seq", "targets.passes.split_dots", "dots of attentions are fused"),
    Pass("convert-to-hl-seq", "hl_seq", "sequencer.convert_to_hl_seq", "layouts determine sizes in memory"),
    Pass("mark-kernel-loops", "hl_seq", "targets.passes.loops.mark_kernel_loops", "bodies are final; the host counts"),
    Pass("count-on-device", "hl_seq", "sequencer.count_on_device", "a counter needs memory of its program"),
    Pass("choose-schedules", "hl_seq", "targets.passes.choose_schedules", "bodies and in-place updates are final"),
    Pass("group-by-barrier", "ll_seq", "sequencer.group_by_barrier", "memory planning needs the final order"),
    Pass("materialize-copies", "ll_seq", "sequencer.materialize_copies", "the order is final, the ABI is not"),
    Pass("freeze-abi", "ll_seq", "sequencer.freeze_abi", "dispatches still have the workloads"),
    Pass("link-executables", "ll_seq", "targets.passes.link_executables", "entries are final, and not yet lowered"),
    Pass("convert-to-ll-seq", "ll_seq", "sequencer.convert_to_ll_seq", "executables are final"),
    Pass("pack-arena", "ll_seq", "sequencer.pack_arena", "allocations still have their lifetimes"),
    Pass("share-bindings", "ll_seq", "sequencer.share_bindings", "offsets are final, barriers not yet merged"),
    Pass("record-control-flow", "ll_seq", "sequencer.record_control_flow", "offsets of predicates are final"),
    Pass("coalesce-barriers", "ll_seq", "sequencer.coalesce_barriers", "offsets are final"),
    Pass("loops-to-kernels", "ll_seq", "targets.passes.loops.loops_to_kernels", "offsets and barriers are final"),
    Pass("hoist-allocations", "ll_seq", "sequencer.hoist_setup:allocations", "recordings need buffers"),
    Pass("hoist-executables", "ll_seq", "sequencer.hoist_setup:executables", "recordings need executables"),
    Pass("hoist-recordings", "ll_seq", "sequencer.hoist_setup:recordings", "operands of recordings are hoisted"),
    Pass("split-setup", "ll_seq", "sequencer.split_setup", "hoisted ops precede the run loops"),
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
