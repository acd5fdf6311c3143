"""Profiles on every device: a row for each dispatch with the right names, times in order, and the same results."""

import dataclasses
import functools
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler.driver import Compilation
from orchestrion.hal.registry import open_device
from orchestrion.schema import writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.profiles import PROFILES
from orchestrion.vm.errors import CallerError
from orchestrion.vm.profile import Profile, ProfiledCall

DEVICES = ("reference", "opencl", "vulkan")
LoadOn = Callable[..., Any]
X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
#: of columns, which are not reduced in one dispatch as rows are
TEXT = """
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32> loc("model.py":7:10)
  %maxs = stablehlo.broadcast_in_dim %max, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %less = stablehlo.subtract %x, %maxs : tensor<4x8xf32>
  %exp = stablehlo.exponential %less : tensor<4x8xf32> loc("jit(f)/exp"("model.py":8:3))
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32> loc("model.py":9:1)
  %sums = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %y = stablehlo.divide %exp, %sums : tensor<4x8xf32> loc("model.py":10:1)
  return %y : tensor<4x8xf32>
}
func.func @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = stablehlo.add %x, %x : tensor<4x8xf32> loc("model.py":20:1)
  return %y : tensor<4x8xf32>
}
"""
#: of `softmax`: op, the others in it, location, bytes bound
ROWS = [
    ("stablehlo.reduce(maximum)", set(), "model.py:7:10", 128 + 32),
    ("stablehlo.exponential", {"broadcast_in_dim", "subtract"}, 'model.py:8:3 ("jit(f)/exp")', 128 + 32 + 128),
    ("stablehlo.reduce(add)", set(), "model.py:9:1", 128 + 32),
    ("stablehlo.divide", {"broadcast_in_dim"}, "model.py:10:1", 32 + 128 + 128),
]


@functools.cache
def rows() -> writer.Module:
    return Compilation().rows(TEXT)


@functools.cache
def module() -> bytes:
    return writer.write(rows())


def in_order(call: ProfiledCall) -> None:
    """All of a call lies between its start and its end, one launch after the other."""
    assert [row.submitted for row in call.submissions] == sorted(row.submitted for row in call.submissions)
    moments = [call.start, *(moment for launch in call.launches for moment in (launch.start, launch.end)), call.end]
    assert moments == sorted(moments), moments
    for submission in call.submissions:
        assert call.start <= submission.submitted <= min(launch.start for launch in submission.launches)


def calls(profile: Profile, kind: str = "call") -> list[ProfiledCall]:
    return [call for call in profile.calls if call.kind == kind]


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_for_every_dispatch(device: str, load_on: LoadOn) -> None:
    plain, program = load_on(module(), device), load_on(module(), device, profiling=True)
    for _ in range(3):
        np.testing.assert_array_equal(program.softmax(X), plain.softmax(X))
        np.testing.assert_array_equal(program.twice(X), X + X)
    with pytest.raises(CallerError, match="not loaded with profiling=True"):
        plain.profile()
    profile = program.profile()
    assert (profile.program, profile.device) == (program.name, device)
    found = profile.rows("softmax")
    assert [(row.function, row.kind, row.calls, row.launches) for row in found] == [("softmax", "call", 3, 3)] * 4
    for row, (op, fused, location, size) in zip(found, ROWS, strict=True):
        command = row.command
        assert (command.kind, command.source_op, command.location, command.bytes) == ("dispatch", op, location, size)
        assert {name.removeprefix("stablehlo.") for name in command.fused} == fused
        assert command.workload is not None and min(command.workload) >= 1
    assert [row.command.entry for row in found] == [f"softmax_dispatch_{number}" for number in range(4)]
    assert abs(sum(row.share for row in found) - 1) < 1e-6 or not sum(row.total_seconds for row in found)
    (last,) = profile.rows("twice")
    assert (last.command.label, last.command.location) == ("stablehlo.add", "model.py:20:1")
    assert profile.rows() == found + [last]
    program.close()
    plain.close()


@pytest.mark.parametrize("device", DEVICES)
def test_times_lie_within_their_call(device: str, load_on: LoadOn) -> None:
    program = load_on(module(), device, profiling=True)
    for _ in range(5):
        program.softmax(X)
    profile = program.profile()
    assert [(call.name, call.context) for call in calls(profile, "initializer")] == [("program", 0), ("context", 1)]
    made = calls(profile)
    assert [(call.name, len(call.submissions), len(call.launches)) for call in made] == [("softmax", 1, 4)] * 5
    for call in made:
        in_order(call)
    moments = [moment for call in profile.calls for moment in (call.start, call.end)]
    assert moments == sorted(moments)
    program.close()


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_counted_is_the_same(device: str, load_on: LoadOn) -> None:
    plain, program = load_on(module(), device), load_on(module(), device, profiling=True)
    counted = []
    for one in (plain, program):
        for _ in range(2):
            one.softmax(X)
        row = one.statistics()["calls"][-1]
        row.pop("seconds")
        counted.append((row, one.statistics()["memory"]["peak_device_bytes"]))
        one.close()
    assert counted[0] == counted[1]


