// passes: freeze-abi
// Inputs, then outputs; the workload of the dispatch is in the entry now.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.export"(%2) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%3) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "main_dispatch_0", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.export"(%2) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%3) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: freeze-abi
// An output that is tied to an input shares its binding.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "update"}> ({
      "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>, sym_name = "update"}> ({
      ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
        %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
        "func.return"(%3) : (tensor<8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
      %3 = "hl_seq.import"(%0) : (tensor<8xf32>) -> !hl_seq.resource<external, 32>
      %4 = "hl_seq.import"(%1) : (tensor<2xf32>) -> !hl_seq.resource<external, 8>
      %5 = "hl_seq.import"(%2) : (tensor<i32>) -> !hl_seq.resource<external, 4>
      %6 = "flow.dispatch"(%3, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<external, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<transient, 32>
      %7 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %8 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %9 = "hl_seq.export"(%7) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      %10 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      "func.return"(%9, %10) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "ll_seq.executable"() <{sym_name = "update"}> ({
      "ll_seq.entry"() <{bindings = [{access = "readwrite", length = 32 : i64}, {access = "read", length = 8 : i64}, {access = "read", length = 4 : i64}], sym_name = "update", workload = array<i64: 2, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<8xf32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<2xf32>
        %5 = "ll_seq.load_input"(%2) : (!ll_seq.binding) -> tensor<i32>
        %6 = "stablehlo.dynamic_update_slice"(%3, %4, %5) : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
        "ll_seq.store_output"(%6, %0) : (tensor<8xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
      %3 = "hl_seq.import"(%0) : (tensor<8xf32>) -> !hl_seq.resource<external, 32>
      %4 = "hl_seq.import"(%1) : (tensor<2xf32>) -> !hl_seq.resource<external, 8>
      %5 = "hl_seq.import"(%2) : (tensor<i32>) -> !hl_seq.resource<external, 4>
      %6 = "flow.dispatch"(%3, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<external, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<transient, 32>
      %7 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %8 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %9 = "hl_seq.export"(%7) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      %10 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      "func.return"(%9, %10) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
