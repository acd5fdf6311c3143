// What compiled code does, and more: recordings, fences, views, buffers in lists. {payload} adds two 4xf32.
import @hal.constant (i32, i64, i64) -> hal.buffer
import @hal.allocate (i64) -> hal.buffer
import @hal.view.check (hal.view, i32, i64*) -> hal.buffer
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.view.dim (hal.view, i32) -> i64
import @hal.view.create (hal.buffer, i64, i32, i64*) -> hal.view
import @hal.executable.create (i32) -> hal.executable
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.parameters (hal.recording, i32*) -> ()
import @hal.recording.dispatch (hal.recording, hal.executable, i32, i64, i64, i64, (hal.buffer, i32, i64, i64)*) -> ()
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.fill (hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()
import @hal.recording.barrier (hal.recording) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.execute (hal.recording, hal.buffer*) -> ()
import @hal.enqueue (hal.recording, hal.buffer*) -> ()
import @hal.read (hal.buffer, i64, i32) -> i32
import @hal.cache.load (hal.buffer, i32) -> i32
import @hal.cache.save (hal.buffer, i32) -> ()
import @hal.fence.create () -> hal.fence
import @hal.submit (hal.recording, hal.fence, hal.fence, hal.buffer*) -> ()
export @add (x: tensor<4xf32>, y: tensor<4xf32>) -> (z: tensor<4xf32>)
export @twice (x: tensor<2x2xf32>) -> (a: tensor<4xf32> alias 0, b: tensor<2xf64>)
export @submitted
export @batched
export @hoard
program @reference profile "reference" {
  constant @ones : tensor<4xf32> = hex "0000803f0000803f0000803f0000803f"
  executable @adder {
    entry @add bindings [read 16, read 16, write 16]
    entry @negate bindings [readwrite 16, write 16]
    variant "tensor-bytecode" workgroups [(64, 1, 1), (8, 8, 1)] payload hex "{payload}"
  }
  global @executable : hal.executable
  global @ones : hal.buffer
  global @derived : hal.buffer
  global @recording : hal.recording mutable
  global @arena : hal.buffer mutable
  global @kept : list<any> mutable
  func @_setup () -> () {
    %i0 = i32.zero
    %r0 = call_import @hal.executable.create(%i0)
    global.store.ref move %r0, @executable
    %l1 = i64.const 16
    %r0 = call_import @hal.constant(%i0, %l0, %l1)
    global.store.ref move %r0, @ones
    %r1 = call_import @hal.allocate(%l1)
    %i0 = i32.const 7
    %i1 = call_import @hal.cache.load(%r1, %i0)
    br_if %i1, ^known, ^unknown
  ^unknown:
    %i1 = i32.const 1
    %r2 = call_import @hal.recording.create(%i1)
    %r3 = ref.null
    %l2 = i64.const 9
    %i2 = i32.const 4
    call_import @hal.recording.fill(%r2, %r3, %i3, %l0, %l1, %l2, %i2)
    call_import @hal.recording.finish(%r2)
    call_import @hal.execute(move %r2, %r1)
    call_import @hal.cache.save(%r1, %i0)
  ^known:
    global.store.ref move %r1, @derived
    return ()
  }
  func @_begin () -> () {
    %l0 = i64.const 64
    %r0 = call_import @hal.allocate(%l0)
    global.store.ref %r0, @arena
    %i0 = i32.const 3
    %r1 = call_import @hal.recording.create(%i0)
    %r2 = global.load.ref @executable
    %r3 = global.load.ref @ones
    %i0 = i32.zero
    %i1 = i32.const 1
    %i2 = i32.const 2
    %l1 = i64.const 4
    %l2 = i64.const 1
    %l3 = i64.zero
    %l4 = i64.const 16
    %r4 = ref.null
    call_import @hal.recording.dispatch(%r1, %r2, %i0, %l1, %l2, %l2, %r4, %i0, %l3, %l4, %r4, %i1, %l3, %l4, %r0, %i0, %l3, %l4)
    call_import @hal.recording.barrier(%r1)
    call_import @hal.recording.dispatch(%r1, %r2, %i1, %l1, %l2, %l2, %r0, %i0, %l3, %l4, %r0, %i0, %l4, %l4)
    %i3 = i32.const 4
    %l5 = i64.const 32
    call_import @hal.recording.fill(%r1, %r0, %i0, %l5, %l4, %l1, %i3)
    call_import @hal.recording.barrier(%r1)
    call_import @hal.recording.copy(%r1, %r0, %i0, %l4, %r4, %i2, %l3, %l4)
    call_import @hal.recording.finish(%r1)
    global.store.ref move %r1, @recording
    return ()
  }
  func @add (hal.view, hal.view, hal.view) -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const 4
    %r3 = call_import @hal.view.check(%r0, %i0, %l0)
    %r4 = call_import @hal.view.check(%r1, %i0, %l0)
    %r5 = call_import @hal.view.destination(%r2, %i0, %l0)
    %r6 = call_import @hal.view.buffer(%r5)
    %r7 = global.load.ref @recording
    call_import @hal.execute(%r7, %r3, %r4, %r6)
    return (%r5)
  }
  func @twice (hal.view, hal.view, hal.view) -> (hal.view, hal.view) {
    %i0 = i32.const 1056
    %l0 = i64.const 2
    %r3 = call_import @hal.view.check(%r0, %i0, %l0, %l0)
    %i1 = i32.const 1
    %l1 = call_import @hal.view.dim(%r0, %i1)
    %l1 = i64.add %l1, %l1
    %r4 = call_import @hal.view.create(%r3, %l2, %i0, %l1)
    %r5 = ref.null
    %r5 = call_import @hal.view.destination(%r5, %i0, %l1)
    %r5 = call @add(%r4, %r4, %r5)
    %i2 = i32.const 1088
    %r6 = call_import @hal.view.destination(%r2, %i2, %l0)
    %i3 = i32.const 1
    %r7 = call_import @hal.recording.create(%i3)
    %r8 = ref.null
    %l3 = i64.const 16
    %i4 = i32.const 8
    %i5 = i32.zero
    call_import @hal.recording.fill(%r7, %r8, %i5, %l2, %l3, %l1, %i4)
    call_import @hal.recording.finish(%r7)
    %r9 = call_import @hal.view.buffer(%r6)
    call_import @hal.execute(move %r7, %r9)
    return (%r5, %r6)
  }
  func @submitted () -> () {
    %r0 = global.load.ref @recording
    %l0 = i64.const 16
    %r1 = call_import @hal.allocate(%l0)
    %r2 = call_import @hal.allocate(%l0)
    %r3 = call_import @hal.fence.create()
    %r4 = call_import @hal.fence.create()
    %r5 = ref.null
    call_import @hal.submit(%r0, %r5, %r3, %r1, %r1, %r2)
    call_import @hal.submit(%r0, %r3, %r4, %r2, %r1, %r1)
    await %r3
    await move %r4
    return ()
  }
  func @batched () -> i32 {
    %l0 = i64.const 16
    %r1 = global.load.ref @derived
    %r0 = global.load.ref @recording
    %r4 = call_import @hal.allocate(%l0)
    %i4 = i32.const 3
    %i1 = i32.const 1
  ^again:
    call_import @hal.enqueue(%r0, %r1, %r1, %r4)
    call_import @hal.enqueue(%r0, %r4, %r1, %r1)
    %i4 = i32.sub %i4, %i1
    br_if %i4, ^again, ^end
  ^end:
    call_import @hal.execute(%r0, %r4, %r4, %r1)
    %l1 = i64.const 4
    %i2 = i32.const 4
    %i0 = call_import @hal.read(%r1, %l1, %i2)
    %i0 = call_import @hal.read(%r1, %l1, %i1)
    return (%i0)
  }
  func @hoard (i32) -> i64 {
    %l0 = i64.const 4
    %r0 = list.ref.new %l0
    %l1 = i64.zero
    %l2 = i64.const 1
  ^loop:
    %l3 = i64.const 256
    %r1 = call_import @hal.allocate(%l3)
    list.ref.set %r0, %l1, %r1
    %l1 = i64.add %l1, %l2
    %i1 = i64.lt_s %l1, %l0
    br_if %i1, ^loop, ^end
  ^end:
    %i2 = i32.const 520
    %r2 = call_import @hal.view.create(%r1, %l0, %i2, %l0, %l2)
    list.ref.set %r0, %l2, move %r2
    global.store.ref %r0, @kept
    %l0 = list.ref.size %r0
    return (%l0)
  }
  initializer program @_setup
  initializer context @_begin
  entry @add
  entry @twice
  entry @submitted
  entry @batched
  entry @hoard
}
