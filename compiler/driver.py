"""Compiles a source to a module file: runs the phases, and serves their options.

`compile` and `compile_to_file` run all phases. A `Compilation` can start and stop at any phase, dump phases, and print
IR after passes. The same source and options give the same bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TextIO, TypedDict, Unpack

from orchestrion.compiler.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CompileError,
    Diagnostic,
    ScheduleWarning,
    TargetsError,
    TargetWarning,
)
from orchestrion.compiler.frontend.source import Source, SourceContent, read_source
from orchestrion.compiler.frontend.stablehlo import load_module, start_reader
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.garbage import collection_paused
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.verifier import check_input
from orchestrion.compiler.options import CHOICES, Options, Settings
from orchestrion.compiler.pipeline import (
    FIRST_PHASE,
    LAST_PHASE,
    PHASES,
    AfterPass,
    Pass,
    passes_named,
    passes_of,
    phases_between,
    run_phases,
)
from orchestrion.compiler.profiles import DEFAULT, MACHINES, holds_confined_code, known_profile
from orchestrion.compiler.rules.engine import check as check_phase
from orchestrion.compiler.targets.choice import (
    default_targets,
    left_out_text,
    names_in,
    profile_names,
    warn,
    with_levels,
)
from orchestrion.compiler.targets.cpu.levels import levels_named
from orchestrion.schema.attributes import as_text, problem
from orchestrion.schema.profiles import PROFILES

if TYPE_CHECKING:
    from orchestrion.compiler.kernel.machine import Machine
    from orchestrion.compiler.placement import Report
    from orchestrion.compiler.provenance import Recorder
    from orchestrion.compiler.targets.schedule_file import SavedSchedules, ScheduleFile
    from orchestrion.schema import writer

#: The first phase whose text determines memory layout and code; modules made from it are not added to the trust store.
FIRST_UNTRUSTED_PHASE = "ll_seq"
#: The phase whose entries have schedules; a file of schedules may change its text.
SCHEDULED = "hl_seq"
#: The phase whose text `embed_ir` keeps, and the name of its debug segment.
EMBEDDED = "executables"
EMBEDDED_NAME = f"ir.{EMBEDDED}"
#: Phases whose text contains no ops of the source, only locations.
PHASES_WITHOUT_SOURCE_OPS = ("ll_seq", "executables", "bytecode")


class CompileOptions(TypedDict, total=False):
    """Options of `compile` and `compile_to_file`. Defaults are those of `Compilation`."""

    targets: str | Sequence[str] | None
    encodings: str
    machines: str | Sequence[str]
    attributes: Mapping[str, str | bytes | float] | None
    report: Report | None
    parameters: str | os.PathLike[str] | None
    parameter_arguments: str | Sequence[str]
    max_allocation: int
    callbacks: str
    schedules: str | os.PathLike[str] | None
    target_cpu: str | Sequence[str]
    levels: str
    quantized: str
    lapack: str


def compile(
    source: Source, *args: Any, kwargs: Mapping[str, Any] | None = None, **options: Unpack[CompileOptions]
) -> bytes:
    """Compiles a program; returns the bytes of a module file, for `vm.load` or a file.

    - `source`: a function, which JAX traces with the example arguments `args` and `kwargs` (arrays, numbers,
      `jax.ShapeDtypeStruct`s, trees of them); a path; StableHLO as text (a string with a line break or a parenthesis is
      text, any other a path) or bytes; the bytes of `jax.export.Exported.serialize`; a `jax.stages.Lowered`, a
      `jax.export.Exported` or an MLIR module of jaxlib.
    - `targets`: names of target profiles, or of the devices they are for (`"spirv"`, `["vulkan", "reference"]`), best
      first. Each must compile the program. Default: those of `schema.profiles.PROFILES` that can, with one
      `TargetWarning` about the others.
    - `encodings`: how the operands of dots are laid out, a value of `options.CHOICES`, as those of `callbacks`,
      `levels`, `quantized` and `lapack` are.
    - `machines`: the kinds of device for which kernels are shaped, keys of `profiles.MACHINES`, the default last.
      Each target gets one program per machine; a device takes the first one for its kind, or the last.
    - `attributes` of the module: texts, numbers or bytes by key. Those of `schema.attributes.KNOWN` have a meaning,
      such as `model.name` and `limits.memory`.
    - `report`: filled with the place where each op of the source is computed, or with the refusals, also if
      CompileError is raised (docs/placement.md).
    - `parameters`: a safetensors file to be written with all constants of 4 KiB and more, which the module then names
      instead.
    - `parameter_arguments`: names of arguments (`w`, `arg0`, or `params` for all of `params[...]`) whose values come
      from such files as well, when the module is loaded, and not from callers (docs/parameters.md).
    - `max_allocation`: bytes above which intermediate values and small constants are split into several allocations,
      for devices with a smaller limit per allocation (docs/memory.md).
    - `callbacks`: what happens to callbacks into Python (docs/callbacks.md).
    - `schedules`: a file that `vm-tune` wrote, whose schedules replace those that the compiler chooses; one
      `ScheduleWarning` names the schedules whose body is not in the program (docs/tuning.md).
    - `target_cpu`: instruction sets that target `cpu` makes images for, such as `"x86-64-v3"` or `["x86-64-v4",
      "aarch64"]`; `"host"`, those of the architecture of this machine, is the default, and `"all"` are all.
    - `levels`: whether a target also gets programs for devices on which its best one does not run (docs/limits.md).
    - `quantized`: the arithmetic on quantized types (docs/numerics.md).
    - `lapack`: what becomes of calls of LAPACK (docs/library-calls.md).

    The module's digest is added to the user's trust store. Raises CompileError with everything that is wrong with the
    program (its subclass `TargetsError` if a target cannot compile it), if the source cannot be read, or if the module
    holds native code and the trust store cannot be written. Raises ArgumentTypeError or ArgumentValueError for wrong
    options.
    """
    from orchestrion.schema.container import open_bytes
    from orchestrion.schema.writer import write

    job = _job(options)
    rows = job.write_parameters(job.rows(read_source(source, args, kwargs)))
    blob = write(rows)
    job.vouch(open_bytes(blob).digest, holds_native_code(rows))
    return blob


def compile_to_file(
    source: Source,
    path: str | os.PathLike[str],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    **options: Unpack[CompileOptions],
) -> None:
    """Same as `compile`, but writes a file: the whole file, or nothing if CompileError or OSError is raised."""
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(f"the second argument is the path of the module, not of type {type(path).__name__}")
    _job(options).write(read_source(source, args, kwargs), path)


def holds_native_code(module: writer.Module) -> bool:
    """Whether a program of the module has a profile with native code, or an unknown profile."""
    try:
        return not all(holds_confined_code(known_profile(program.profile)) for program in module.programs)
    except CompileError:
        return True


def _wrong_attribute(key: str, value: str | bytes) -> str | None:
    """Why an attribute cannot be written; None if it can. Known attributes are text, others may be bytes."""
    if not isinstance(key, str) or not isinstance(value, str | bytes):
        return f"attribute {key!r} is {value!r}, a text or bytes expected"
    if "\0" in key:
        return f"the key of an attribute holds a NUL: {key!r}"
    return problem(key, value)


def _widened_by_dots(rows: Sequence[Machine]) -> frozenset[str]:
    """The narrow types that dots widen themselves on machines of these facts."""
    found = [row.pair_products for row in rows]
    return frozenset(name for name, widens in (("bf16", any(found)), ("f16", any(found) and all(found))) if widens)


def _job(given: CompileOptions) -> Compilation:
    """The compilation with options of `compile`. Raises ArgumentTypeError if one is unknown or of a wrong type."""
    known = CompileOptions.__annotations__
    if unknown := given.keys() - known:
        raise ArgumentTypeError(f"no option is called {', '.join(sorted(unknown))}; options are {', '.join(known)}")
    options = {name: _converted(name, value) for name, value in given.items() if not (value is None and name in _NONE)}
    return Compilation(**{"targets": default_targets(), **options}, may_leave_out="targets" not in options)


#: Options that may be None, which stands for the default.
_NONE: Final = ("targets", "attributes", "report", "parameters", "schedules")
#: Option -> its value in words, for messages.
_WORDS: Final[dict[str, str]] = {
    "attributes": "a dict of texts and numbers",
    "report": "a compiler.Report",
    "parameters": "the path of a file",
    "max_allocation": "a whole number of bytes",
    "schedules": "the path of a file",
}


def _converted(name: str, value: Any) -> Any:
    """An option of `compile` as a `Compilation` has it. Raises ArgumentTypeError for a type that would fail later."""
    match name, value:
        case "targets", _:
            return profile_names(value)
        case (("machines" | "parameter_arguments" | "target_cpu"), _):
            return names_in(value, name)
        case "attributes", Mapping():
            return {key: as_text(key, item) for key, item in value.items()}
        case "parameters", str() | os.PathLike():
            return Path(value)
        case "schedules", str() | os.PathLike():
            return _read_schedules(value)
        case "max_allocation", SupportsIndex():
            return index(value)
        case "report", _ if _is_report(value):
            return value
        case _ if name in _WORDS:
            raise ArgumentTypeError(f"{name}={value!r}: {_WORDS[name]} expected")
        case _:
            return value


def _is_report(given: object) -> bool:
    from orchestrion.compiler.placement import Report

    return isinstance(given, Report)


def _read_schedules(path: str | os.PathLike[str]) -> ScheduleFile:
    from orchestrion.compiler.targets import schedule_file

    return schedule_file.read(path)


@dataclass(frozen=True)
class Compilation(Settings):
    """A compilation with its options; see `compile` for those of the same names.

    `targets` are profiles. `may_leave_out`: leave out targets that cannot compile the program as long as one can.
    `warn` is called with a text about all of them, and with one about unused schedules, each with the class of the
    warning. `start`: the phase of the source. `embed_ir`: keep the text of phase `EMBEDDED` in a debug segment of the
    module, for code generation. `dump`: a folder for the text of each phase. `print_after`: names of
    passes after which the IR is printed to `stream`. `steps` is notified of each step.
    """

    targets: tuple[str, ...] = tuple(PROFILES)
    start: str = FIRST_PHASE
    embed_ir: bool = False
    dump: Path | None = None
    print_after: tuple[str, ...] = ()
    attributes: Mapping[str, str | bytes] = field(default_factory=dict)
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    report: Report | None = None
    parameters: Path | None = None
    schedules: ScheduleFile | None = None
    levels: str = "all"
    may_leave_out: bool = False
    warn: Callable[[str, type[Warning]], None] = warn
    _debug: dict[str, bytes] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if not self.targets:
            raise ArgumentValueError(f"no target is given; targets are {', '.join(PROFILES)}")
        for name in self.targets:
            if name not in PROFILES:  # a package must declare both the profile and its target
                from orchestrion.compiler.targets.target import target

                known_profile(name)
                target(name)
        if len(set(self.targets)) != len(self.targets):
            raise ArgumentValueError(f"a target is given twice: {', '.join(self.targets)}")
        for name, row in CHOICES.items():
            if getattr(self, name) not in row.values:
                raise ArgumentValueError(f"{name} is {getattr(self, name)!r}, one of {', '.join(row.values)} expected")
        self._check_machines()
        levels_named(self.target_cpu)
        if self.max_allocation < 1:
            raise ArgumentValueError(f"the largest allocation is {self.max_allocation} bytes, 1 or more expected")
        wrong = [why for key, value in self.attributes.items() if (why := _wrong_attribute(key, value))]
        if wrong:
            raise ArgumentValueError("; ".join(wrong))
        passes_named(self.print_after)
        if "hl_seq" not in phases_between(self.start, LAST_PHASE) and self.machines != (DEFAULT,):
            raise ArgumentValueError(f"the text of phase {self.start} already states the machines of its programs")
        if self.report is not None and self.start in PHASES_WITHOUT_SOURCE_OPS:
            raise ArgumentValueError(f"the text of phase {self.start} has no ops of a source that could be reported")
        if self.schedules is not None and self.start in PHASES_WITHOUT_SOURCE_OPS:
            raise ArgumentValueError(f"the text of phase {self.start} already states the schedules of its entries")
        if self.embed_ir and EMBEDDED not in (self.start, *phases_between(self.start, LAST_PHASE)):
            raise ArgumentValueError(f"the text of phase {self.start} has no IR of phase {EMBEDDED} to embed")
        if self.start != FIRST_PHASE and self.parameter_arguments:
            raise ArgumentValueError(f"the text of phase {self.start} already states its parameters")

    def _check_machines(self) -> None:
        given = ", ".join(self.machines)
        for name in self.machines:
            if name not in MACHINES:
                self._check_declared_machine(name)
        if not self.machines or len(set(self.machines)) != len(self.machines):
            raise ArgumentValueError(f"machines are given as [{given}]: expected one or more, each once")
        if DEFAULT in self.machines[:-1]:
            raise ArgumentValueError(
                f"machines are given as [{given}]: {DEFAULT} must be the last one, because every device runs it"
            )

    def _machine_rows(self) -> list[Machine]:
        """The facts about the machines of all targets."""
        from orchestrion.compiler.targets.target import target

        rows = [target(name).machine(machine) for name in self.targets for machine in self.machines]
        return [row for row in rows if row is not None]

    def _check_declared_machine(self, machine: str) -> None:
        """Checks the machine of another package: the package declares it, each target with machines has a row for it
        (one target at least, if targets were not given), and it is the only machine, since no feature tells devices
        which of several programs to choose.
        """
        from orchestrion.compiler.targets.target import target
        from orchestrion.schema.plugins import declared

        if machine not in declared("orchestrion.machines"):
            names = [*MACHINES, *declared("orchestrion.machines")]
            raise ArgumentValueError(f"no machine is called {machine}; there are {', '.join(names)}")
        tuned = [name for name in self.targets if target(name).machines]
        without = [name for name in tuned if target(name).machine(machine) is None]
        if without and (without == tuned or not self.may_leave_out):
            raise ArgumentValueError(f"machine {machine} has no row for target {', '.join(without)}")
        if len(self.machines) > 1:
            raise ArgumentValueError(
                f"machine {machine} of another package must be the only one: devices cannot choose between several"
            )

    def rows(self, source: Source | SourceContent) -> writer.Module:
        """Compiles to the rows of a module file, which `schema.writer` writes. Raises CompileError."""
        from orchestrion.compiler.bytecode.serialize import module_rows

        with collection_paused():
            module = self.module(source, LAST_PHASE)
            with self.steps.step(LAST_PHASE, "encode"):
                rows = module_rows(module)
        return replace(rows, attributes={**rows.attributes, **self.attributes}, debug=self._debug)

    def write(self, source: Source | SourceContent, path: str | os.PathLike[str]) -> str | None:
        """Compiles and writes the module's file. Returns the warning of `vouch`. Raises CompileError or OSError."""
        from orchestrion.schema.writer import write_file

        if self.parameters is not None and os.path.realpath(self.parameters) == os.path.realpath(path):
            raise ArgumentValueError(f"{path}: module and parameters cannot go to one file")
        rows = self.rows(source)
        with self.steps.step(LAST_PHASE, "write"):
            rows = self.write_parameters(rows)
            return self.vouch(write_file(path, rows), holds_native_code(rows))

    def write_parameters(self, rows: writer.Module) -> writer.Module:
        """Writes the file of parameters, if one is wanted. Returns the module that names it."""
        from orchestrion.compiler.bytecode.parameter_file import write_parameters

        return write_parameters(rows, self.parameters)

    def vouch(self, digest: bytes, native: bool) -> str | None:
        """Records the module in the user's trust store. `native`: whether it holds native code.

        From `ll_seq` on, the text holds a memory layout or code that somebody else may have written; such modules are
        not recorded. Returns a warning for the user, or None. Raises CompileError if the module holds native code and
        the store cannot be written.
        """
        if self.start not in list(PHASES)[: list(PHASES).index(FIRST_UNTRUSTED_PHASE)]:
            if not native:
                return None
            return (
                f"the text of phase {self.start} may hold native code made elsewhere: the module is not put into the "
                "trust store"
            )
        from orchestrion.schema.trust.store import SharedFolder, TrustStore

        try:
            TrustStore().add(digest)
        except (OSError, RuntimeError, SharedFolder) as error:
            what = f"the module's digest cannot be put into the trust store: {error}"
            if native:
                raise CompileError(what) from None
            return f"{what}; the module runs with the limits of one that is not trusted"
        return None

    def text(self, source: Source, stop: str) -> str:
        """The text of a phase; continuing from it gives the same bytes."""
        return print_module(self.module(source, stop))

    def module(self, source: Source | SourceContent, stop: str) -> Module:
        """The IR after the phase `stop`. Raises CompileError."""
        try:
            with self.steps.step(self.start, "read"):
                given = source if isinstance(source, SourceContent) else read_source(source)
            return self._of_able_targets(given, stop)
        except MemoryError:
            raise CompileError("not enough memory for the program's constants") from None
        except RecursionError:  # passes recurse into regions; the parser limits their depth, not that of the caller
            raise CompileError(
                "the program is nested too deeply for Python's recursion limit, or compile was called at a great depth"
            ) from None

    def _of_able_targets(self, given: SourceContent, stop: str) -> Module:
        """The module for the targets that can compile the program, if others may be left out.

        The program is compiled again without the others, so that the bytes are the same as if the caller had named only
        the able targets. Text of a later phase states its programs itself.
        """
        job, refusals = self, dict[str, tuple[Diagnostic, ...]]()
        while True:
            try:
                module = job._module(given, stop)
            except TargetsError as error:
                refusals |= error.refusals
                forms = "hl_seq" in phases_between(self.start, stop)
                if forms and all(known_profile(name).level_of in job.targets for name in error.refusals):
                    job = replace(job, levels="first")
                    continue
                kept = tuple([name for name in job.targets if name not in refusals])
                if not (self.may_leave_out and kept and forms):
                    raise TargetsError(refusals) from None
                job = replace(job, targets=kept)
                continue
            if refusals:
                self.warn(left_out_text(refusals, job.targets), TargetWarning)
                if self.report is not None:
                    from orchestrion.compiler.provenance import refusal_rows

                    self.report.left_out = refusal_rows(refusals)
            return module

    def _module(self, given: SourceContent, stop: str) -> Module:
        phases = phases_between(self.start, stop)
        with self.steps.step(self.start, "parse"):
            module = self._parsed(given, phases)
        if self.dump is not None:
            self._make_folder()
        self._after_phase(self.start, module)
        recorder = self._recorder(module)
        schedules, rows = self._saved_schedules(), self._machine_rows()
        shared = {row.name: getattr(self, row.name) for row in fields(Settings)}
        shared["targets"] = with_levels(self.targets) if self.levels == "all" else self.targets
        options = Options(
            **shared,
            recorder=recorder,
            parameters=self.parameters is not None,
            schedules=schedules,
            float_sums=all(row.float_sums for row in rows),
            widened_by_dots=_widened_by_dots(rows),
        )
        with collection_paused():
            try:
                if schedules is not None and self.start == SCHEDULED:
                    next(row for row in passes_of(SCHEDULED) if row.name == "choose-schedules").run(module, options)
                run_phases(module, phases, options, self._after_pass(recorder), self._after_phase)
            except CompileError as error:
                if recorder is not None:
                    recorder.failed(error)
                raise
        if schedules is not None and SCHEDULED in (self.start, *phases):
            self._warn_of_unused(schedules, module)
        return module

    def _saved_schedules(self) -> SavedSchedules | None:
        """The schedules of the file, of which nobody has taken any."""
        if self.schedules is None:
            return None
        from orchestrion.compiler.targets.schedule_file import SavedSchedules

        return SavedSchedules(self.schedules)

    def _warn_of_unused(self, schedules: SavedSchedules, module: Module) -> None:
        """Warn of schedules that no body of the module's programs has."""
        from orchestrion.compiler.sequencer.hl_seq import TargetProgram

        programs = [(op.profile, op.machine_name) for op in module.block.of(TargetProgram)]
        if text := schedules.unused_text(programs):
            self.warn(text, ScheduleWarning)

    def _parsed(self, given: SourceContent, phases: Sequence[str]) -> Module:
        """The source as IR of the phase `start`."""
        if self.start == FIRST_PHASE and start_reader(given):
            for row in (row for phase in phases for row in passes_of(phase)):
                row.run  # noqa: B018  imported while the child process starts
        return load_module(given) if self.start == FIRST_PHASE else self._continued(given)

    def _recorder(self, module: Module) -> Recorder | None:
        """The recorder that fills the report; None without a report."""
        if self.report is None:
            return None
        from orchestrion.compiler.provenance import Recorder

        made = Recorder(self.report, self.targets)
        made.start(module)
        return made

    def _continued(self, given: SourceContent) -> Module:
        """Parses IR of a later phase, as generic text."""
        if given.kind != "generic":
            raise CompileError(f"{given.name}: the phase {self.start} is read from generic text only")
        module = parse(given.data, given.name)
        check_input(module)
        check_phase(module, self.start)
        return module

    def _make_folder(self) -> None:
        assert self.dump is not None
        try:
            self.dump.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CompileError(f"{self.dump}: {error.strerror}") from None

    def _after_phase(self, phase: str, module: Module) -> None:
        if self.embed_ir and phase == EMBEDDED:
            self._debug[EMBEDDED_NAME] = print_module(module).encode()
        if self.dump is not None:
            _write_text(self.dump / f"{list(PHASES).index(phase)}-{phase}.mlir", print_module(module))

    def _after_pass(self, recorder: Recorder | None) -> AfterPass:
        def after(row: Pass, module: Module) -> None:
            if row.name in self.print_after:
                print(f"// IR after {row.name} ({row.phase})", file=self.stream)
                print(print_module(module), end="", file=self.stream)
            if recorder is not None:
                recorder.after_pass(row, module)

        return after


def _write_text(place: Path, text: str) -> None:
    """Writes the whole text, or raises CompileError and leaves nothing: half of it could be mistaken for the phase."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(place)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CompileError(f"{place}: could not be written: {error.strerror}") from None
