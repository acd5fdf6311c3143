"""vm-tune: what it searches, what it takes and what it writes. Times are no condition of a test, counts are."""

import json
import os
import random
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from terminals import read_all

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.kernel.legality import problems
from orchestrion.compiler.kernel.schedule import Schedule, Step
from orchestrion.compiler.sequencer.hl_seq import programs_of
from orchestrion.compiler.targets import schedule_file
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.target import target
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import find_device
from orchestrion.tools import tune
from orchestrion.tools.tuning import program as programs
from orchestrion.tools.tuning import search as searches
from orchestrion.tools.tuning import space
from orchestrion.tools.tuning import tuner as tuners
from orchestrion.tools.tuning.kernels import Kernel, Memory, kernels_of
from orchestrion.tools.tuning.rig import Bench, Rig, difference, numbers, tolerance_of
from orchestrion.tools.tuning.search import Budget, Search, quartile

#: a dot with something behind it, a softmax, a movement
PROGRAM = """func.func @main(%x: tensor<24x20xf32>, %w: tensor<20x48xf32>) -> tensor<48x24xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x20xf32>, tensor<20x48xf32>) -> tensor<24x48xf32>
  %1 = stablehlo.tanh %0 : tensor<24x48xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<24x48xf32>, tensor<f32>) -> tensor<24xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<24xf32>) -> tensor<24x48xf32>
  %4 = stablehlo.divide %1, %3 : tensor<24x48xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<24x48xf32>) -> tensor<48x24xf32>
  func.return %5 : tensor<48x24xf32>
}
"""
DYNAMIC = """func.func @main(%x: tensor<?x20xf32>) -> tensor<?x20xf32> {
  %0 = stablehlo.tanh %x : tensor<?x20xf32>
  func.return %0 : tensor<?x20xf32>
}
"""
SORT = """func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  func.return %0 : tensor<1024xf32>
}
"""
DEVICES = {"opencl": "opencl", "vulkan": "spirv"}


def needs(device: str) -> str:
    """The device, if it is there."""
    try:
        find_device(device)
    except HalError as error:
        pytest.skip(str(error))
    return device


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return needs(request.param)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM, "utf-8")
    return path


def kernels(text: str, name: str, machine: str = "cpu") -> dict[str, Kernel | str]:
    """The entries of a program for a target."""
    module = Compilation((name,), machines=(machine,)).module(text, "hl_seq")
    made_for = target(name)
    assert isinstance(made_for, KernelTarget)
    return {entry: found for program in programs_of(module) for entry, found in kernels_of(program, made_for)}


def dot(name: str, machine: str = "cpu") -> Kernel:
    """The kernel of the dot of PROGRAM."""
    (found,) = [
        one
        for one in kernels(PROGRAM, name, machine).values()
        if isinstance(one, Kernel) and one.body.kind == "contraction"
    ]
    return found


# the whole tool


def test_what_it_finds_is_compiled_and_computes_the_same(device: str, source: Path, tmp_path: Path) -> None:
    found, report = tmp_path / "found.schedules", tmp_path / "report.json"
    flags = [str(source), f"--device={device}", "--trials=6", "--budget=60", f"--report={report}", "--quiet"]
    assert tune.main([*flags, "-o", str(found)]) == 0
    data = json.loads(report.read_text("utf-8"))
    choices = schedule_file.read(found).choices
    entries = data["entries"]
    assert sum(row["trials"] for row in entries) == 6
    assert [row["share"] for row in entries] == sorted((row["share"] for row in entries), reverse=True)
    assert sum(row["share"] for row in entries) <= 1 + 1e-9
    tuned = [row for row in entries if row["found"] != row["chosen"]]
    assert len(choices) == len(tuned) and all(0 < row["after"] < row["before"] for row in tuned)
    assert {" ".join(one.attribute.body for one in choice.schedules) for choice in choices} == {
        r["found"] for r in tuned
    }
    assert {(choice.target, choice.machine) for choice in choices} <= {(DEVICES[device], "cpu")}
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape, np.float32) for shape in ((24, 20), (20, 48))]
    results = [
        vm.load(compiler.compile(PROGRAM, targets=[DEVICES[device]], schedules=path), device=device).main(*arguments)
        for path in (None, found)
    ]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4)


