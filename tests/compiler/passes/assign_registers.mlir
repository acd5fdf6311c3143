// passes: assign-registers
// The argument and %2 die at the sum, whose result takes neither place; %5 takes the lower of both. The null view does not
// take the register of the dead executable, which is of another type, but that of the view that nobody uses.
"builtin.module"() ({
  "vm.import"() <{signature = "(i32) -> hal.executable", sym_name = "hal.executable.create"}> : () -> ()
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.func"() <{function_type = (!hal.view, i32) -> (i32, !hal.view), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: i32):
      %2 = "vm.i32.const"() <{value = 7 : i32}> : () -> i32
      %3 = "vm.i32.add"(%1, %2) : (i32, i32) -> i32
      %4 = "vm.call_import"(%3) <{callee = @hal.executable.create}> : (i32) -> !hal.executable
      %5 = "vm.i32.const"() <{value = 8 : i32}> : () -> i32
      %6 = "vm.ref.null"() : () -> !hal.view
      %7 = "vm.i64.const"() <{value = 9 : i64}> : () -> i64
      "vm.return"(%5, %6) : (i32, !hal.view) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "vm.import"() <{signature = "(i32) -> hal.executable", sym_name = "hal.executable.create"}> : () -> ()
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.func"() <{frame = array<i64: 3, 1, 0, 0, 2>, function_type = (!hal.view, i32) -> (i32, !hal.view), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: i32):
      %2 = "vm.i32.const"() <{value = 7 : i32}> {registers = ["i1"]} : () -> i32
      %3 = "vm.i32.add"(%1, %2) {registers = ["i2"]} : (i32, i32) -> i32
      %4 = "vm.call_import"(%3) <{callee = @hal.executable.create}> {registers = ["r1"]} : (i32) -> !hal.executable
      %5 = "vm.i32.const"() <{value = 8 : i32}> {registers = ["i0"]} : () -> i32
      %6 = "vm.ref.null"() {registers = ["r0"]} : () -> !hal.view
      %7 = "vm.i64.const"() <{value = 9 : i64}> {registers = ["l0"]} : () -> i64
      "vm.return"(%5, %6) : (i32, !hal.view) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: assign-registers
// A loop over two states that change places: a cycle, which needs one spare register. The counter goes back to where
// its turn began. The view lives through the loop, though nothing in the loop says so.
"builtin.module"() ({
  "vm.import"() <{signature = "(i64) -> hal.buffer", sym_name = "hal.allocate"}> : () -> ()
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.func"() <{function_type = (!hal.view) -> (!hal.view, !hal.buffer), sym_name = "main"}> ({
    ^bb0(%0: !hal.view):
      %1 = "vm.i64.const"() <{value = 16 : i64}> : () -> i64
      %2 = "vm.call_import"(%1) <{callee = @hal.allocate}> : (i64) -> !hal.buffer
      %3 = "vm.call_import"(%1) <{callee = @hal.allocate}> : (i64) -> !hal.buffer
      %4 = "vm.i32.const"() <{value = 10 : i32}> : () -> i32
      "vm.br"(%2, %3, %4)[^bb1] : (!hal.buffer, !hal.buffer, i32) -> ()
    ^bb1(%5: !hal.buffer, %6: !hal.buffer, %7: i32):
      %8 = "vm.i32.const"() <{value = 1 : i32}> : () -> i32
      %9 = "vm.i32.sub"(%7, %8) : (i32, i32) -> i32
      "vm.br_if"(%9)[^bb2, ^bb3] : (i32) -> ()
    ^bb2:
      "vm.br"(%6, %5, %9)[^bb1] : (!hal.buffer, !hal.buffer, i32) -> ()
    ^bb3:
      "vm.return"(%0, %6) : (!hal.view, !hal.buffer) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "vm.import"() <{signature = "(i64) -> hal.buffer", sym_name = "hal.allocate"}> : () -> ()
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.func"() <{blocks = [["r1", "r2", "i0"], [], []], frame = array<i64: 3, 1, 0, 0, 4>, function_type = (!hal.view) -> (!hal.view, !hal.buffer), sym_name = "main"}> ({
    ^bb0(%0: !hal.view):
      %1 = "vm.i64.const"() <{value = 16 : i64}> {registers = ["l0"]} : () -> i64
      %2 = "vm.call_import"(%1) <{callee = @hal.allocate}> {registers = ["r1"]} : (i64) -> !hal.buffer
      %3 = "vm.call_import"(%1) <{callee = @hal.allocate}> {registers = ["r2"]} : (i64) -> !hal.buffer
      %4 = "vm.i32.const"() <{value = 10 : i32}> {registers = ["i0"]} : () -> i32
      "vm.br"(%2, %3, %4)[^bb1] : (!hal.buffer, !hal.buffer, i32) -> ()
    ^bb1(%5: !hal.buffer, %6: !hal.buffer, %7: i32):
      %8 = "vm.i32.const"() <{value = 1 : i32}> {registers = ["i1"]} : () -> i32
      %9 = "vm.i32.sub"(%7, %8) {registers = ["i2"]} : (i32, i32) -> i32
      "vm.br_if"(%9)[^bb2, ^bb3] : (i32) -> ()
    ^bb2:
      %10 = "vm.i32.copy"(%9) {registers = ["i0"]} : (i32) -> i32
      %11 = "vm.ref.copy"(%5) {registers = ["r3"]} : (!hal.buffer) -> !hal.buffer
      %12 = "vm.ref.copy"(%6) {registers = ["r1"]} : (!hal.buffer) -> !hal.buffer
      %13 = "vm.ref.copy"(%11) {registers = ["r2"]} : (!hal.buffer) -> !hal.buffer
      "vm.br"(%12, %13, %10)[^bb1] : (!hal.buffer, !hal.buffer, i32) -> ()
    ^bb3:
      "vm.return"(%0, %6) : (!hal.view, !hal.buffer) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: assign-registers
// One value for two arguments, and a chain: the copies come in the order in which nothing is lost.
"builtin.module"() ({
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.func"() <{function_type = (i32, i32, i32) -> (i32, i32, i32), sym_name = "main"}> ({
    ^bb0(%0: i32, %1: i32, %2: i32):
      "vm.br"(%0, %1, %2)[^bb1] : (i32, i32, i32) -> ()
    ^bb1(%3: i32, %4: i32, %5: i32):
      "vm.br_table"(%3)[^bb4, ^bb2, ^bb3] : (i32) -> ()
    ^bb2:
      "vm.br"(%4, %5, %5)[^bb1] : (i32, i32, i32) -> ()
    ^bb3:
      "vm.br"(%4, %3, %4)[^bb1] : (i32, i32, i32) -> ()
    ^bb4:
      "vm.return"(%3, %4, %5) : (i32, i32, i32) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.func"() <{blocks = [["i0", "i1", "i2"], [], [], []], frame = array<i64: 3, 0, 0, 0, 0>, function_type = (i32, i32, i32) -> (i32, i32, i32), sym_name = "main"}> ({
    ^bb0(%0: i32, %1: i32, %2: i32):
      "vm.br"(%0, %1, %2)[^bb1] : (i32, i32, i32) -> ()
    ^bb1(%3: i32, %4: i32, %5: i32):
      "vm.br_table"(%3)[^bb4, ^bb2, ^bb3] : (i32) -> ()
    ^bb2:
      %6 = "vm.i32.copy"(%4) {registers = ["i0"]} : (i32) -> i32
      %7 = "vm.i32.copy"(%5) {registers = ["i1"]} : (i32) -> i32
      "vm.br"(%6, %7, %5)[^bb1] : (i32, i32, i32) -> ()
    ^bb3:
      %8 = "vm.i32.copy"(%4) {registers = ["i2"]} : (i32) -> i32
      %9 = "vm.i32.copy"(%3) {registers = ["i1"]} : (i32) -> i32
      %10 = "vm.i32.copy"(%8) {registers = ["i0"]} : (i32) -> i32
      "vm.br"(%10, %9, %8)[^bb1] : (i32, i32, i32) -> ()
    ^bb4:
      "vm.return"(%3, %4, %5) : (i32, i32, i32) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
