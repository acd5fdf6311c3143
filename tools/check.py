"""vm-run --check: reports per device whether a module would run, using only the module, a bundle or a manifest."""

import argparse
from typing import TYPE_CHECKING

from orchestrion.schema.printable import printable

from . import cli

if TYPE_CHECKING:
    from orchestrion.hal.backend import DeviceInfo
    from orchestrion.schema.module import Module
    from orchestrion.schema.shipping.manifest import Manifest
    from orchestrion.schema.trust.policy import TrustPolicy

#: bytes that determine the kind of a file
_HEAD = 16


def run(options: argparse.Namespace) -> int:
    """Prints a line per device. Status 1 if the module runs on none of them."""
    from orchestrion.schema.errors import ModuleError
    from orchestrion.vm.check import Verdict, check, subject

    infos, missing = _devices(options.device)
    rules = _policy(options)
    sets = [] if options.signature is None else [cli.read_bytes(options.signature)]
    try:
        asked = subject(read(options.module), sets)
    except ModuleError as error:
        raise cli.InputError(f"{options.module}: {Verdict.NOT} on any device: {error}") from None
    answers = [check(asked, info, options.allow_native_code, options.native, rules) for info in infos]
    for line in (*map(str, answers), *missing):
        print(printable(line))
    if all(answer.verdict == Verdict.NOT for answer in answers):
        raise cli.InputError(f"{options.module} runs on none of {len(answers)} devices")
    return cli.DONE


def _policy(options: argparse.Namespace) -> "TrustPolicy | None":
    """The policy of the keys file of `--policy`."""
    from orchestrion.schema.trust.policy import TrustPolicy

    given = cli.policy(options).get("policy")
    return None if given is None else TrustPolicy.read(given)


def read(path: str) -> "Module | Manifest":
    """Reads a module, a bundle (its manifest), or a manifest, depending on the first bytes."""
    from orchestrion.schema.container import IDENTIFIER
    from orchestrion.schema.decoder import open_module
    from orchestrion.schema.files import open_regular
    from orchestrion.schema.shipping.bundle import open_bundle
    from orchestrion.schema.shipping.manifest import read_manifest

    with open(open_regular(path), "rb") as file:
        head = file.read(_HEAD)
    if head[8:12] == IDENTIFIER:
        return open_module(path)
    return open_bundle(path).manifest if head[:2] == b"PK" else read_manifest(cli.read_bytes(path))


def _devices(name: str | None) -> "tuple[list[DeviceInfo], list[str]]":
    """The device of that name, otherwise all that compute; and a text for each driver without devices."""
    from orchestrion.hal.registry import find_device, list_devices, load_driver

    if name is not None:
        return [find_device(name)[1]], []
    found = list_devices()
    infos = [
        info
        for driver in found
        if driver.devices and load_driver(driver.name).conformance.computes
        for info in driver.devices
    ]
    return infos, [f"{driver.name}: not available: {driver.reason}" for driver in found if not driver.devices]
