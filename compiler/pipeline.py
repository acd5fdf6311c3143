"""The phases and their passes: one table.

A phase is a list of passes; its IR is text that can be printed, read back and continued from to the same bytes. A pass
is a function `run(module, options)`, imported when it runs, that changes the module in place and keeps to the user's
fault by `CompileError`. The verifier looks at what each phase leaves: what it finds there is our fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Final

from orchestrion.compiler.errors import ArgumentValueError, CompileError
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.dims import UndecidedError
from orchestrion.compiler.ir.garbage import collect
from orchestrion.compiler.ir.verifier import check_own
from orchestrion.compiler.options import Options
from orchestrion.compiler.parts import parts_of

#: phase -> what its IR is; in order
PHASES: Final[dict[str, str]] = {
    "input": "what the frontend read: func, stablehlo, chlo, with locations and argument attributes",
    "stablehlo": "supported StableHLO ops only, calls inlined, simplified",
    "flow": "dispatches over tensors; executables as functions over tensors",
    "hl_seq": "one program per target; tensors are resources with lifetimes",
    "ll_seq": "setup, run and teardown; memory planned; the binding ABI of executables is frozen",
    "executables": "the bodies of executables in their target's IR",
    "bytecode": "vm: registers, instructions, payloads",
}
#: phases whose modules may have parts (`parts.py`)
SPLIT: Final = ("stablehlo", "flow")
FIRST: Final = next(iter(PHASES))
LAST: Final = list(PHASES)[-1]


@dataclass(frozen=True)
class Pass:
    """A row: name on the command line, phase, `module` or `module:function` (`run` where it is left
    out), the reason for its place.

    `any_input`: it stands before the verifier has seen a program from outside, and takes whatever could be parsed.
    """

    name: str
    phase: str
    path: str
    why: str
    any_input: bool = False

    @property
    def takes_parts(self) -> bool:
        """Whether it runs on each part of a module that has parts."""
        return self.phase in SPLIT and not self.any_input

    @cached_property
    def run(self) -> Callable[[Module, Options], None]:
        module, _, function = self.path.partition(":")
        found: Callable[[Module, Options], None]
        found = getattr(import_module(f"orchestrion.compiler.{module}"), function or "run")
        return found


PASSES: Final[tuple[Pass, ...]] = (
    Pass("drop-callbacks", "stablehlo", "stablehlo.functions.callbacks", "what only they use is dead then", True),
    Pass("expand-quantized", "stablehlo", "stablehlo.narrow.quantized", "plain types for all that follows", True),
    Pass("flatten-tuples", "stablehlo", "stablehlo.functions.tuples", "what is in a tuple is expanded by itself", True),
    Pass("mark-parameters", "stablehlo", "stablehlo.functions.mark_parameters", "types are plain by now", True),
    Pass("expand", "stablehlo", "stablehlo.expansions.expand", "no refusal of ops in disguise", True),
    Pass("erase-private", "stablehlo", "stablehlo.functions.erase_private", "what nobody calls may be anything", True),
    Pass("dce", "stablehlo", "ir.effects", "what nobody uses need not be supported", True),
    Pass("refine-shapes", "stablehlo", "stablehlo.shapes.refine", "what follows sees sizes, if as symbols", True),
    Pass("check-legality", "stablehlo", "stablehlo.legality", "every refusal at once, before any rewriting", True),
    Pass("drop-annotations", "stablehlo", "stablehlo.functions.annotations", "the check was their last reader"),
    Pass("inline", "stablehlo", "stablehlo.functions.inline", "passes look at one function at a time"),
    Pass("take-parameters", "stablehlo", "stablehlo.functions.take_parameters", "before constants are looked into"),
    Pass("split-by-libraries", "stablehlo", "stablehlo.linalg.split_by_libraries:split", "all calls are known"),
    Pass("expand-libraries", "stablehlo", "stablehlo.linalg.split_by_libraries:expand", "one part alone has loops"),
    Pass("expand-complex", "stablehlo", "stablehlo.complex.expand", "devices compute on parts; no calls are left"),
    Pass("expand-narrow", "stablehlo", "stablehlo.narrow.expand", "no later pass meets a type that is only stored"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize", "constants and identities across former calls"),
    Pass("unroll-short-loops", "stablehlo", "stablehlo.control_flow.unroll_short_loops", "bounds are constants now"),
    Pass("select-cheap-branches", "stablehlo", "stablehlo.control_flow.select_cheap_branches", "they are small now"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize", "selected values meet the ops around them"),
    Pass("cse", "stablehlo", "ir.cse", "equal ops are alike only once operands are canonical"),
    Pass("dce", "stablehlo", "ir.effects", "merging and folding leave ops without users"),
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
    Pass("form-programs", "hl_seq", "sequencer.form_programs", "from here on each target has its own copy"),
    Pass("limit-folds", "hl_seq", "sequencer.limit_folds", "only some machines have limits: per program"),
    Pass("unify-encodings", "hl_seq", "sequencer.unify_encodings", "a constant is kept in one layout"),
    Pass("specialize-encodings", "hl_seq", "sequencer.specialize_encodings", "a target knows what it gains by"),
    Pass("materialize-encodings", "hl_seq", "sequencer.materialize_encodings", "what is left is a dispatch"),
    Pass("convert-to-hl-seq", "hl_seq", "sequencer.convert_to_hl_seq", "sizes in memory are known now"),
    Pass("choose-schedules", "hl_seq", "targets.choose_schedules", "bodies are final, and so is who is in place"),
    Pass("group-by-barrier", "ll_seq", "sequencer.group_by_barrier", "the order is final before memory is planned"),
    Pass("materialize-copies", "ll_seq", "sequencer.materialize_copies", "in the final order, before the ABI"),
    Pass("freeze-abi", "ll_seq", "sequencer.freeze_abi", "workloads are still at the dispatches"),
    Pass("link-executables", "ll_seq", "sequencer.link_executables", "entries are final, nobody holds code yet"),
    Pass("convert-to-ll-seq", "ll_seq", "sequencer.convert_to_ll_seq", "memory is explicit over final executables"),
    Pass("pack-arena", "ll_seq", "sequencer.pack_arena", "lifetimes are those of one function"),
    Pass("coalesce-waits", "ll_seq", "sequencer.coalesce_waits", "places are final"),
    Pass("hoist-allocations", "ll_seq", "sequencer.hoist_setup:allocations", "recordings use them"),
    Pass("hoist-executables", "ll_seq", "sequencer.hoist_setup:executables", "recordings use them"),
    Pass("hoist-recordings", "ll_seq", "sequencer.hoist_setup:recordings", "all that they use has moved"),
    Pass("hoist-per-shape", "ll_seq", "sequencer.hoist_setup:per_shape", "what is left depends on sizes, or the call"),
    Pass("split-setup", "ll_seq", "sequencer.split_setup", "what is set up once stands before the run loops"),
    Pass("lower-executables", "executables", "targets.lower", "emission only, honouring the ABI"),
    Pass("convert-to-vm", "bytecode", "bytecode.convert_to_vm", "calls of the hal module instead of ll_seq ops"),
    Pass("assign-registers", "bytecode", "bytecode.assign_registers", "over final instructions"),
)

#: called with what has just been done and the module: a pass, or the name of a phase
AfterPass = Callable[[Pass, Module], None]
AfterPhase = Callable[[str, Module], None]


def passes_of(phase: str) -> list[Pass]:
    return [row for row in PASSES if row.phase == phase]


def named(names: Sequence[str]) -> list[Pass]:
    """The passes of these names. Raises CompileError for a name without a row."""
    rows = {row.name: row for row in PASSES}
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise ArgumentValueError(f"no pass is called {', '.join(unknown)}; passes are {', '.join(rows)}")
    return [rows[name] for name in names]


def phases_between(start: str, stop: str) -> list[str]:
    """The phases after `start` up to `stop`. Raises CompileError for a name that is none, or an order that is not."""
    order = list(PHASES)
    for name in (start, stop):
        if name not in PHASES:
            raise ArgumentValueError(f"no phase is called {name}; phases are {', '.join(PHASES)}")
    if order.index(stop) < order.index(start):
        raise ArgumentValueError(f"the input is of phase {start}, which comes after {stop}")
    return order[order.index(start) + 1 : order.index(stop) + 1]


def run_passes(module: Module, passes: Sequence[Pass], options: Options, after_pass: AfterPass | None = None) -> None:
    for row in passes:
        with options.steps.step(row.phase, row.name):
            try:
                for part in (parts_of(module) if row.takes_parts else ()) or (module,):
                    row.run(part, options)
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
    """Takes the module through the phases, in order. Raises CompileError, or InternalError for our faults."""
    for phase in phases:
        run_passes(module, passes_of(phase), options, after_pass)
        with options.steps.step(phase, "verify"):
            check_own(module, f"phase {phase}")
        if after_phase is not None:
            after_phase(phase, module)
