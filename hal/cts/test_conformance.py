"""Every case on every device asked for."""

import pytest

from orchestrion.hal.cts import catalogue


def test_conformance(case: str, device: str) -> None:
    reason = catalogue.why_not(case, device)
    if reason is not None:
        pytest.skip(reason)
    catalogue.run(case, device)
