"""The conformance suite finds bugs: each seeded bug fails the case that it names, which passes without the bug."""

import pytest
from seeded_driver_bugs import BUGS, Bug
from wrapped_driver import WrappedDevice, WrappedDriver

from orchestrion.hal.cts import catalogue
from orchestrion.hal.cts.catalogue import Outcome
from orchestrion.hal.cts.rig import PATIENCE
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.registry import load_driver

#: seconds after which a wait counts as a hang in tests of seeded bugs, some of which cause one
IMPATIENCE = 1.0


def judge(bug: Bug, device: type[WrappedDevice], patience: float = PATIENCE) -> catalogue.Result:
    driver = WrappedDriver(load_driver(bug.on), device, bug.mapped, bug.change)
    try:
        info = driver.devices()[0]
    except DriverUnavailable as error:
        pytest.skip(str(error))
    return catalogue.judge_on(bug.case, driver, info, patience)


def test_enough_bugs() -> None:
    assert len(BUGS) == len({bug.name for bug in BUGS}) >= 40
    assert all(bug.case in catalogue.CASES for bug in BUGS)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_seeded_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    right = judge(bug, bug.right)
    assert right.outcome is Outcome.PASSED, right.reason
    if bug.patch is not None:
        bug.patch(monkeypatch)
    found = judge(bug, bug.device, IMPATIENCE)
    assert found.outcome is Outcome.FAILED, f"{bug.case} does not find it: {found.outcome}"


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("case", catalogue.CASES)
@pytest.mark.parametrize(("inner", "mapped"), [("reference", True), ("reference", False), ("null", False)])
def test_the_wrapped_driver_conforms(case: str, inner: str, mapped: bool) -> None:
    """No case relies on the order of commands between barriers, nor on host access to the memory."""
    driver = WrappedDriver(load_driver(inner), mapped=mapped)
    result = catalogue.run_on(case, driver, driver.devices()[0])
    if result.outcome is not Outcome.PASSED:
        pytest.skip(f"{result.outcome}: {result.reason}")
