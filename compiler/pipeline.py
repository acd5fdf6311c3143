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
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.dims import UndecidedError
from orchestrion.compiler.ir.garbage import collect
from orchestrion.compiler.ir.verifier import check_own
from orchestrion.compiler.kernel.machine import DEFAULT
from orchestrion.compiler.sequencer.arena import MAX_ALLOCATION

if TYPE_CHECKING:
    from orchestrion.compiler.provenance import Recorder

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
#: how the operands of dots are laid out
ENCODINGS: Final[dict[str, str]] = {
    "default": "as each target gains by it",
    "none": "in row-major order",
    "always": "as each target likes it, for dots of any size",
    "test": "in odd tiles, padded, in another order, on every target: slow, and it finds what depends on the order",
}
FIRST: Final = next(iter(PHASES))
LAST: Final = list(PHASES)[-1]


@dataclass(frozen=True, slots=True)
class Options:
    """What a compilation is asked for. `targets` are names of `schema.profiles.PROFILES`, best first; `encodings` is
    one of `ENCODINGS`, `machines` are names of `kernel.machine.MACHINES`, best first. `recorder`: who is told what was
    decided, for a placement report. `parameters`: large constants lie outside the module, and so do the arguments
    called `parameter_arguments`. `max_allocation`: bytes above which an arena or a pool of constants is split into
    several."""

    targets: tuple[str, ...]
    encodings: str = "default"
    machines: tuple[str, ...] = (DEFAULT,)
    recorder: Recorder | None = None
    parameters: bool = False
    parameter_arguments: tuple[str, ...] = ()
    max_allocation: int = MAX_ALLOCATION


@dataclass(frozen=True)
class Pass:
    """A row: name on the command line, phase, `module:function`, the reason for its place.

    `any_input`: it stands before the verifier has seen a program from outside, and takes whatever could be parsed.
    """

    name: str
    phase: str
    path: str
    why: str
    any_input: bool = False

    @cached_property
    def run(self) -> Callable[[Module, Options], None]:
        module, _, function = self.path.partition(":")
        found: Callable[[Module, Options], None] = getattr(import_module(f"orchestrion.compiler.{module}"), function)
        return found


