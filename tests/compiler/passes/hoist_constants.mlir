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
