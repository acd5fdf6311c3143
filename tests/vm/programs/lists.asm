// Typed lists.
program @test profile "reference" {
  func @list.i32.new () -> () {
    %l0 = i64.const 3
    %r0 = list.i32.new %l0
    %l1 = i64.const 2
    %i2 = list.i32.get %r0, %l1
    %i1 = i32.zero
    %i0 = i32.eq %i2, %i1
    check %i0, "elements start as zero or null"
    %r0 = list.i32.new %l2
    return ()
  }
  func @"list.i32.new traps: list size -1 is negative" () -> () {
    %l0 = i64.const -1
    %r0 = list.i32.new %l0
    return ()
  }
  func @list.i32.size () -> () {
    %l0 = i64.const 3
    %r0 = list.i32.new %l0
    %l1 = list.i32.size %r0
    %i0 = i64.eq %l0, %l1
    check %i0, "three"
    return ()
  }
  func @"list.i32.size traps: expected list<i32>, got null" () -> () {
    %l0 = list.i32.size %r0
    return ()
  }
  func @list.i32.resize () -> () {
    %l0 = i64.const 2
    %r0 = list.i32.new %l0
    %l1 = i64.const 1
    %i2 = i32.const 5
    list.i32.set %r0, %l1, %i2
    %l0 = i64.const 4
    list.i32.resize %r0, %l0
    %i3 = list.i32.get %r0, %l1
    %i0 = i32.eq %i2, %i3
    check %i0, "old elements stay"
    %l1 = i64.const 3
    %i5 = list.i32.get %r0, %l1
    %i4 = i32.zero
    %i1 = i32.eq %i5, %i4
    check %i1, "new elements are zero or null"
    list.i32.resize %r0, %l3
    %l2 = list.i32.size %r0
    %i0 = i64.eqz %l2
    check %i0, "cut to nothing"
    return ()
  }
  func @"list.i32.resize traps: list size -2 is negative" () -> () {
    %r0 = list.i32.new %l0
    %l0 = i64.const -2
    list.i32.resize %r0, %l0
    return ()
  }
  func @list.i32.get () -> () {
    %l0 = i64.const 2
    %r0 = list.i32.new %l0
    %i1 = i32.const 5
    %i2 = i32.const -7
    %l1 = i64.const 1
    list.i32.set %r0, %l2, %i1
    list.i32.set %r0, %l1, %i2
    %i3 = list.i32.get %r0, %l1
    %i0 = i32.eq %i3, %i2
    check %i0, "the second element"
    %i3 = list.i32.get %r0, %l2
    %i0 = i32.eq %i3, %i1
    check %i0, "the first element"
    return ()
  }
  func @"list.i32.get traps: index 2 is outside a list of 2 elements" () -> () {
    %l0 = i64.const 2
    %r0 = list.i32.new %l0
    %i0 = list.i32.get %r0, %l0
    return ()
  }
  func @list.i32.set () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %i1 = i32.const -7
    list.i32.set %r0, %l1, %i1
    %i2 = list.i32.get %r0, %l1
    %i0 = i32.eq %i2, %i1
    check %i0, "what was set"
    return ()
  }
  func @"list.i32.set traps: index -1 is outside a list of 1 elements" () -> () {
    %l0 = i64.const 1
    %r0 = list.i32.new %l0
    %l1 = i64.const -1
    list.i32.set %r0, %l1, %i0
    return ()
  }
  func @_any_i32 () -> any {
    %r0 = list.i32.new %l0
    return (%r0)
  }
  func @"list.i32.set traps: expected list<i32>, got list<any>" () -> () {
    %r0 = call @_any_ref()
    list.i32.set %r0, %l0, %i0
    return ()
  }
  func @list.i64.new () -> () {
    %l0 = i64.const 3
    %r0 = list.i64.new %l0
    %l1 = i64.const 2
    %l4 = list.i64.get %r0, %l1
    %l3 = i64.zero
    %i0 = i64.eq %l4, %l3
    check %i0, "elements start as zero or null"
    %r0 = list.i64.new %l2
    return ()
  }
  func @"list.i64.new traps: list size -1 is negative" () -> () {
    %l0 = i64.const -1
    %r0 = list.i64.new %l0
    return ()
  }
  func @list.i64.size () -> () {
    %l0 = i64.const 3
    %r0 = list.i64.new %l0
    %l1 = list.i64.size %r0
    %i0 = i64.eq %l0, %l1
    check %i0, "three"
    return ()
  }
  func @"list.i64.size traps: expected list<i64>, got null" () -> () {
    %l0 = list.i64.size %r0
    return ()
  }
  func @list.i64.resize () -> () {
    %l0 = i64.const 2
    %r0 = list.i64.new %l0
    %l1 = i64.const 1
    %l4 = i64.const 5
    list.i64.set %r0, %l1, %l4
    %l0 = i64.const 4
    list.i64.resize %r0, %l0
    %l5 = list.i64.get %r0, %l1
    %i0 = i64.eq %l4, %l5
    check %i0, "old elements stay"
    %l1 = i64.const 3
    %l7 = list.i64.get %r0, %l1
    %l6 = i64.zero
    %i1 = i64.eq %l7, %l6
    check %i1, "new elements are zero or null"
    list.i64.resize %r0, %l3
    %l2 = list.i64.size %r0
    %i0 = i64.eqz %l2
    check %i0, "cut to nothing"
    return ()
  }
  func @"list.i64.resize traps: list size -2 is negative" () -> () {
    %r0 = list.i64.new %l0
    %l0 = i64.const -2
    list.i64.resize %r0, %l0
    return ()
  }
  func @list.i64.get () -> () {
    %l0 = i64.const 2
    %r0 = list.i64.new %l0
    %l3 = i64.const 5
    %l4 = i64.const -7
    %l1 = i64.const 1
    list.i64.set %r0, %l2, %l3
    list.i64.set %r0, %l1, %l4
    %l5 = list.i64.get %r0, %l1
    %i0 = i64.eq %l5, %l4
    check %i0, "the second element"
    %l5 = list.i64.get %r0, %l2
    %i0 = i64.eq %l5, %l3
    check %i0, "the first element"
    return ()
  }
  func @"list.i64.get traps: index 2 is outside a list of 2 elements" () -> () {
    %l0 = i64.const 2
    %r0 = list.i64.new %l0
    %l1 = list.i64.get %r0, %l0
    return ()
  }
  func @list.i64.set () -> () {
    %l0 = i64.const 1
    %r0 = list.i64.new %l0
    %l2 = i64.const -7
    list.i64.set %r0, %l1, %l2
    %l3 = list.i64.get %r0, %l1
    %i0 = i64.eq %l3, %l2
    check %i0, "what was set"
    return ()
  }
  func @"list.i64.set traps: index -1 is outside a list of 1 elements" () -> () {
    %l0 = i64.const 1
    %r0 = list.i64.new %l0
    %l1 = i64.const -1
    list.i64.set %r0, %l1, %l2
    return ()
  }
  func @_any_i64 () -> any {
    %r0 = list.i64.new %l0
    return (%r0)
  }
  func @"list.i64.set traps: expected list<i64>, got list<any>" () -> () {
    %r0 = call @_any_ref()
    list.i64.set %r0, %l0, %l1
    return ()
  }
  func @list.f32.new () -> () {
    %l0 = i64.const 3
    %r0 = list.f32.new %l0
    %l1 = i64.const 2
    %f1 = list.f32.get %r0, %l1
    %f0 = f32.zero
    %i0 = f32.eq %f1, %f0
    check %i0, "elements start as zero or null"
    %r0 = list.f32.new %l2
    return ()
  }
  func @"list.f32.new traps: list size -1 is negative" () -> () {
    %l0 = i64.const -1
    %r0 = list.f32.new %l0
    return ()
  }
  func @list.f32.size () -> () {
    %l0 = i64.const 3
    %r0 = list.f32.new %l0
    %l1 = list.f32.size %r0
    %i0 = i64.eq %l0, %l1
    check %i0, "three"
    return ()
  }
  func @"list.f32.size traps: expected list<f32>, got null" () -> () {
    %l0 = list.f32.size %r0
    return ()
  }
  func @list.f32.resize () -> () {
    %l0 = i64.const 2
    %r0 = list.f32.new %l0
    %l1 = i64.const 1
    %f0 = f32.const 5.0
    list.f32.set %r0, %l1, %f0
    %l0 = i64.const 4
    list.f32.resize %r0, %l0
    %f1 = list.f32.get %r0, %l1
    %i0 = f32.eq %f0, %f1
    check %i0, "old elements stay"
    %l1 = i64.const 3
    %f3 = list.f32.get %r0, %l1
    %f2 = f32.zero
    %i1 = f32.eq %f3, %f2
    check %i1, "new elements are zero or null"
    list.f32.resize %r0, %l3
    %l2 = list.f32.size %r0
    %i0 = i64.eqz %l2
    check %i0, "cut to nothing"
    return ()
  }
  func @"list.f32.resize traps: list size -2 is negative" () -> () {
    %r0 = list.f32.new %l0
    %l0 = i64.const -2
    list.f32.resize %r0, %l0
    return ()
  }
  func @list.f32.get () -> () {
    %l0 = i64.const 2
    %r0 = list.f32.new %l0
    %f0 = f32.const 5.0
    %f1 = f32.const -7.5
    %l1 = i64.const 1
    list.f32.set %r0, %l2, %f0
    list.f32.set %r0, %l1, %f1
    %f2 = list.f32.get %r0, %l1
    %i0 = f32.eq %f2, %f1
    check %i0, "the second element"
    %f2 = list.f32.get %r0, %l2
    %i0 = f32.eq %f2, %f0
    check %i0, "the first element"
    return ()
  }
  func @"list.f32.get traps: index 2 is outside a list of 2 elements" () -> () {
    %l0 = i64.const 2
    %r0 = list.f32.new %l0
    %f0 = list.f32.get %r0, %l0
    return ()
  }
  func @list.f32.set () -> () {
    %l0 = i64.const 1
    %r0 = list.f32.new %l0
    %f0 = f32.const -7.5
    list.f32.set %r0, %l1, %f0
    %f1 = list.f32.get %r0, %l1
    %i0 = f32.eq %f1, %f0
    check %i0, "what was set"
    return ()
  }
  func @"list.f32.set traps: index -1 is outside a list of 1 elements" () -> () {
    %l0 = i64.const 1
    %r0 = list.f32.new %l0
    %l1 = i64.const -1
    list.f32.set %r0, %l1, %f0
    return ()
  }
  func @_any_f32 () -> any {
    %r0 = list.f32.new %l0
    return (%r0)
  }
  func @"list.f32.set traps: expected list<f32>, got list<any>" () -> () {
    %r0 = call @_any_ref()
    list.f32.set %r0, %l0, %f0
    return ()
  }
  func @list.f64.new () -> () {
    %l0 = i64.const 3
    %r0 = list.f64.new %l0
    %l1 = i64.const 2
    %d1 = list.f64.get %r0, %l1
    %d0 = f64.zero
    %i0 = f64.eq %d1, %d0
    check %i0, "elements start as zero or null"
    %r0 = list.f64.new %l2
    return ()
  }
  func @"list.f64.new traps: list size -1 is negative" () -> () {
    %l0 = i64.const -1
    %r0 = list.f64.new %l0
    return ()
  }
  func @list.f64.size () -> () {
    %l0 = i64.const 3
    %r0 = list.f64.new %l0
    %l1 = list.f64.size %r0
    %i0 = i64.eq %l0, %l1
    check %i0, "three"
    return ()
  }
  func @"list.f64.size traps: expected list<f64>, got null" () -> () {
    %l0 = list.f64.size %r0
    return ()
  }
  func @list.f64.resize () -> () {
    %l0 = i64.const 2
    %r0 = list.f64.new %l0
    %l1 = i64.const 1
    %d0 = f64.const 5.0
    list.f64.set %r0, %l1, %d0
    %l0 = i64.const 4
    list.f64.resize %r0, %l0
    %d1 = list.f64.get %r0, %l1
    %i0 = f64.eq %d0, %d1
    check %i0, "old elements stay"
    %l1 = i64.const 3
    %d3 = list.f64.get %r0, %l1
    %d2 = f64.zero
    %i1 = f64.eq %d3, %d2
    check %i1, "new elements are zero or null"
    list.f64.resize %r0, %l3
    %l2 = list.f64.size %r0
    %i0 = i64.eqz %l2
    check %i0, "cut to nothing"
    return ()
  }
  func @"list.f64.resize traps: list size -2 is negative" () -> () {
    %r0 = list.f64.new %l0
    %l0 = i64.const -2
    list.f64.resize %r0, %l0
    return ()
  }
  func @list.f64.get () -> () {
    %l0 = i64.const 2
    %r0 = list.f64.new %l0
    %d0 = f64.const 5.0
    %d1 = f64.const -7.5
    %l1 = i64.const 1
    list.f64.set %r0, %l2, %d0
    list.f64.set %r0, %l1, %d1
    %d2 = list.f64.get %r0, %l1
    %i0 = f64.eq %d2, %d1
    check %i0, "the second element"
    %d2 = list.f64.get %r0, %l2
    %i0 = f64.eq %d2, %d0
    check %i0, "the first element"
    return ()
  }
  func @"list.f64.get traps: index 2 is outside a list of 2 elements" () -> () {
    %l0 = i64.const 2
    %r0 = list.f64.new %l0
    %d0 = list.f64.get %r0, %l0
    return ()
  }
  func @list.f64.set () -> () {
    %l0 = i64.const 1
    %r0 = list.f64.new %l0
    %d0 = f64.const -7.5
    list.f64.set %r0, %l1, %d0
    %d1 = list.f64.get %r0, %l1
    %i0 = f64.eq %d1, %d0
    check %i0, "what was set"
    return ()
  }
  func @"list.f64.set traps: index -1 is outside a list of 1 elements" () -> () {
    %l0 = i64.const 1
    %r0 = list.f64.new %l0
    %l1 = i64.const -1
    list.f64.set %r0, %l1, %d0
    return ()
  }
  func @_any_f64 () -> any {
    %r0 = list.f64.new %l0
    return (%r0)
  }
  func @"list.f64.set traps: expected list<f64>, got list<any>" () -> () {
    %r0 = call @_any_ref()
    list.f64.set %r0, %l0, %d0
    return ()
  }
  func @list.ref.new () -> () {
    %l0 = i64.const 3
    %r0 = list.ref.new %l0
    %l1 = i64.const 2
    %r1 = list.ref.get %r0, %l1
    %i0 = ref.is_null %r1
    check %i0, "elements start as zero or null"
    %r0 = list.ref.new %l2
    return ()
  }
  func @"list.ref.new traps: list size -1 is negative" () -> () {
    %l0 = i64.const -1
    %r0 = list.ref.new %l0
    return ()
  }
  func @list.ref.size () -> () {
    %l0 = i64.const 3
    %r0 = list.ref.new %l0
    %l1 = list.ref.size %r0
    %i0 = i64.eq %l0, %l1
    check %i0, "three"
    return ()
  }
  func @"list.ref.size traps: expected list<any>, got null" () -> () {
    %l0 = list.ref.size %r0
    return ()
  }
  func @list.ref.resize () -> () {
    %l0 = i64.const 2
    %r0 = list.ref.new %l0
    %l1 = i64.const 1
    %r1 = list.i32.new %l4
    list.ref.set %r0, %l1, %r1
    %l0 = i64.const 4
    list.ref.resize %r0, %l0
    %r2 = list.ref.get %r0, %l1
    %i0 = ref.eq %r1, %r2
    check %i0, "old elements stay"
    %l1 = i64.const 3
    %r3 = list.ref.get %r0, %l1
    %i1 = ref.is_null %r3
    check %i1, "new elements are zero or null"
    list.ref.resize %r0, %l3
    %l2 = list.ref.size %r0
    %i0 = i64.eqz %l2
    check %i0, "cut to nothing"
    return ()
  }
  func @"list.ref.resize traps: list size -2 is negative" () -> () {
    %r0 = list.ref.new %l0
    %l0 = i64.const -2
    list.ref.resize %r0, %l0
    return ()
  }
  func @list.ref.get () -> () {
    %l0 = i64.const 2
    %r0 = list.ref.new %l0
    %r1 = list.i32.new %l3
    %r2 = list.i32.new %l3
    %l1 = i64.const 1
    list.ref.set %r0, %l2, %r1
    list.ref.set %r0, %l1, %r2
    %r3 = list.ref.get %r0, %l1
    %i0 = ref.eq %r3, %r2
    check %i0, "the second element"
    %r3 = list.ref.get %r0, %l2
    %i0 = ref.eq %r3, %r1
    check %i0, "the first element"
    return ()
  }
  func @"list.ref.get traps: index 2 is outside a list of 2 elements" () -> () {
    %l0 = i64.const 2
    %r0 = list.ref.new %l0
    %r1 = list.ref.get %r0, %l0
    return ()
  }
  func @list.ref.set () -> () {
    %l0 = i64.const 1
    %r0 = list.ref.new %l0
    %r1 = list.i32.new %l2
    list.ref.set %r0, %l1, move %r1
    %r2 = list.ref.get %r0, %l1
    %i0 = ref.is_null %r1
    check %i0, "what was set"
    return ()
  }
  func @"list.ref.set traps: index -1 is outside a list of 1 elements" () -> () {
    %l0 = i64.const 1
    %r0 = list.ref.new %l0
    %l1 = i64.const -1
    list.ref.set %r0, %l1, %r1
    return ()
  }
  func @_any_ref () -> any {
    %r0 = list.ref.new %l0
    return (%r0)
  }
  func @"list.ref.set traps: expected list<any>, got list<i32>" () -> () {
    %r0 = call @_any_i32()
    list.ref.set %r0, %l0, %r1
    return ()
  }
}
