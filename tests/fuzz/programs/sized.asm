// Exports with dynamic dimensions: memory and recordings are made once per size.
// twice(x: nx2, c: 2) -> (2 * n x 2, n x 2): x above x, by way of an arena, and x; 1000 rows are refused. one: a copy.
import @hal.allocate (i64) -> hal.buffer
import @hal.view.check (hal.view, i32, i64*) -> hal.buffer
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.view.dim (hal.view, i32) -> i64
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.barrier (hal.recording) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.execute (hal.recording, hal.buffer*) -> ()
export @twice (x: tensor<?x2xf32> "n", c: tensor<2xf32>) -> (above: tensor<?x2xf32> "2 * n", same: tensor<?x2xf32> "n")
export @one (x: tensor<?xf32> "n") -> (y: tensor<?xf32> "n" alias 0)
program @reference profile "reference" {
  entry @twice
  entry @one
  func @twice_setup (i64) -> (hal.recording, i64) {
    %l1 = i64.const 1000
    %i3 = i64.ne %l0, %l1
    require %i3 (%l0), "{0} rows are too many"
    %l1 = i64.const 8
    %l2 = i64.mul_checked %l0, %l1
    %r1 = call_import @hal.allocate(%l2)
    %i0 = i32.const 3
    %r0 = call_import @hal.recording.create(%i0)
    %i0 = i32.zero
    %i1 = i32.const 1
    %i2 = i32.const 2
    call_import @hal.recording.copy(%r0, %r2, %i0, %l3, %r1, %i0, %l3, %l2)
    call_import @hal.recording.copy(%r0, %r2, %i0, %l3, %r2, %i2, %l3, %l2)
    call_import @hal.recording.barrier(%r0)
    call_import @hal.recording.copy(%r0, %r1, %i0, %l3, %r2, %i1, %l3, %l2)
    call_import @hal.recording.copy(%r0, %r1, %i0, %l3, %r2, %i1, %l2, %l2)
    call_import @hal.recording.finish(%r0)
    %l1 = i64.const 2
    %l2 = i64.mul_checked %l0, %l1
    return (%r0, %l2)
  }
  func @twice (hal.view, hal.view, hal.view, hal.view) -> (hal.view, hal.view) {
    %i0 = i32.const 1056
    %l0 = i64.const -1
    %l1 = i64.const 2
    %r4 = call_import @hal.view.check(%r0, %i0, %l0, %l1)
    %r5 = call_import @hal.view.check(%r1, %i0, %l1)
    %i1 = i32.zero
    %l2 = call_import @hal.view.dim(%r0, %i1)
    %r6, %l3 = call.cached @twice_setup(%l2)
    %r2 = call_import @hal.view.destination(%r2, %i0, %l3, %l1)
    %r3 = call_import @hal.view.destination(%r3, %i0, %l2, %l1)
    %r7 = call_import @hal.view.buffer(%r2)
    %r8 = call_import @hal.view.buffer(%r3)
    call_import @hal.execute(%r6, %r4, %r7, %r8)
    return (%r2, %r3)
  }
  func @one_setup (i64) -> hal.recording {
    %l1 = i64.const 4
    %l1 = i64.mul_checked %l0, %l1
    %i0 = i32.const 2
    %r0 = call_import @hal.recording.create(%i0)
    %i0 = i32.zero
    %i1 = i32.const 1
    call_import @hal.recording.copy(%r0, %r1, %i0, %l2, %r1, %i1, %l2, %l1)
    call_import @hal.recording.finish(%r0)
    return (%r0)
  }
  func @one (hal.view, hal.view) -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const -1
    %r2 = call_import @hal.view.check(%r0, %i0, %l0)
    %i1 = i32.zero
    %l1 = call_import @hal.view.dim(%r0, %i1)
    %r3 = call.cached @one_setup(%l1)
    %r1 = call_import @hal.view.destination(%r1, %i0, %l1)
    %r4 = call_import @hal.view.buffer(%r1)
    call_import @hal.execute(%r3, %r2, %r4)
    return (%r1)
  }
}
