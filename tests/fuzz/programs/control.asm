// Control flow and calls: loops, a state machine by table, recursion, mutual recursion, many arguments and results.
import @test.add (i32, i64, f32, f64, any) -> (any, f64, f32, i64, i32)
import @test.sum (i32*) -> i32
import @test.count (any, (i32, any)*) -> i32
import @test.absent (i32) -> i32 optional
export @fibonacci
export @collatz
export @machine
export @swap
export @even
export @natives
export @nested
export @failing
program @reference profile "reference" {
  func @fibonacci (i32) -> i32 {
    %i1 = i32.const 2
    %i2 = i32.lt_s %i0, %i1
    br_if %i2, ^end, ^more
  ^more:
    %i3 = i32.const 1
    %i3 = i32.sub %i0, %i3
    %i3 = call @fibonacci(%i3)
    %i0 = i32.sub %i0, %i1
    %i0 = call @fibonacci(%i0)
    %i0 = i32.add %i0, %i3
  ^end:
    return (%i0)
  }
  func @collatz (i64) -> (i64, i64) {
    %l1 = i64.const 1
    %l2 = i64.const 3
  ^loop:
    %i0 = i64.le_s %l0, %l1
    br_if %i0, ^end, ^step
  ^step:
    %l3 = i64.add %l3, %l1
    %l4 = i64.and %l0, %l1
    %i0 = i64.eqz %l4
    br_if %i0, ^even, ^odd
  ^even:
    %l0 = i64.shr_u %l0, %l1
    br ^loop
  ^odd:
    %l0 = i64.mul %l0, %l2
    %l0 = i64.add %l0, %l1
    br ^loop
  ^end:
    return (%l3, %l0)
  }
  func @machine (i32) -> i32 {
    %i3 = i32.const 1
    %i4 = i32.const 40
  ^next:
    %i2 = i32.add %i2, %i3
    %i5 = i32.gt_u %i2, %i4
    br_if %i5, ^done, ^go
  ^go:
    br_table %i0, ^other, [^zero, ^one, ^two, ^zero]
  ^zero:
    %i0 = i32.const 2
    br ^next
  ^one:
    %i0 = i32.const 7
    br ^next
  ^two:
    %i0 = i32.popcnt %i2
    br ^next
  ^other:
    %i0 = i32.const 3
    %i0 = i32.rem_u %i2, %i0
    br ^next
  ^done:
    check %i2, "forty rounds"
    return (%i0)
  }
  func @swap (i32, i64, f32, f64) -> (f64, f32, i64, i32) {
    %l1 = i64.const 2
    %r0 = list.i32.new %l1
    %d0, %f0, %l0, %r1, %i0 = call @_swap(%i0, move %r0, %l0, %f0, %d0)
    %i1 = ref.is_null %r0
    check %i1, "moved"
    return (%d0, %f0, %l0, %i0)
  }
  func @_swap (i32, any, i64, f32, f64) -> (f64, f32, i64, any, i32) {
    return (%d0, %f0, %l0, move %r0, %i0)
  }
  func @even (i32) -> i32 {
    %i1 = i32.const 255
    %i0 = i32.and %i0, %i1
    %l0 = i64.const 3
    %r0 = list.ref.new %l0
    %i0 = call @_even(%i0, move %r0)
    return (%i0)
  }
  func @_even (i32, list<any>) -> i32 {
    br_if %i0, ^more, ^yes
  ^yes:
    %i0 = i32.const 1
    return (%i0)
  ^more:
    %i1 = i32.const 1
    %i0 = i32.sub %i0, %i1
    %i0 = call @_odd(%i0, move %r0)
    return (%i0)
  }
  func @_odd (i32, list<any>) -> i32 {
    br_if %i0, ^more, ^no
  ^no:
    return (%i0)
  ^more:
    %i1 = i32.const 1
    list.ref.set %r0, %l0, %r0
    list.ref.set %r0, %l0, %r1
    %i0 = i32.sub %i0, %i1
    %i0 = call @_even(%i0, move %r0)
    return (%i0)
  }
  func @natives (i32, f64) -> (i32, f64) {
    %r0, %d0, %f0, %l0, %i1 = call_import @test.add(%i0, %l0, %f0, %d0, %r0)
    %i2 = call_import @test.sum(%i0, %i1, %i0)
    %i3 = import.present @test.absent
    br_if %i3, ^call, ^skip
  ^call:
    %i2 = call_import @test.absent(%i2)
  ^skip:
    %r0 = list.f64.new %l0
    %i1 = call_import @test.count(%r0, %i1, %r0, %i2, %r1)
    %i2 = i32.add %i1, %i2
    return (%i2, %d0)
  }
  func @nested (i32) -> i64 {
    %i1 = i32.const 15
    %i0 = i32.and %i0, %i1
    %i1 = i32.const 1
  ^outer:
    %i2 = i32.copy %i0
  ^inner:
    %l1 = i64.extend_i32_s %i2
    %l0 = i64.add %l0, %l1
    %i2 = i32.sub %i2, %i1
    %i3 = i32.zero
    %i3 = i32.gt_s %i2, %i3
    br_if %i3, ^inner, ^next
  ^next:
    %i0 = i32.sub %i0, %i1
    %i3 = i32.zero
    %i3 = i32.gt_s %i0, %i3
    br_if %i3, ^outer, ^end
  ^end:
    return (%l0)
  }
  func @failing (i32) -> () {
    br_if %i0, ^no, ^yes
  ^no:
    fail "as asked" loc "control.asm:1:2"
  ^yes:
    %i1 = i32.const 1
    %i1 = i32.div_s %i1, %i0 loc "control.asm:3:4"
    return ()
  }

  entry @fibonacci
  entry @collatz
  entry @machine
  entry @swap
  entry @even
  entry @natives
  entry @nested
  entry @failing
}
