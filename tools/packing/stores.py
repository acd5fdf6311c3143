"""The folders that the tools of app stores take, and those limits of the stores that can be checked here.

    play-ai-pack       NAME/build.gradle, NAME/src/main/assets/NAME[#group_G]/..., device_targeting_config.xml
    apple-asset-pack   Manifest.json for `xcrun ba-package`, NAME/...

`PLAY` and `APPLE` hold the limits, with the pages they come from. Packs hold data: native code is refused, and so is
everything that could not be loaded on the devices of the pack. Nothing is uploaded, and the store makes the final
decision.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from orchestrion.schema.files import write_whole
from orchestrion.schema.profiles import FORMATS, PROFILES
from orchestrion.schema.shipping import bundle
from orchestrion.schema.shipping.manifest import write_manifest
from orchestrion.tools import cli

from .bundling import BundleContents, Item, entries, signed, thinned
from .device_groups import Group, default_groups, read_groups, targeting, whole_programs

# https://developer.android.com/google/play/on-device-ai
PLAY_BYTES = 1_500_000_000  #: of one AI pack, as it is downloaded, compressed
PLAY_APP_BYTES = 1_000_000_000  #: above this an app needs minSdk 21
_PLAY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)

# https://developer.apple.com/help/app-store-connect/reference/apple-hosted-asset-pack-size-limits
APPLE_BYTES = 200_000_000_000  #: of all asset packs of an app, compressed
APPLE_PLATFORMS = ("iOS", "iPadOS", "macOS", "tvOS", "visionOS")
_APPLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_EVENTS = {"installationEventTypes": ["firstInstallation", "subsequentUpdate"]}
APPLE_POLICIES: Mapping[str, Mapping[str, object]] = {
    "essential": {"essential": _EVENTS},
    "prefetch": {"prefetch": _EVENTS},
    "on-demand": {"onDemand": {}},
}

_BUILD = """plugins {{
    id 'com.android.ai-pack'
}}

aiPack {{
    packName = "{name}"
    dynamicDelivery {{
        deliveryType = "{delivery}"
    }}
}}
"""


class Tree(NamedTuple):
    """The output. `files` are path in the output folder -> content, in order."""

    files: dict[str, bytes | memoryview]

    def add(self, folder: str, items: Sequence[Item]) -> None:
        for item in items:
            self.files[f"{folder}/{item.name}"] = item.content


def play(options: argparse.Namespace, contents: BundleContents) -> None:
    """Writes a Gradle module with an AI pack, and the device targeting for the app's module."""
    name = _name(options.name or contents.title.replace("-", "_"), _PLAY_NAME, "Play")
    _only_data(contents)
    groups = read_groups(options.group) if options.group else default_groups(contents.manifest)
    tree = Tree({f"{name}/build.gradle": _BUILD.format(name=name, delivery=options.delivery).encode()})
    for group in groups:
        items = _items(contents, group.programs, options)
        _check_download(items, group.name)
        suffix = f"#group_{group.name}" if len(groups) > 1 or group.selectors else ""
        tree.add(f"{name}/src/main/assets/{name}{suffix}", items)
    if any(group.selectors for group in groups):
        tree.files["device_targeting_config.xml"] = targeting(groups).encode()
    _write(options.output, tree)
    for line in _play_steps(name, groups):
        print(line)


def _play_steps(name: str, groups: Sequence[Group]) -> Iterator[str]:
    """The remaining manual steps."""
    yield f'settings.gradle: include ":{name}"; build.gradle of the app: android.assetPacks = [":{name}"]'
    if any(group.selectors for group in groups):
        yield (
            "build.gradle of the app: android.bundle.deviceTargetingConfig = file('device_targeting_config.xml'), "
            'deviceGroup { enableSplit = true; defaultGroup = "other" }'
        )
        yield "gradle.properties: android.experimental.enableDeviceTargetingConfigApi=true"


