// passes: freeze-abi
// Inputs, then outputs; the workload of the dispatch is in the entry now.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "hl_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "hl_seq.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
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
      %2 = "hl_seq.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.export"(%2) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%3) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
