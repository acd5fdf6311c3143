"""vm-pack verify: checks that a file is complete, and signed by the required keys.

For a module every byte is checked: padding, root, directory, each segment by its digests, attachments and sections. So
is every byte of a bundle, whose module, manifest and parameters must all be signed. Any other file has its signatures
in a separate file, `--detached` or else FILE.sig.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrion.schema.printable import printable
from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

if TYPE_CHECKING:
    from orchestrion.schema.module import Module
    from orchestrion.schema.trust.policy import TrustPolicy
    from orchestrion.schema.trust.signers import Subject

#: kind of a file that is no module -> the scope that its signers must have
_SCOPES = {"params": "weights", "adapter": "weights", "delta": "code", "manifest": "code"}

EXAMPLES = (
    ("vm-pack verify signed.fb --key=key.pub.pem", "Checks every byte, and that this key signed the module."),
    (
        "vm-pack verify m.fb --policy=keys.toml --detached=m.sig",
        "Checks the rules of a keys file, with signatures in a file of their own.",
    ),
)


def add(subparsers: argparse._SubParsersAction[Parser]) -> None:
    made = cli.subcommand(subparsers, "verify", run, "Checks every byte of a file, and who signed it.", EXAMPLES)
    made.add_argument("file", metavar="F", help="a module, or another file that was signed")
    by = made.add_mutually_exclusive_group(required=True)
    by.add_argument(
        "--key", metavar="KEY.pub.pem", action="append", help="a key that must have signed; repeat for more"
    )
    by.add_argument("--policy", metavar="KEYS.toml", help="a keys file whose rules must hold, whatever its mode")
    made.add_argument("--detached", metavar="F", help="the file with the signatures, if they are not in the module")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.shipping.archive import is_archive

    from .signing import is_module

    policy = _policy(options)
    if is_module(options.file):
        verdict = verify_module(options, policy)
    elif is_archive(options.file):
        verdict = verify_bundle(options, policy)
    else:
        verdict = verify_file(options, policy)
    print(printable(f"{options.file}: {verdict}"))
    return cli.DONE


def verify_module(options: argparse.Namespace, policy: TrustPolicy) -> str:
    from orchestrion.schema.decoder import open_module
    from orchestrion.schema.trust import signature_set
    from orchestrion.vm.admission import parts_of, signature_sets, subject_of

    module = open_module(options.file)
    verify_contents(module)
    sets = signature_sets(module.container, options.detached)
    for data in sets:
        signature_set.decode(data)
    signers = _signers(policy, subject_of(module, parts_of(module.container)), sets, options)
    missing = sum(map(module.missing, range(len(module.segments))))
    gaps = f", {missing} of {len(module.segments)} segments taken out" if missing else ""
    return f"every byte is intact{gaps}, signed by {signers}"


def verify_bundle(options: argparse.Namespace, policy: TrustPolicy) -> str:
    """Checks every byte, and who signed the module, the manifest and each file of parameters."""
    from orchestrion.schema.shipping.bundle import open_bundle

    from .bundle import verify_facts

    if options.detached is not None:
        raise cli.UsageError(f"--detached: {options.file} is a bundle and has its signatures in it")
    found = open_bundle(options.file)
    found.verify()
    signers = verify_facts(found, policy)
    _require_keys(signers, options)
    return f"every byte is intact, {len(found.archive.entries)} entries, signed by {', '.join(signers)}"


def verify_contents(module: Module) -> None:
    """Checks everything in the file against the root and the directory. Raises ModuleError for damage."""
    from orchestrion.schema import sourcemap
    from orchestrion.schema.rows import NONE, SegmentKind
    from orchestrion.schema.trust.guard import verify_all

    verify_all(module)
    for ordinal, row in enumerate(module.segments):
        if row.kind == SegmentKind.Debug and row.name == NONE and not module.missing(ordinal):
            sourcemap.decode(module.container.segment(ordinal))
    for attachment in module.container.attachments:
        attachment.verified()


def verify_file(options: argparse.Namespace, policy: TrustPolicy) -> str:
    from orchestrion.schema.trust import signature_set
    from orchestrion.schema.trust.signers import Subject

    from .signing import of_file

    path = options.detached
    if path is None:
        path = f"{options.file}.sig"
        if not os.path.exists(path):
            raise cli.InputError(f"{options.file} is no module, and there is no {path}: --detached=F")
    data = cli.read_bytes(path)
    kind = signature_set.decode(data).kind
    if kind == "module":
        raise cli.InputError(f"{options.file} is no module, but {path} has the signatures of one")
    what = of_file(options.file, kind)
    return f"signed by {_signers(policy, Subject(kind, what.digest, frozenset([_SCOPES[kind]])), [data], options)}"


def _policy(options: argparse.Namespace) -> TrustPolicy:
    """The policy of the keys file, or one for the keys on the command line, which may sign anything."""
    from orchestrion.schema.errors import KeysError
    from orchestrion.schema.trust.keys import read_public
    from orchestrion.schema.trust.policy import SCOPES, TrustedKey, TrustPolicy

    if options.policy is not None:
        return TrustPolicy.read(options.policy)
    keys = []
    for path in options.key:
        try:
            keys.append(TrustedKey(path, read_public(cli.read_bytes(path)), frozenset(SCOPES)))
        except KeysError as error:
            raise cli.InputError(f"{path}: {error}") from None
    return TrustPolicy(tuple(keys))


def _signers(policy: TrustPolicy, subject: Subject, sets: list[bytes | memoryview], options: argparse.Namespace) -> str:
    """The names of the signers. Raises Untrusted if they do not suffice, or a `--key` is not among them."""
    from orchestrion.schema.errors import Untrusted
    from orchestrion.schema.trust.signers import examine

    trust = examine(policy, subject, sets)
    if trust.refusal:
        raise Untrusted(trust.refusal)
    _require_keys(trust.signers, options)
    return ", ".join(trust.signers)


def _require_keys(signers: Sequence[str], options: argparse.Namespace) -> None:
    """Raises Untrusted if a `--key` is not among the signers."""
    from orchestrion.schema.errors import Untrusted

    missing = [key for key in options.key or () if key not in signers]
    if missing:
        raise Untrusted(f"{options.file} is not signed by {', '.join(missing)}")
