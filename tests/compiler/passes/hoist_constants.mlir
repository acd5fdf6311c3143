// passes: hoist-constants
// Equal constants share one global, loaded once per function; the splat stays.
"builtin.module"() ({
  "func.func"() <{function_type = () -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>), sym_name = "main"}> ({
    %0 = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
    %1 = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
    %2 = "stablehlo.constant"() <{value = dense<3.0> : tensor<2xf32>}> : () -> tensor<2xf32>
    %3 = "stablehlo.add"(%0, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0, %1, %3) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> tensor<2xf32>, sym_name = "other"}> ({
    %0 = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "constant_0", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}> : () -> ()
  "func.func"() <{function_type = () -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>), sym_name = "main"}> ({
    %0 = "util.global_load"() <{ref = @constant_0}> : () -> tensor<2xf32>
    %1 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<2xf32>}> : () -> tensor<2xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0, %0, %2) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> tensor<2xf32>, sym_name = "other"}> ({
    %0 = "util.global_load"() <{ref = @constant_0}> : () -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: hoist-constants
// Each block loads what it uses.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>}> : () -> tensor<4xf32>
    %3 = "stablehlo.add"(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.cond_branch"(%1)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb1:
    %4 = "stablehlo.multiply"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%4)[^bb3] : (tensor<4xf32>) -> ()
  ^bb2:
    "util.branch"(%2)[^bb3] : (tensor<4xf32>) -> ()
  ^bb3(%5: tensor<4xf32>):
    "func.return"(%5) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "constant_0", type = tensor<4xf32>, value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>}> : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "util.global_load"() <{ref = @constant_0}> : () -> tensor<4xf32>
    %3 = "stablehlo.add"(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.cond_branch"(%1)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb1:
    %4 = "stablehlo.multiply"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%4)[^bb3] : (tensor<4xf32>) -> ()
  ^bb2:
    "util.branch"(%2)[^bb3] : (tensor<4xf32>) -> ()
  ^bb3(%5: tensor<4xf32>):
    "func.return"(%5) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
