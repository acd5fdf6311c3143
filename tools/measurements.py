"""Times of repeated calls: their statistics, and JSON in the form of Google Benchmark.

The form is that of `--benchmark_format=json` (github.com/google/benchmark, docs/user_guide.md, schema version 1), so
programs that read such files, such as `compare.py`, read these.
"""

import math
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

#: the percentiles that are reported
PERCENTILES: Final = (90, 99)
#: seconds -> the unit of the JSON
_UNIT, _PER_SECOND = "us", 1e6


@dataclass(frozen=True)
class Measurement:
    """One measured subject: wall-clock and processor seconds, one of each per call."""

    name: str
    real: Sequence[float]
    cpu: Sequence[float]


def timed(name: str, calls: Sequence[tuple[float, float]]) -> Measurement:
    """A measurement of (wall-clock seconds, processor seconds) per call."""
    return Measurement(name, [real for real, _ in calls], [cpu for _, cpu in calls])


class Clock:
    """A context manager that measures its block: `real` by the wall clock, `cpu` over all threads of the process."""

    real = cpu = 0.0

    def __enter__(self) -> "Clock":
        self._cpu = time.process_time()
        self._real = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.real = time.perf_counter() - self._real
        self.cpu = time.process_time() - self._cpu


def statistics(values: Sequence[float]) -> dict[str, float]:
    """Mean, median, sample standard deviation (0 for one value), its ratio to the mean, extremes, percentiles.

    The p-th percentile is the least value that p percent of the values do not exceed (nearest rank).
    """
    ordered, count = sorted(values), len(values)
    mean = math.fsum(ordered) / count
    variance = math.fsum((value - mean) ** 2 for value in ordered) / (count - 1) if count > 1 else 0.0
    deviation = math.sqrt(variance)
    return {
        "mean": mean,
        "median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
        "stddev": deviation,
        "cv": deviation / mean if mean else 0.0,
        "min": ordered[0],
        **{f"p{percent}": ordered[max(0, -(-count * percent // 100) - 1)] for percent in PERCENTILES},
        "max": ordered[-1],
    }


def document(context: Mapping[str, Any], measured: Sequence[Measurement], repeated: bool) -> dict[str, Any]:
    """The whole JSON document. `repeated`: a row for each call of the last measurement, instead of one for all."""
    rows: list[dict[str, Any]] = []
    for family, measurement in enumerate(measured):
        each = repeated and measurement is measured[-1]
        rows += _rows(measurement, family, each)
    return {"context": {**machine(), **context}, "benchmarks": rows}


def _rows(measurement: Measurement, family: int, each: bool) -> list[dict[str, Any]]:
    """Rows of the runs, and of the statistics if there is more than one call."""
    calls = len(measurement.real)
    common = {
        "family_index": family,
        "per_family_instance_index": 0,
        "run_name": measurement.name,
        "threads": 1,
        "time_unit": _UNIT,
    }
    repetitions = calls if each else 1
    runs = list(zip(measurement.real, measurement.cpu, strict=True))
    if not each:
        runs = [(math.fsum(measurement.real) / calls, math.fsum(measurement.cpu) / calls)]
    rows: list[dict[str, Any]] = [
        {"name": measurement.name, "run_type": "iteration", "repetitions": repetitions, "repetition_index": index}
        | common
        | {"iterations": calls // repetitions, "real_time": _PER_SECOND * real, "cpu_time": _PER_SECOND * cpu}
        for index, (real, cpu) in enumerate(runs)
    ]
    if calls == 1:
        return rows
    of_cpu = statistics(measurement.cpu)
    for name, real in statistics(measurement.real).items():
        unit, scale = ("percentage", 1.0) if name == "cv" else ("time", _PER_SECOND)
        rows.append(
            {"name": f"{measurement.name}_{name}", "run_type": "aggregate", "repetitions": repetitions}
            | common
            | {"aggregate_name": name, "aggregate_unit": unit, "iterations": calls}
            | {"real_time": scale * real, "cpu_time": scale * of_cpu[name]}
        )
    return rows


def machine() -> dict[str, Any]:
    """The context of a measurement: when and where. Facts that the system does not report are left out."""
    found: dict[str, Any] = {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "host_name": platform.node(),
        "executable": sys.argv[0],
        "num_cpus": os.cpu_count(),
        "json_schema_version": 1,
    }
    if hasattr(os, "getloadavg"):
        found["load_avg"] = list(os.getloadavg())
    return found
