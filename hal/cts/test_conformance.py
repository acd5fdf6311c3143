"""Every case on every device asked for."""

from collections.abc import Callable

import pytest

from orchestrion.hal.cts import catalogue, report
from orchestrion.hal.cts.plugin import PROPERTY
from orchestrion.hal.errors import DriverUnavailable


def test_conformance(case: str, device: str, record_property: Callable[[str, object], None]) -> None:
    try:
        result = catalogue.judge(case, device)
    except DriverUnavailable as error:
        pytest.skip(str(error))
    record_property(PROPERTY, report.row_of(result))
    if result.outcome is catalogue.Outcome.EXPECTED_FAILURE:
        pytest.xfail(result.reason)
    if result.outcome in (catalogue.Outcome.NOT_APPLICABLE, catalogue.Outcome.UNSUPPORTED):
        pytest.skip(f"{result.outcome}: {result.reason}")
    catalogue.checked(result)