PASSES: Final[tuple[Pass, ...]] = (
    Pass("expand-quantized", "stablehlo", "stablehlo.expand_quantized:run", "plain types for all that follows", True),
    Pass("flatten-tuples", "stablehlo", "stablehlo.tuples:run", "what is in a tuple is expanded by itself", True),
    Pass("mark-parameters", "stablehlo", "stablehlo.mark_parameters:run", "types are plain, names the source's", True),
    Pass("expand", "stablehlo", "stablehlo.expand:run", "ops in disguise need no refusal; a composite is a call", True),
    Pass("erase-private", "stablehlo", "stablehlo.erase_private:run", "what nobody calls need not be supported", True),
    Pass("dce", "stablehlo", "ir.effects:run", "what nobody uses need not be supported", True),
    Pass("refine-shapes", "stablehlo", "stablehlo.refine_shapes:run", "what follows sees sizes, if as symbols", True),
    Pass("check-legality", "stablehlo", "stablehlo.legality:run", "every refusal at once, before any rewriting", True),
    Pass("drop-annotations", "stablehlo", "stablehlo.annotations:run", "the check has read them; nobody else does"),
    Pass("inline", "stablehlo", "stablehlo.inline:run", "all that follows looks at one function at a time"),
    Pass("take-parameters", "stablehlo", "stablehlo.take_parameters:run", "before constants are looked into or folded"),
    Pass("expand-complex", "stablehlo", "stablehlo.expand_complex:run", "devices compute on parts; no calls are left"),
    Pass("expand-narrow", "stablehlo", "stablehlo.expand_narrow:run", "no later pass meets a type that is only stored"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize:run", "constants and identities across former calls"),
    Pass("unroll-short-loops", "stablehlo", "stablehlo.unroll_short_loops:run", "starts and bounds are constants now"),
    Pass("select-cheap-branches", "stablehlo", "stablehlo.select_cheap_branches:run", "branches are small only now"),
    Pass("canonicalize", "stablehlo", "stablehlo.canonicalize:run", "selected values meet the ops around them"),
    Pass("cse", "stablehlo", "ir.cse:run", "equal ops are alike only once operands are canonical"),
    Pass("dce", "stablehlo", "ir.effects:run", "merging and folding leave ops without users"),
    Pass("lower-sorts", "flow", "flow.lower_sorts:run", "the loop over the steps of a sort is one like others"),
    Pass("lower-scatters", "flow", "flow.lower_scatters:run", "the numbers of rows are arithmetic like other"),
    Pass("lower-control-flow", "flow", "flow.lower_control_flow:run", "all that follows knows blocks, not regions"),
    Pass("lower-imported-calls", "flow", "flow.lower_imported_calls:run", "a call ends a block, as a branch does"),
    Pass("lower-windows", "flow", "flow.lower_windows:run", "a convolution is a dot of windows: one hero less"),
    Pass("canonicalize", "flow", "stablehlo.canonicalize:run", "a predicate of what a loop starts with may be known"),
    Pass("cse", "flow", "ir.cse:run", "a loop's body and its predicate share work now"),
    Pass("split-reductions", "flow", "flow.split_reductions:run", "sums of windows are reductions now, and canonical"),
    Pass("simplify-branches", "flow", "flow.simplify_branches:run", "known predicates, and what blocks carry in vain"),
    Pass("hoist-parameters", "flow", "flow.hoist_parameters:run", "branches no longer hand arguments on"),
    Pass("hoist-constants", "flow", "flow.hoist_constants:run", "constants are globals before regions form"),
    Pass("elide-empty", "flow", "flow.elide_empty:run", "tensors without elements need no dispatch"),
    Pass("split-wide-concatenates", "flow", "flow.split_wide_concatenates:run", "any op alone must fit a dispatch"),
    Pass("hoist-into-initializers", "flow", "flow.hoist_into_initializers:run", "a call computes only what it must"),
    Pass("form-dispatch-regions", "flow", "flow.form_dispatch_regions:run", "fusion decides what a launch computes"),
    Pass("set-encodings", "flow", "flow.set_encodings:run", "regions say which operands lie in memory"),
    Pass("hoist-into-initializers", "flow", "flow.hoist_into_initializers:run", "now encodings of constants, too"),
    Pass("outline-dispatch-regions", "flow", "flow.outline_dispatch_regions:run", "regions become executables"),
    Pass("deduplicate-executables", "flow", "flow.deduplicate_executables:run", "equal executables are built once"),
    Pass("limit-folds", "flow", "flow.limit_folds:run", "executables are final, and so is what a dispatch folds"),
    Pass("mark-in-place", "flow", "flow.mark_in_place:run", "executables are final, and so is who reads what"),
    Pass("form-programs", "hl_seq", "sequencer.form_programs:run", "from here on each target has its own copy"),
    Pass("unify-encodings", "hl_seq", "sequencer.unify_encodings:run", "a constant is kept in one layout"),
    Pass("specialize-encodings", "hl_seq", "sequencer.specialize_encodings:run", "a target knows what it gains by"),
    Pass("materialize-encodings", "hl_seq", "sequencer.materialize_encodings:run", "what is left is a dispatch"),
    Pass("convert-to-hl-seq", "hl_seq", "sequencer.convert_to_hl_seq:run", "sizes in memory are known now"),
    Pass("group-by-barrier", "ll_seq", "sequencer.group_by_barrier:run", "the order is final before memory is planned"),
    Pass("materialize-copies", "ll_seq", "sequencer.materialize_copies:run", "in the final order, before the ABI"),
    Pass("freeze-abi", "ll_seq", "sequencer.freeze_abi:run", "workloads are still at the dispatches"),
    Pass("link-executables", "ll_seq", "sequencer.link_executables:run", "entries are final, nobody holds code yet"),
    Pass("convert-to-ll-seq", "ll_seq", "sequencer.convert_to_ll_seq:run", "memory is explicit over final executables"),
    Pass("pack-arena", "ll_seq", "sequencer.pack_arena:run", "lifetimes are those of one function"),
    Pass("coalesce-waits", "ll_seq", "sequencer.coalesce_waits:run", "places are final"),
    Pass("hoist-allocations", "ll_seq", "sequencer.hoist_setup:allocations", "recordings use them"),
    Pass("hoist-executables", "ll_seq", "sequencer.hoist_setup:executables", "recordings use them"),
    Pass("hoist-recordings", "ll_seq", "sequencer.hoist_setup:recordings", "all that they use has moved"),
    Pass("hoist-per-shape", "ll_seq", "sequencer.hoist_setup:per_shape", "what is left depends on sizes, or the call"),
    Pass("split-setup", "ll_seq", "sequencer.split_setup:run", "what is set up once stands before the run loops"),
    Pass("lower-executables", "executables", "targets.lower:run", "emission only, honouring the ABI"),
    Pass("convert-to-vm", "bytecode", "bytecode.convert_to_vm:run", "calls of the hal module instead of ll_seq ops"),
    Pass("assign-registers", "bytecode", "bytecode.assign_registers:run", "over final instructions"),
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
        raise CompileError(f"no pass is called {', '.join(unknown)}; passes are {', '.join(rows)}")
    return [rows[name] for name in names]


def phases_between(start: str, stop: str) -> list[str]:
    """The phases after `start` up to `stop`. Raises CompileError for a name that is none, or an order that is not."""
    order = list(PHASES)
    for name in (start, stop):
        if name not in PHASES:
            raise CompileError(f"no phase is called {name}; phases are {', '.join(PHASES)}")
    if order.index(stop) < order.index(start):
        raise CompileError(f"the input is of phase {start}, which comes after {stop}")
    return order[order.index(start) + 1 : order.index(stop) + 1]


def run_passes(module: Module, passes: Sequence[Pass], options: Options, after_pass: AfterPass | None = None) -> None:
    for row in passes:
        try:
            row.run(module, options)
        except UndecidedError as error:
            raise CompileError(f"{row.name}: {error}, which is not supported") from None
        if after_pass is not None:
            after_pass(row, module)
        collect()


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
        check_own(module, f"phase {phase}")
        if after_phase is not None:
            after_phase(phase, module)
