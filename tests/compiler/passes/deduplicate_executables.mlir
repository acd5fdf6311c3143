// passes: deduplicate-executables
// The second executable differs from the first in its name only; the third is numbered anew.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%3) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%3) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: deduplicate-executables
// The executables differ in the place of a constant only.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = "stablehlo.maximum"(%2, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%3) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.maximum"(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%3) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.maximum"(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%3) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
