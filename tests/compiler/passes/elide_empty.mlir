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
    %1 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<0x3xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<0x3xf32>
    %7 = "stablehlo.reduce"(%6, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%10: tensor<f32>, %11: tensor<f32>):
      %12 = "stablehlo.add"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%12) : (tensor<f32>) -> ()
    }) : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
    %8 = "flow.empty"() : () -> tensor<0x3xf32>
    %9 = "flow.empty"() : () -> tensor<0x3xf32>
    "func.return"(%7, %9, %8) : (tensor<3xf32>, tensor<0x3xf32>, tensor<0x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: elide-empty
// No block but the first takes a tensor without elements.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<0xf32>, tensor<i1>) -> (tensor<0xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<0xf32>, %2: tensor<i1>):
    "util.branch"(%0, %1)[^bb1] : (tensor<4xf32>, tensor<0xf32>) -> ()
  ^bb1(%3: tensor<4xf32>, %4: tensor<0xf32>):
    "util.cond_branch"(%2)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    %5 = "stablehlo.exponential"(%3) : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "stablehlo.exponential"(%4) : (tensor<0xf32>) -> tensor<0xf32>
    "util.branch"(%5, %6)[^bb1] : (tensor<4xf32>, tensor<0xf32>) -> ()
  ^bb3:
    %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.concatenate"(%3, %4) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
    %9 = "stablehlo.reduce"(%8, %7) <{dimensions = array<i64: 0>}> ({
    ^bb0(%10: tensor<f32>, %11: tensor<f32>):
      %12 = "stablehlo.add"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%12) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%4, %9) : (tensor<0xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<0xf32>, tensor<i1>) -> (tensor<0xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<0xf32>, %2: tensor<i1>):
    "util.branch"(%0)[^bb1] : (tensor<4xf32>) -> ()
  ^bb1(%3: tensor<4xf32>):
    "util.cond_branch"(%2)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    %4 = "stablehlo.exponential"(%3) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<0xf32>
    "util.branch"(%4)[^bb1] : (tensor<4xf32>) -> ()
  ^bb3:
    %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<0xf32>
    %12 = "stablehlo.concatenate"(%3, %11) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
    %13 = "stablehlo.reduce"(%12, %8) <{dimensions = array<i64: 0>}> ({
    ^bb0(%15: tensor<f32>, %16: tensor<f32>):
      %17 = "stablehlo.add"(%15, %16) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%17) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %14 = "flow.empty"() : () -> tensor<0xf32>
    "func.return"(%14, %13) : (tensor<0xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
