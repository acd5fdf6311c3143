"""vm-pack bundle: packs a module and its files as one archive, or as the folders that a store's tool takes."""

import argparse
import os
from hashlib import sha256
from typing import TYPE_CHECKING

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

from .passwords import add_password

if TYPE_CHECKING:
    from orchestrion.schema.shipping.bundle import Bundle
    from orchestrion.schema.shipping.manifest import Manifest
    from orchestrion.schema.trust.policy import TrustPolicy

LAYOUTS = ("plain", "play-ai-pack", "apple-asset-pack")
DELIVERIES = ("install-time", "fast-follow", "on-demand")
POLICIES = ("essential", "prefetch", "on-demand")

EXAMPLES = (
    ("vm-pack bundle m.fb -o bundle.zip --parameters=weights.safetensors", "Packs a module with its weights."),
    ("vm-pack bundle m.fb -o pack --layout=play-ai-pack --name=speech", "Makes the folder of a Play AI pack."),
    ("vm-pack bundle bundle.zip --verify", "Checks every byte of a bundle."),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(
        subparsers, "bundle", run, "Packs a module with its parameters and papers, for a store.", EXAMPLES
    )
    made.add_argument("file", metavar="M.fb", help="the module; with --verify the bundle")
    made.add_argument("-o", dest="output", metavar="OUT", help="the archive; with --layout of a store a folder")
    made.add_argument("--verify", action="store_true", help="check every byte of a bundle against its manifest")
    made.add_argument("--policy", metavar="KEYS.toml", help="with --verify: keys that must have signed all of it")
    made.add_argument("--parameters", metavar="FILE", action="append", default=[], help="a file of parameters; repeat")
    made.add_argument("--licence", metavar="FILE", help="the licence of the model (default: that in the module)")
    made.add_argument("--model-card", metavar="FILE", help="the model card (default: that in the module)")
    made.add_argument("--detached", metavar="F", help="the module's signatures, where they lie in a file of their own")
    made.add_argument("--compress-code", action="store_true", help="deflate code; the module is unpacked before use")
    made.add_argument("--key", metavar="KEY.pem", action="append", default=[], help="sign the manifest; repeat")
    made.add_argument(
        "--model-signing-key", metavar="KEY.pem", help="sign OUT as OpenSSF Model Signing, into OUT.model.sig; P-256"
    )
    add_password(made, "a private key")
    made.add_argument("--layout", choices=LAYOUTS, default="plain", help="default: plain")
    _add_store_flags(made)


def _add_store_flags(made: Parser) -> None:
    made.add_argument("--name", metavar="NAME", help="the pack's name in the store (default: that of the model)")
    made.add_argument(
        "--delivery", choices=DELIVERIES, default="on-demand", help="of a Play AI pack (default: on-demand)"
    )
    made.add_argument(
        "--group",
        metavar="NAME:CONDITIONS",
        action="append",
        default=[],
        help="a device group of Play: programs=spirv,ram=4GB-8GB,soc=QTI/SM8750,device=google/husky,"
        "feature=android.hardware.vulkan.compute; repeat a name for devices that meet other conditions",
    )
    made.add_argument(
        "--download", choices=POLICIES, default="on-demand", help="policy of an Apple pack (default: on-demand)"
    )
    made.add_argument("--platforms", metavar="P,P", default="iOS", help="of an Apple pack (default: iOS)")


def run(options: argparse.Namespace) -> int:
    if options.verify:
        return verify(options)
    if options.output is None:
        raise cli.UsageError("-o OUT is missing")
    if options.group and options.layout != "play-ai-pack":
        raise cli.UsageError("--group needs --layout=play-ai-pack")
    from . import bundling, openssf, stores

    contents = bundling.collect(options)
    if options.layout == "plain":
        bundling.write(options.output, contents, options)
    elif options.layout == "play-ai-pack":
        stores.play(options, contents)
    else:
        stores.apple(options, contents)
    if options.model_signing_key is not None:
        print(openssf.sign(options.output, options.model_signing_key, options.password))
    return cli.DONE


def verify(options: argparse.Namespace) -> int:
    """Checks a bundle, or the folders of a store's layout; each file of these is compared with the
    manifest beside it.
    """
    from orchestrion.schema.shipping.bundle import MANIFEST, open_bundle, verify_folder
    from orchestrion.schema.trust.policy import TrustPolicy

    from . import openssf

    if options.policy is not None and os.path.isdir(options.file):
        raise cli.UsageError("--policy is for a bundle: vm-pack verify checks the signatures of single files")
    if os.path.isdir(options.file):
        folders = [folder for folder, _, names in os.walk(options.file) if MANIFEST in names]
        if not folders:
            raise cli.InputError(f"{options.file}: no folder in it has a {MANIFEST}")
        for folder in sorted(folders):
            print(f"{folder}: {len(verify_folder(folder).entries)} files are as the manifest says")
    else:
        found = open_bundle(options.file)
        found.verify()
        policy = None if options.policy is None else TrustPolicy.read(options.policy)
        signers = verify_facts(found, policy)
        signed = f", signed by {', '.join(signers)}" if signers else ""
        print(f"{options.file}: {len(found.archive.entries)} entries are as the manifest says{signed}")
    if options.model_signing_key is not None:
        openssf.verify(options.file, options.model_signing_key)
    return cli.DONE


def verify_facts(found: "Bundle", policy: "TrustPolicy | None") -> list[str]:
    """Checks that the manifest describes the module correctly, and who signed both. Returns the names of the signers.

    Raises ModuleError for a wrong manifest. With a policy, whatever its mode, raises Untrusted unless the module, the
    manifest and each file of parameters have a counting signature.
    """
    from dataclasses import replace

    from orchestrion.schema.decoder import read_module
    from orchestrion.schema.errors import ModuleError
    from orchestrion.schema.shipping.bundle import MODULE
    from orchestrion.vm.module_manifest import manifest_of

    from .bundling import mapped

    module = read_module(mapped(found.module_pieces()))
    name = MODULE + ".sig"
    sets = [bytes(found.content(name))] if name in found.archive.entries else []
    facts = replace(manifest_of(module, sets), entries=found.manifest.entries)
    if facts != found.manifest and found.manifest.manifest == facts.manifest:
        raise ModuleError("the manifest does not describe this module: vm-pack manifest writes a new one")
    return [] if policy is None else _signers(found, facts, policy)


def _signers(found: "Bundle", facts: "Manifest", policy: "TrustPolicy") -> list[str]:
    from orchestrion.schema.errors import Untrusted
    from orchestrion.schema.shipping.bundle import MANIFEST
    from orchestrion.schema.trust.signature_set import decode
    from orchestrion.schema.trust.signers import Subject, examine
    from orchestrion.vm.module_manifest import signed_subject

    parameters = [entry.name for entry in facts.entries if entry.role == "parameters"]
    asked = [(signed_subject(facts), [bytes.fromhex(row) for row in facts.signatures])]
    for name in (MANIFEST, *parameters):
        there = name + ".sig" in found.archive.entries
        sets = [bytes(found.content(name + ".sig"))] if there else []
        kind, scope = ("params", "weights") if name in parameters else ("manifest", "code")
        if sets and decode(sets[0]).kind == "adapter":
            kind = "adapter"
        asked.append((Subject(kind, sha256(found.content(name)).digest(), frozenset([scope])), sets))
    signers: set[str] = set()
    for subject, sets in asked:
        trust = examine(policy, subject, sets)
        if trust.refusal:
            raise Untrusted(trust.refusal)
        signers |= set(trust.signers)
    return sorted(signers)
