// passes: elide-empty
// The reduction of nothing reads a broadcast zero; what is returned empty is flow.empty; the empty negate is gone.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<0x3xf32>) -> (tensor<3xf32>, tensor<0x3xf32>, tensor<0x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<0x3xf32>):
    %1 = "stablehlo.constant"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.negate"(%0) : (tensor<0x3xf32>) -> tensor<0x3xf32>
    %3 = "stablehlo.reduce"(%2, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
    "func.return"(%3, %2, %0) : (tensor<3xf32>, tensor<0x3xf32>, tensor<0x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<0x3xf32>) -> (tensor<3xf32>, tensor<0x3xf32>, tensor<0x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<0x3xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<0x3xf32>
    %4 = "flow.empty"() : () -> tensor<0x3xf32>
    %5 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<0x3xf32>
    %8 = "flow.empty"() : () -> tensor<0x3xf32>
    %9 = "stablehlo.reduce"(%7, %5) <{dimensions = array<i64: 0>}> ({
    ^bb0(%10: tensor<f32>, %11: tensor<f32>):
      %12 = "stablehlo.add"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%12) : (tensor<f32>) -> ()
    }) : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
    "func.return"(%9, %8, %4) : (tensor<3xf32>, tensor<0x3xf32>, tensor<0x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
