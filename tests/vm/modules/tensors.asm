// Tensor functions over z = x * y + c, and stranger ones. The tests put in the code of the executable: {payload}.
import @hal.constant (i32, i64, i64) -> hal.buffer
import @hal.allocate (i64) -> hal.buffer
import @hal.executable.create (i32) -> hal.executable
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.parameters (hal.recording, i32*) -> ()
import @hal.recording.dispatch (hal.recording, hal.executable, i32, i64, i64, i64, (hal.buffer, i32, i64, i64)*) -> ()
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.fill (hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()
import @hal.recording.barrier (hal.recording) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.check (hal.view, i32, i64*) -> hal.buffer
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.view.dim (hal.view, i32) -> i64
import @hal.view.create (hal.buffer, i64, i32, i64*) -> hal.view
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.submit (hal.recording, hal.fence, hal.fence, hal.buffer*) -> ()
import @hal.fence.create () -> hal.fence
export @main doc "x * y + c" (x: tensor<4xf32>, y: tensor<4xf32>) -> (z: tensor<4xf32>)
export @two (x: tensor<f32>, e: tensor<0x3xi8>) -> (e: tensor<0x3xi8>, x: tensor<f32>)
export @own_view (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @wrong_view (x: tensor<4xf32>) -> (z: tensor<2xf32>)
export @no_view (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @later (x: tensor<4xf32>) -> (z: tensor<4xf32>)
export @count
export @grab
export @damage
program @spirv profile "spirv" {
  executable @multiply {
    entry @multiply bindings [read 16, read 16, write 16]
    variant "spirv" workgroups [(4, 1, 1)] payload hex "00"
  }
  func @nothing () -> () {
    return ()
  }
  func @main (hal.view, hal.view, hal.view) -> hal.view {
    return (%r2)
  }
  func @two (hal.view, hal.view, hal.view, hal.view) -> (hal.view, hal.view) {
    return (%r2, %r3)
  }
  func @one (hal.view, hal.view) -> hal.view {
    return (%r1)
  }
  entry @main
  entry @two
  entry @one
  entry @one
  entry @one
  entry @one
  entry @nothing
  entry @nothing
  entry @nothing
}
program @reference profile "reference" {
  constant @c : tensor<4xf32> = hex "0000803f 00000040 00004040 00008040"
  global @executable : hal.executable
  global @constant : hal.buffer
  global @arena : hal.buffer mutable
  global @recording : hal.recording mutable
  global @copy : hal.recording mutable
  global @calls : i32 mutable
  executable @multiply {
    entry @multiply bindings [read 16, read 16, read 16, write 16]
    variant "tensor-bytecode" workgroups [(1, 1, 1)] payload hex "{payload}"
  }
  func @setup () -> () {
    %i0 = i32.const 0
    %r0 = call_import @hal.executable.create(%i0)
    global.store.ref move %r0, @executable
    %l0 = i64.const 0
    %l1 = i64.const 16
    %r0 = call_import @hal.constant(%i0, %l0, %l1)
    global.store.ref move %r0, @constant
    return ()
  }
  func @record () -> () {
    %l0 = i64.const 32
    %r0 = call_import @hal.allocate(%l0)
    global.store.ref %r0, @arena
    %i0 = i32.const 3
    %r1 = call_import @hal.recording.create(%i0)
    %r2 = global.load.ref @executable
    %r3 = global.load.ref @constant
    %i0 = i32.const 0
    %i1 = i32.const 1
    %i2 = i32.const 2
    %l0 = i64.const 4
    %l1 = i64.const 1
    %l2 = i64.const 0
    %l3 = i64.const 16
    call_import @hal.recording.dispatch(%r1, %r2, %i0, %l0, %l1, %l1, %r4, %i0, %l2, %l3, %r4, %i1, %l2, %l3, %r3, %i0, %l2, %l3, %r0, %i2, %l2, %l3)
    call_import @hal.recording.barrier(%r1)
    call_import @hal.recording.copy(%r1, %r0, %i0, %l2, %r4, %i2, %l2, %l3)
    call_import @hal.recording.finish(%r1)
    global.store.ref move %r1, @recording
    %r1 = call_import @hal.recording.create(%i2)
    call_import @hal.recording.copy(%r1, %r4, %i0, %l2, %r4, %i1, %l2, %l3)
    call_import @hal.recording.finish(%r1)
    global.store.ref move %r1, @copy
    return ()
  }
  func @main (hal.view, hal.view, hal.view) -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const 4
    %r3 = call_import @hal.view.check(%r0, %i0, %l0)
    %r4 = call_import @hal.view.check(%r1, %i0, %l0)
    %r2 = call_import @hal.view.destination(move %r2, %i0, %l0)
    %r5 = call_import @hal.view.buffer(%r2)
    %r6 = global.load.ref @recording
    call_import @hal.execute(move %r6, move %r3, move %r4, move %r5)
    return (move %r2)
  }
  func @two (hal.view, hal.view, hal.view, hal.view) -> (hal.view, hal.view) {
    return (%r1, %r0)
  }
  func @own_view (hal.view, hal.view) -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const 4
    %r1 = ref.null
    %r1 = call_import @hal.view.destination(%r1, %i0, %l0)
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    call_import @hal.execute(%r4, %r2, %r3)
    return (%r1)
  }
  func @same (hal.view, hal.view) -> hal.view {
    return (%r0)
  }
  func @no_view (hal.view, hal.view) -> hal.view {
    %r0 = ref.null
    return (%r0)
  }
  func @later (hal.view, hal.view) -> hal.view {
    %r2 = call_import @hal.view.buffer(%r0)
    %r3 = call_import @hal.view.buffer(%r1)
    %r4 = global.load.ref @copy
    %r5 = call_import @hal.fence.create()
    %r6 = ref.null
    call_import @hal.submit(%r4, move %r6, %r5, %r2, %r3)
    await %r5
    return (%r1)
  }
  func @count () -> i32 {
    %i0 = global.load.i32 @calls
    %i1 = i32.const 1
    %i0 = i32.add %i0, %i1
    global.store.i32 %i0, @calls
    return (%i0)
  }
  func @grab (i64) -> () {
    %r0 = call_import @hal.allocate(%l0)
    return ()
  }
  func @damage (i32, i64, f32, f64) -> (i32, i64, f32, f64) {
    return (%i0, %l0, %f0, %d0)
  }
  initializer program @setup
  initializer context @record
  entry @main
  entry @two
  entry @own_view
  entry @same
  entry @no_view
  entry @later
  entry @count
  entry @grab
  entry @damage
}