@pytest.mark.parametrize("device", DEVICES)
def test_submitted_calls(device: str, load_on: LoadOn) -> None:
    program = load_on(module(), device, profiling=True)
    futures = [program.softmax.submit(X + number) for number in range(6)]
    fence = vm.Fence()
    late = program.twice.submit(X, wait=[fence])
    program.softmax(X)
    fence.signal()
    np.testing.assert_array_equal(late.result(30), X + X)
    plain = load_on(module(), device)
    for number, future in enumerate(futures):
        np.testing.assert_array_equal(future.result(30), plain.softmax(X + number))
    made = calls(program.profile())
    assert [call.name for call in made] == ["softmax"] * 7 + ["twice"]
    for call in made:
        in_order(call)
        assert len(call.launches) == (4 if call.name == "softmax" else 1)
    program.close()
    plain.close()


@pytest.mark.parametrize("device", DEVICES)
def test_contexts_in_threads(device: str, load_on: LoadOn) -> None:
    """Launches belong to the call whose they are, whoever else uses the device; equal commands are one row."""
    program = load_on(module(), device, profiling=True)
    contexts = [program, *(program.create_context() for _ in range(3))]
    failures: list[BaseException] = []

    def work(context: Any) -> None:
        try:
            for _ in range(5):
                context.softmax(X)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(context,)) for context in contexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    profile = program.profile()
    made = calls(profile)
    assert sorted(call.context for call in made) == [number for number in range(1, 5) for _ in range(5)]
    for call in made:
        in_order(call)
        assert [launch.command.source_op for launch in call.launches] == [op for op, *_ in ROWS]
    assert [row.launches for row in profile.rows("softmax")] == [20] * 4
    for context in contexts[1:]:
        context.close()
    program.close()


@pytest.mark.parametrize("profiling", [False, True])
def test_a_program_that_is_dropped_goes_at_once(profiling: bool, load_on: LoadOn) -> None:
    """Without the collector of cycles, for it holds a device and its memory."""
    program = load_on(module(), "reference", profiling=profiling)
    program.softmax(X)
    if profiling:
        program.profile().trace()
    context = weakref.ref(program.context)
    gc.disable()
    try:
        del program
        assert context() is None
    finally:
        gc.enable()


def test_without_debug_information_entries_are_named(load_on: LoadOn) -> None:
    def stripped(program: writer.Program) -> writer.Program:
        functions = [dataclasses.replace(row, locations=()) for row in program.functions]
        executables = [
            dataclasses.replace(row, entries=[dataclasses.replace(entry, source_ops=()) for entry in row.entries])
            for row in program.executables
        ]
        return dataclasses.replace(program, functions=functions, executables=executables)

    found = rows()
    small = writer.write(dataclasses.replace(found, programs=[stripped(program) for program in found.programs]))
    assert len(small) < len(module())
    program = load_on(small, "reference", profiling=True)
    program.softmax(X)
    commands = [row.command for row in program.profile().rows()]
    assert [command.label for command in commands] == [f"softmax_dispatch_{number}" for number in range(4)]
    assert {(command.source_op, command.fused, command.location) for command in commands} == {("", (), "")}
    program.close()


def test_an_open_device(load_on: LoadOn) -> None:
    """It must have been opened so; then it serves programs that are profiled and others."""
    with open_device("reference") as device, pytest.raises(CallerError, match="was not opened with profiling"):
        vm.load(module(), device, profiling=True)
    with open_device("reference", profiling=True) as device:
        program, other = vm.load(module(), device, profiling=True), vm.load(module(), device)
        other.twice(X)
        program.twice(X)
        assert [len(call.launches) for call in calls(program.profile())] == [1]
        program.close()
        other.close()


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_of_it_is_there_when_it_is_off(device: str, load_on: LoadOn, tmp_path: Path) -> None:
    load_on(module(), device).close()
    (tmp_path / "m.fb").write_bytes(module())
    program = (
        "import sys, numpy as np; from orchestrion import vm\n"
        f"vm.load(sys.argv[1], {device!r}, allow_native_code=True).twice(np.zeros((4, 8), np.float32))\n"
        "print([name for name in sys.modules if name.rpartition('.')[2] in sys.argv[2:]])"
    )
    names = ("profile", "profiled_hal", "trace", "profiling", "timing")
    command = [sys.executable, "-c", program, str(tmp_path / "m.fb"), *names]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [name for name in eval(said) if name.startswith("orchestrion.")] == []


