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
    %3 = "stablehlo.reshape"(%2) : (tensor<1x130000x1xf32>) -> tensor<1x125x65x16x1xf32>
    %4 = "stablehlo.reduce"(%3, %1) <{dimensions = array<i64: 2>}> ({
    ^bb0(%7: tensor<f32>, %8: tensor<f32>):
      %9 = "stablehlo.add"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) : (tensor<1x125x65x16x1xf32>, tensor<f32>) -> tensor<1x125x16x1xf32>
    %5 = "stablehlo.reduce"(%4, %1) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%7: tensor<f32>, %8: tensor<f32>):
      %9 = "stablehlo.add"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) : (tensor<1x125x16x1xf32>, tensor<f32>) -> tensor<1x1xf32>
    %6 = "stablehlo.reshape"(%5) : (tensor<1x1xf32>) -> tensor<f32>
    "func.return"(%6) : (tensor<f32>) -> ()
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
