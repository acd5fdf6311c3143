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
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
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
// -----
// passes: form-dispatch-regions, outline-dispatch-regions, deduplicate-executables
// What an initializer runs is called after it.
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "v", type = tensor<4xf32>, value = dense<1.0> : tensor<4xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xf32>
    %1 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%1) <{ref = @w}> : (tensor<4xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @w}> : () -> tensor<4xf32>
    %2 = "stablehlo.constant"() <{value = dense<2.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    "util.global_store"(%2) <{ref = @v}> : (tensor<4xf32>) -> ()
    %3 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%3) <{ref = @v}> : (tensor<4xf32>) -> ()
    %4 = "util.global_load"() <{ref = @v}> : () -> tensor<4xf32>
    %5 = "stablehlo.multiply"(%4, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%5) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "v", type = tensor<4xf32>, value = dense<1.000000e+00> : tensor<4xf32>}> : () -> ()
  "flow.executable"() <{sym_name = "initializer_dispatch_0"}> ({
    "func.func"() <{function_type = () -> tensor<4xf32>, kind = "elementwise", sym_name = "initializer_dispatch_0"}> ({
      %0 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xf32>
      %1 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "flow.dispatch"() <{entry = @initializer_dispatch_0::@initializer_dispatch_0, workload = array<i64: 4, 1, 1>}> : () -> tensor<4xf32>
    "util.global_store"(%0) <{ref = @w}> : (tensor<4xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), kind = "elementwise", sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%2, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @w}> : () -> tensor<4xf32>
    %2:2 = "flow.dispatch"(%0, %1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    "util.global_store"(%2#0) <{ref = @v}> : (tensor<4xf32>) -> ()
    "func.return"(%2#1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions, outline-dispatch-regions
// The argument that an output is an update of, and the work that the update is.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64xf32>, tensor<i32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64xf32>, %2: tensor<i32>):
    %3 = "stablehlo.tanh"(%1) : (tensor<64xf32>) -> tensor<64xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<64xf32>) -> tensor<1x64xf32>
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.dynamic_update_slice"(%0, %4, %2, %5) : (tensor<64x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<64x64xf32>
    %7 = "stablehlo.exponential"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
    "func.return"(%6, %3, %7) : (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<64x64xf32>) -> tensor<64x64xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<64x64xf32>):
      %1 = "stablehlo.exponential"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
      "func.return"(%1) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<64xf32>, tensor<64x64xf32>, tensor<i32>) -> (tensor<64xf32>, tensor<64x64xf32>), kind = "elementwise", sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<64xf32>, %1: tensor<64x64xf32>, %2: tensor<i32>):
      %3 = "stablehlo.tanh"(%0) : (tensor<64xf32>) -> tensor<64xf32>
      %4 = "stablehlo.reshape"(%3) : (tensor<64xf32>) -> tensor<1x64xf32>
      %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.dynamic_update_slice"(%1, %4, %2, %5) : (tensor<64x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<64x64xf32>
      "func.return"(%3, %6) : (tensor<64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64xf32>, tensor<i32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64xf32>, %2: tensor<i32>):
    %3 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %4:2 = "flow.dispatch"(%1, %0, %2) <{entry = @main_dispatch_1::@main_dispatch_1, tied = array<i64: -1, 1>, workload = array<i64: 64, 1, 1>}> : (tensor<64xf32>, tensor<64x64xf32>, tensor<i32>) -> (tensor<64xf32>, tensor<64x64xf32>)
    "func.return"(%4#1, %4#0, %3) : (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