def test_text_of_the_phase_hl_seq_is_taken(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs("opencl")
    text = tmp_path / "program.hl_seq"
    text.write_text(Compilation(("spirv", "opencl")).text(PROGRAM, "hl_seq"), "utf-8")
    assert tune.main([str(text), "--device=opencl", "--compile-from=hl_seq", "--trials=0"]) == 0
    told = capsys.readouterr()
    assert told.out == f"{schedule_file.HEADER}\n"
    assert re.search(r"^main on opencl \(.*\), machine cpu$", told.err, re.MULTILINE)
    assert "main_dispatch_0" in told.err and "as before: [" in told.err
    text.write_text(Compilation(("spirv",)).text(PROGRAM, "hl_seq"), "utf-8")
    assert tune.main([str(text), "--device=opencl", "--compile-from=hl_seq", "--trials=0"]) == 1
    assert "no program is for target opencl and machine cpu; there are spirv" in capsys.readouterr().err


def test_entries_that_cannot_be_tuned_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs("opencl")
    path = tmp_path / "program.mlir"
    path.write_text(DYNAMIC, "utf-8")
    assert tune.main([str(path), "--device=opencl", "--input=3x20xf32=1", "--report"]) == 0
    assert "its sizes come with a call" in capsys.readouterr().out
    assert tune.main([str(path), "--device=opencl"]) == 1
    assert "has dynamic sizes: give its arrays with --input" in capsys.readouterr().err
    assert "it is the library kernel merge" in kernels(SORT, "opencl").values()


def test_it_searches_so_many_entries_for_so_long(source: Path, tmp_path: Path) -> None:
    needs("opencl")
    report = tmp_path / "report.json"
    flags = [str(source), "--device=opencl", f"--report={report}", "--quiet", "-o", str(tmp_path / "found")]
    assert tune.main([*flags, "--entries=1", "--trials=3"]) == 0
    entries = json.loads(report.read_text("utf-8"))["entries"]
    assert [row["trials"] for row in entries] == [3, *[0] * (len(entries) - 1)]
    assert [row["why"] for row in entries] == ["", *["not searched"] * (len(entries) - 1)]
    assert tune.main([*flags, "--budget=0.001"]) == 0
    assert not any(row["trials"] for row in json.loads(report.read_text("utf-8"))["entries"])


def test_a_terminal_shows_which_schedule_is_tried(source: Path, tmp_path: Path) -> None:
    needs("opencl")
    pty = pytest.importorskip("pty", reason="a system without pseudo terminals")
    ours, theirs = pty.openpty()
    flags = [str(source), "--device=opencl", "--trials=2", "--entries=1", "-o", str(tmp_path / "found")]
    command = [sys.executable, "-m", "orchestrion.tools.tune", *flags]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm"}, timeout=120, text=True
    )
    os.close(theirs)
    told = read_all(ours)
    assert done.returncode == 0 and done.stdout == "", told
    assert "\r\x1b[Kcompile\r\x1b[Kload\r\x1b[Kprofile\r" in told
    for trial in (1, 2):
        assert re.search(rf"\r\x1b\[K\[1/1\] main_dispatch_\d: \d+ s left, trial {trial}: \[", told)
    assert re.search(r"\r\x1b\[Kmain on opencl \(", told)


BAD = [
    ("--device=reference", 1, "device reference runs code of target reference, which has no schedules"),
    ("--device=nowhere", 1, "no driver"),
    ("--device=opencl --function=other", 1, "no function is called other; there are main"),
    ("--device=opencl --input=y=3", 1, "y"),
]


