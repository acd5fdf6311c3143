"""The result of `vm-pack lint` as plain data: for `--json`, for the reviewer's page, and for the printed lines.

The same file and options give the same data: it contains no times and no paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from orchestrion.schema.attributes import KNOWN, LIMITS_PREFIX
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.tools import dump
from orchestrion.tools.packing.module_parts import all_variants, constants_of

from .profiles import LintProfile
from .rules import ERROR, WARNING, Verdict
from .subject import LintSubject, kind_name

#: version of this form; adding a field does not change it
VERSION = 1

Report = dict[str, Any]

#: ability -> the rules that exclude it if they hold
_ABILITIES = (
    ("run native code of the processor or the graphics driver's language", ("native-code",)),
    ("call functions of libraries that are installed", ("library-calls",)),
    ("call functions of the app or the system beside those listed", ("imports",)),
    ("read or write memory other than its own buffers", ("bytecode", "device-code", "native-code", "library-calls")),
    ("open files, connect to a network or start processes", ("imports", "native-code", "library-calls")),
    ("take more memory, instructions or build time than declared", ("limits-declared", "limits-known")),
)


def report(
    name: str, data: memoryview, profile: LintProfile, verdicts: Sequence[Verdict], subject: LintSubject | None
) -> Report:
    """The report. `name`: that of the file, without folders; `data`: its bytes; `subject`: None if the file does not
    open.
    """
    broken = [row for row in verdicts if row.findings]
    errors = sum(row.severity == ERROR for row in broken)
    warnings = sum(row.severity == WARNING for row in broken)
    holding = {row.rule.id for row in verdicts if row.judged and not row.findings}
    return {
        "version": VERSION,
        "file": name,
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
        "profile": {"name": profile.name, "doc": profile.doc},
        "passed": not errors,
        "errors": errors,
        "warnings": warnings,
        "rules": [_rule(row) for row in verdicts],
        "cannot": [
            {"what": what, "holds": holding.issuperset(rules), "rules": list(rules)} for what, rules in _ABILITIES
        ]
        + [_unchanged(holding, subject)],
        "module": None if subject is None else _module(subject),
    }


def _unchanged(holding: set[str], subject: LintSubject | None) -> Report:
    """Whether the module can change unnoticed. An unverified signature proves nothing."""
    verified = subject is not None and subject.signature.verified
    rules = ("digests", "signed")
    return {"what": "be changed without notice", "holds": verified and holding.issuperset(rules), "rules": list(rules)}


def _rule(row: Verdict) -> Report:
    verdict = ("broken" if row.findings else "holds") if row.judged else "not judged"
    return {
        "id": row.rule.id,
        "severity": row.severity,
        "verdict": verdict,
        "what": row.rule.what,
        "why": row.rule.why,
        "mend": row.rule.mend,
        "findings": list(row.findings),
    }


def _module(subject: LintSubject) -> Report:
    module = subject.module
    described = dump.describe(module)
    return {
        "digest": module.container.digest.hex(),
        "format": described["format"],
        "producer": described["producer"],
        "attributes": {key: _text(subject.attributes.get(key)) for key in KNOWN if key.startswith("model.")},
        "limits": {LIMITS_PREFIX + name: _text(value) for name, value in subject.limits.items()},
        "exports": [{"signature": dump.signature(row), "doc": row["doc"]} for row in described["exports"]],
        "imports": [
            {"name": name, "does": HAL_IMPORTS[name].doc if name in HAL_IMPORTS else "is not part of Orchestrion"}
            for name in (module.strings[row.name] for row in module.imports)
        ],
        "programs": _programs(subject),
        "segments": [
            {"kind": kind_name(row.kind), "bytes": row.size, "sha256": row.digest.hex(), "in_file": bool(span[0])}
            for row, span in zip(module.segments, module.container.spans, strict=True)
        ],
        "signature": subject.signature.text,
    }


def _programs(subject: LintSubject) -> list[Report]:
    module = subject.module
    there = {ordinal for ordinal, _, _ in subject.programs}
    found = []
    for ordinal, row in enumerate(module.programs):
        variants = [variant for _, variant in all_variants(module, row) if not module.missing(variant.payload)]
        found.append(
            {
                "name": module.strings[row.name],
                "profile": module.strings[row.profile],
                "in_file": ordinal in there,
                "formats": sorted({module.strings[variant.format] for variant in variants}),
                "code_bytes": sum(module.segments[at].size for at in {variant.payload for variant in variants}),
                "constant_bytes": sum(module.segments[at].size for at in constants_of(module, row)),
            }
        )
    return found


def _text(value: str | bytes | None) -> str | None:
    return value if value is None or isinstance(value, str) else f"{len(value)} bytes"


def lines(found: Report) -> list[str]:
    """The lines for a terminal: each violation, then the sum."""
    shown = [
        f"{row['severity']} {row['id']}: {text}"
        for row in found["rules"]
        if row["verdict"] == "broken"
        for text in row["findings"]
    ]
    judged = sum(row["verdict"] != "not judged" for row in found["rules"])
    word = "passes" if found["passed"] else "fails"
    return [
        *shown,
        f"{found['file']} {word} {found['profile']['name']}: {count(found['errors'], 'error')}, "
        f"{count(found['warnings'], 'warning')}, {judged} of {len(found['rules'])} rules judged",
    ]


def count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
