// passes: group-by-barrier
// Two chains of two dispatches: afterwards the first of both stand together, and one barrier does instead of two.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %4 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %5 = "flow.dispatch"(%4) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %6 = "hl_seq.export"(%3) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %7 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %8 = "hl_seq.export"(%5) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%6, %7, %8) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %4 = "hl_seq.export"(%3) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %5 = "flow.dispatch"(%2) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %6 = "flow.dispatch"(%3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %7 = "hl_seq.export"(%5) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %8 = "hl_seq.export"(%6) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%7, %4, %8) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
