// Branches, calls, failure, suspension.
// A function is named after the instruction that it checks and ends without failing; `@"x traps: message"` ends with that.
// Functions that begin with `_` are helpers. `test.` imports are served by tests/vm/conftest.py.
import @test.add (i32, i64, f32, f64, any) -> (any, f64, f32, i64, i32)
import @test.sum (i32*) -> i32
import @test.absent () -> () optional
import @test.count (any, (i32, any)*) -> i32
import @test.fence (i32) -> hal.fence
program @test profile "reference" {
  func @br () -> () {
    %i1 = i32.const 3
    %i3 = i32.const 1
    br ^check
  ^loop:
    %i0 = i32.add %i0, %i3
    br ^check
  ^check:
    %i2 = i32.lt_s %i0, %i1
    br_if %i2, ^loop, ^done
  ^done:
    %i2 = i32.eq %i0, %i1
    check %i2, "three rounds"
    return ()
  }
  func @br_if () -> () {
    %i0 = i32.const -1
    br_if %i0, ^yes, ^no
  ^no:
    fail "any bit is true"
  ^yes:
    %i1 = i32.zero
    br_if %i1, ^no, ^end
  ^end:
    return ()
  }
  func @_table (i32) -> i32 {
    br_table %i0, ^other, [^zero, ^one, ^zero]
  ^zero:
    %i0 = i32.const 100
    return (%i0)
  ^one:
    %i0 = i32.const 101
    return (%i0)
  ^other:
    %i0 = i32.const 199
    return (%i0)
  }
  func @_expect (i32, i32) -> () {
    %i0 = call @_table(%i0)
    %i0 = i32.eq %i0, %i1
    check %i0, "the table's target"
    return ()
  }
  func @br_table () -> () {
    %i1 = i32.const 100
    call @_expect(%i0, %i1)
    %i0 = i32.const 1
    %i1 = i32.const 101
    call @_expect(%i0, %i1)
    %i0 = i32.const 2
    %i1 = i32.const 100
    call @_expect(%i0, %i1)
    %i0 = i32.const 3
    %i1 = i32.const 199
    call @_expect(%i0, %i1)
    %i0 = i32.const -1
    call @_expect(%i0, %i1)
    %i2 = i32.const 7
    br_table %i2, ^end, []
  ^end:
    return ()
  }
  func @_swap (i32, any, i64, f32, f64) -> (f64, f32, i64, any, i32) {
    return (%d0, %f0, %l0, %r0, %i0)
  }
  func @_fibonacci (i32) -> i32 {
    %i1 = i32.const 2
    %i2 = i32.lt_s %i0, %i1
    br_if %i2, ^end, ^more
  ^more:
    %i3 = i32.const 1
    %i3 = i32.sub %i0, %i3
    %i3 = call @_fibonacci(%i3)
    %i0 = i32.sub %i0, %i1
    %i0 = call @_fibonacci(%i0)
    %i0 = i32.add %i0, %i3
  ^end:
    return (%i0)
  }
  func @call () -> () {
    %i0 = i32.const 20
    %i0 = call @_fibonacci(%i0)
    %i1 = i32.const 6765
    %i0 = i32.eq %i0, %i1
    check %i0, "fibonacci(20)"
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %r2 = ref.copy %r0
    %f0 = f32.const 1.5
    %d0 = f64.const 2.5
    %i0 = i32.const 7
    %d1, %f1, %l1, %r1, %i2 = call @_swap(%i0, move %r0, %l0, %f0, %d0)
    %i3 = ref.is_null %r0
    check %i3, "a moved argument is null"
    %i3 = ref.eq %r1, %r2
    check %i3, "the ref came back"
    %i3 = i32.eq %i2, %i0
    check %i3, "the i32 came back"
    %i3 = i64.eq %l1, %l0
    check %i3, "the i64 came back"
    %i3 = f32.eq %f1, %f0
    check %i3, "the f32 came back"
    %i3 = f64.eq %d1, %d0
    check %i3, "the f64 came back"
    return ()
  }
  func @"call traps: calls are nested" () -> () {
    call @"call traps: calls are nested"()
    return ()
  }
  func @call_import () -> () {
    %i0 = i32.const 41
    %l0 = i64.const -2
    %f0 = f32.const 0.5
    %d0 = f64.const 8.0
    %r0 = list.f32.new %l2
    %r1, %d1, %f1, %l1, %i1 = call_import @test.add(%i0, %l0, %f0, %d0, %r0)
    %i2 = ref.eq %r0, %r1
    check %i2, "the ref came back"
    %i3 = i32.const 42
    %i2 = i32.eq %i1, %i3
    check %i2, "41 + 1"
    %l3 = i64.const -1
    %i2 = i64.eq %l1, %l3
    check %i2, "-2 + 1"
    %f3 = f32.const 1.5
    %i2 = f32.eq %f1, %f3
    check %i2, "0.5 + 1"
    %d3 = f64.const 9.0
    %i2 = f64.eq %d1, %d3
    check %i2, "8 + 1"
    %i1 = call_import @test.sum()
    %i2 = i32.eqz %i1
    check %i2, "the sum of nothing"
    %i1 = call_import @test.sum(%i0, %i3, %i0)
    %i4 = i32.const 124
    %i2 = i32.eq %i1, %i4
    check %i2, "41 + 42 + 41"
    %i1 = call_import @test.count(move %r0, %i0, %r1, %i0, %r2)
    %i2 = ref.is_null %r0
    check %i2, "a moved argument is null"
    %i4 = i32.const 2
    %i2 = i32.eq %i1, %i4
    check %i2, "two groups"
    return ()
  }
  func @"call_import traps: argument 0 of test.count: expected any, got null" () -> () {
    %i0 = call_import @test.count(%r0)
    return ()
  }
  func @"call_import traps: optional import test.absent is absent" () -> () {
    call_import @test.absent()
    return ()
  }
  func @import.present () -> () {
    %i0 = import.present @test.absent
    %i0 = i32.eqz %i0
    check %i0, "an optional import is absent"
    %i0 = import.present @test.sum
    check %i0, "an import is there"
    return ()
  }
  func @_nothing () -> () {
    return ()
  }
  func @return () -> () {
    call @_nothing()
    return ()
  }
  func @"fail traps: as it says: \"é\"" () -> () {
    fail "as it says: \"é\""
  }
  func @check () -> () {
    %i0 = i32.const -1
    check %i0, "any bit will do"
    return ()
  }
  func @"check traps: not zero" () -> () {
    check %i0, "not zero"
    return ()
  }
  func @await () -> () {
    %l0 = i64.const 5
    %r1 = list.i32.new %l0
    %i0 = i32.const 0
    %r0 = call_import @test.fence(%i0)
    await %r0
    await move %r0
    %i1 = ref.is_null %r0
    check %i1, "a moved fence is null"
    %i0 = i32.const 1
    %r0 = call_import @test.fence(%i0)
    await %r0
    %l1 = list.i32.size %r1
    %i1 = i64.eq %l0, %l1
    check %i1, "registers survive a suspension"
    return ()
  }
  func @"await traps: expected hal.fence, got null" () -> () {
    await %r0
    return ()
  }
  func @_squares (i64, i32) -> (i64, any) {
    %l1 = i64.mul %l0, %l0
    return (%l1, %r0)
  }
  func @call.cached () -> () {
    %l0 = i64.const 3
    %i0 = i32.const 1
    %l1, %r0 = call.cached @_squares(%l0, %i0)
    %l2, %r0 = call.cached @_squares(%l0, %i0)
    %l3 = i64.const 9
    %i1 = i64.eq %l1, %l3
    check %i1, "the callee's result"
    %i1 = i64.eq %l2, %l3
    check %i1, "the same again"
    return ()
  }
  func @require () -> () {
    %i0 = i32.const 1
    require %i0 (), "not this"
    return ()
  }
  func @"require traps: 7 is not -1, nor {2}" () -> () {
    %i1 = i32.const 7
    %l0 = i64.const -1
    require %i0 (%i1, %l0), "{0} is not {1}, nor {2}"
    return ()
  }
}
