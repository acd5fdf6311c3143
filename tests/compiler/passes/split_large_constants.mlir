// passes: split-large-constants
// targets: spirv_least
// allocation: 32
// A dot on a constant of 48 bytes: one dot for each part, whose results are joined.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<2x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = "stablehlo.constant"() <{value = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]]> : tensor<3x4xf32>}> : () -> tensor<3x4xf32>
    %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    "func.return"(%2) : (tensor<2x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<2x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = "stablehlo.constant"() <{value = dense<[[1.000000e+00, 2.000000e+00], [5.000000e+00, 6.000000e+00], [9.000000e+00, 1.000000e+01]]> : tensor<3x2xf32>}> : () -> tensor<3x2xf32>
    %2 = "stablehlo.constant"() <{value = dense<[[3.000000e+00, 4.000000e+00], [7.000000e+00, 8.000000e+00], [1.100000e+01, 1.200000e+01]]> : tensor<3x2xf32>}> : () -> tensor<3x2xf32>
    %3 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %4 = "stablehlo.dot_general"(%0, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %5 = "stablehlo.concatenate"(%3, %4) <{dimension = 1 : i64}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
    "func.return"(%5) : (tensor<2x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-large-constants
// targets: spirv_least
// allocation: 32
// Rows at indices: each index is looked up in all parts, and the part that holds it is selected.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xi32>) -> tensor<2x3xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2xi32>):
    %1 = "stablehlo.constant"() <{value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]> : tensor<4x3xf32>}> : () -> tensor<4x3xf32>
    %2 = "stablehlo.gather"(%1, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    "func.return"(%2) : (tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xi32>) -> tensor<2x3xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2xi32>):
    %1 = "stablehlo.constant"() <{value = dense<[[1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00]]> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
    %2 = "stablehlo.constant"() <{value = dense<[[7.000000e+00, 8.000000e+00, 9.000000e+00], [1.000000e+01, 1.100000e+01, 1.200000e+01]]> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
    %3 = "stablehlo.gather"(%1, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %4 = "stablehlo.constant"() <{value = dense<2> : tensor<2xi32>}> : () -> tensor<2xi32>
    %5 = "stablehlo.subtract"(%0, %4) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %6 = "stablehlo.gather"(%2, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %7 = "stablehlo.constant"() <{value = dense<2> : tensor<2xi32>}> : () -> tensor<2xi32>
    %8 = "stablehlo.compare"(%0, %7) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2xi1>) -> tensor<2x3xi1>
    %10 = "stablehlo.select"(%9, %6, %3) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "func.return"(%10) : (tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-large-constants
// targets: spirv_least
// allocation: 32
// A constant that is returned stays whole, as does one for targets whose devices bind many buffers.
"builtin.module"() ({
  "func.func"() <{function_type = () -> tensor<12xf32>, sym_name = "main"}> ({
    %0 = "stablehlo.constant"() <{value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]> : tensor<12xf32>}> : () -> tensor<12xf32>
    "func.return"(%0) : (tensor<12xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = () -> tensor<12xf32>, sym_name = "main"}> ({
    %0 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01]> : tensor<12xf32>}> : () -> tensor<12xf32>
    "func.return"(%0) : (tensor<12xf32>) -> ()
  }) : () -> ()
}) : () -> ()
