// simple_mul.mlir in MLIR's generic form, which the compiler reads with no extra installed.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "simple_mul"}> ({
  ^bb0(%lhs: tensor<4xf32>, %rhs: tensor<4xf32>):
    %product = "stablehlo.multiply"(%lhs, %rhs) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%product) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
