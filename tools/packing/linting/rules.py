"""The rules of `vm-pack lint`, one row each: what must hold, why, and how to fix a module that breaks it.

A rule's check yields a line for each violation. An error fails the module, a warning does not; a profile may turn a
rule into a warning. `sound` has no check: an invalid file does not open, and then no other rule is judged. Ids never
change.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from . import code_rules as code
from . import metadata_rules as metadata
from .subject import LintSubject

ERROR, WARNING = "error", "warning"
#: the most violations of one rule that are listed
MAX_LISTED = 20


class Rule(NamedTuple):
    """A rule. `what` must hold; `why` it matters to a store; `mend`: how the publisher fixes it."""

    id: str
    severity: str
    what: str
    why: str
    mend: str
    check: Callable[[LintSubject], Iterator[str]]


class Verdict(NamedTuple):
    """A verdict. `findings` is empty if the rule holds. `judged`: False if the file could not be opened."""

    rule: Rule
    severity: str
    findings: tuple[str, ...]
    judged: bool = True


def _nothing(subject: LintSubject) -> Iterator[str]:
    return iter(())


RULES: tuple[Rule, ...] = (
    Rule(
        "sound",
        ERROR,
        "the file is a sound module: container, root, padding",
        "a file that does not open cannot be checked, and no loader accepts it",
        "download or compile it again",
        _nothing,
    ),
    Rule(
        "digests",
        ERROR,
        "every segment in the file has its digest in the root, every attachment its checksum",
        "the digest of the root identifies the module only if its segments match the root",
        "download or compile it again",
        code.digests,
    ),
    Rule(
        "complete",
        ERROR,
        "a program has all of its segments in the file",
        "an app cannot run a file without a complete program",
        "thin for a target that the module has (`vm-pack thin`)",
        code.complete,
    ),
    Rule(
        "bytecode",
        ERROR,
        "the bytecode of every program verifies",
        "the loader refuses invalid bytecode",
        "compile it again; report the compiler if it wrote this",
        code.bytecode,
    ),
    Rule(
        "device-code",
        ERROR,
        "all confined device code verifies: SPIR-V, tensor bytecode",
        "the loader refuses code that might access memory outside its buffers",
        "compile it again; report the compiler if it wrote this",
        code.device_code,
    ),
    Rule(
        "native-code",
        ERROR,
        "no program holds native code",
        "native code can do anything that the app can; stores forbid apps to download it",
        "thin it away (`vm-pack thin --target=reference,spirv`), or compile for confined targets only",
        code.native_code,
    ),
    Rule(
        "imports",
        ERROR,
        "every imported function is on the allow-list of the profile",
        "an imported function is code of the app that the module can call with values of its choice",
        "compile without the custom calls that need it",
        code.imports,
    ),
    Rule(
        "library-calls",
        ERROR,
        "no device code calls library functions",
        "a library function is native code of the machine; which one runs depends on what is installed",
        "compile without library calls, or remove the programs that have them by thinning",
        code.library_calls,
    ),
    Rule(
        "limits-declared",
        ERROR,
        "memory, fuel and build time are declared as limits",
        "a reviewer sees the maximum resources of the module, and the loader enforces them",
        "`vm-compile --limit-memory= --limit-fuel= --limit-build-deadline=`",
        metadata.limits_declared,
    ),
    Rule(
        "limits-known",
        ERROR,
        "every declared limit is one that the loader knows, and well formed",
        "a limit that the loader ignores, or cannot read, has no effect",
        "`vm-compile` writes limits that are known and well formed",
        metadata.limits_known,
    ),
    Rule(
        "limits-within",
        ERROR,
        "declared limits are within those of the profile",
        "if a module takes more than a phone allows, the system ends the app",
        "declare less, or make the model smaller",
        metadata.limits_within,
    ),
    Rule(
        "signed",
        ERROR,
        "the module is signed",
        "an app checks the signature before it loads a downloaded module",
        "`vm-pack sign`",
        metadata.signed,
    ),
    Rule(
        "licence",
        ERROR,
        "a licence of the model is there",
        "a store must know that the publisher may distribute the model",
        "`vm-compile --licence=FILE`",
        metadata.licence,
    ),
    Rule(
        "model-card",
        ERROR,
        "a model card is there",
        "a reviewer must know the intended use of the model and its limits",
        "`vm-compile --model-card=FILE`",
        metadata.model_card,
    ),
    Rule(
        "model-name",
        ERROR,
        "the model has a name",
        "a trust policy accepts keys and refuses old versions by the name of the model",
        "`vm-compile --model-name=NAME`",
        metadata.model_name,
    ),
    Rule(
        "model-version",
        ERROR,
        "the model has a version, a whole number",
        "without one, an older, faulty model could replace a newer one",
        "`vm-compile --model-version=N`",
        metadata.model_version,
    ),
    Rule(
        "unknown-parts",
        ERROR,
        "every attachment and section is of a known kind",
        "unknown parts can hide any data; loading under `require` refuses them unless they are signed",
        "leave them out of the file",
        metadata.unknown_parts,
    ),
    Rule(
        "paths",
        ERROR,
        "no path of the build machine is in the file",
        "paths contain names of people and machines, and make builds differ",
        "compile from a file with a relative name; `vm-pack strip` removes those in debug information",
        metadata.paths,
    ),
    Rule(
        "size",
        ERROR,
        "the file is not larger than the store allows",
        "the store refuses it otherwise",
        "thin it, keep weights outside the module (`vm-pack parameters`), or quantise them",
        metadata.size,
    ),
    Rule(
        "debug-segments",
        WARNING,
        "no debug information is in the file",
        "it is not needed on the device of a user, and reveals the source of the model",
        "`vm-pack strip`",
        metadata.debug_segments,
    ),
    Rule(
        "custom-segments",
        WARNING,
        "no segment is of another tool, or of an unknown kind",
        "the loader skips it; only its author knows its meaning",
        "leave it out when compiling",
        metadata.custom_segments,
    ),
    Rule(
        "open-parameters",
        WARNING,
        "every parameter outside the file is fixed by a digest",
        "without one, any weights of the right size can replace it",
        "ship separately signed weights, and require the signature in the trust policy of the app",
        metadata.open_parameters,
    ),
)


def judge(subject: LintSubject) -> list[Verdict]:
    """The verdict on every rule, in the order of the table."""
    found = []
    for rule in RULES:
        lines = tuple(islice(rule.check(subject), MAX_LISTED + 1))
        if len(lines) > MAX_LISTED:
            lines = (*lines[:MAX_LISTED], "and more")
        found.append(Verdict(rule, severity_of(rule, subject.profile.warnings), lines))
    return found


def unsound(why: str) -> list[Verdict]:
    """The verdicts on a file that does not open."""
    return [Verdict(rule, rule.severity, (why,) if rule.id == "sound" else (), rule.id == "sound") for rule in RULES]


def severity_of(rule: Rule, warnings: frozenset[str]) -> str:
    return WARNING if rule.id in warnings else rule.severity
