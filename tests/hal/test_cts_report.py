"""The lists, tags, report and command of the conformance suite, for drivers that are right, wrong, or missing."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from seeded_driver_bugs import Dirty
from wrapped_driver import WrappedDevice, WrappedDriver

from orchestrion.hal import registry
from orchestrion.hal.backend import Conformance
from orchestrion.hal.cts import SCOPE, VERSION, catalogue, report
from orchestrion.hal.cts.__main__ import main
from orchestrion.hal.cts.catalogue import CASES, GROUPS, BadList, Outcome
from orchestrion.hal.cts.tags import TAGS
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.null.driver import NullDriver

ROOT = Path(__file__).parent.parent.parent
FINDS_DIRT = "memory.fresh_memory_is_zero"
OTHER = "transfers.nothing"


class Listed(WrappedDriver):
    """A driver with its own lists. With `Dirty` its new memory is not zero."""

    def __init__(self, device: type[WrappedDevice] = WrappedDevice, **lists: Mapping[str, str]) -> None:
        super().__init__(NullDriver(), device)
        self.conformance = Conformance(computes=False, **lists)  # type: ignore[arg-type]


def judge(driver: WrappedDriver, case: str) -> catalogue.Result:
    return catalogue.judge_on(case, driver, driver.devices()[0])


def test_enough_cases() -> None:
    assert len(CASES) >= 200
    assert len({case.doc for case in CASES.values()}) >= 200


def test_each_tag_is_needed() -> None:
    """Every tag and every file has cases."""
    assert {tag for case in CASES.values() for tag in case.needs} == set(TAGS)
    assert all(group.cases and group.doc for group in GROUPS)


def test_failure() -> None:
    found = judge(Listed(Dirty), FINDS_DIRT)
    assert found.outcome is Outcome.FAILED and found.outcome.bad
    assert re.search(r"fresh.backend.host.any\(\) \(memory.py, line \d+\)", found.reason)
    with pytest.raises(AssertionError):
        catalogue.checked(found)


def test_unsupported_is_not_run() -> None:
    found = judge(Listed(Dirty, unsupported={FINDS_DIRT: "the device never clears memory"}), FINDS_DIRT)
    assert (found.outcome, found.reason) == (Outcome.UNSUPPORTED, "the device never clears memory")
    assert not found.outcome.bad


def test_expected_failure() -> None:
    lists = {FINDS_DIRT: "issue 12", OTHER: "issue 13"}
    found = judge(Listed(Dirty, expected_failures=lists), FINDS_DIRT)
    assert (found.outcome, found.reason) == (Outcome.EXPECTED_FAILURE, "issue 12")
    assert not found.outcome.bad
    passed = judge(Listed(Dirty, expected_failures=lists), OTHER)
    assert passed.outcome is Outcome.UNEXPECTED_PASS and passed.outcome.bad
    with pytest.raises(catalogue.UnexpectedPass, match="transfers.nothing passed on null.*issue 13"):
        catalogue.checked(passed)


def test_not_applicable_is_apart_from_unsupported() -> None:
    """A tag that the device lacks takes precedence over the driver's lists."""
    found = judge(Listed(unsupported={"dispatches.slots": "never"}), "dispatches.slots")
    assert (found.outcome, found.reason) == (Outcome.NOT_APPLICABLE, "the device lacks dispatch")


def test_list_of_an_unknown_case() -> None:
    found = judge(Listed(unsupported={"buffers.gone": "never"}), OTHER)
    assert isinstance(found.error, BadList) and found.outcome is Outcome.FAILED
    assert "unsupported names 'buffers.gone', which is no case of the suite" in found.reason
    assert "gives no reason" in judge(Listed(expected_failures={FINDS_DIRT: ""}), OTHER).reason


def test_driver_that_raises_when_it_is_opened() -> None:
    class Broken(WrappedDevice):
        def __init__(self, *_: Any) -> None:
            raise ZeroDivisionError("no device")

    found = judge(Listed(Broken), OTHER)
    assert (found.outcome, found.reason) == (Outcome.FAILED, "ZeroDivisionError: no device")


def test_tags_follow_the_device() -> None:
    plain, unseen = WrappedDriver(NullDriver()), WrappedDriver(NullDriver(), mapped=False)
    aligned = WrappedDriver(
        NullDriver(), change=lambda info: replace(info, limits=replace(info.limits, min_binding_alignment=1))
    )
    tags = {name: catalogue.tags_on(one, one.devices()[0]) for name, one in locals().items() if name != "tags"}
    assert "host-mapping" in tags["plain"] and "host-mapping" not in tags["unseen"]
    assert "binding-alignment" in tags["plain"] and "binding-alignment" not in tags["aligned"]
    assert "dispatch" not in tags["plain"] and "no-timestamps" in tags["plain"]


