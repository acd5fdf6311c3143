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
        "a file that does not open cannot be judged, and no loader takes it",
        "download or compile it again",
        _nothing,
    ),
    Rule(
        "digests",
        ERROR,
        "every segment in the file has the digest that the root says, every attachment its checksum",
        "the digest of the root names the module only if its segments are what the root says",
        "download or compile it again",
        code.digests,
    ),
    Rule(
        "complete",
        ERROR,
        "a program has all of its segments in the file",
        "a file of which nothing can run is of no use to the app",
        "thin for a target that the module has (`vm-pack thin`)",
        code.complete,
    ),
    Rule(
        "bytecode",
        ERROR,
        "the bytecode of every program verifies",
        "the loader refuses bytecode that does not",
        "compile it again; report the compiler if it wrote this",
        code.bytecode,
    ),
    Rule(
        "device-code",
        ERROR,
        "all confined device code verifies: SPIR-V, tensor bytecode",
        "the loader refuses code that might reach outside of its buffers",
        "compile it again; report the compiler if it wrote this",
        code.device_code,
    ),
    Rule(
        "native-code",
        ERROR,
        "no program holds native code",
        "native code can do whatever the app can; stores forbid apps to download it",
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
        "compile without calls of libraries, or thin the programs away that have them",
        code.library_calls,
    ),
    Rule(
        "limits-declared",
        ERROR,
        "memory, fuel and build time are declared as limits",
        "a reviewer sees what the module takes at most, and the loader holds it to that",
        "`vm-compile --limit-memory= --limit-fuel= --limit-build-deadline=`",
        metadata.limits_declared,
    ),
    Rule(
        "limits-known",
        ERROR,
        "every declared limit is one that the loader knows, and well formed",
        "a limit that the loader passes over, or cannot read, limits nothing",
        "`vm-compile` writes limits that are known and well formed",
        metadata.limits_known,
    ),
    Rule(
        "limits-within",
        ERROR,
        "declared limits are within those of the profile",
        "a module that may take more than a phone gives gets the app ended by the system",
        "declare less, or make the model smaller",
        metadata.limits_within,
    ),
    Rule(
        "signed",
        ERROR,
        "the module is signed",
        "a signature is what an app checks before it loads what it downloaded",
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
        "a reviewer must learn what the model is for, and what it is not for",
        "`vm-compile --model-card=FILE`",
        metadata.model_card,
    ),
    Rule(
        "model-name",
        ERROR,
        "the model has a name",
        "a trust policy grants keys and forbids rollback by the model's name",
        "`vm-compile --model-name=NAME`",
        metadata.model_name,
    ),
    Rule(
        "model-version",
        ERROR,
        "the model has a version, a whole number",
        "without one an older, faulty model could be put in the place of a newer one",
        "`vm-compile --model-version=N`",
        metadata.model_version,
    ),
    Rule(
        "unknown-parts",
        ERROR,
        "every attachment and section is of a kind that is known",
        "what nobody reads can hide anything; loading under `require` refuses it unless it is signed",
        "leave them away when the file is put together",
        metadata.unknown_parts,
    ),
    Rule(
        "paths",
        ERROR,
        "no path of the machine that built the module is in the file",
        "paths tell names of people and machines, and make builds differ",
        "compile from a file with a relative name; `vm-pack strip` removes those in debug information",
        metadata.paths,
    ),
    Rule(
        "size",
        ERROR,
        "the file is no larger than the store takes",
        "the store refuses it otherwise",
        "thin it, keep weights outside of the module (`vm-pack parameters`), or quantise them",
        metadata.size,
    ),
    Rule(
        "debug-segments",
        WARNING,
        "no debug information is in the file",
        "it is of no use on a user's device, and shows how the model is built",
        "`vm-pack strip`",
        metadata.debug_segments,
    ),
    Rule(
        "custom-segments",
        WARNING,
        "no segment is of another tool, or of an unknown kind",
        "the loader passes over it; only who put it there can say what it is",
        "leave it away when compiling",
        metadata.custom_segments,
    ),
    Rule(
        "open-parameters",
        WARNING,
        "every parameter outside of the file is fixed by a digest",
        "without one, any weights of the right size may stand for it",
        "ship weights with a signature of their own, which the app's trust policy demands",
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
