// Constants, copies and selection of numbers.
program @test profile "reference" {
  func @i32.const () -> () {
    %i0 = i32.const 0x80000000
    %i1 = i32.const -2147483648
    %i2 = i32.eq %i0, %i1
    check %i2, "an immediate may be written unsigned"
    return ()
  }
  func @i64.const () -> () {
    %l0 = i64.const 0xffffffffffffffff
    %l1 = i64.const -1
    %i2 = i64.eq %l0, %l1
    check %i2, "an immediate may be written unsigned"
    return ()
  }
  func @f32.const () -> () {
    %f0 = f32.const 0xffa12345
    %i0 = i32.reinterpret_f32 %f0
    %i1 = i32.const 0xffa12345
    %i2 = i32.eq %i0, %i1
    check %i2, "a signalling NaN stays as it is"
    %f0 = f32.const -1e-45
    %i0 = i32.reinterpret_f32 %f0
    %i1 = i32.const 0x80000001
    %i2 = i32.eq %i0, %i1
    check %i2, "the least subnormal"
    return ()
  }
  func @f64.const () -> () {
    %d0 = f64.const 0xfff0000000000001
    %l0 = i64.reinterpret_f64 %d0
    %l1 = i64.const 0xfff0000000000001
    %i2 = i64.eq %l0, %l1
    check %i2, "a signalling NaN stays as it is"
    %d0 = f64.const 0.1
    %l0 = i64.reinterpret_f64 %d0
    %l1 = i64.const 0x3fb999999999999a
    %i2 = i64.eq %l0, %l1
    check %i2, "the nearest to 0.1"
    return ()
  }
  func @i32.zero () -> () {
    %i0 = i32.const 1
    br ^a
  ^a:
    %i0 = i32.zero
    %i0 = i32.eqz %i0
    check %i0, "zero"
    return ()
  }
  func @i64.zero () -> () {
    %l0 = i64.const 1
    br ^a
  ^a:
    %l0 = i64.zero
    %i0 = i64.eqz %l0
    check %i0, "zero"
    return ()
  }
  func @f32.zero () -> () {
    %f0 = f32.const -0.0
    br ^a
  ^a:
    %f0 = f32.zero
    %i0 = i32.reinterpret_f32 %f0
    %i0 = i32.eqz %i0
    check %i0, "positive zero"
    return ()
  }
  func @f64.zero () -> () {
    %d0 = f64.const -0.0
    br ^a
  ^a:
    %d0 = f64.zero
    %l0 = i64.reinterpret_f64 %d0
    %i0 = i64.eqz %l0
    check %i0, "positive zero"
    return ()
  }
  func @i32.copy () -> () {
    %i0 = i32.const 5
    %i1 = i32.copy %i0
    %i0 = i32.const 6
    %i2 = i32.const 5
    %i2 = i32.eq %i1, %i2
    check %i2, "the copy keeps its value"
    return ()
  }
  func @i64.copy () -> () {
    %l0 = i64.const 5
    %l1 = i64.copy %l0
    %l0 = i64.const 6
    %l2 = i64.const 5
    %i2 = i64.eq %l1, %l2
    check %i2, "the copy keeps its value"
    return ()
  }
  func @f32.copy () -> () {
    %f0 = f32.const 0x7fa00001
    %f1 = f32.copy %f0
    %i0 = i32.reinterpret_f32 %f1
    %i1 = i32.const 0x7fa00001
    %i2 = i32.eq %i0, %i1
    check %i2, "bit by bit"
    return ()
  }
  func @f64.copy () -> () {
    %d0 = f64.const 0x7ff0000000000001
    %d1 = f64.copy %d0
    %l0 = i64.reinterpret_f64 %d1
    %l1 = i64.const 0x7ff0000000000001
    %i2 = i64.eq %l0, %l1
    check %i2, "bit by bit"
    return ()
  }
  func @i32.select () -> () {
    %i0 = i32.const 5
    %i1 = i32.const 6
    %i2 = i32.select %i0, %i0, %i1
    %i2 = i32.eq %i2, %i0
    check %i2, "the first"
    %i3 = i32.zero
    %i2 = i32.select %i3, %i0, %i1
    %i2 = i32.eq %i2, %i1
    check %i2, "the second"
    return ()
  }
  func @i64.select () -> () {
    %l0 = i64.const 5
    %l1 = i64.const 6
    %i0 = i32.const 1
    %l2 = i64.select %i0, %l0, %l1
    %i2 = i64.eq %l2, %l0
    check %i2, "the first"
    %l2 = i64.select %i1, %l0, %l1
    %i2 = i64.eq %l2, %l1
    check %i2, "the second"
    return ()
  }
  func @f32.select () -> () {
    %f0 = f32.const 5.0
    %f1 = f32.const 6.0
    %i0 = i32.const 1
    %f2 = f32.select %i0, %f0, %f1
    %i2 = f32.eq %f2, %f0
    check %i2, "the first"
    %f2 = f32.select %i1, %f0, %f1
    %i2 = f32.eq %f2, %f1
    check %i2, "the second"
    return ()
  }
  func @f64.select () -> () {
    %d0 = f64.const 5.0
    %d1 = f64.const 6.0
    %i0 = i32.const 1
    %d2 = f64.select %i0, %d0, %d1
    %i2 = f64.eq %d2, %d0
    check %i2, "the first"
    %d2 = f64.select %i1, %d0, %d1
    %i2 = f64.eq %d2, %d1
    check %i2, "the second"
    return ()
  }
}
