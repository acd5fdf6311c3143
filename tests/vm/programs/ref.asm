// References: null, copies, selection, identity, move bits.
program @test profile "reference" {
  func @ref.null () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %r0 = ref.null
    %i0 = ref.is_null %r0
    check %i0, "null"
    return ()
  }
  func @ref.copy () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %r1 = ref.copy %r0
    %i0 = ref.eq %r0, %r1
    check %i0, "the same object"
    %r2 = ref.copy move %r1
    %i0 = ref.is_null %r1
    check %i0, "what was moved is null"
    %i0 = ref.eq %r0, %r2
    check %i0, "it moved"
    %r2 = ref.copy move %r2
    %i0 = ref.eq %r0, %r2
    check %i0, "moved onto itself it stays"
    return ()
  }
  func @ref.select () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %r1 = list.i32.new %l0
    %i0 = i32.const 1
    %r2 = ref.select %i0, %r0, %r1
    %i2 = ref.eq %r2, %r0
    check %i2, "the first"
    %r2 = ref.select %i1, move %r0, move %r1
    %i2 = ref.eq %r2, %r0
    %i2 = i32.eqz %i2
    check %i2, "the second"
    %i2 = ref.is_null %r0
    check %i2, "the first moved"
    %i2 = ref.is_null %r1
    check %i2, "the second moved"
    return ()
  }
  func @ref.is_null () -> () {
    %i0 = ref.is_null %r0
    check %i0, "a register starts as null"
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %i0 = ref.is_null move %r0
    %i0 = i32.eqz %i0
    check %i0, "a list is not null"
    %i0 = ref.is_null %r0
    check %i0, "what was moved is null"
    return ()
  }
  func @ref.eq () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %r1 = list.i32.new %l0
    %i0 = ref.eq %r0, %r1
    %i0 = i32.eqz %i0
    check %i0, "two lists"
    %i0 = ref.eq %r0, %r2
    %i0 = i32.eqz %i0
    check %i0, "a list and null"
    %i0 = ref.eq %r3, %r2
    check %i0, "null and null"
    return ()
  }
}