IMPORTS = "\n".join(f"import @{row.name} {row.signature}" for row in HAL_IMPORTS.values())


def assembled(*names: str) -> bytes:
    """For each device a program of fills and copies: an initializer that launches, a loop, a batch, a function that
    fails after it has launched.
    """
    body = """
      global @memory : hal.buffer
      global @recording : hal.recording mutable
      func @setup () -> () {
        %i0 = i32.const 0
        %i4 = i32.const 4
        %l0 = i64.const 0
        %l1 = i64.const 16
        %l2 = i64.const 1065353216
        %r0 = call_import @hal.allocate(%l1)
        %r1 = call_import @hal.recording.create(%i0)
        call_import @hal.recording.fill(%r1, %r0, %i0, %l0, %l1, %l2, %i4) loc "setup.mlir:1:1"
        call_import @hal.recording.finish(%r1)
        call_import @hal.execute(%r1)
        global.store.ref %r0, @memory
        return ()
      }
      func @record () -> () {
        %r0 = global.load.ref @memory
        %i1 = i32.const 1
        %i0 = i32.const 0
        %l0 = i64.const 0
        %l1 = i64.const 16
        %r1 = call_import @hal.recording.create(%i1)
        call_import @hal.recording.copy(%r1, %r0, %i0, %l0, %r2, %i0, %l0, %l1) loc "record.mlir:2:2"
        call_import @hal.recording.finish(%r1)
        global.store.ref %r1, @recording
        return ()
      }
      func @loop (hal.view) -> hal.view {
        %r1 = call_import @hal.view.buffer(%r0)
        %r2 = global.load.ref @recording
        %i0 = i32.const 3
        %i1 = i32.const 1
      ^again:
        call_import @hal.enqueue(%r2, %r1)
        call_import @hal.execute(%r2, %r1)
        %i0 = i32.sub %i0, %i1
        br_if %i0, ^again, ^end
      ^end:
        return (%r0)
      }
      func @fails (hal.view) -> hal.view {
        %r1 = call_import @hal.view.buffer(%r0)
        %r2 = global.load.ref @recording
        call_import @hal.execute(%r2, %r1)
        %i0 = i32.const 0
        check %i0, "on purpose"
        return (%r0)
      }
      initializer program @setup
      initializer context @record
      entry @loop
      entry @fails
    """
    programs = "\n".join(f'program @{name} profile "{name}" {{ {body} }}' for name in names)
    exports = "\n".join(f"export @{name} () -> (y: tensor<4xf32>)" for name in ("loop", "fails"))
    return writer.write(assemble(f"{IMPORTS}\n{exports}\n{programs}"))


@pytest.mark.parametrize("device", DEVICES)
def test_initializers_loops_and_failures(device: str, load_on: LoadOn) -> None:
    program = load_on(assembled(*PROFILES), device, profiling=True)
    np.testing.assert_array_equal(program.loop(), np.ones(4, np.float32))
    np.testing.assert_array_equal(program.loop.submit().result(30), np.ones(4, np.float32))
    with pytest.raises(vm.VmError, match="on purpose"):
        program.fails()
    program.loop()
    profile = program.profile()
    shape = [(call.name, call.kind, [len(row.launches) for row in call.submissions]) for call in profile.calls]
    assert shape == [
        ("program", "initializer", [1]),
        ("context", "initializer", []),
        ("loop", "call", [2, 2, 2]),
        ("loop", "call", [2, 2, 2]),
        ("other", "other", [1]),
        ("loop", "call", [2, 2, 2]),
    ]
    for call in profile.calls:
        in_order(call)
    found = [
        (row.function, row.kind, row.command.kind, row.command.location, row.command.bytes, row.calls, row.launches)
        for row in profile.rows()
    ]
    assert found == [
        ("program", "initializer", "fill", "setup.mlir:1:1", 16, 1, 1),
        ("loop", "call", "copy", "record.mlir:2:2", 16, 3, 18),
    ]
    program.close()


#: too many elements for a kernel that runs the whole loop
LOOP = """
func.func @main(%x: tensor<65536xf32>, %n: tensor<i32>) -> tensor<65536xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<65536xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.tanh %v : tensor<65536xf32> loc("loop.py":3:4)
      stablehlo.return %j, %w : tensor<i32>, tensor<65536xf32>
    }
  return %r#1 : tensor<65536xf32>
}
"""


