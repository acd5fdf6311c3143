// passes: lower-scatters,canonicalize,cse,dce
// Rows of the first axis.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9x7xf32>, tensor<5x1xi32>, tensor<5x7xf32>) -> tensor<9x7xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<9x7xf32>, %1: tensor<5x1xi32>, %2: tensor<5x7xf32>):
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<5x1xi32>, tensor<5x7xf32>) -> tensor<9x7xf32>
    "func.return"(%3) : (tensor<9x7xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9x7xf32>, tensor<5x1xi32>, tensor<5x7xf32>) -> tensor<9x7xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<9x7xf32>, %1: tensor<5x1xi32>, %2: tensor<5x7xf32>):
    %3 = "stablehlo.reshape"(%0) : (tensor<9x7xf32>) -> tensor<1x9x7xf32>
    %4 = "stablehlo.reshape"(%2) : (tensor<5x7xf32>) -> tensor<1x5x7xf32>
    %5 = "stablehlo.reshape"(%1) : (tensor<5x1xi32>) -> tensor<1x5xi32>
    %6 = "flow.scatter"(%3, %5, %4) ({
    ^bb0(%8: tensor<f32>, %9: tensor<f32>):
      %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) : (tensor<1x9x7xf32>, tensor<1x5xi32>, tensor<1x5x7xf32>) -> tensor<1x9x7xf32>
    %7 = "stablehlo.reshape"(%6) : (tensor<1x9x7xf32>) -> tensor<9x7xf32>
    "func.return"(%7) : (tensor<9x7xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-scatters,canonicalize,cse,dce
// Windows of two rows, the axis in front is a group, no element twice.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9xf32>, tensor<3xui8>, tensor<2x2x3xf32>) -> tensor<2x9xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x9xf32>, %1: tensor<3xui8>, %2: tensor<2x2x3xf32>):
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) : (tensor<2x9xf32>, tensor<3xui8>, tensor<2x2x3xf32>) -> tensor<2x9xf32>
    "func.return"(%3) : (tensor<2x9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9xf32>, tensor<3xui8>, tensor<2x2x3xf32>) -> tensor<2x9xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x9xf32>, %1: tensor<3xui8>, %2: tensor<2x2x3xf32>):
    %3 = "stablehlo.reshape"(%0) : (tensor<2x9xf32>) -> tensor<2x9x1xf32>
    %4 = "stablehlo.transpose"(%2) <{permutation = array<i64: 0, 2, 1>}> : (tensor<2x2x3xf32>) -> tensor<2x3x2xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<2x3x2xf32>) -> tensor<2x6x1xf32>
    %6 = "stablehlo.reshape"(%1) : (tensor<3xui8>) -> tensor<1x3xui8>
    %7 = "stablehlo.constant"() <{value = dense<7> : tensor<1x3xui8>}> : () -> tensor<1x3xui8>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<1x3xui8>}> : () -> tensor<1x3xui8>
    %9 = "stablehlo.compare"(%6, %8) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<1x3xui8>, tensor<1x3xui8>) -> tensor<1x3xi1>
    %10 = "stablehlo.compare"(%6, %7) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<1x3xui8>, tensor<1x3xui8>) -> tensor<1x3xi1>
    %11 = "stablehlo.and"(%9, %10) : (tensor<1x3xi1>, tensor<1x3xi1>) -> tensor<1x3xi1>
    %12 = "stablehlo.convert"(%6) : (tensor<1x3xui8>) -> tensor<1x3xi32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xi32>) -> tensor<1x3x2xi32>
    %14 = "stablehlo.constant"() <{value = dense<[[[0, 1], [0, 1], [0, 1]]]> : tensor<1x3x2xi32>}> : () -> tensor<1x3x2xi32>
    %15 = "stablehlo.add"(%13, %14) : (tensor<1x3x2xi32>, tensor<1x3x2xi32>) -> tensor<1x3x2xi32>
    %16 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xi1>) -> tensor<1x3x2xi1>
    %17 = "stablehlo.constant"() <{value = dense<-1> : tensor<1x3x2xi32>}> : () -> tensor<1x3x2xi32>
    %18 = "stablehlo.select"(%16, %15, %17) : (tensor<1x3x2xi1>, tensor<1x3x2xi32>, tensor<1x3x2xi32>) -> tensor<1x3x2xi32>
    %19 = "stablehlo.reshape"(%18) : (tensor<1x3x2xi32>) -> tensor<1x6xi32>
    %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<1x6xi32>) -> tensor<1x2x6xi32>
    %21 = "stablehlo.reshape"(%20) : (tensor<1x2x6xi32>) -> tensor<2x6xi32>
    %22 = "flow.scatter"(%3, %21, %5) <{unique = true}> ({
    ^bb0(%24: tensor<f32>, %25: tensor<f32>):
      "stablehlo.return"(%25) : (tensor<f32>) -> ()
    }) : (tensor<2x9x1xf32>, tensor<2x6xi32>, tensor<2x6x1xf32>) -> tensor<2x9x1xf32>
    %23 = "stablehlo.reshape"(%22) : (tensor<2x9x1xf32>) -> tensor<2x9xf32>
    "func.return"(%23) : (tensor<2x9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
