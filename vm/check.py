"""Predicts whether a module would run on a device, from the module or from its manifest, without loading it.

The program is the one that `load` would choose (`selection.py`). The verdict is that it would run, would run slower
than the module could run elsewhere, or would not run. A module and its manifest get the same verdict, since both are
judged by the manifest's data and by the rows that selection reads. Problems that only running shows are not predicted:
an initializer that fails, a driver that cannot build the code, memory that other programs hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from orchestrion.hal.backend import DeviceInfo, Entry
from orchestrion.hal.errors import InvalidArgument, LibraryUnavailable, PolicyRefused, Unsupported
from orchestrion.hal.executable import check_entries
from orchestrion.hal.libraries.registry import find
from orchestrion.hal.policy import Policy
from orchestrion.schema.errors import PluginError
from orchestrion.schema.module import Module
from orchestrion.schema.profiles import find_profile
from orchestrion.schema.shipping.manifest import MAX_ROWS, Executable, Manifest, Program, Variant
from orchestrion.schema.signature import parse_signature
from orchestrion.schema.tensor_bytecode import FORMAT
from orchestrion.schema.trust.policy import TrustPolicy
from orchestrion.schema.trust.signers import examine
from orchestrion.schema.versions import KNOWN_FEATURES, MAJOR, MINOR

from .errors import UnresolvedImport
from .module_manifest import manifest_of, rows_of, signed_subject
from .native import ImportRow, NativeModule, native_modules, resolve
from .selection import explain_programs, explain_variants

#: executables that the reasons name
_MAX_NAMED = 8


class Verdict(StrEnum):
    RUNS = "runs"
    SLOWER = "runs slower"
    NOT = "will not run"


class Answer(NamedTuple):
    """The verdict for a device. `program`: the name of the program that it gets, "" for none. `reasons`: why the
    verdict is not RUNS.
    """

    device: str
    verdict: Verdict
    program: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        program = f", program {self.program}" if self.program else ""
        reasons = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{self.device}: {self.verdict}{program}{reasons}"


class Subject(NamedTuple):
    """A module or manifest that is checked.

    `facts`: the manifest. `rows`: the rows from which `load` selects a program. `described`: the rows that the manifest
    gives. `problems`: a message for each malformed program, by its ordinal, and at -1 for malformed attributes that a
    policy reads.
    """

    facts: Manifest
    rows: Module
    described: Module
    problems: Mapping[int, str]


def subject(asked: Module | Manifest, sets: Sequence[bytes | memoryview] = ()) -> Subject:
    """The subject for a module or manifest. `sets`: signature sets of a module that are not in its file."""
    problems: dict[int, str] = {}
    facts = asked if isinstance(asked, Manifest) else manifest_of(asked, sets, problems)
    described = rows_of(facts)
    return Subject(facts, described if isinstance(asked, Manifest) else asked, described, problems)


def check(
    asked: Subject,
    info: DeviceInfo,
    allow_native_code: bool = False,
    natives: Sequence[NativeModule | str] = (),
    policy: TrustPolicy | None = None,
) -> Answer:
    """Predict what `vm.load` would do on the device `info`, with the same arguments.

    `ModuleError` if a manifest has an import with a malformed signature.
    """
    facts, rows = asked.facts, asked.rows
    if reason := _format(facts):
        return Answer(info.id, Verdict.NOT, "", (reason,))
    explained = explain_programs(rows, info)
    ordinal = next((at for at, (_, reason) in enumerate(explained) if not reason), None)
    if ordinal is None:
        reasons = [f"program {name} {reason}" for name, reason in explained] or ["the module holds no program"]
        return Answer(info.id, Verdict.NOT, "", tuple(reasons))
    program = facts.programs[ordinal]
    chosen = list(_chosen(asked, ordinal, info))
    blockers = [
        *([asked.problems[ordinal]] if ordinal in asked.problems else []),
        *_blockers(program, [variant for _, variant, _ in chosen], info, native_modules(natives)),
        *_policies(asked, [variant for _, variant, _ in chosen], allow_native_code, policy, info),
    ]
    if blockers:
        return Answer(info.id, Verdict.NOT, program.name, tuple(blockers))
    slower = (*_slower(facts.programs, ordinal, explained, info), *_later_variants(chosen))
    return Answer(info.id, Verdict.SLOWER if slower else Verdict.RUNS, program.name, slower)


def _format(facts: Manifest) -> str:
    """The reason why this version cannot read the file; empty if it can."""
    format = facts.format
    if format.major != MAJOR or format.minor > MINOR:
        return f"the module needs format {format.major}.{format.minor}, this version reads {MAJOR}.0 to {MAJOR}.{MINOR}"
    unknown = format.features & ~KNOWN_FEATURES
    return f"the module needs features {unknown:#x} of the format, which this version does not know" if unknown else ""


def _chosen(asked: Subject, ordinal: int, info: DeviceInfo) -> Iterator[tuple[Executable, Variant, str]]:
    """For each executable, the variant that the device gets, and why it does not get the first one."""
    rows = asked.described
    program = rows.programs[ordinal]
    executables = rows.executables[program.executables_start : program.executables_end]
    for row, fact in zip(executables, asked.facts.programs[ordinal].executables, strict=True):
        refusals = [reason for _, reason in explain_variants(rows, row, info)]
        place = refusals.index("")
        yield fact, fact.variants[place], "; ".join(dict.fromkeys(refusals[:place]))


def _blockers(
    program: Program, variants: Sequence[Variant], info: DeviceInfo, natives: Sequence[NativeModule]
) -> Iterator[str]:
    """The reasons why a program that the device can run by its features would still not run."""
    if program.constant_bytes > info.memory_bytes:
        yield f"its constants take {program.constant_bytes} bytes, the device has {info.memory_bytes}"
    try:
        check_entries(tuple(_largest_entries(program, variants)), info.limits)
    except Unsupported as error:
        yield str(error)
    imports = [ImportRow(row.name, parse_signature(row.signature), row.optional) for row in program.imports]
    try:
        resolve(imports, natives)
    except UnresolvedImport as error:
        yield str(error)
    for name in program.libraries:
        try:
            find(name)
        except (LibraryUnavailable, InvalidArgument) as error:
            yield str(error)


def _largest_entries(program: Program, variants: Sequence[Variant]) -> Iterator[Entry]:
    """Entries with the largest values of all entries, for `check_entries`, which knows the limits of devices."""
    most = program.most
    yield Entry(most.bindings_of, (("read", 0),) * min(most.bindings, MAX_ROWS), 0, (1, 1, 1))
    yield Entry(most.parameter_bytes_of, (), most.parameter_bytes // 4, (1, 1, 1))
    yield Entry(most.binding_bytes_of, (("read", most.binding_bytes),), 0, (1, 1, 1))
    for name, row in zip([row.name for row in program.executables], variants, strict=True):
        yield Entry(name, (), 0, (max(row.invocations, 1), 1, 1))


def _policies(
    asked: Subject, variants: Sequence[Variant], allow_native_code: bool, policy: TrustPolicy | None, info: DeviceInfo
) -> Iterator[str]:
    """The reasons why a policy refuses the module or its native code."""
    facts = asked.facts
    digest = bytes.fromhex(facts.file.digest)
    if policy is not None and policy.mode != "off":
        if -1 in asked.problems:
            yield asked.problems[-1]
        trust = examine(policy, signed_subject(facts), [bytes.fromhex(row) for row in facts.signatures])
        allow_native_code = allow_native_code or ("native" in trust.scopes and not trust.refusal)
        if trust.refusal and policy.mode == "require":
            yield trust.refusal
    for format in dict.fromkeys([row.format for row in variants]):
        try:
            Policy(allow_native_code).check(format, digest, info)
        except PolicyRefused as error:
            yield str(error)


def _slower(
    programs: Sequence[Program], ordinal: int, explained: Sequence[tuple[str, str]], info: DeviceInfo
) -> Iterator[str]:
    """The reasons why another program of the module would be faster. Programs are listed from best to worst."""
    for row, (name, reason) in zip(programs[:ordinal], explained, strict=False):
        if _format_of(row) in info.formats:
            yield f"program {name} {reason}"
    if _format_of(programs[ordinal]) == FORMAT:
        others = [row.name for row in programs if _format_of(row) not in (FORMAT, "")]
        faster = (
            f"; for other devices the module has {', '.join(others)}" if others else "; the module has no other program"
        )
        yield f"the device interprets its code with NumPy{faster}"


def _format_of(program: Program) -> str:
    """The format of a program's profile; empty if the profile is unknown or cannot be used."""
    try:
        profile = find_profile(program.profile)
    except PluginError:
        return ""
    return "" if profile is None else profile.format


def _later_variants(chosen: Sequence[tuple[Executable, Variant, str]]) -> Iterator[str]:
    """The reasons about executables of which the device does not get the first variant."""
    later = [(row, reason) for row, _, reason in chosen if reason]
    for row, reason in later[:_MAX_NAMED]:
        others = f" and {row.count - 1} more" if row.count > 1 else ""
        yield f"executable {row.name}{others} runs a later variant: {reason}"
    if len(later) > _MAX_NAMED:
        yield f"and {len(later) - _MAX_NAMED} kinds of executables more"
