// passes: assign-registers
// The argument and %2 die at the sum, whose result takes neither place; %5 takes the lower of both. The null view does not
// take the register of the dead executable: it is of another type.
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
    "vm.func"() <{frame = array<i64: 3, 1, 0, 0, 3>, function_type = (!hal.view, i32) -> (i32, !hal.view), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: i32):
      %2 = "vm.i32.const"() <{value = 7 : i32}> {registers = ["i1"]} : () -> i32
      %3 = "vm.i32.add"(%1, %2) {registers = ["i2"]} : (i32, i32) -> i32
      %4 = "vm.call_import"(%3) <{callee = @hal.executable.create}> {registers = ["r1"]} : (i32) -> !hal.executable
      %5 = "vm.i32.const"() <{value = 8 : i32}> {registers = ["i0"]} : () -> i32
      %6 = "vm.ref.null"() {registers = ["r2"]} : () -> !hal.view
      %7 = "vm.i64.const"() <{value = 9 : i64}> {registers = ["l0"]} : () -> i64
      "vm.return"(%5, %6) : (i32, !hal.view) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
