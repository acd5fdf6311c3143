// Host byte buffers.
program @test profile "reference" {
  constant @bytes : tensor<16xi8> = hex "000102038081828384858687ff7f0080"
  func @_bytes () -> buffer {
    %l1 = i64.const 16
    %r0 = buffer.constant @bytes, %l0, %l1
    return (%r0)
  }
  func @_copy () -> buffer {
    %l1 = i64.const 16
    %r0 = buffer.constant @bytes, %l0, %l1
    %r1 = buffer.alloc %l1
    buffer.copy %r0, %l0, %r1, %l0, %l1
    return (%r1)
  }
  func @_expect_byte (buffer, i64, i32) -> () {
    %i1 = buffer.load8_u %r0, %l0
    %i1 = i32.eq %i0, %i1
    check %i1, "the byte"
    return ()
  }
  func @buffer.alloc () -> () {
    %l0 = i64.const 9
    %r0 = buffer.alloc %l0
    %l0 = i64.const 1
    %l1 = buffer.load.i64 %r0, %l0
    %i0 = i64.eqz %l1
    check %i0, "zero bytes"
    %r0 = buffer.alloc %l2
    %l0 = buffer.size %r0
    %i0 = i64.eqz %l0
    check %i0, "no bytes"
    return ()
  }
  func @"buffer.alloc traps: buffer size -1 is negative" () -> () {
    %l0 = i64.const -1
    %r0 = buffer.alloc %l0
    return ()
  }
  func @buffer.constant () -> () {
    %l0 = i64.const 4
    %l1 = i64.const 2
    %r0 = buffer.constant @bytes, %l0, %l1
    %l2 = buffer.size %r0
    %i0 = i64.eq %l1, %l2
    check %i0, "the size of the range"
    %i0 = i32.const 0x80
    call @_expect_byte(%r0, %l3, %i0)
    return ()
  }
  func @"buffer.constant traps: bytes 16 to 17 are outside a buffer of 16 bytes" () -> () {
    %l0 = i64.const 16
    %l1 = i64.const 1
    %r0 = buffer.constant @bytes, %l0, %l1
    return ()
  }
  func @buffer.slice () -> () {
    %r0 = call @_copy()
    %l0 = i64.const 8
    %r1 = buffer.slice %r0, %l0, %l0
    %l1 = i64.const 1
    %r1 = buffer.slice move %r1, %l1, %l1
    %i0 = i32.const 17
    buffer.store8 %r1, %l2, %i0
    %l0 = i64.const 9
    call @_expect_byte(%r0, %l0, %i0)
    return ()
  }
  func @"buffer.slice traps: bytes -1 to 3 are outside a buffer of 16 bytes" () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const -1
    %l1 = i64.const 4
    %r0 = buffer.slice %r0, %l0, %l1
    return ()
  }
  func @"buffer.store8 traps: buffer of 3 bytes is read-only" () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 3
    %r0 = buffer.slice %r0, %l0, %l0
    buffer.store8 %r0, %l1, %i0
    return ()
  }
  func @buffer.size () -> () {
    %r0 = call @_bytes()
    %l0 = buffer.size %r0
    %l1 = i64.const 16
    %i0 = i64.eq %l0, %l1
    check %i0, "sixteen"
    return ()
  }
  func @"buffer.size traps: expected buffer, got list<i32>" () -> () {
    %r0 = list.i32.new %l0
    %r1 = call @_any(%r0)
    %l0 = buffer.size %r1
    return ()
  }
  func @_any (any) -> any {
    return (%r0)
  }
  func @buffer.load8_s () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 4
    %i0 = buffer.load8_s %r0, %l0
    %i1 = i32.const -128
    %i0 = i32.eq %i0, %i1
    check %i0, "0x80"
    return ()
  }
  func @"buffer.load8_s traps: bytes 16 to 17 are outside" () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 16
    %i0 = buffer.load8_s %r0, %l0
    return ()
  }
  func @buffer.load8_u () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 4
    %i0 = i32.const 128
    call @_expect_byte(%r0, %l0, %i0)
    return ()
  }
  func @buffer.load16_s () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 13
    %i0 = buffer.load16_s %r0, %l0
    %i1 = i32.const 127
    %i0 = i32.eq %i0, %i1
    check %i0, "0x007f, not aligned"
    %l0 = i64.const 14
    %i0 = buffer.load16_s %r0, %l0
    %i1 = i32.const -32768
    %i0 = i32.eq %i0, %i1
    check %i0, "0x8000"
    return ()
  }
  func @buffer.load16_u () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 14
    %i0 = buffer.load16_u %r0, %l0
    %i1 = i32.const 32768
    %i0 = i32.eq %i0, %i1
    check %i0, "0x8000"
    return ()
  }
  func @"buffer.load16_u traps: bytes 15 to 17 are outside" () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 15
    %i0 = buffer.load16_u %r0, %l0
    return ()
  }
  func @buffer.load.i32 () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 1
    %i0 = buffer.load.i32 %r0, %l0
    %i1 = i32.const 0x80030201
    %i0 = i32.eq %i0, %i1
    check %i0, "little endian, not aligned"
    return ()
  }
  func @buffer.load.i64 () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 4
    %l0 = buffer.load.i64 %r0, %l0
    %l1 = i64.const 0x8786858483828180
    %i0 = i64.eq %l0, %l1
    check %i0, "little endian"
    return ()
  }
  func @"buffer.load.i64 traps: bytes 9223372036854775807 to 9223372036854775815 are outside" () -> () {
    %r0 = call @_bytes()
    %l0 = i64.const 9223372036854775807
    %l0 = buffer.load.i64 %r0, %l0
    return ()
  }
  func @buffer.load.f32 () -> () {
    %l0 = i64.const 4
    %r0 = buffer.alloc %l0
    %i0 = i32.const 0xffa12345
    buffer.store.i32 %r0, %l1, %i0
    %f0 = buffer.load.f32 %r0, %l1
    %i1 = i32.reinterpret_f32 %f0
    %i0 = i32.eq %i0, %i1
    check %i0, "the bits of a signalling NaN"
    return ()
  }
  func @buffer.load.f64 () -> () {
    %l0 = i64.const 8
    %r0 = buffer.alloc %l0
    %l2 = i64.const 0xfff0000000000001
    buffer.store.i64 %r0, %l1, %l2
    %d0 = buffer.load.f64 %r0, %l1
    %l3 = i64.reinterpret_f64 %d0
    %i0 = i64.eq %l2, %l3
    check %i0, "the bits of a signalling NaN"
    return ()
  }
  func @buffer.store8 () -> () {
    %r0 = call @_copy()
    %i0 = i32.const 0x1ff
    %l0 = i64.const 2
    buffer.store8 %r0, %l0, %i0
    %i0 = i32.const 0xff
    call @_expect_byte(%r0, %l0, %i0)
    %l0 = i64.const 3
    %i0 = i32.const 3
    call @_expect_byte(%r0, %l0, %i0)
    return ()
  }
  func @buffer.store16 () -> () {
    %r0 = call @_copy()
    %i0 = i32.const -2
    %l0 = i64.const 3
    buffer.store16 %r0, %l0, %i0
    %i0 = buffer.load16_u %r0, %l0
    %i1 = i32.const 0xfffe
    %i0 = i32.eq %i0, %i1
    check %i0, "what was stored"
    return ()
  }
  func @buffer.store.i32 () -> () {
    %r0 = call @_copy()
    %i0 = i32.const -2
    %l0 = i64.const 3
    buffer.store.i32 %r0, %l0, %i0
    %i1 = buffer.load.i32 %r0, %l0
    %i0 = i32.eq %i0, %i1
    check %i0, "what was stored"
    return ()
  }
  func @"buffer.store.i32 traps: bytes 13 to 17 are outside a buffer of 16 bytes" () -> () {
    %r0 = call @_copy()
    %l0 = i64.const 13
    buffer.store.i32 %r0, %l0, %i0
    return ()
  }
  func @buffer.store.i64 () -> () {
    %r0 = call @_copy()
    %l1 = i64.const -2
    %l0 = i64.const 3
    buffer.store.i64 %r0, %l0, %l1
    %l2 = buffer.load.i64 %r0, %l0
    %i0 = i64.eq %l1, %l2
    check %i0, "what was stored"
    return ()
  }
  func @buffer.store.f32 () -> () {
    %l0 = i64.const 4
    %r0 = buffer.alloc %l0
    %f0 = f32.const 0xffa12345
    buffer.store.f32 %r0, %l1, %f0
    %i0 = buffer.load.i32 %r0, %l1
    %i1 = i32.const 0xffa12345
    %i0 = i32.eq %i0, %i1
    check %i0, "the bits of a signalling NaN"
    return ()
  }
  func @buffer.store.f64 () -> () {
    %l0 = i64.const 8
    %r0 = buffer.alloc %l0
    %d0 = f64.const 0.1
    buffer.store.f64 %r0, %l1, %d0
    %l2 = buffer.load.i64 %r0, %l1
    %l3 = i64.const 0x3fb999999999999a
    %i0 = i64.eq %l2, %l3
    check %i0, "the bits"
    return ()
  }
  func @buffer.fill8 () -> () {
    %r0 = call @_copy()
    %l0 = i64.const 5
    %i0 = i32.const 0x177
    buffer.fill8 %r0, %l0, %l0, %i0
    %i0 = i32.const 0x77
    call @_expect_byte(%r0, %l0, %i0)
    %l0 = i64.const 9
    call @_expect_byte(%r0, %l0, %i0)
    %l0 = i64.const 10
    %i0 = i32.const 0x86
    call @_expect_byte(%r0, %l0, %i0)
    return ()
  }
  func @buffer.fill16 () -> () {
    %r0 = call @_copy()
    %l0 = i64.const 5
    %l1 = i64.const 4
    %i0 = i32.const 0x11234
    buffer.fill16 %r0, %l0, %l1, %i0
    %i1 = buffer.load.i32 %r0, %l0
    %i0 = i32.const 0x12341234
    %i0 = i32.eq %i0, %i1
    check %i0, "twice"
    return ()
  }
  func @"buffer.fill16 traps: fill of 3 bytes with a pattern of 2: not whole patterns" () -> () {
    %r0 = call @_copy()
    %l1 = i64.const 3
    buffer.fill16 %r0, %l0, %l1, %i0
    return ()
  }
  func @buffer.fill32 () -> () {
    %r0 = call @_copy()
    %l1 = i64.const 8
    %i0 = i32.const -2
    buffer.fill32 %r0, %l0, %l1, %i0
    %l1 = buffer.load.i64 %r0, %l0
    %l2 = i64.const 0xfffffffefffffffe
    %i0 = i64.eq %l1, %l2
    check %i0, "twice"
    return ()
  }
  func @buffer.fill64 () -> () {
    %r0 = call @_copy()
    %l1 = i64.const 8
    %l2 = i64.const 0x0102030405060708
    buffer.fill64 %r0, %l1, %l1, %l2
    %l3 = buffer.load.i64 %r0, %l1
    %i0 = i64.eq %l3, %l2
    check %i0, "once"
    buffer.fill64 %r0, %l0, %l0, %l2
    %i0 = buffer.load8_u %r0, %l0
    %i0 = i32.eqz %i0
    check %i0, "a fill of nothing"
    return ()
  }
  func @buffer.copy () -> () {
    %r0 = call @_copy()
    %l1 = i64.const 1
    %l2 = i64.const 8
    buffer.copy %r0, %l0, %r0, %l1, %l2
    %l3 = buffer.load.i64 %r0, %l1
    %l4 = i64.const 0x8382818003020100
    %i0 = i64.eq %l3, %l4
    check %i0, "upwards over itself"
    %r0 = call @_copy()
    buffer.copy %r0, %l1, %r0, %l0, %l2
    %l3 = buffer.load.i64 %r0, %l0
    %l4 = i64.const 0x8483828180030201
    %i0 = i64.eq %l3, %l4
    check %i0, "downwards over itself"
    return ()
  }
  func @"buffer.copy traps: buffer of 16 bytes is read-only" () -> () {
    %r0 = call @_bytes()
    buffer.copy %r0, %l0, %r0, %l0, %l0
    return ()
  }
  func @"buffer.copy traps: bytes 10 to 18 are outside a buffer of 16 bytes" () -> () {
    %r0 = call @_copy()
    %l1 = i64.const 8
    %l2 = i64.const 10
    buffer.copy %r0, %l0, %r0, %l2, %l1
    return ()
  }
  func @_compare (i64, i64, i64, i32) -> () {
    %r0 = call @_bytes()
    %i1 = buffer.compare %r0, %l0, %r0, %l1, %l2
    %i1 = i32.eq %i0, %i1
    check %i1, "the order"
    return ()
  }
  func @buffer.compare () -> () {
    %l1 = i64.const 1
    %l2 = i64.const 4
    %i0 = i32.const -1
    call @_compare(%l0, %l1, %l1, %i0)
    %i0 = i32.const 1
    call @_compare(%l2, %l1, %l1, %i0)
    %i0 = i32.const 0
    call @_compare(%l2, %l2, %l2, %i0)
    call @_compare(%l2, %l1, %l0, %i0)
    return ()
  }
  func @"buffer.compare traps: bytes 0 to 17 are outside a buffer of 16 bytes" () -> () {
    %r0 = call @_bytes()
    %l1 = i64.const 17
    %i0 = buffer.compare %r0, %l0, %r0, %l0, %l1
    return ()
  }
}
