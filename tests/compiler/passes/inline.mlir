// passes: inline
// Twice the same function, which calls another; also from a reducer. Results that are arguments, and none at all.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<f32>):
    %2:2 = "func.call"(%0) <{callee = @twice}> : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %3:2 = "func.call"(%2#0) <{callee = @twice}> : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    "func.call"() <{callee = @nothing}> : () -> ()
    %4 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "func.call"(%5, %6) <{callee = @sum}> : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%3#0, %3#1, %4) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "twice", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "func.call"(%0) <{callee = @negate}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.add"(%1, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "negate"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "nothing", sym_visibility = "private"}> ({
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<f32>, tensor<f32>) -> tensor<f32>, sym_name = "sum", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<f32>, %1: tensor<f32>):
    %2 = "stablehlo.add"(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%2) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<f32>):
    %2 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.add"(%2, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.negate"(%3) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.add"(%4, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %6 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%7: tensor<f32>, %8: tensor<f32>):
      %9 = "stablehlo.add"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%5, %3, %6) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "negate"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
