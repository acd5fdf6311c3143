// passes: split-wide-concatenates
// Seventeen operands are more than a dispatch can bind beside the result: fifteen are joined, and the two that remain.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<17xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1xf32>, %1: tensor<1xf32>, %2: tensor<1xf32>, %3: tensor<1xf32>, %4: tensor<1xf32>, %5: tensor<1xf32>, %6: tensor<1xf32>, %7: tensor<1xf32>, %8: tensor<1xf32>, %9: tensor<1xf32>, %10: tensor<1xf32>, %11: tensor<1xf32>, %12: tensor<1xf32>, %13: tensor<1xf32>, %14: tensor<1xf32>, %15: tensor<1xf32>, %16: tensor<1xf32>):
    %17 = "stablehlo.concatenate"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16) <{dimension = 0 : i64}> : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<17xf32>
    "func.return"(%17) : (tensor<17xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<17xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1xf32>, %1: tensor<1xf32>, %2: tensor<1xf32>, %3: tensor<1xf32>, %4: tensor<1xf32>, %5: tensor<1xf32>, %6: tensor<1xf32>, %7: tensor<1xf32>, %8: tensor<1xf32>, %9: tensor<1xf32>, %10: tensor<1xf32>, %11: tensor<1xf32>, %12: tensor<1xf32>, %13: tensor<1xf32>, %14: tensor<1xf32>, %15: tensor<1xf32>, %16: tensor<1xf32>):
    %17 = "stablehlo.concatenate"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14) <{dimension = 0 : i64}> : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<15xf32>
    %18 = "stablehlo.concatenate"(%15, %16) <{dimension = 0 : i64}> : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %19 = "stablehlo.concatenate"(%17, %18) <{dimension = 0 : i64}> : (tensor<15xf32>, tensor<2xf32>) -> tensor<17xf32>
    "func.return"(%19) : (tensor<17xf32>) -> ()
  }) : () -> ()
}) : () -> ()
