"""Will it run here? What a device would do with a module, asked of the module or of its manifest, without loading.

The program is the one that `load` takes (`selection.py`), and it would run, would run slower than the module can, or
would not run. A module and its manifest get the same answer: both are judged by the manifest's facts and by rows that
selection reads. What only running shows (an initializer that fails, a driver that cannot build the code, memory that
others hold) is not seen here.
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

from .describe import describe, rows_of, signed_subject
from .errors import UnresolvedImport
from .native import ImportRow, NativeModule, native_modules, resolve
from .selection import explain_programs, explain_variants

#: executables that a reason names
_MOST_NAMED = 8


class Verdict(StrEnum):
    RUNS = "runs"
    SLOWER = "runs slower"
    NOT = "will not run"


class Answer(NamedTuple):
    """What a device would do; `program` is the one it gets, "" for none. `reasons` says why it is not plain RUNS."""

    device: str
    verdict: Verdict
    program: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        program = f", program {self.program}" if self.program else ""
        reasons = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{self.device}: {self.verdict}{program}{reasons}"


class Subject(NamedTuple):
    """What is asked about: facts, the rows by which `load` selects a program, and those that the facts give.

    `problems`: what is malformed, by the ordinal of the program; -1 for the attributes that a policy reads.
    """

    facts: Manifest
    rows: Module
    described: Module
    problems: Mapping[int, str]


def subject(asked: Module | Manifest, sets: Sequence[bytes | memoryview] = ()) -> Subject:
    """`sets`: signature sets of a module that are not in its file."""
    problems: dict[int, str] = {}
    facts = asked if isinstance(asked, Manifest) else describe(asked, sets, problems)
    described = rows_of(facts)
    return Subject(facts, described if isinstance(asked, Manifest) else asked, described, problems)


def check(
    asked: Subject,
    info: DeviceInfo,
    allow_native_code: bool = False,
    natives: Sequence[NativeModule | str] = (),
    policy: TrustPolicy | None = None,
) -> Answer:
    """What `vm.load` would do with the module on this device, given the same arguments.

    `ModuleError`: a manifest has an import whose signature is none.
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
    against = [
        *([asked.problems[ordinal]] if ordinal in asked.problems else []),
        *_against(program, [variant for _, variant, _ in chosen], info, native_modules(natives)),
        *_policies(asked, [variant for _, variant, _ in chosen], allow_native_code, policy, info),
    ]
    if against:
        return Answer(info.id, Verdict.NOT, program.name, tuple(against))
    slower = (*_slower(facts.programs, ordinal, explained, info), *_passed(chosen))
    return Answer(info.id, Verdict.SLOWER if slower else Verdict.RUNS, program.name, slower)


def _format(facts: Manifest) -> str:
    """Why this version cannot read the file at all."""
    format = facts.format
    if format.major != MAJOR or format.minor > MINOR:
        return f"the module needs format {format.major}.{format.minor}, this version reads {MAJOR}.0 to {MAJOR}.{MINOR}"
    unknown = format.features & ~KNOWN_FEATURES
    return f"the module needs features {unknown:#x} of the format, which this version does not know" if unknown else ""


def _chosen(asked: Subject, ordinal: int, info: DeviceInfo) -> Iterator[tuple[Executable, Variant, str]]:
    """Of each executable the variant that the device gets, and why it does not get the first one."""
    rows = asked.described
    program = rows.programs[ordinal]
    executables = rows.executables[program.executables_start : program.executables_end]
    for row, fact in zip(executables, asked.facts.programs[ordinal].executables, strict=True):
        refusals = [reason for _, reason in explain_variants(rows, row, info)]
        place = refusals.index("")
        yield fact, fact.variants[place], "; ".join(dict.fromkeys(refusals[:place]))


def _against(
    program: Program, variants: Sequence[Variant], info: DeviceInfo, natives: Sequence[NativeModule]
) -> Iterator[str]:
    """What keeps the program from running though the device has its features."""
    if program.constant_bytes > info.memory_bytes:
        yield f"its constants take {program.constant_bytes} bytes, the device has {info.memory_bytes}"
    try:
        check_entries(tuple(_extremes(program, variants)), info.limits)
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


def _extremes(program: Program, variants: Sequence[Variant]) -> Iterator[Entry]:
    """Entries with the greatest values of all entries, for the one check that knows the limits of devices."""
    most = program.most
    yield Entry(most.bindings_of, (("read", 0),) * min(most.bindings, MAX_ROWS), 0, (1, 1, 1))
    yield Entry(most.parameter_bytes_of, (), most.parameter_bytes // 4, (1, 1, 1))
    yield Entry(most.binding_bytes_of, (("read", most.binding_bytes),), 0, (1, 1, 1))
    for name, row in zip([row.name for row in program.executables], variants, strict=True):
        yield Entry(name, (), 0, (max(row.invocations, 1), 1, 1))


def _policies(
    asked: Subject, variants: Sequence[Variant], allow_native_code: bool, policy: TrustPolicy | None, info: DeviceInfo
) -> Iterator[str]:
    """Why the module, or its native code, may not run here."""
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
    """Why another program of the module would be faster. Programs stand best first."""
    for row, (name, reason) in zip(programs[:ordinal], explained, strict=False):
        if _format_of(row) in info.formats:
            yield f"program {name} {reason}"
    if _format_of(programs[ordinal]) == FORMAT:
        others = [row.name for row in programs if _format_of(row) not in (FORMAT, "")]
        faster = f"; for other devices there are {', '.join(others)}" if others else "; the module has no other program"
        yield f"the device interprets its code with NumPy{faster}"


def _format_of(program: Program) -> str:
    """The format of a program's profile; empty for a profile that is unknown or cannot be used."""
    try:
        profile = find_profile(program.profile)
    except PluginError:
        return ""
    return "" if profile is None else profile.format


def _passed(chosen: Sequence[tuple[Executable, Variant, str]]) -> Iterator[str]:
    """Executables whose best variant the device does not get."""
    passed = [(row, reason) for row, _, reason in chosen if reason]
    for row, reason in passed[:_MOST_NAMED]:
        others = f" and {row.count - 1} more" if row.count > 1 else ""
        yield f"executable {row.name}{others} runs a later variant: {reason}"
    if len(passed) > _MOST_NAMED:
        yield f"and {len(passed) - _MOST_NAMED} kinds of executables more"
