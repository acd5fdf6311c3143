"""Makes a test per case and device. Uses absolute imports: pytest may load this file under another package name."""

import pytest

from orchestrion.hal.cts.catalogue import CASES
from orchestrion.hal.registry import drivers


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("device", metafunc.config.getoption("--hal-driver") or list(drivers()))
    metafunc.parametrize("case", list(CASES))
