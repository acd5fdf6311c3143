"""vm-bench: the measurements, the statistics, and the form of its JSON."""

import json
import re
import statistics as oracle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion.tools import bench
from orchestrion.tools.measurements import PERCENTILES, Measurement, document, statistics

MODULE = str(Path(__file__).parents[1] / "golden" / "v1.0-simple_mul.fb")
STATISTICS = ["mean", "median", "stddev", "cv", "min", "p90", "p99", "max"]


def measured(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    """The JSON output of a run."""
    assert bench.main([MODULE, "--json", *flags]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_statistics_are_those_of_numpy_and_the_standard_library(count: int) -> None:
    values = list(np.random.default_rng(count).lognormal(size=count))
    found = statistics(values)
    assert list(found) == STATISTICS
    deviation = oracle.stdev(values) if count > 1 else 0.0
    wanted = [oracle.mean(values), oracle.median(values), deviation, deviation / oracle.mean(values), min(values)]
    wanted += [float(np.percentile(values, percent, method="inverted_cdf")) for percent in PERCENTILES]
    np.testing.assert_allclose(list(found.values()), [*wanted, max(values)], rtol=1e-12)


def test_calls_are_as_many_as_asked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.vm.function import Function

    calls = Counter[str]()
    call = Function.__call__

    def counted(function: Function, *arguments: Any, **named: Any) -> Any:
        calls[function.name] += 1
        return call(function, *arguments, **named)

    monkeypatch.setattr(Function, "__call__", counted)
    assert bench.main([MODULE, "--warmup=3", "--repeat=5"]) == 0
    assert calls == {"simple_mul": 1 + 3 + 5}
    out = capsys.readouterr().out
    assert "over 5 calls after 3 of warm-up" in out
    titles = ["load", "first call", "mean", "median", "deviation", "shortest", "90th", "99th", "longest", "throughput"]
    assert [re.split(r" pct| {2,}", line.strip())[0] for line in out.splitlines()[1:]] == titles


def test_json_has_the_form_of_google_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    found = measured(capsys, "--repeat=4", "--warmup=1")
    assert {"date", "host_name", "executable", "num_cpus", "json_schema_version"} <= set(found["context"])
    assert found["context"]["device"] == "reference"
    rows = found["benchmarks"]
    common = {
        "name", "run_name", "run_type", "repetitions", "threads", "iterations", "real_time", "cpu_time", "time_unit",
        "family_index", "per_family_instance_index",
    }  # fmt: skip
    for row in rows:
        own = {"iteration": {"repetition_index"}, "aggregate": {"aggregate_name", "aggregate_unit"}}
        assert set(row) == common | own[row["run_type"]], row
    single = [row["name"] for row in rows if row["run_type"] == "iteration" and row["repetitions"] == 1]
    assert single == ["simple_mul/load", "simple_mul/first_call"]
    calls = [row for row in rows if row["run_type"] == "iteration" and row["name"] == "simple_mul/call"]
    assert [row["repetition_index"] for row in calls] == [0, 1, 2, 3] and calls[0]["iterations"] == 1
    aggregates = {row["name"]: row for row in rows if row["run_type"] == "aggregate"}
    assert list(aggregates) == [f"simple_mul/call_{name}" for name in STATISTICS]
    times = [row["real_time"] for row in calls]
    assert aggregates["simple_mul/call_mean"]["real_time"] == pytest.approx(oracle.mean(times))
    assert aggregates["simple_mul/call_stddev"]["real_time"] == pytest.approx(oracle.stdev(times))
    assert aggregates["simple_mul/call_cv"]["aggregate_unit"] == "percentage"


def test_calls_for_a_time_are_one_row() -> None:
    rows = document({}, [Measurement("f/call", [1e-6, 3e-6], [2e-6, 2e-6])], repeated=False)["benchmarks"]
    assert len(rows) == 1 + len(STATISTICS)
    run = rows[0]
    assert (run["iterations"], run["repetitions"], run["real_time"], run["cpu_time"]) == (2, 1, pytest.approx(2), 2)
    assert rows[1]["iterations"] == 2 and rows[1]["real_time"] == pytest.approx(2)


def test_json_goes_to_a_file_beside_the_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    assert bench.main([MODULE, "--seconds=0", f"--json={path}", "--device-resident"]) == 0
    assert "throughput" in capsys.readouterr().out
    assert [row["name"] for row in json.loads(path.read_text())["benchmarks"]] == [
        "simple_mul/load",
        "simple_mul/first_call",
        "simple_mul/call",
    ]


def test_a_row_for_every_dispatch(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main([MODULE, "--repeat=3", "--profile"]) == 0
    out = capsys.readouterr().out
    head, row = out[out.index("op  ") :].splitlines()
    assert head.split() == ["op", "location", "entry", "workload", "runs", "median", "share", "bytes", "fused"]
    assert row.split()[-2:] == ["100.0%", "48"] and "4x1x1" in row
    (data,) = measured(capsys, "--repeat=3", "--profile")["profile"]
    assert (data["launches"], data["calls"], data["workload"], data["bytes"]) == (4, 4, [4, 1, 1], 48)
    assert "profile" not in measured(capsys, "--repeat=1")


def test_a_device_that_computes_nothing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main([MODULE, "--repeat=1", "--device=null"]) == 0
    said = "vm-bench: note: device null computes nothing: times are those of the host alone\n"
    assert capsys.readouterr().err == said
    assert bench.main([MODULE, "--repeat=1", "--device=reference"]) == 0
    assert capsys.readouterr().err == ""


def test_repeat_and_seconds_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main([MODULE, "--repeat=1", "--seconds=1"])
    assert capsys.readouterr().err == "vm-bench: --repeat and --seconds cannot be combined\n"
