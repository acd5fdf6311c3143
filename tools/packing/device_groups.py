"""Device groups of Google Play: which devices get which variant of a pack, in `device_targeting_config.xml`.

A group has a module with some of its programs. A device gets the first group with a selector that it matches, otherwise
the group `other`. It matches a selector if it meets all its conditions.

    --group=fast:programs=spirv,ram=6GB-,soc=QTI/SM8750 --group=fast:device=google/husky

https://developer.android.com/google/play/on-device-ai#device-targeting
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from orchestrion.schema.profiles import levels_of
from orchestrion.schema.shipping.manifest import Executable, Manifest, Program
from orchestrion.tools import cli

OTHER = "other"
MAX_SELECTORS, MAX_DEVICES, MAX_FEATURES = 5, 10_000, 100
NAMESPACE = "http://schemas.android.com/apk/config"
#: profile -> system features of Android devices that can run it
PROFILE_FEATURES: Mapping[str, tuple[str, ...]] = {"spirv": ("android.hardware.vulkan.compute",)}
#: constants may take 1/RAM_SHARE of a device's memory; every device that Play serves has at least LEAST_RAM bytes
RAM_SHARE, LEAST_RAM = 4, 2_000_000_000

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_RAM = re.compile(r"(?:([0-9]{1,6})(GB|MB))?-(?:([0-9]{1,6})(GB|MB))?", re.ASCII)
_UNITS = {"GB": 10**9, "MB": 10**6}


class Selector(NamedTuple):
    """Conditions that a device must all meet; `ram` is (at least, less than) in bytes, None without a bound."""

    ram: tuple[int | None, int | None] = (None, None)
    chips: tuple[tuple[str, str], ...] = ()
    devices: tuple[tuple[str, str], ...] = ()
    features: tuple[str, ...] = ()


class Group(NamedTuple):
    """A group. `programs` are the profiles that its module keeps; None for all. `other` has no selectors."""

    name: str
    programs: tuple[str, ...] | None
    selectors: tuple[Selector, ...]


def default_groups(manifest: Manifest) -> list[Group]:
    """A group per profile that not every device runs, with its further levels, in the order of the module's programs,
    and `other`.
    """
    rows = {row.profile: row for row in whole_programs(manifest)}
    levels = {profile: [level for level in levels_of(profile) if level in rows] for profile in PROFILE_FEATURES}
    special = {*levels, *chain(*levels.values())}
    common = tuple(profile for profile in rows if profile not in special)
    groups = [
        Group(profile, (profile, *levels[profile], *common), (_of_profile(row),))
        for profile, row in rows.items()
        if profile in PROFILE_FEATURES
    ]
    if not groups or not common:
        return [Group(OTHER, None, ())]
    return [*groups, Group(OTHER, common, ())]


def whole_programs(manifest: Manifest) -> list[Program]:
    """The programs whose required segments are all in the file."""
    return [row for row in manifest.programs if row.absent is None and all(map(_has_variant, row.executables))]


def _has_variant(row: Executable) -> bool:
    return any(variant.absent is None for variant in row.variants)


def _of_profile(row: Program) -> Selector:
    """Selects devices that meet the requirements of a program's profile, and have memory for its constants."""
    ram = RAM_SHARE * row.constant_bytes
    return Selector((ram if ram > LEAST_RAM else None, None), features=PROFILE_FEATURES[row.profile])


def read_groups(texts: Sequence[str]) -> list[Group]:
    """Parses the groups of `--group` flags, in order. Raises UsageError for one that Play would refuse."""
    groups: dict[str, Group] = {}
    for text in texts:
        name, colon, rest = text.partition(":")
        if not colon or not _NAME.fullmatch(name):
            raise cli.UsageError(f"--group={text!r:.200}: NAME:CONDITIONS wanted, the name of letters, digits and _")
        programs, selector = _selector(rest)
        before = groups.get(name, Group(name, None, ()))
        if programs and before.programs and programs != before.programs:
            raise cli.UsageError(f"--group: {name} has programs {','.join(before.programs)} already")
        selectors = (*before.selectors, selector) if selector != Selector() else before.selectors
        groups[name] = Group(name, programs or before.programs, selectors)
    found = list(groups.values())
    _check(found)
    return sorted(found, key=lambda group: group.name == OTHER)


