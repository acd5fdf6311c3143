// Control flow, calls, lists, globals and constants; the same program for every target.
export @primes_below doc "how many primes are less than the argument"
export @fibonacci
export @greatest_common_divisor
export @days_in_month
export @mean_square
export @checksum
export @count
program @reference profile "reference" {
  global @offset : i32
  global @calls : i32 mutable = 40
  global @days : list<i64>
  constant @bytes : tensor<8xui8> = hex "01020304050607ff"
  func @setup () -> () {
    %i0 = i32.const 2
    global.store.i32 %i0, @offset
    %l0 = i64.const 12
    %r0 = list.i64.new %l0
    %l1 = i64.zero
    %l2 = i64.const 1
  ^fill:
    %i0 = i32.wrap_i64 %l1
    %l3 = call @days_of(%i0)
    list.i64.set %r0, %l1, %l3
    %l1 = i64.add %l1, %l2
    %i1 = i64.lt_s %l1, %l0
    br_if %i1, ^fill, ^end
  ^end:
    global.store.ref move %r0, @days
    return ()
  }
  func @begin () -> () {
    %i0 = global.load.i32 @calls
    %i1 = i32.const 1
    %i0 = i32.add %i0, %i1
    global.store.i32 %i0, @calls
    return ()
  }
  func @days_of (i32) -> i64 {
    br_table %i0, ^long, [^long, ^february, ^long, ^short, ^long, ^short, ^long, ^long, ^short, ^long, ^short, ^long]
  ^february:
    %l0 = i64.const 28
    return (%l0)
  ^short:
    %l0 = i64.const 30
    return (%l0)
  ^long:
    %l0 = i64.const 31
    return (%l0)
  }
  func @days_in_month (i64) -> i64 {
    %r0 = global.load.ref @days
    %l0 = list.i64.get %r0, %l0
    return (%l0)
  }
  func @primes_below (i64) -> i64 {
    %l1 = i64.const 2
    %l2 = i64.const 1
    %i1 = i32.const 1
    %r0 = list.i32.new %l0
  ^next:
    %i0 = i64.ge_s %l1, %l0
    br_if %i0, ^end, ^test
  ^test:
    %i0 = list.i32.get %r0, %l1
    br_if %i0, ^after, ^prime
  ^prime:
    %l3 = i64.add %l3, %l2
    %l4 = i64.add %l1, %l1
  ^mark:
    %i0 = i64.ge_s %l4, %l0
    br_if %i0, ^after, ^set
  ^set:
    list.i32.set %r0, %l4, %i1
    %l4 = i64.add %l4, %l1
    br ^mark
  ^after:
    %l1 = i64.add %l1, %l2
    br ^next
  ^end:
    return (%l3)
  }
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
  func @greatest_common_divisor (i64, i64) -> i64 {
  ^again:
    %i0 = i64.eqz %l1
    br_if %i0, ^end, ^step
  ^step:
    %l2 = i64.rem_u %l0, %l1
    %l0 = i64.copy %l1
    %l1 = i64.copy %l2
    br ^again
  ^end:
    return (%l0)
  }
  func @mean_square (i64) -> (f64, list<any>) {
    %l1 = i64.const 1
    %r0 = list.f64.new %l0
  ^fill:
    %i0 = i64.lt_s %l2, %l0
    br_if %i0, ^set, ^sum
  ^set:
    %d0 = f64.convert_i64_s %l2
    %d0 = f64.mul %d0, %d0
    list.f64.set %r0, %l2, %d0
    %l2 = i64.add %l2, %l1
    br ^fill
  ^sum:
    %l2 = i64.sub %l2, %l1
    %d1 = list.f64.get %r0, %l2
    %d2 = f64.add %d2, %d1
    br_if %i0, ^sum, ^test
  ^test:
    %i0 = i64.eqz %l2
    br_if %i0, ^end, ^sum
  ^end:
    %d3 = f64.convert_i64_s %l0
    %d2 = f64.div %d2, %d3
    return (%d2, %r1)
  }
  func @checksum () -> i64 {
    %l1 = i64.const 8
    %l2 = i64.const 1
    %r0 = buffer.constant @bytes, %l0, %l1
  ^loop:
    %i0 = buffer.load8_u %r0, %l3
    %l4 = i64.extend_i32_u %i0
    %l5 = i64.const 7
    %l0 = i64.rotl %l0, %l5
    %l0 = i64.xor %l0, %l4
    %l3 = i64.add %l3, %l2
    %i0 = i64.lt_u %l3, %l1
    br_if %i0, ^loop, ^end
  ^end:
    return (%l0)
  }
  func @count () -> i32 {
    %i0 = global.load.i32 @calls
    %i1 = global.load.i32 @offset
    %i0 = i32.add %i0, %i1
    global.store.i32 %i0, @calls
    return (%i0)
  }
  initializer program @setup
  initializer context @begin
  entry @primes_below
  entry @fibonacci
  entry @greatest_common_divisor
  entry @days_in_month
  entry @mean_square
  entry @checksum
  entry @count
}
