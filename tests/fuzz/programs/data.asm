// Lists of every type, host byte buffers, constants, globals of every bank set by both kinds of initializers.
export @sieve
export @sort
export @tree
export @checksum
export @bytes
export @floats
export @globals
program @reference profile "reference" {
  global @i32 : i32 mutable = -7
  global @i64 : i64 mutable = 1099511627776
  global @f32 : f32 mutable = 0.5
  global @f64 : f64 = 0.25
  global @list : list<any> mutable
  global @table : buffer
  global @words : list<i64>
  constant @bytes : tensor<16xi8> = hex "000102038081828384858687ff7f0080"
  constant @none : tensor<0x3xf32> = hex ""
  func @_setup () -> () {
    %l1 = i64.const 16
    %r0 = buffer.constant @bytes, %l0, %l1
    global.store.ref move %r0, @table
    %r1 = list.i64.new %l1
    %l2 = i64.const 15
    list.i64.set %r1, %l2, %l1
    global.store.ref %r1, @words
    %d0 = f64.const 2.5
    global.store.f64 %d0, @f64
    return ()
  }
  func @_begin () -> () {
    %l0 = i64.const 8
    %r0 = list.ref.new %l0
    global.store.ref move %r0, @list
    %i0 = i32.const 3
    global.store.i32 %i0, @i32
    return ()
  }
  func @sieve (i64) -> i64 {
    %l1 = i64.const 127
    %l0 = i64.and %l0, %l1
    %l1 = i64.const 2
    %l0 = i64.add %l0, %l1
    %r0 = list.i32.new %l0
    %l2 = i64.const 2
    %l3 = i64.const 1
    %i1 = i32.const 1
  ^next:
    %i0 = i64.ge_s %l2, %l0
    br_if %i0, ^end, ^test
  ^test:
    %i0 = list.i32.get %r0, %l2
    br_if %i0, ^after, ^prime
  ^prime:
    %l4 = i64.add %l4, %l3
    %l5 = i64.add %l2, %l2
  ^mark:
    %i0 = i64.ge_s %l5, %l0
    br_if %i0, ^after, ^set
  ^set:
    list.i32.set %r0, %l5, %i1
    %l5 = i64.add %l5, %l2
    br ^mark
  ^after:
    %l2 = i64.add %l2, %l3
    br ^next
  ^end:
    return (%l4)
  }
  func @sort (i64) -> (f32, f32) {
    %l1 = i64.const 6
    %l2 = i64.const 1
    %r0 = list.f32.new %l1
  ^fill:
    %l1 = i64.sub %l1, %l2
    %l0 = i64.mul %l0, %l0
    %l3 = i64.const 48271
    %l0 = i64.add %l0, %l3
    %f0 = f32.convert_i64_s %l0
    list.f32.set %r0, %l1, %f0
    %i0 = i64.eqz %l1
    br_if %i0, ^pass, ^fill
  ^pass:
    %i1 = i32.zero
    %l4 = i64.zero
  ^pair:
    %l5 = i64.add %l4, %l2
    %f0 = list.f32.get %r0, %l4
    %f1 = list.f32.get %r0, %l5
    %i0 = f32.gt %f0, %f1
    br_if %i0, ^swap, ^on
  ^swap:
    list.f32.set %r0, %l4, %f1
    list.f32.set %r0, %l5, %f0
    %i1 = i32.const 1
  ^on:
    %l4 = i64.copy %l5
    %l6 = i64.const 5
    %i0 = i64.lt_s %l4, %l6
    br_if %i0, ^pair, ^again
  ^again:
    br_if %i1, ^pass, ^end
  ^end:
    %l7 = i64.zero
    %f0 = list.f32.get %r0, %l7
    %f1 = list.f32.get %r0, %l4
    return (%f0, %f1)
  }
  func @tree (i32) -> i64 {
    %i1 = i32.const 7
    %i0 = i32.and %i0, %i1
    %r0 = call @_tree(%i0)
    %r1 = global.load.ref @list
    %l0 = i64.const 1
    list.ref.set %r1, %l0, %r0
    %l0 = call @_weigh(move %r0)
    return (%l0)
  }
  func @_tree (i32) -> list<any> {
    %l0 = i64.const 2
    %r0 = list.ref.new %l0
    br_if %i0, ^more, ^end
  ^more:
    %i1 = i32.const 1
    %i0 = i32.sub %i0, %i1
    %r1 = call @_tree(%i0)
    list.ref.set %r0, %l1, move %r1
    %r2 = list.f64.new %l0
    %l2 = i64.const 1
    list.ref.set %r0, %l2, %r2
  ^end:
    return (%r0)
  }
  func @_weigh (list<any>) -> i64 {
    %l0 = list.ref.size %r0
    %r1 = list.ref.get %r0, %l1
    %i0 = ref.is_null %r1
    br_if %i0, ^end, ^more
  ^more:
    %l2 = call @_weigh(%r1)
    %l0 = i64.add %l0, %l2
  ^end:
    return (%l0)
  }
  func @checksum () -> i64 {
    %r0 = global.load.ref @table
    %l1 = buffer.size %r0
    %l2 = i64.const 1
  ^loop:
    %i0 = i64.ge_u %l3, %l1
    br_if %i0, ^end, ^byte
  ^byte:
    %i1 = buffer.load8_u %r0, %l3
    %l4 = i64.extend_i32_u %i1
    %l0 = i64.rotl %l0, %l2
    %l0 = i64.xor %l0, %l4
    %l3 = i64.add %l3, %l2
    br ^loop
  ^end:
    return (%l0)
  }
  func @bytes (i64) -> i32 {
    %l1 = i64.const 1023
    %l0 = i64.and %l0, %l1
    %l1 = i64.const 32
    %l0 = i64.add %l0, %l1
    %r0 = buffer.alloc %l0
    %l2 = i64.const 8
    %i0 = i32.const 0x1234abcd
    buffer.fill32 %r0, %l2, %l2, %i0
    buffer.fill8 %r0, %l3, %l2, %i0
    buffer.fill16 %r0, %l3, %l2, %i0
    buffer.fill64 %r0, %l2, %l2, %l0
    %l3 = i64.const 16
    %r1 = buffer.slice %r0, %l2, %l3
    %l4 = i64.const 4
    buffer.copy %r0, %l2, %r1, %l4, %l2
    buffer.store8 %r1, %l4, %i0
    buffer.store16 %r1, %l2, %i0
    buffer.store.i32 %r1, %l4, %i0
    buffer.store.i64 %r1, %l2, %l0
    %i1 = buffer.load16_s %r0, %l2
    %i2 = buffer.load8_s %r1, %l4
    %l5 = buffer.load.i64 %r1, %l2
    %i3 = buffer.compare %r0, %l2, %r1, %l4, %l2
    %i3 = i32.add %i3, %i1
    %i3 = i32.add %i3, %i2
    return (%i3)
  }
  func @floats (f32, f64) -> (f64, i64) {
    %d1 = f64.promote_f32 %f0
    %d0 = f64.mul %d0, %d1
    %f1 = f32.demote_f64 %d0
    %f1 = f32.nearest %f1
    %f1 = f32.sqrt %f1
    %f0 = f32.copysign %f0, %f1
    %l0 = i64.trunc_sat_f32_s %f0
    %l1 = i64.const 16
    %r0 = buffer.alloc %l1
    %l1 = i64.const 3
    buffer.store.f64 %r0, %l1, %d0
    buffer.store.f32 %r0, %l2, %f1
    %d2 = buffer.load.f64 %r0, %l2
    %f0 = buffer.load.f32 %r0, %l1
    %i0 = f64.lt %d0, %d2
    %d0 = f64.select %i0, %d0, %d2
    %d0 = f64.max %d0, %d1
    %l0 = i64.trunc_f64_s %d0
    %r1 = list.f64.new %l1
    list.f64.set %r1, %l2, %d0
    list.f64.resize %r1, %l1
    %d0 = list.f64.get %r1, %l2
    return (%d0, %l0)
  }
  func @globals (i32) -> (i32, i64) {
    %i1 = global.load.i32 @i32
    %i1 = i32.add %i0, %i1
    global.store.i32 %i1, @i32
    %l0 = global.load.i64 @i64
    %l1 = i64.extend_i32_u %i1
    %l0 = i64.rotr %l0, %l1
    global.store.i64 %l0, @i64
    %f0 = global.load.f32 @f32
    %f0 = f32.add %f0, %f0
    global.store.f32 %f0, @f32
    %d0 = global.load.f64 @f64
    %r0 = global.load.ref @words
    %l2 = i64.const 15
    %l1 = list.i64.get %r0, %l2
    %r1 = global.load.ref @list
    %l2 = i64.const 2
    list.ref.set %r1, %l2, %r0
    %r2 = list.ref.get %r1, %l2
    %i2 = ref.eq %r0, %r2
    %r2 = ref.select %i2, move %r0, %r1
    check %i2, "the same list"
    %i1 = i32.trunc_f64_s %d0
    return (%i1, %l1)
  }
  initializer program @_setup
  initializer context @_begin
  entry @sieve
  entry @sort
  entry @tree
  entry @checksum
  entry @bytes
  entry @floats
  entry @globals
}
