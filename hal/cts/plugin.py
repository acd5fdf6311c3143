"""The command line option of the conformance suite.

A plugin by entry point, because pytest reads options of a `conftest.py` only below the folder it starts in, and the
suite is started by package name. It holds nothing else: it is loaded wherever this package and pytest are installed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: "pytest.Parser") -> None:
    parser.addoption(
        "--hal-driver",
        action="append",
        default=[],
        help="device to run orchestrion.hal.cts on: `driver` or `driver:index`; repeatable; default: every driver",
    )
