// Copies its argument to its result five times, one submission after the other; `spin` then goes on for ever.
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.submit (hal.recording, hal.fence, hal.fence, hal.buffer*) -> ()
export @copy (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @spin (x: tensor<4xf32>) -> (z: tensor<4xf32>)
program @any profile "{profile}" {
  global @copied : hal.recording mutable
  func @record () -> () {
    %i0 = i32.const 2
    %r0 = call_import @hal.recording.create(%i0)
    %r1 = ref.null
    %i1 = i32.const 0
    %i2 = i32.const 1
    %l0 = i64.const 0
    %l1 = i64.const 16
    call_import @hal.recording.copy(%r0, %r1, %i1, %l0, %r1, %i2, %l0, %l1)
    call_import @hal.recording.finish(%r0)
    global.store.ref move %r0, @copied
    return ()
  }
  func @copy (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copied
    %i0 = i32.const 5
    %i1 = i32.const 1
  ^again:
    call_import @hal.execute(%r4, %r2, %r3)
    %i0 = i32.sub %i0, %i1
    br_if %i0, ^again, ^end
  ^end:
    return (%r1)
  }
  func @spin (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copied
    %r5 = ref.null
    call_import @hal.submit(%r4, %r5, %r5, %r2, %r3)
  ^again:
    br ^again
  }
  entry @copy
  entry @spin
  initializer context @record
}