@pytest.mark.parametrize("device", DEVICES)
def test_a_loop_has_one_row_for_all_its_turns(device: str, load_on: LoadOn) -> None:
    """The predicate is computed once more than the body runs; the trace has a launch for every turn, in order.

    OpenCL and Vulkan launch batches of 1, 2, 4 turns, of which those behind the end do nothing.
    """
    program = load_on(writer.write(Compilation().rows(LOOP)), device, profiling=True)
    x = np.linspace(-1, 1, 65536, dtype=np.float32)
    for turns in (5, 0, 2):
        want = functools.reduce(lambda value, _: np.tanh(value), range(turns), x)
        np.testing.assert_allclose(program.main(x, np.int32(turns)), want, rtol=1e-6)
    profile = program.profile()
    launched = []
    for call in calls(profile):
        in_order(call)
        names = [launch.command.source_op for launch in call.launches]
        launched.append((names.count("stablehlo.compare"), names.count("stablehlo.tanh")))
    assert launched == ([(6, 5), (1, 0), (3, 2)] if device == "reference" else [(8, 7), (2, 1), (4, 3)])
    (row,) = (row for row in profile.rows("main") if row.command.source_op == "stablehlo.tanh")
    assert (row.command.location, row.calls) == ("loop.py:3:4", 3)
    assert row.launches == sum(bodies for _, bodies in launched)
    events = profile.trace()["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    check_flows(events, slices, [event for event in slices if event["cat"] in ("dispatch", "copy", "fill")])
    program.close()


@pytest.mark.parametrize("device", sorted({"opencl", "vulkan"} & set(DEVICES)))
def test_a_loop_in_a_kernel_is_one_launch(device: str, load_on: LoadOn) -> None:
    """However many turns it takes."""
    program = load_on(writer.write(Compilation().rows(LOOP.replace("65536", "8"))), device, profiling=True)
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    for turns in (5, 0, 100):
        want = functools.reduce(lambda value, _: np.tanh(value), range(turns), x)
        np.testing.assert_allclose(program.main(x, np.int32(turns)), want, rtol=1e-5)
    first, second, third = ([launch.command.kind for launch in call.launches] for call in calls(program.profile()))
    assert first == second == third and 0 < first.count("dispatch") < 5
    program.close()


PHASES = {"M", "X", "s", "f"}
NEEDED = {"M": {"name", "args"}, "X": {"name", "cat", "ts", "dur", "args"}, "s": {"id", "ts"}, "f": {"id", "ts", "bp"}}


@pytest.mark.parametrize("device", DEVICES)
def test_traces(device: str, load_on: LoadOn, tmp_path: Path) -> None:
    """Events of the trace event format: tracks are named, slices nest, a flow leads from each call to its launches."""
    import json

    program = load_on(module(), device, profiling=True)
    for _ in range(3):
        program.softmax(X)
    program.create_context().close()
    trace = json.loads(json.dumps(program.profile().trace(), allow_nan=False))
    events = trace["traceEvents"]
    assert trace["displayTimeUnit"] == "ns" and {event["ph"] for event in events} == PHASES
    for event in events:
        assert event.keys() >= {"pid", "tid"} | NEEDED[event["ph"]]
        assert event.get("ts", 0.0) >= 0 and event.get("dur", 0.0) >= 0
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [event for event in events if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in slices} <= named.keys()
    assert len(set(named.items())) == len(named)
    launches = [event for event in slices if event["cat"] == "dispatch"]
    assert [event["name"] for event in launches] == [op for op, *_ in ROWS] * 3
    for event, (op, _, location, size) in zip(launches, ROWS * 3, strict=True):
        arguments = event["args"]
        assert (arguments["source_op"], arguments["location"], arguments["bytes"]) == (op, location, size)
        assert len(arguments["workload"]) == 3 and arguments["entry"].startswith("softmax_dispatch_")
    check_flows(events, slices, launches)
    program.close()


def check_flows(events: list[Any], slices: list[Any], launches: list[Any]) -> None:
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert len(starts) == len(ends) == len(launches) == len([e for e in events if e["ph"] == "s"])
    for number, launch in zip(sorted(ends), launches, strict=True):
        start, end = starts[number], ends[number]
        assert (end["ts"], end["pid"], end["tid"]) == (launch["ts"], launch["pid"], launch["tid"])
        (call,) = (one for one in slices if one["cat"] == "call" and one["args"]["call"] == launch["args"]["call"])
        assert (start["pid"], start["tid"]) == (call["pid"], call["tid"])
        assert call["ts"] <= start["ts"] <= end["ts"] <= call["ts"] + call["dur"]