def _check_download(items: Sequence[Item], group: str) -> None:
    """Play counts the downloaded size. A pack above the limit is compressed here to determine that size."""
    plain = sum(len(item.content) for item in items)
    size = plain
    if plain > PLAY_BYTES:
        size = sum(_deflated_size(item.content) for item in items)
    if size > PLAY_BYTES:
        raise cli.InputError(
            f"group {group} has {size} bytes to download, a pack of Play at most {PLAY_BYTES}: "
            "thin the module, or ship parameters in a pack of their own"
        )
    if plain > PLAY_APP_BYTES:
        print(f"group {group}: {plain:,} bytes: an app above 1 GB needs minSdk 21")


def _deflated_size(content: bytes | memoryview) -> int:
    """The size after the fastest deflate, an upper bound of the size after a store's compression."""
    stream = zlib.compressobj(1)
    size = sum(len(stream.compress(content[at : at + (1 << 20)])) for at in range(0, len(content), 1 << 20))
    return size + len(stream.flush())


def apple(options: argparse.Namespace, contents: BundleContents) -> None:
    """Writes a folder for `xcrun ba-package Manifest.json -o NAME.aar`, run in it."""
    name = _name(options.name or contents.title, _APPLE_NAME, "Apple")
    _only_data(contents)
    platforms = options.platforms.split(",")
    unknown = [platform for platform in platforms if platform not in APPLE_PLATFORMS]
    if unknown:
        raise cli.UsageError(f"--platforms: no {unknown[0]}; there are {', '.join(APPLE_PLATFORMS)}")
    items = _items(contents, None, options)
    size = sum(len(item.content) for item in items)
    if size > APPLE_BYTES:
        raise cli.InputError(f"the pack has {size} bytes; all packs of an app together have at most {APPLE_BYTES}")
    manifest = {
        "assetPackID": name,
        "downloadPolicy": APPLE_POLICIES[options.download],
        "fileSelectors": [{"directory": name}],
        "platforms": platforms,
    }
    tree = Tree({"Manifest.json": (json.dumps(manifest, indent=2) + "\n").encode()})
    tree.add(name, items)
    _write(options.output, tree)
    print(f"xcrun ba-package Manifest.json -o {name}.aar  (in {options.output})")


def _name(name: str, form: re.Pattern[str], store: str) -> str:
    if not form.fullmatch(name):
        raise cli.InputError(f"{name!r:.200} is no valid pack name for {store} ({form.pattern}): use --name")
    return name


def _only_data(contents: BundleContents) -> None:
    """Raises InputError for native code, which stores refuse in packs of data; the other formats are interpreted or
    verified.
    """
    there = whole_programs(contents.manifest)
    native = [row for row in there if not _is_confined(row.profile)]
    if native:
        kept = ",".join([row.profile for row in there if row not in native]) or "..."
        raise cli.InputError(
            f"program {native[0].name} is native code, which packs of the store may not hold: "
            f"vm-pack thin --target={kept} takes it out"
        )


def _is_confined(profile: str) -> bool:
    """Whether code for a profile of this package is confined. Code for other packages' profiles counts as native."""
    return profile in PROFILES and FORMATS[PROFILES[profile].format].confined


def _items(contents: BundleContents, programs: Sequence[str] | None, options: argparse.Namespace) -> list[Item]:
    """The files of a pack, the manifest first. `programs`: those that the module keeps, None for all."""
    if options.compress_code:
        raise cli.UsageError("--compress-code is for --layout=plain: stores compress what is downloaded")
    kept = contents if programs is None else thinned(contents, programs)
    items = [Item(bundle.MODULE, "module", kept.module.container.data), *kept.items]
    manifest = write_manifest(replace(kept.manifest, entries=tuple(entries(items))))
    first = [Item(bundle.MANIFEST, "", manifest)]
    if options.key:
        first.append(Item(bundle.MANIFEST_SIGNATURES, "", signed(manifest, options.key, options.password)))
    return [*first, *items]


def _write(folder: str, tree: Tree) -> None:
    """Writes a new folder. Raises InputError if it exists, because files of an earlier pack would stay in it."""
    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise cli.InputError(f"{folder} is there already and not an empty folder")
    for name, content in tree.files.items():
        target = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        write_whole(target, (content,), "could not be written")
