"""Reports which parts of a module run on a device, and why: `Program.placement()`, and `explain` without loading.

    print(vm.load("model.fb", device="vulkan").placement().text())

`selection.py` chooses programs and variants, `hal/policy.py` permits code, and `load_facts.py` records builds. The
report shows their results and decides nothing. The source ops of each entry are read from the module's source map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.printable import printable
from orchestrion.schema.profiles import feature_names, find_profile

from .dispatches import dispatches
from .errors import shorten
from .selection import explain_programs, explain_variants

if TYPE_CHECKING:
    from orchestrion.hal.backend import DeviceInfo
    from orchestrion.hal.executable import Build
    from orchestrion.hal.policy import Policy
    from orchestrion.schema.module import Module
    from orchestrion.schema.rows import Executable, Program
    from orchestrion.schema.trust.signers import Trust

    from .load_facts import LoadFacts

#: version of the JSON form; new keys may be added without a new one
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program of the module. `runs`: whether it can run on the device. `reason`: why it cannot run, or why it was not
    chosen although it can; empty for the program that was chosen.
    """

    name: str
    target: str
    chosen: bool
    runs: bool
    reason: str


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A variant of an executable. `reason`: as in `Candidate`."""

    format: str
    features: tuple[str, ...]
    shared_memory_bytes: int
    chosen: bool
    reason: str


@dataclass(frozen=True, slots=True)
class DispatchRow:
    """An instruction that records a dispatch. `location`: of its main op in the source; empty if the module does not
    say.
    """

    function: str
    pc: int
    location: str


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry of an executable. `source_ops`: the ops of the source that it computes, the main one first; empty if the
    module does not say. `dispatches`: the instructions that record it, as far as `dispatches.py` finds them.
    """

    name: str
    workgroup_size: tuple[int, ...]
    source_ops: tuple[str, ...]
    dispatches: tuple[DispatchRow, ...]


@dataclass(frozen=True, slots=True)
class ExecutableRow:
    """An executable of the chosen program. `built`: how it was built, in words; empty if the module is not loaded."""

    name: str
    variants: tuple[VariantRow, ...]
    entries: tuple[EntryRow, ...]
    built: str


@dataclass(frozen=True, slots=True)
class Placement:
    """A module on a device.

    `program`: the name of the chosen program; empty if none runs. `trust`: whether the module is trusted, and why.
    `refusal`: why the policy refuses the program's code; empty if it does not. `derived`: the numbers of derived
    constants that were found in the user's cache and that were computed. `failure`: why loading failed. `signatures`:
    the signers that the trust policy of the load accepts, and whether they suffice; empty without a policy.
    """

    device: str
    device_name: str
    driver_version: str
    formats: tuple[str, ...]
    features: tuple[str, ...]
    digest: str
    programs: tuple[Candidate, ...]
    program: str
    trust: str
    refusal: str
    executables: tuple[ExecutableRow, ...]
    derived: tuple[int, int] = (0, 0)
    failure: str = ""
    signatures: str = ""

    def data(self) -> dict[str, Any]:
        """The report as data for JSON."""
        return {"version": VERSION, **asdict(self)}

    def text(self) -> str:
        """The report as text; ends with a line break."""
        return "\n".join(map(printable, _lines(self))) + "\n"


def explain(module: Module, info: DeviceInfo, policy: Policy, failure: str = "") -> Placement:
    """The placement of a module that is not loaded. `failure`: the error of a load that failed."""
    return _placement(module, info, policy, None, failure)


def loaded_placement(
    module: Module, info: DeviceInfo, policy: Policy, facts: LoadFacts, trust: Trust | None
) -> Placement:
    """The placement of a loaded module. `trust`: the result of its trust policy, None without one."""
    return replace(_placement(module, info, policy, facts, ""), signatures=_signatures(trust))


def _signatures(trust: Trust | None) -> str:
    if trust is None:
        return ""
    names, scopes = ", ".join(map(shorten, trust.signers)) or "nobody", ", ".join(sorted(trust.scopes)) or "nothing"
    return f"signed by {names} for {scopes}" + (f"; {trust.refusal}" if trust.refusal else "")


def _placement(module: Module, info: DeviceInfo, policy: Policy, facts: LoadFacts | None, failure: str) -> Placement:
    programs = tuple(_candidates(module, info))
    ordinal = next((number for number, row in enumerate(programs) if row.chosen), None)
    executables: tuple[ExecutableRow, ...] = ()
    refusal = ""
    if ordinal is not None:
        row = module.programs[ordinal]
        executables = tuple(_executables(module, ordinal, row, info, facts))
        profile = find_profile(module.strings[row.profile])
        assert profile is not None, "a program was chosen without a profile"
        refusal = policy.refusal(profile.format, module.container.digest, info) if executables else ""
    derived = list(facts.derived.values()) if facts is not None else []
    return Placement(
        device=info.id,
        device_name=info.name,
        driver_version=info.version,
        formats=info.formats,
        features=tuple(sorted(info.features)),
        digest=module.container.digest.hex(),
        programs=programs,
        program="" if ordinal is None else programs[ordinal].name,
        trust=policy.standing(module.container.digest),
        refusal=refusal,
        executables=executables,
        derived=(sum(derived), len(derived) - sum(derived)),
        failure=failure,
    )


def _candidates(module: Module, info: DeviceInfo) -> Iterator[Candidate]:
    """The programs of the module. The first one that can run is chosen, as in `selection.choose_program`."""
    first = ""
    for (name, reason), row in zip(explain_programs(module, info), module.programs, strict=True):
        chosen = not reason and not first
        why = reason or ("" if chosen else f"it would run, and {shorten(first)} stands in front of it")
        yield Candidate(shorten(name), shorten(module.strings[row.profile]), chosen, not reason, why)
        first = first or ("" if reason else name)


