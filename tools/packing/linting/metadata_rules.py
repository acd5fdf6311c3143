"""The lint rules about a module's metadata, and about other data in its file. Each yields a line per violation."""

import re
from collections.abc import Iterable, Iterator

from orchestrion.schema import container
from orchestrion.schema.attributes import KNOWN, LIMITS_PREFIX, VALUE_KINDS, is_value, problem, shown
from orchestrion.schema.rows import SegmentKind
from orchestrion.schema.segments import is_open

from .subject import LintSubject

#: absolute paths of folders in which modules are built, on POSIX, macOS and Windows; not preceded by another path
_PATH = re.compile(
    rb"(?<![\w)\]}.~/-])(?:file://)?/(?:home|Users|root|tmp|private|var|mnt|opt|usr|srv|build|builds|workspace)"
    rb"/[\w.@%+~/-]+"
    rb"|(?<![A-Za-z0-9])[A-Za-z]:[\\/]+(?:[\w.@%+~ -]+[\\/]+)+[\w.@%+~-]+"
)
#: attributes with text of the publisher, in which a path does not reveal a build
_PROSE = ("model.card", "model.licence")
_KNOWN_SEGMENTS = frozenset(SegmentKind)


def limits_declared(subject: LintSubject) -> Iterator[str]:
    for name in subject.profile.required:
        if name not in subject.limits:
            yield f"{LIMITS_PREFIX}{name} is not declared"


def limits_known(subject: LintSubject) -> Iterator[str]:
    for name, value in subject.limits.items():
        why = problem(LIMITS_PREFIX + name, value)
        if why is not None:
            yield why


def limits_within(subject: LintSubject) -> Iterator[str]:
    for name, most in subject.profile.limits.items():
        value = subject.limits.get(name)
        kind = KNOWN[LIMITS_PREFIX + name].kind
        if isinstance(value, str) and is_value(kind, value) and float(value) > most.value:
            yield f"{LIMITS_PREFIX}{name} is {value}, {most.value} is the most ({most.source})"


def signed(subject: LintSubject) -> Iterator[str]:
    if subject.signature.error is not None:
        yield subject.signature.error


def _check_attribute(subject: LintSubject, key: str) -> Iterator[str]:
    """Checks that an attribute exists, and is a valid value of its kind."""
    value = subject.attributes.get(key)
    row = KNOWN[key]
    if value is None:
        yield f"the attribute {key} is missing: {row.doc}"
    elif not is_value(row.kind, value):
        yield f"the attribute {key} is {shown(value)}, {VALUE_KINDS[row.kind]} expected"


def licence(subject: LintSubject) -> Iterator[str]:
    return _check_attribute(subject, "model.licence")


def model_card(subject: LintSubject) -> Iterator[str]:
    return _check_attribute(subject, "model.card")


def model_name(subject: LintSubject) -> Iterator[str]:
    return _check_attribute(subject, "model.name")


def model_version(subject: LintSubject) -> Iterator[str]:
    return _check_attribute(subject, "model.version")


def unknown_parts(subject: LintSubject) -> Iterator[str]:
    """Attachments and sections that this version does not know. No loader reads them, and `require` needs
    them signed.
    """
    file = subject.module.container
    for attachment in file.attachments:
        if attachment.tag not in container.ATTACHMENTS:
            yield f"attachment {attachment.tag!r} of {len(attachment.data)} bytes"
    for section in file.sections:
        if section.name not in container.SECTIONS:
            yield f"section {section.name!r} of {len(section.data)} bytes"


def custom_segments(subject: LintSubject) -> Iterator[str]:
    module = subject.module
    for ordinal, row in enumerate(module.segments):
        if row.kind == SegmentKind.Custom:
            yield f"segment {ordinal}, {module.strings[row.name]!r}, {row.size} bytes"
        elif row.kind not in _KNOWN_SEGMENTS:
            yield f"segment {ordinal} of the unknown kind {row.kind}, {row.size} bytes"


def open_parameters(subject: LintSubject) -> Iterator[str]:
    module = subject.module
    for row in module.constants:
        if is_open(module.segments[row.segment]):
            yield f"parameter {module.strings[row.name]}, {module.segments[row.segment].size} bytes"


def debug_segments(subject: LintSubject) -> Iterator[str]:
    spans = subject.module.container.spans
    for ordinal, row in enumerate(subject.module.segments):
        if row.kind == SegmentKind.Debug and spans[ordinal][0]:
            yield f"segment {ordinal}, {row.size} bytes"


def paths(subject: LintSubject) -> Iterator[str]:
    for place, data in _texts(subject):
        for text in dict.fromkeys(found[0] for found in _PATH.finditer(data)):
            yield f"{text.decode('utf-8', 'replace')} in {place}"


def _texts(subject: LintSubject) -> Iterable[tuple[str, bytes | memoryview]]:
    """The parts that may contain text of the compiler: strings, bytecode, attributes, and segments that are not
    weights.
    """
    module = subject.module
    yield "the module's strings", "\n".join(module.strings).encode()
    yield "the bytecode", module.bytecode
    for key, value in subject.attributes.items():
        if key not in _PROSE:
            yield f"attribute {key}", value.encode() if isinstance(value, str) else value
    for ordinal, row in enumerate(module.segments):
        if row.kind not in (SegmentKind.Constant, SegmentKind.Parameter) and module.container.spans[ordinal][0]:
            yield f"segment {ordinal}", module.segment(ordinal, verify=False)


def size(subject: LintSubject) -> Iterator[str]:
    most, found = subject.profile.size, len(subject.module.container.data)
    if most is not None and found > most.value:
        yield f"the file has {found} bytes, the limit is {most.value:.0f} ({most.source})"