@pytest.mark.parametrize(("flags", "status", "told"), BAD, ids=[flags for flags, _, _ in BAD])
def test_bad_input_is_one_line(
    flags: str, status: int, told: str, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "opencl" in flags:
        needs("opencl")
    assert tune.main([str(source), *flags.split()]) == status
    error = capsys.readouterr().err
    assert error.startswith("vm-tune: ") and told in error and error.count("\n") == 1


# what is never taken


def test_a_kernel_that_computes_something_else_is_reported_and_not_taken(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A seeded fault: whatever the search tries computes another program, and seems to be fast."""
    needs("opencl")
    code, others = Kernel.code, kernels(PROGRAM.replace("tanh", "cosine"), "opencl")

    def wrong(kernel: Kernel, schedule: Schedule) -> Any:
        other = others[kernel.name]
        assert isinstance(other, Kernel)
        return code(kernel if schedule == kernel.schedule else other, schedule)

    monkeypatch.setattr(Kernel, "code", wrong)
    monkeypatch.setattr(Search, "_duel", lambda search, challenger, other: (2.0, 1.0))
    report = tmp_path / "report.json"
    flags = [str(source), "--device=opencl", "--trials=9", f"--report={report}"]
    assert tune.main([*flags, "-o", str(tmp_path / "found")]) == 0
    rows = [row for row in json.loads(report.read_text("utf-8"))["entries"] if row["refused"]]
    assert rows and all(row["found"] == row["chosen"] and len(row["refused"]) == row["trials"] for row in rows)
    assert all("differ" in one["reason"] for row in rows for one in row["refused"])
    told = capsys.readouterr().err
    assert all(told.count(f"not taken for {row['entry']}: ") == min(len(row["refused"]), 4) for row in rows)
    assert [row["entry"] for row in rows] == ["main_dispatch_0"]
    assert dot("opencl").digest not in {choice.digest for choice in schedule_file.read(tmp_path / "found").choices}


def test_code_that_a_device_refuses_is_reported_and_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("opencl")
    kernel, build = dot("opencl"), Rig.build
    built: list[int] = []

    def refusing(rig: Rig, format: str, code: Any) -> Any:
        built.append(1)
        if len(built) == 1:
            return build(rig, format, code)
        raise HalError("out of registers")

    monkeypatch.setattr(Rig, "build", refusing)
    with Rig("opencl") as rig:
        outcome = Search(kernel, rig, 0).run(Budget(60, 3))
    assert [reason for _, reason in outcome.refused] == ["out of registers"] * 3 and not outcome.is_tuned


@pytest.fixture
def confirmed(source: Path) -> Iterator[Callable[..., Any]]:
    """`Tuner._confirmed` for outcomes of which one reduces in another order, and what `compared` says of each set."""
    needs("opencl")

    def run(monkeypatch: pytest.MonkeyPatch, says: Sequence[str]) -> tuple[Any, list[bool]]:
        options = Namespace(
            device="opencl", machine=None, encodings="default", compile_from="input", input=str(source), arrays=[],
            function=None, seed=0,
        )  # fmt: skip
        made = tuners.Tuner(options, lambda text: None)
        kernel = dot("opencl")
        shared = Schedule.of(Step("bind", "grid", "workgroup"), Step("reduce", "k", "tree", 4))
        other = Schedule.of(Step("bind", "grid", "invocation", 64))
        found = [searches.Outcome(kernel, schedule) for schedule in (shared, other)]
        asked: list[bool] = []
        answers = iter(says)

        def compared(before: Any, after: Any, name: str, arguments: Any, exact: bool) -> tuple[float, float, str]:
            asked.append(exact)
            return 2.0, 1.0, next(answers)

        monkeypatch.setattr(programs, "compared", compared)
        monkeypatch.setattr(tuners.Tuner, "_loaded", _nothing_loaded)
        monkeypatch.setattr(programs, "blob_of", lambda *_: b"")
        tuning = tuners.Tuning("opencl", "a device", "opencl", "cpu", "main")
        call = tuners._Call("main", [])
        return (made._confirmed(None, found, tuning, None, call), tuning, found), asked  # type: ignore[arg-type]

    yield run


class _nothing_loaded:  # noqa: N801  stands for a context manager
    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_reordered_reductions_are_left_out_if_the_whole_program_differs(
    confirmed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept, tuning, found), asked = confirmed(monkeypatch, ["result 0 differs", ""])
    assert asked == [False, True] and kept == found[1:] and tuning.exact
    assert tuning.notes == ["not taken, as results of main differ: schedules of main_dispatch_0: result 0 differs"]
    (kept, tuning, found), asked = confirmed(monkeypatch, [""])
    assert asked == [False] and kept == found and not tuning.exact


def test_a_program_that_differs_without_them_is_an_error(
    confirmed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        tuners.cli.InputError, match="schedules that keep the order of reductions give other results of main: odd"
    ):
        confirmed(monkeypatch, ["odd", "odd"])


# the search


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Callable[..., searches.Outcome]:
    """A search in which launches take what a function of the schedule says, and every result is right."""
    monkeypatch.setattr(Search, "_difference", lambda search, made: "")
    monkeypatch.setattr(Search, "_build", lambda search, schedule: searches._Built(schedule, None, None))  # type: ignore[arg-type]
    monkeypatch.setattr(Bench, "results", lambda *_: [])

    def run(
        kernel: Kernel, cost: Callable[[Schedule], float], trials: int, seed: int = 0, say: Any = lambda _: None
    ) -> searches.Outcome:
        def seconds(search: Search, built: Any, rounds: int = 1) -> list[list[float]]:
            return [[cost(one.schedule) for _ in range(rounds)] for one in built]

        monkeypatch.setattr(Search, "_seconds", seconds)
        with Rig("null") as rig:
            return Search(kernel, rig, seed, say).run(Budget(600, trials))

    return run


def area(schedule: Schedule) -> float:
    """Squares of 8 by 8 in workgroups of 16 are best."""
    sizes = schedule.count("tile", "m"), schedule.count("tile", "n"), max(schedule.count("bind", "grid"), 1)
    return 1 + sum(abs(np.log2(size / best)) for size, best in zip(sizes, (8, 8, 16), strict=True))


def test_it_climbs_to_what_is_fastest(model: Callable[..., searches.Outcome]) -> None:
    outcome = model(dot("spirv"), area, 200)
    assert outcome.after == area(outcome.schedule) == 1 and outcome.before == area(outcome.kernel.schedule)
    assert outcome.ran == outcome.trials <= 200


def test_what_is_best_already_stays(model: Callable[..., searches.Outcome]) -> None:
    kernel = dot("spirv")
    outcome = model(kernel, lambda schedule: 1.0 if schedule == kernel.schedule else 0.98, 60)
    assert not outcome.is_tuned and outcome.before == outcome.after, "two percent are within the noise"


def test_a_search_is_determined_by_seed_and_times(model: Callable[..., searches.Outcome]) -> None:
    runs: list[list[str]] = []
    for seed in (3, 3, 4):
        runs.append([])
        model(dot("opencl"), area, 40, seed, runs[-1].append)
    assert runs[0] == runs[1] != runs[2] and all(len(run) == 40 for run in runs)


def test_noise_does_not_win(model: Callable[..., searches.Outcome]) -> None:
    noise = random.Random(0)
    outcomes = [model(dot("opencl"), lambda _: 1 + noise.expovariate(1), 40, seed) for seed in range(10)]
    assert sum(outcome.is_tuned for outcome in outcomes) <= 2


def test_time_is_divided_by_shares() -> None:
    budget = Budget(100, 40)
    half = budget.part(0.5)
    assert half.trials == 20 and 45 < half.seconds <= 50 and not half.is_spent
    assert Budget(0, None).is_spent and Budget(1, 0).is_spent and Budget(1, None).part(0.1).trials is None


def test_the_first_quartile() -> None:
    assert [quartile([5.0]), quartile([2.0, 1.0]), quartile([4.0, 3.0, 1.0, 2.0, 9.0])] == [5.0, 1.0, 2.0]


# the space


@pytest.mark.parametrize("machine", ["cpu", "gpu"])
@pytest.mark.parametrize("name", ["opencl", "spirv"])
def test_neighbours_of_the_compilers_schedules_are_legal(name: str, machine: str) -> None:
    found = [one for one in kernels(PROGRAM, name, machine).values() if isinstance(one, Kernel)]
    assert {kernel.body.kind for kernel in found} >= {"contraction"} and len(found) > 1
    for kernel in found:
        form, knobs = space.read(kernel.schedule, kernel.body)
        assert space.build(kernel.body, form, knobs) == kernel.schedule
        near = kernel.space.neighbours(kernel.schedule)
        starts = list(kernel.space.starts())
        assert near and len(set(near)) == len(near) and kernel.schedule not in near and starts
        for schedule in (*near, *starts):
            assert not list(problems(kernel.body, schedule, kernel.target.row(machine))), schedule
            assert space.build(kernel.body, *space.read(schedule, kernel.body)) == schedule


def test_a_walk_reaches_every_form() -> None:
    kernel = dot("opencl", "gpu")
    forms = {space.read(start, kernel.body)[0] for start in kernel.space.starts()}
    assert forms == {"elements", "tiles", "blocks"}


def test_every_knob_has_a_way_out_of_its_table() -> None:
    assert space._beside((1, 2, 4), 3, 1) == 4 and space._beside((1, 2, 4), 3, -1) == 2
    assert space._beside((1, 2, 4), 4, 1) is None and space._beside((2, 4), 1, -1) is None
    assert space._beside(("n", "m"), "n", 1) == "m"


# results


def test_results_are_compared_bit_by_bit_unless_a_reduction_is_reordered() -> None:
    want = [np.array([1, 2, np.nan, 0], np.float32)]
    near = [np.array([1, np.nextafter(np.float32(2), np.float32(3)), np.nan, 0], np.float32)]
    other_nan = [np.array([0x3F800000, 0x40000000, 0xFFC00001, 0], np.uint32).view(np.float32)]
    assert not difference(want, other_nan, 0)
    assert difference(want, near, 0) == "1 of 4 elements of result 0 differ"
    assert not difference(want, near, 1e-6)
    assert difference(want, [np.array([1, 2, np.nan, 0.1], np.float32)], 1e-6).startswith(
        "result 0 differs by up to 0.1"
    )
    assert difference(want, [np.array([1, 2, 3, 0], np.float32)], 1e-6)
    assert difference(want, [np.array([1, 2, np.nan, -0.0], np.float32)], 0) == "1 of 4 elements of result 0 differ"
    integers = [np.array([1, 2], np.int32)]
    assert difference(integers, [np.array([1, 3], np.int32)], 1e-6) == "1 of 2 elements of result 0 differ"


def test_the_tolerance_is_that_of_the_coarsest_floats() -> None:
    from orchestrion.schema.dtypes import BY_NAME

    single, half = (Memory("read", 4, BY_NAME[name]) for name in ("f32", "f16"))
    assert tolerance_of([single], 0) < 1e-5 < tolerance_of([single], 10_000) < tolerance_of([single, half], 0)
    assert tolerance_of([Memory("read", 4, BY_NAME["i32"])], 100) == 0


def test_inputs_are_of_their_types() -> None:
    from orchestrion.schema.dtypes import BY_NAME

    rng = np.random.default_rng(0)
    for name in ("f32", "f64", "i32", "ui8", "i1", "complex<f32>"):
        if name in BY_NAME:
            made = numbers(rng, BY_NAME[name], (50,))
            assert made.dtype == BY_NAME[name].numpy and made.shape == (50,) and len(np.unique(made)) > 1


def test_a_device_without_timestamps_is_timed_by_the_host(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("opencl")
    found = find_device("opencl")
    blind = found[0], replace(found[1], timestamps=False)
    monkeypatch.setattr("orchestrion.tools.tuning.rig.find_device", lambda name: blind)
    monkeypatch.setattr("orchestrion.tools.tuning.tuner.find_device", lambda name: blind)
    report = tmp_path / "report.json"
    flags = [str(source), "--device=opencl", "--trials=2", f"--report={report}", "--quiet"]
    assert tune.main([*flags, "-o", str(tmp_path / "found")]) == 0
    entries = json.loads(report.read_text("utf-8"))["entries"]
    assert sum(row["trials"] for row in entries) == 2 and abs(sum(row["share"] for row in entries) - 1) < 1e-9
