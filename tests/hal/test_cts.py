"""The conformance suite on the package's own drivers; one that is missing is skipped with its own reason."""

import pytest

from orchestrion.hal.cts import catalogue
from orchestrion.hal.registry import BUILT_IN


@pytest.mark.parametrize("device", BUILT_IN)
@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance(case: str, device: str) -> None:
    reason = catalogue.why_not(case, device)
    if reason is not None:
        pytest.skip(reason)
    catalogue.run(case, device)
