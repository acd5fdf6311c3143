// Tensor functions that wait, loop and fail. `copy` copies its first slot to the second.
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.submit (hal.recording, hal.fence, hal.fence, hal.buffer*) -> ()
import @host.fence () -> hal.fence
import @host.break () -> ()
export @many (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @held (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @spin (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @refused (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @broken (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @nested (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @eager (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @null (x: tensor<4xf32>) -> (z: tensor<4xf32>)
program @reference profile "reference" {
  global @copy : hal.recording mutable
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
    global.store.ref move %r0, @copy
    return ()
  }
  func @copied (hal.buffer, hal.buffer) -> () {
    %r2 = global.load.ref @copy
    call_import @hal.execute(%r2, %r0, move %r1)
    return ()
  }
  func @many (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %i0 = i32.const 5
    %i1 = i32.const 1
  ^again:
    call_import @hal.execute(%r4, %r2, %r3)
    %i0 = i32.sub %i0, %i1
    br_if %i0, ^again, ^end
  ^end:
    return (%r1)
  }
  func @held (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    call @copied(%r2, %r3)
    %r4 = call_import @host.fence()
    await move %r4
    return (%r1)
  }
  func @spin (hal.view, hal.view) -> hal.view {
  ^again:
    br ^again
  }
  func @refused (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = global.load.ref @copy
    call_import @hal.execute(%r3, %r2)
    return (%r1)
  }
  func @broken (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %r5 = ref.null
    call_import @hal.submit(%r4, %r5, %r5, %r2, %r3)
    call_import @host.break()
    return (%r1)
  }
  func @nested (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    call @copied(%r2, %r3)
    call @copied(%r2, %r3)
    return (%r1)
  }
  func @eager (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %r5 = ref.null
    call_import @hal.submit(%r4, %r5, %r5, %r2, %r3)
    return (%r1)
  }
  func @null (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = ref.null
    %r4 = global.load.ref @copy
    call_import @hal.execute(%r4, %r2, %r3)
    return (%r1)
  }
  entry @many
  entry @held
  entry @spin
  entry @refused
  entry @broken
  entry @nested
  entry @eager
  entry @null
  initializer context @record
}
