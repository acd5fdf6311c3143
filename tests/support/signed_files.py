"""Signs a module's file through the signer's functions, for tests of other commands than `vm-pack sign`."""

from pathlib import Path

from orchestrion.schema import signature_set
from orchestrion.schema.container import Attachment, build, open_file
from orchestrion.tools.packing.signing import Signable, read_keys, sign_all


def sign_file(path: Path, key: Path, out: Path, detached: Path | None = None) -> None:
    """A copy of the file with a signature set; or, with `detached`, only the set in a file of its own."""
    file = open_file(path)
    signed = signature_set.encode(sign_all(Signable("module", file.digest), read_keys([str(key)], None)))
    if detached is not None:
        detached.write_bytes(signed)
        return
    segments = [file.segment(at) if span[0] else None for at, span in enumerate(file.spans)]
    attachments = [*file.attachments, Attachment("SIGN", signed)]
    out.write_bytes(b"".join(build(file.root, segments, attachments, file.sections)))
