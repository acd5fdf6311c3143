"""The suite's command line options for pytest, and the report that one of them requests.

This is a plugin with an entry point, because pytest reads the options of a `conftest.py` only below the folder it
starts in, and the suite is started by package name. It is loaded wherever this package and pytest are installed, so it
imports nothing until it is needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

#: the property of a test that holds its row of the report; xdist sends it to the process that writes the report
PROPERTY = "orchestrion-hal-cts"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hal-driver",
        action="append",
        default=[],
        help="device to run orchestrion.hal.cts on: `driver` or `driver:index`; repeatable; default: every driver",
    )
    parser.addoption(
        "--cts-report",
        type=Path,
        default=None,
        metavar="DIR",
        help="folder for the report of orchestrion.hal.cts: conformance.json and conformance.html",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--cts-report") is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Collector(config.getoption("--cts-report")), "orchestrion-hal-cts-report")


class _Collector:
    """Collects the rows of tests that have one, and writes the report at the end of the session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.rows += [value for name, value in report.user_properties if name == PROPERTY]  # type: ignore[misc]

    def pytest_sessionfinish(self) -> None:
        from . import report

        report.write(self.folder, self.rows, dict.fromkeys(row["device"] for row in self.rows))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"conformance report: {self.folder}")
