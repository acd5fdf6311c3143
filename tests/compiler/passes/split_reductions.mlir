// passes: split-reductions
// A long sum is two: 64 invocations side by side in each of 31 parts, filled up with zeros; then what came out.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) : (tensor<130000xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%2) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reshape"(%0) : (tensor<130000xf32>) -> tensor<1x130000x1xf32>
    %3 = "stablehlo.pad"(%2, %1) <{edge_padding_high = array<i64: 0, 944, 0>, edge_padding_low = array<i64: 0, 0, 0>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<1x130000x1xf32>, tensor<f32>) -> tensor<1x130944x1xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<1x130944x1xf32>) -> tensor<1x31x66x64x1xf32>
    %5 = "stablehlo.reduce"(%4, %1) <{dimensions = array<i64: 2>}> ({
    ^bb0(%8: tensor<f32>, %9: tensor<f32>):
      %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) : (tensor<1x31x66x64x1xf32>, tensor<f32>) -> tensor<1x31x64x1xf32>
    %6 = "stablehlo.reduce"(%5, %1) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%8: tensor<f32>, %9: tensor<f32>):
      %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) : (tensor<1x31x64x1xf32>, tensor<f32>) -> tensor<1x1xf32>
    %7 = "stablehlo.reshape"(%6) : (tensor<1x1xf32>) -> tensor<f32>
    "func.return"(%7) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-reductions
// An initial value that changes something is applied once: the reduction stays whole. So do rows of a softmax.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>, tensor<16x4096xf32>) -> (tensor<f32>, tensor<16xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>, %1: tensor<16x4096xf32>):
    %2 = "stablehlo.constant"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<130000xf32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce"(%1, %3) <{dimensions = array<i64: 1>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<16x4096xf32>, tensor<f32>) -> tensor<16xf32>
    "func.return"(%4, %5) : (tensor<f32>, tensor<16xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>, tensor<16x4096xf32>) -> (tensor<f32>, tensor<16xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>, %1: tensor<16x4096xf32>):
    %2 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<130000xf32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce"(%1, %3) <{dimensions = array<i64: 1>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<16x4096xf32>, tensor<f32>) -> tensor<16xf32>
    "func.return"(%4, %5) : (tensor<f32>, tensor<16xf32>) -> ()
  }) : () -> ()
}) : () -> ()
