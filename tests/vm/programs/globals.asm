// Globals of a program: initial values, loads, stores.
program @test profile "reference" {
  global @c_i32 : i32 = -5
  global @c_i64 : i64 = -5000000000
  global @c_f32 : f32 = 1.5
  global @c_f64 : f64 = -0.1
  global @m_i32 : i32 mutable
  global @m_i64 : i64 mutable
  global @m_f32 : f32 mutable
  global @m_f64 : f64 mutable
  global @m_ref : any mutable
  func @global.load.i32 () -> () {
    %i0 = global.load.i32 @c_i32
    %i1 = i32.const -5
    %i2 = i32.eq %i0, %i1
    check %i2, "the initial value"
    return ()
  }
  func @global.store.i32 () -> () {
    %i0 = i32.const 5
    global.store.i32 %i0, @m_i32
    %i1 = global.load.i32 @m_i32
    %i2 = i32.eq %i0, %i1
    check %i2, "what was stored"
    %i0 = i32.const -7
    %i2 = i32.eq %i0, %i1
    %i2 = i32.eqz %i2
    check %i2, "a register is no global"
    return ()
  }
  func @global.load.i64 () -> () {
    %l0 = global.load.i64 @c_i64
    %l1 = i64.const -5000000000
    %i2 = i64.eq %l0, %l1
    check %i2, "the initial value"
    return ()
  }
  func @global.store.i64 () -> () {
    %l0 = i64.const 5
    global.store.i64 %l0, @m_i64
    %l1 = global.load.i64 @m_i64
    %i2 = i64.eq %l0, %l1
    check %i2, "what was stored"
    %l0 = i64.const -7
    %i2 = i64.eq %l0, %l1
    %i2 = i32.eqz %i2
    check %i2, "a register is no global"
    return ()
  }
  func @global.load.f32 () -> () {
    %f0 = global.load.f32 @c_f32
    %f1 = f32.const 1.5
    %i2 = f32.eq %f0, %f1
    check %i2, "the initial value"
    return ()
  }
  func @global.store.f32 () -> () {
    %f0 = f32.const 5.0
    global.store.f32 %f0, @m_f32
    %f1 = global.load.f32 @m_f32
    %i2 = f32.eq %f0, %f1
    check %i2, "what was stored"
    %f0 = f32.const -7.5
    %i2 = f32.eq %f0, %f1
    %i2 = i32.eqz %i2
    check %i2, "a register is no global"
    return ()
  }
  func @global.load.f64 () -> () {
    %d0 = global.load.f64 @c_f64
    %d1 = f64.const -0.1
    %i2 = f64.eq %d0, %d1
    check %i2, "the initial value"
    return ()
  }
  func @global.store.f64 () -> () {
    %d0 = f64.const 5.0
    global.store.f64 %d0, @m_f64
    %d1 = global.load.f64 @m_f64
    %i2 = f64.eq %d0, %d1
    check %i2, "what was stored"
    %d0 = f64.const -7.5
    %i2 = f64.eq %d0, %d1
    %i2 = i32.eqz %i2
    check %i2, "a register is no global"
    return ()
  }
  func @global.load.ref () -> () {
    %r0 = ref.null
    global.store.ref %r0, @m_ref
    %r1 = global.load.ref @m_ref
    %i0 = ref.is_null %r1
    check %i0, "null"
    return ()
  }
  func @global.store.ref () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %r1 = ref.copy %r0
    global.store.ref move %r0, @m_ref
    %i0 = ref.is_null %r0
    check %i0, "what was moved is null"
    %r2 = global.load.ref @m_ref
    %i0 = ref.eq %r1, %r2
    check %i0, "what was stored"
    return ()
  }
}
