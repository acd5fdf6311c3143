"""The table of driver quirks: rows are well-formed, and match the devices that their reports name."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from orchestrion.hal.registry import BUILT_IN
from orchestrion.hal.vulkan.physical import FEATURES
from orchestrion.schema.quirks import BY_NAME, QUIRKS, DriverFacts, Quirk

PAGE = Path(__file__).parents[2] / "docs" / "quirks.md"
#: the fields of a row that say what it matches
MATCHED = {"vendors", "devices", "drivers", "kinds", "platforms", "since", "before", "text"}
DEFAULTS = Quirk(name="", api="", doc="", source="")

#: row -> a device that it matches
DEVICES: dict[str, DriverFacts] = {
    "intel-robustness2": DriverFacts(vendor=0x8086, driver=5, kind=1, number=101 << 14 | 2114),
    "amd-zeroed-workgroup": DriverFacts(vendor=0x1002, device=0x731F, driver=1, kind=2, number=0x800000),
    "nvidia-fill": DriverFacts(vendor=0x10DE, device=0x2684, driver=4, kind=2, number=535 << 22),
    "qualcomm-int64": DriverFacts(vendor=0x5143, device=0x43050A01, driver=8, kind=1, number=512 << 22),
    "adreno630-pipelines": DriverFacts(vendor=0x5143, device=0x6030001, driver=0, kind=1),
    "powervr-pipelines": DriverFacts(vendor=0x1010, device=0x71061212, driver=7, kind=1),
    "swiftshader-selections": DriverFacts(vendor=0x1AE0, device=0xC0DE, driver=10, kind=4, number=5 << 22),
    "swiftshader-unsigned": DriverFacts(vendor=0x1AE0, device=0xC0DE, driver=10, kind=4, number=5 << 22),
    "llvmpipe-loops": DriverFacts(vendor=0x10005, driver=13, kind=4, text="llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"),
    "pocl-generic": DriverFacts(
        platform="Portable Computing Language", text="OpenCL 2.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-generic"
    ),
}
#: row -> changes of its device, each of which makes it another one
OTHERS: dict[str, tuple[dict[str, int | str], ...]] = {
    "intel-robustness2": (
        {"number": 101 << 14 | 2115},
        {"number": 102 << 14 | 1},
        {"driver": 6},
        {"kind": 2},
        {"vendor": 0x10DE},
    ),
    "amd-zeroed-workgroup": ({"driver": 3}, {"vendor": 0x10DE}),
    "nvidia-fill": ({"driver": 23}, {"vendor": 0x1002}),
    "qualcomm-int64": ({"driver": 18}, {"vendor": 0x13B5}),
    "adreno630-pipelines": ({"device": 0x6040001}, {"driver": 18}),
    "powervr-pipelines": ({"driver": 25}, {"vendor": 0x5143}),
    "swiftshader-selections": ({"driver": 13},),
    "swiftshader-unsigned": ({"driver": 13},),
    "llvmpipe-loops": ({"driver": 3},),
    "pocl-generic": (
        {"text": "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-znver4"},
        {"text": "OpenCL 3.0 PoCL HSTR: cpu-aarch64-unknown-linux-gnu-generic"},
        {"platform": "Intel(R) OpenCL"},
    ),
}


@pytest.fixture(params=QUIRKS, ids=BY_NAME.keys())
def row(request: pytest.FixtureRequest) -> Quirk:
    found: Quirk = request.param
    return found


def test_rows_are_well_formed(row: Quirk) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", row.name) and row.api in BUILT_IN
    assert row.doc.count(";") == 1 and not row.doc.endswith("."), "a defect; what is done instead"
    assert re.fullmatch(r"https://[\w.-]+/\S+", row.source)
    re.compile(row.text)
    assert row.since < row.before
    changed = {one.name for one in fields(Quirk) if getattr(row, one.name) != getattr(DEFAULTS, one.name)}
    assert changed & MATCHED, "it matches every device"
    assert changed - MATCHED - {"name", "api", "doc", "source"}, "it changes nothing"
    assert row.lacks <= {feature.field for feature in FEATURES}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(QUIRKS) and DEVICES.keys() == OTHERS.keys() == BY_NAME.keys()


def test_rows_match_their_devices(row: Quirk) -> None:
    facts = DEVICES[row.name]
    matching = [name for name, one in BY_NAME.items() if one.api == row.api and one.matches(facts)]
    assert matching == [name for name, device in DEVICES.items() if device == facts]
    for change in OTHERS[row.name]:
        assert not row.matches(replace(facts, **change)), change


def test_an_empty_list_matches_all_and_versions_are_half_open() -> None:
    row = replace(DEFAULTS, since=10, before=20)
    assert [number for number in (9, 10, 19, 20) if row.matches(DriverFacts(vendor=7, driver=3, number=number))] == [
        10,
        19,
    ]


def test_the_page_lists_the_rows() -> None:
    table = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    found = {line.split("`")[1]: line for line in table}
    assert list(found)[: len(QUIRKS)] == list(BY_NAME)
    for row in QUIRKS:
        assert row.source in found[row.name] and f"| {row.doc.partition('; ')[2]} |" in found[row.name]
