"""`python -m orchestrion.hal.cts`: runs the suite on devices, prints failures, and writes a report.

It needs only the package. The exit status is 0 if every case passed, or failed as its driver expects; 1 if a case did
not, or a named device cannot be used; 2 if the command line is wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import traceback
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from orchestrion.hal.errors import DriverUnavailable, InvalidArgument
from orchestrion.hal.registry import list_devices
from orchestrion.hal.vulkan.device_profile import DEVICE_PROFILES, PROFILE_VARIABLE

from . import SCOPE, VERSION, report
from .catalogue import CASES, find, judge


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m orchestrion.hal.cts", description=f"HAL conformance suite {VERSION}. {SCOPE}"
    )
    made.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="DEVICE",
        help="`driver` or `driver:index`; repeatable; default: every device that is found",
    )
    made.add_argument(
        "--device-profile",
        choices=[*DEVICE_PROFILES],
        metavar="NAME",
        help="restrict Vulkan devices to this device profile; default: full",
    )
    made.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="run these only, as `buffers.*`; repeatable"
    )
    made.add_argument("--report", type=Path, metavar="DIR", help="write conformance.json and conformance.html there")
    made.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="a case that takes longer ends the process with status 1 and the stacks of its threads; default: 300",
    )
    made.add_argument("--list", action="store_true", help="list the cases with what they need, and run none")
    made.add_argument("--verbose", action="store_true", help="print each case, and the traceback of one that fails")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if not __debug__:
        print("error: cases check with assert statements, which `python -O` leaves out", file=sys.stderr)
        return 2
    cases = [name for name in CASES if not options.case or any(fnmatchcase(name, one) for one in options.case)]
    if not cases:
        print(f"error: no case matches {', '.join(options.case)}: --list shows all {len(CASES)}", file=sys.stderr)
        return 2
    if options.list:
        for name in cases:
            needs = f" [{', '.join(CASES[name].needs)}]" if CASES[name].needs else ""
            print(f"{name}{needs}: {CASES[name].doc}")
        return 0
    if options.device_profile is not None:
        os.environ[PROFILE_VARIABLE] = options.device_profile
    try:
        devices = _devices(options.device)
    except InvalidArgument as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except DriverUnavailable as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return _run(options, devices, cases)


def _devices(named: Sequence[str]) -> list[str]:
    """The named devices, each of which must exist, or all devices that are found."""
    if not named:
        return [info.id for status in list_devices() for info in status.devices]
    for name in named:
        find(name)
    return [*dict.fromkeys(named)]


def _run(options: argparse.Namespace, devices: Sequence[str], cases: Sequence[str]) -> int:
    rows: list[dict[str, Any]] = []
    bad = 0
    for device in devices:
        for name in cases:
            faulthandler.dump_traceback_later(options.timeout, exit=True, file=sys.__stderr__ or sys.stderr)
            result = judge(name, device)
            faulthandler.cancel_dump_traceback_later()
            rows.append(report.row_of(result))
            bad += result.outcome.bad
            if options.verbose or result.outcome.bad:
                print(f"{device} {name}: {result.outcome}{': ' if result.reason else ''}{result.reason}", flush=True)
            if options.verbose and result.outcome.bad and result.error is not None:
                traceback.print_exception(result.error)
    try:
        found = (
            report.assemble(rows, devices) if options.report is None else report.write(options.report, rows, devices)
        )
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"conformance suite {VERSION}")
    for device in found["devices"]:
        print(f"  {device['id']}: {report.verdict(device)}, in {device['seconds']:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