class _Page(HTMLParser):
    """Collects the references to other files and the table rows of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rows += tag == "tr"
        self.outside += [f"{tag} {name}" for name, _ in attrs if name in ("src", "href")]
        assert tag not in ("script", "link", "img")


def check_report(folder: Path, *devices: str) -> dict[str, Any]:
    """Both files exist, agree, and name every case. Returns the JSON."""
    data: dict[str, Any] = json.loads((folder / report.JSON_FILE).read_text())
    assert (data["suite"], data["version"], data["scope"]) == ("orchestrion.hal.cts", VERSION, SCOPE)
    assert [device["id"] for device in data["devices"]] == [*devices]
    assert [case["name"] for case in data["cases"]] == [*CASES]
    text = (folder / report.PAGE_FILE).read_text()
    page = _Page()
    page.feed(text)
    assert not page.outside
    assert page.rows == len(CASES) + len(GROUPS) + len(TAGS) + len(devices) + 2
    assert SCOPE in text and VERSION in text
    return data


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device=null", f"--report={tmp_path / 'new' / 'folder'}"]) == 0
    assert re.search(r"null: conforms: \d+ passed, \d+ not applicable, in ", capsys.readouterr().out)
    (device,) = check_report(tmp_path / "new" / "folder", "null")["devices"]
    assert device["conforms"] and device["complete"] and device["counts"]["failed"] == 0
    assert device["run"] == len(CASES)


def test_command_of_some_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of only some cases does not claim that a device conforms."""
    assert main(["--device=null", "--case=buffers.*", "--case=*.empty", f"--report={tmp_path}"]) == 0
    some = [name for name in CASES if name.startswith("buffers.") or name.endswith(".empty")]
    assert f"null: {len(some)} of {len(CASES)} cases: " in capsys.readouterr().out
    (device,) = check_report(tmp_path, "null")["devices"]
    assert not device["conforms"] and not device["complete"]
    assert "not run" in (tmp_path / report.PAGE_FILE).read_text()


def test_command_finds_a_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{__name__}:make_dirty"
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setitem(registry.BUILT_IN, "dirty", name)
    assert main(["--device=dirty", "--case=memory.fresh_memory_is_zero", f"--report={tmp_path}"]) == 1
    said = capsys.readouterr().out
    assert "dirty memory.fresh_memory_is_zero: failed: AssertionError: assert fresh" in said
    case = next(one for one in check_report(tmp_path, "dirty")["cases"] if one["name"] == FINDS_DIRT)
    assert case["results"]["dirty"]["outcome"] == "failed"


def make_dirty() -> WrappedDriver:
    """The function that an entry point names. The devices have the driver's name."""

    class DirtyDriver(Listed):
        def __init__(self) -> None:
            super().__init__(Dirty)
            self.name = "dirty"
            self.change = lambda info: replace(info, driver="dirty")

    return DirtyDriver()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--device=nothing"], 2, "no driver 'nothing': there are null"),
        (["--device=null:x"], 2, "device name 'null:x': the index after ':' is not a number"),
        (["--device=null:4"], 1, "driver null has 1 devices, no null:4"),
        (["--case=none.*"], 2, "no case matches none.*: --list shows all"),
    ],
)
def test_command_line_errors(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    assert f"error: {message}" in capsys.readouterr().err


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CASES)
    assert lines[0].startswith("devices.named: A device has")


def test_optimised_python_is_refused() -> None:
    """`python -O` would remove the assertions."""
    command = [sys.executable, "-O", "-m", "orchestrion.hal.cts", "--device=null"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and "cases check with assert statements" in done.stderr


def test_case_that_hangs(tmp_path: Path) -> None:
    """The process ends by itself and prints the stack, which shows the case."""
    script = tmp_path / "hanging.py"
    script.write_text(
        "import sys, time\n"
        "from orchestrion.hal.cts import __main__, catalogue\n"
        "from dataclasses import replace\n"
        "def hanging(rig): time.sleep(60)\n"
        "catalogue.CASES['transfers.nothing'] = replace(catalogue.CASES['transfers.nothing'], run=hanging)\n"
        "sys.exit(__main__.main(['--device=null', '--case=transfers.nothing', '--timeout=0.3']))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "in hanging" in done.stderr


@pytest.mark.long
def test_pytest_writes_the_same_report(tmp_path: Path) -> None:
    """The pytest option, with a pytest-xdist process that sends its rows. `test_wheel.py` runs it without
    pytest-xdist.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "orchestrion.hal.cts"]
    options = ["--hal-driver=null", f"--cts-report={tmp_path / 'report'}", "-k", "buffers", "-n", "1"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"conformance report: {tmp_path / 'report'}" in done.stdout
    (device,) = check_report(tmp_path / "report", "null")["devices"]
    expected = [catalogue.judge(name, "null").outcome for name in CASES if "buffers" in name]
    assert device["run"] == len(expected) and not device["complete"]
    assert device["counts"] == {outcome.value: expected.count(outcome) for outcome in Outcome}


def test_driver_that_is_unavailable_when_it_is_opened() -> None:
    """The driver listed the device, so this is a failure and no reason to skip."""

    class Gone(WrappedDevice):
        def __init__(self, *_: Any) -> None:
            raise DriverUnavailable("somebody else has it")

    found = judge(Listed(Gone), OTHER)
    assert (found.outcome, found.reason) == (Outcome.FAILED, "DriverUnavailable: somebody else has it")
