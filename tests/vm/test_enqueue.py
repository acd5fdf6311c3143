"""`hal.enqueue`: what is enqueued goes with the next `hal.execute` as one submission, in blocking and submitted calls.

The one recording copies its first slot to the second. A call that ends with enqueued work leaves a usable context.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write
from orchestrion.vm.errors import Cancelled, MemoryExceeded, Trap

X = np.array([1, 2, 3, 4], np.int32)
SOURCE = """
import @hal.allocate (i64) -> hal.buffer
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.enqueue (hal.recording, hal.buffer*) -> ()
import @hal.read (hal.buffer, i64, i32) -> i32
export @passed_on (x: tensor<4xi32>) -> (z: tensor<4xi32>)
export @counted (x: tensor<4xi32>) -> (z: tensor<4xi32>)
export @forgotten (x: tensor<4xi32>) -> (z: tensor<4xi32>)
export @fails (x: tensor<4xi32>) -> (z: tensor<4xi32>)
export @nested (x: tensor<4xi32>) -> (z: tensor<4xi32>)
export @spins (x: tensor<4xi32>) -> (z: tensor<4xi32>)
program @reference profile "reference" {
  global @copy : hal.recording mutable
  global @a : hal.buffer mutable
  global @b : hal.buffer mutable
  func @begin () -> () {
    %i0 = i32.const 2
    %r0 = call_import @hal.recording.create(%i0)
    %r1 = ref.null
    %i1 = i32.const 0
    %i2 = i32.const 1
    %l0 = i64.const 0
    %l1 = i64.const 16
    call_import @hal.recording.copy(%r0, %r1, %i1, %l0, %r1, %i2, %l0, %l1)
    call_import @hal.recording.finish(%r0)
    global.store.ref move %r0, @copy
    %r2 = call_import @hal.allocate(%l1)
    global.store.ref move %r2, @a
    %r2 = call_import @hal.allocate(%l1)
    global.store.ref move %r2, @b
    return ()
  }
  // x -> a -> b -> a ... -> z, `n` times there and back, n = x[3]
  func @passed_on (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %r5 = global.load.ref @a
    %r6 = global.load.ref @b
    %l0 = i64.const 12
    %i0 = i32.const 4
    %i1 = i32.const 1
    %i2 = call_import @hal.read(%r2, %l0, %i0)
    call_import @hal.enqueue(%r4, %r2, %r5)
  ^again:
    call_import @hal.enqueue(%r4, %r5, %r6)
    call_import @hal.enqueue(%r4, %r6, %r5)
    %i2 = i32.sub %i2, %i1
    br_if %i2, ^again, ^end
  ^end:
    call_import @hal.execute(%r4, %r5, %r3)
    return (%r1)
  }
  // four turns of one read each
  func @counted (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %r5 = global.load.ref @a
    %i0 = i32.const 1
    %l1 = i64.const 4
    %l2 = i64.const 16
  ^again:
    call_import @hal.enqueue(%r4, %r2, %r5)
    call_import @hal.execute(%r4, %r5, %r3)
    %i1 = call_import @hal.read(%r3, %l0, %i0)
    check %i1, "read too early"
    %l0 = i64.add %l0, %l1
    %i2 = i64.lt_s %l0, %l2
    br_if %i2, ^again, ^end
  ^end:
    return (%r1)
  }
  func @forgotten (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    call_import @hal.enqueue(%r4, %r2, %r3)
    call_import @hal.enqueue(%r4, %r2, %r3)
    return (%r1)
  }
  func @fails (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r4 = global.load.ref @copy
    call_import @hal.enqueue(%r4, %r2, %r2)
    fail "on purpose"
  }
  func @later (hal.buffer, hal.buffer) -> () {
    %r2 = global.load.ref @copy
    call_import @hal.enqueue(%r2, %r0, %r1)
    return ()
  }
  func @nested (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %r5 = global.load.ref @a
    call @later(%r2, %r5)
    call_import @hal.execute(%r4, %r5, %r3)
    return (%r1)
  }
  func @spins (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r4 = global.load.ref @copy
    call_import @hal.enqueue(%r4, %r2, %r2)
  ^again:
    br ^again
  }
  entry @passed_on
  entry @counted
  entry @forgotten
  entry @fails
  entry @nested
  entry @spins
  initializer context @begin
}
"""


@pytest.fixture
def program() -> Iterator[vm.Program]:
    loaded = vm.load(write(assemble(SOURCE)))
    yield loaded
    loaded.close()


def costs(program: vm.Program, name: str, x: Any) -> tuple[int, int]:
    """Submissions and waits of a call, blocking, called often, or submitted; each gives what it was given."""
    for _ in range(25):  # a function that could be translated would be
        np.testing.assert_array_equal(program[name](x), x)  # type: ignore[operator]
    blocking = program.statistics()["calls"][-1]
    np.testing.assert_array_equal(program[name].submit(x).result(30), x)  # type: ignore[union-attr]
    submitted = program.statistics()["calls"][-1]
    assert blocking["submissions"] == submitted["submissions"]
    return blocking["submissions"], blocking["waits"]


def usable(program: vm.Program) -> None:
    assert costs(program, "nested", X + 7) == (1, 1)


def test_one_submission(program: vm.Program) -> None:
    assert costs(program, "passed_on", X) == (1, 1)
    assert costs(program, "counted", X) == (4, 4)
    usable(program)


def test_a_full_batch_goes_by_itself(program: vm.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 + 2 * 40 enqueued, and one executed: ten batches of eight, and one of two."""
    monkeypatch.setattr("orchestrion.vm.pending_batch.MAX_RECORDINGS", 8)
    assert costs(program, "passed_on", np.array([5, 6, 7, 40], np.int32)) == (11, 11)
    usable(program)


def test_a_batch_is_full_by_what_its_recordings_hold(program: vm.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver may make a recording anew for every table in the batch. This one is of one command: two to a batch."""
    monkeypatch.setattr("orchestrion.vm.pending_batch.MAX_BYTES", 2000)
    assert costs(program, "passed_on", X) == (5, 5)
    usable(program)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("forgotten", "returns with 2 recordings enqueued that it never executes\n  at forgotten pc"),
        ("fails", "on purpose"),
    ],
)
def test_what_ends_with_enqueued_work(program: vm.Program, name: str, message: str) -> None:
    for _ in range(3):
        with pytest.raises(Trap, match=message):
            program[name](X)
        with pytest.raises(Trap, match=message):
            program[name].submit(X).result(30)  # type: ignore[union-attr]
        usable(program)


def test_cancelled(program: vm.Program) -> None:
    for _ in range(3):
        future = program["spins"].submit(X)  # type: ignore[union-attr]
        assert future.cancel()
        with pytest.raises(Cancelled):
            future.result(30)
        usable(program)


def test_memory_is_charged_and_given_back(program: vm.Program) -> None:
    context = program.create_context(memory=100_000)
    long = np.array([0, 0, 0, 400], np.int32)
    for _ in range(3):
        with pytest.raises(MemoryExceeded, match="at passed_on pc"):
            context["passed_on"](long)
        held = context.context.memory.budget.live
        np.testing.assert_array_equal(context["passed_on"](X), X)
        assert context.context.memory.budget.live == held
    context.close()
