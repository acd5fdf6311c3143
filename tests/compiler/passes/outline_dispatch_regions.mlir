// passes: outline-dispatch-regions
// Arguments in the order of use; the workload is the number of elements of a result.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
    %2 = "flow.dispatch_region"() ({
      %3 = "stablehlo.subtract"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%3) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = "stablehlo.subtract"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%2) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
    %2 = "flow.dispatch"(%1, %0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