def _check(groups: Sequence[Group]) -> None:
    for group in groups:
        if (group.name == OTHER) == bool(group.selectors):
            word = "has no conditions: it gets the other devices" if group.selectors else "has none"
            raise cli.UsageError(f"--group: {group.name} {word}")
        if len(group.selectors) > MAX_SELECTORS:
            raise cli.UsageError(f"--group: {group.name} has {len(group.selectors)} selectors, {MAX_SELECTORS} at most")
        devices = sum(len(row.devices) for row in group.selectors)
        features = sum(len(row.features) for row in group.selectors)
        if devices > MAX_DEVICES or features > MAX_FEATURES:
            raise cli.UsageError(f"--group: {group.name} has {devices} devices and {features} features")


def _selector(text: str) -> tuple[tuple[str, ...], Selector]:
    programs: list[str] = []
    ram: tuple[int | None, int | None] = (None, None)
    pairs: dict[str, list[tuple[str, str]]] = {"soc": [], "device": []}
    features: list[str] = []
    kind = ""
    for word in text.split(","):
        key, equals, value = word.partition("=")
        kind, value = (key, value) if equals else (kind, word)
        if kind == "programs":
            programs.append(value)
        elif kind == "ram":
            ram = _ram(value)
        elif kind in pairs:
            maker, _, model = value.partition("/")
            if not maker or not model:
                raise cli.UsageError(f"--group: {kind}={value!r:.80} is not like MAKER/MODEL")
            pairs[kind].append((maker, model))
        elif kind == "feature" and value:
            features.append(value)
        else:
            raise cli.UsageError(f"--group: {word!r:.80} is none of programs=, ram=, soc=, device=, feature=")
    made = Selector(ram, tuple(pairs["soc"]), tuple(pairs["device"]), tuple(features))
    return tuple(programs), made


def _ram(text: str) -> tuple[int | None, int | None]:
    match = _RAM.fullmatch(text)
    if match is None or text == "-":
        raise cli.UsageError(f"--group: ram={text!r:.80} is not like 4GB-, 4GB-8GB or -8GB")
    bounds = [int(n) * _UNITS[unit] if n else None for n, unit in (match.groups()[:2], match.groups()[2:])]
    return bounds[0], bounds[1]


#: the conditions as lines of XML
_LINES: Sequence[Callable[[Selector], list[str]]] = (
    lambda row: [f"included-device-id brand={quoteattr(a)} device={quoteattr(b)}" for a, b in row.devices],
    lambda row: [f"required-system-feature name={quoteattr(name)}" for name in row.features],
    lambda row: [f"system-on-chip manufacturer={quoteattr(a)} model={quoteattr(b)}" for a, b in row.chips],
)


def targeting(groups: Sequence[Group]) -> str:
    """The XML. `other` is not in it, because Play adds it."""
    lines = [f'<config:device-targeting-config xmlns:config="{NAMESPACE}">']
    for group in groups:
        if not group.selectors:
            continue
        lines.append(f"  <config:device-group name={quoteattr(group.name)}>")
        for row in group.selectors:
            bounds = zip(("ram-min-bytes", "ram-max-bytes"), row.ram, strict=True)
            ram = "".join(f' {name}="{value}"' for name, value in bounds if value is not None)
            inner = [f"      <config:{line}/>" for lines_of in _LINES for line in lines_of(row)]
            lines += [f"    <config:device-selector{ram}>", *inner, "    </config:device-selector>"]
        lines.append("  </config:device-group>")
    return "\n".join([*lines, "</config:device-targeting-config>", ""])