def _executables(
    module: Module, program: int, row: Program, info: DeviceInfo, facts: LoadFacts | None
) -> Iterator[ExecutableRow]:
    recorded = _recorded(module, program)
    for ordinal, executable in enumerate(module.executables[row.executables_start : row.executables_end]):
        name = shorten(module.strings[executable.name])
        variants = tuple(_variants(module, executable, info))
        built = "" if facts is None else _built(facts.builds.get(ordinal), facts)
        entries = tuple(
            replace(entry, dispatches=tuple(recorded.get((ordinal, number), ())))
            for number, entry in enumerate(_entries(module, program, ordinal, executable, variants))
        )
        yield ExecutableRow(name, variants, entries, built)


def _recorded(module: Module, program: int) -> dict[tuple[int, int], list[DispatchRow]]:
    """(executable, entry) -> the instructions that record it."""
    functions = module.functions[module.programs[program].functions_start :]
    found: dict[tuple[int, int], list[DispatchRow]] = {}
    try:
        for row in dispatches(module, program):
            location = shorten(module.location(program, row.function, row.pc) or "")
            name = shorten(module.strings[functions[row.function].name])
            found.setdefault((row.executable, row.entry), []).append(DispatchRow(name, row.pc, location))
    except ModuleError:  # unsound code, which does not load, or a damaged source map, without which it does
        return {}
    return found


def _variants(module: Module, row: Executable, info: DeviceInfo) -> Iterator[VariantRow]:
    """The variants of an executable. The first one that can run is chosen, as in `selection.choose_variant`."""
    first = ""
    for variant, reason in explain_variants(module, row, info):
        format, chosen = module.strings[variant.format], not reason and not first
        why = reason or ("" if chosen else f"it would run, and one of {first} stands in front of it")
        yield VariantRow(format, feature_names(variant.features), variant.shared_memory_bytes, chosen, why)
        first = first or ("" if reason else format)


def _entries(
    module: Module, program: int, ordinal: int, row: Executable, variants: tuple[VariantRow, ...]
) -> Iterator[EntryRow]:
    """The entries of an executable, with the workgroup sizes of the chosen variant; empty sizes without one."""
    chosen = next((number for number, variant in enumerate(variants) if variant.chosen), None)
    sizes: list[tuple[int, ...]] = []
    if chosen is not None:
        variant = module.variants[row.variants_start + chosen]
        sizes = [tuple(s) for s in module.workgroup_sizes[variant.workgroup_sizes_start : variant.workgroup_sizes_end]]
    for number, entry in enumerate(module.executable_entries[row.entries_start : row.entries_end]):
        try:
            ops = tuple(map(shorten, module.source_ops(program, ordinal, number)))
        except ModuleError:  # a damaged source map: the program runs without it
            ops = ()
        yield EntryRow(shorten(module.strings[entry.name]), sizes[number] if sizes else (), ops, ())


def _built(build: Build | None, facts: LoadFacts) -> str:
    """How an executable was built, in words."""
    if build is None:
        cached = ", where computed constants were found in the user's cache" if any(facts.derived.values()) else ""
        return f"not built: nothing needed it at load{cached}"
    if build.shared:
        return "built earlier in this process"
    cached = {True: ", found in the user's cache", False: ", not found in the user's cache", None: ""}[build.cached]
    if build.helper is None:
        return f"built in this process{cached}"
    first = f"in {build.helper:.2f} s" if build.helper else "by an earlier process"
    return f"built in a helper process first, {first}, then in this process{cached}"


def _lines(found: Placement) -> Iterator[str]:
    features = ", ".join(found.features) or "none"
    yield f"device {found.device}: {found.device_name}, {found.driver_version}"
    yield f"  runs {', '.join(found.formats) or 'nothing'}; features {features}"
    yield f"module {found.digest[:16]}: {found.trust}"
    if found.signatures:
        yield f"  {found.signatures}"
    for program in found.programs:
        yield f"  program {program.name}: {'chosen' if program.chosen else f'not chosen: {program.reason}'}"
    if found.refusal:
        yield f"  refused by the policy: {found.refusal}"
    if found.failure:
        yield from f"not loaded: {found.failure}".splitlines()
    if found.program:
        yield f"executables of {found.program}:"
    for executable in found.executables:
        yield from _executable_lines(executable)
    if any(found.derived):
        hits, misses = found.derived
        yield f"constants that initializers compute: {hits} found in the user's cache, {misses} computed"


def _executable_lines(row: ExecutableRow) -> Iterator[str]:
    chosen = next((variant for variant in row.variants if variant.chosen), None)
    wants = f" with {', '.join(chosen.features)}" if chosen is not None and chosen.features else ""
    which = "no variant runs" if chosen is None else f"{chosen.format}{wants}"
    yield f"  {row.name}: {which}" + (f"; {row.built}" if row.built else "")
    for variant in row.variants:
        if not variant.chosen:
            yield f"    variant not chosen: {variant.reason}"
    for entry in row.entries:
        size, ops = "x".join(map(str, entry.workgroup_size)), ", ".join(entry.source_ops)
        yield f"    entry {entry.name}, workgroups of {size}: {ops or 'the module does not say what it computes'}"
        for place in entry.dispatches:
            location = f": {place.location}" if place.location else ""
            yield f"      recorded by {place.function}, pc {place.pc:#x}{location}"
