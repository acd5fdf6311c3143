"""What a trust policy admits has the root and the other parts that were signed, whatever else is done to the file."""

import importlib.util
import random
from functools import cache

from fuzzing import check

from orchestrion.schema import container
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import Attachment, Section
from orchestrion.schema.decoder import decode
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write

SECONDS = 2.0
POOL = (b"SIGN", b"NOTE", b"ORCS", b"ORSG", b"ORCD", bytes(32))
TEXT = """attribute "model.name" = "m" attribute "model.version" = "3"
export @f
program @p profile "reference" {
  constant @w : tensor<4xi8> = hex "01020304"
  func @f () -> i32 { %i0 = i32.const 7 return (%i0) }
  entry @f
}"""


def ready() -> str:
    return "" if importlib.util.find_spec("cryptography") else "cryptography is not installed"


@cache
def _signed():
    """Files with signatures, their container, and the policy under which they are admitted."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from orchestrion.schema.trust import keys
    from orchestrion.schema.trust.policy import TrustedKey, TrustPolicy
    from orchestrion.tools.packing.signing import signed_pieces

    secret = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    key = keys.read_private(keys.private_pem(keys.PrivateKey(keys.PublicKey(1, b"", b""), secret)))
    plain = container.open_bytes(write(assemble(TEXT)))
    parts = [Attachment("NOTE", b"text")], [Section("notes", b"more text")]
    segments = [plain.segment(ordinal) for ordinal in range(len(plain.spans))]
    rich = container.open_bytes(b"".join(container.build(plain.root, segments, *parts)))
    policy = TrustPolicy((TrustedKey("publisher", key.public),), minimum_versions={"m": 3})
    return [b"".join(signed_pieces(file, [key])) for file in (plain, rich)], plain.digest, policy


def seeds():
    files, _, _ = _signed()
    yield from files
    yield write(assemble(TEXT))


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Attachments and sections left out, doubled, exchanged, changed; a segment taken out."""
    try:
        file = container.open_bytes(data)
    except ModuleError:
        return data
    attachments, sections = list(file.attachments), list(file.sections)
    segments = [file.segment(ordinal) if at else None for ordinal, (at, _) in enumerate(file.spans)]
    rows = choose.choice((attachments, sections))
    match choose.randrange(5):
        case 0 if rows:
            rows.pop(choose.randrange(len(rows)))
        case 1 if rows:
            rows.insert(0, choose.choice(rows))
        case 2 if rows:
            at = choose.randrange(len(rows))
            rows[at] = rows[at]._replace(data=bytes(rows[at].data) + b"x", flags=0)
        case 3:
            attachments.append(Attachment(choose.choice(("SIGN", "NOTE", "more")), choose.randbytes(8)))
        case _:
            segments[choose.randrange(len(segments))] = None
    return b"".join(container.build(file.root, segments, attachments, sections))


def repair(data: bytes) -> bytes:
    try:
        return container.reseal(data)
    except ModuleError:
        return data


def one_input(data: bytes) -> None:
    from orchestrion.vm.admission import Admission, parts_of

    files, digest, policy = _signed()
    try:
        file = container.open_bytes(data)
        module = decode(file)
        Admission(policy).check(module)
    except ModuleError as error:
        check("\n" not in str(error), "an error of several lines")
        check(data not in files, "a signed file is refused")
        return
    check(file.digest == digest, "another root is admitted")
    known = {parts_of(container.open_bytes(one)) for one in files}
    check(parts_of(file) in known, "other attachments or sections are admitted")
    check(module.guard is not None, "no guard")
