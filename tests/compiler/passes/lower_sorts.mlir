// passes: lower-sorts
// Few elements: places are counted, and what is numbered already is the order itself.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<3x4xf32>):
    %1 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4xi32>
    %2:2 = "stablehlo.sort"(%0, %1) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%3: tensor<f32>, %4: tensor<f32>, %5: tensor<i32>, %6: tensor<i32>):
      %7 = "stablehlo.compare"(%3, %4) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }) : (tensor<3x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
    "func.return"(%2#0, %2#1) : (tensor<3x4xf32>, tensor<3x4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<3x4xf32>):
    %1 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4xi32>
    %2 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4x4xi32>
    %3 = "stablehlo.iota"() <{iota_dimension = 2 : i64}> : () -> tensor<3x4x4xi32>
    %4 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<3x4xf32>) -> tensor<3x4x4xf32>
    %5 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x4xf32>) -> tensor<3x4x4xf32>
    %6 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<3x4xi32>) -> tensor<3x4x4xi32>
    %7 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x4xi32>) -> tensor<3x4x4xi32>
    %8 = "stablehlo.compare"(%4, %5) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xi1>
    %9 = "stablehlo.compare"(%5, %4) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xi1>
    %10 = "stablehlo.not"(%9) : (tensor<3x4x4xi1>) -> tensor<3x4x4xi1>
    %11 = "stablehlo.compare"(%3, %2) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4x4xi32>, tensor<3x4x4xi32>) -> tensor<3x4x4xi1>
    %12 = "stablehlo.and"(%10, %11) : (tensor<3x4x4xi1>, tensor<3x4x4xi1>) -> tensor<3x4x4xi1>
    %13 = "stablehlo.or"(%8, %12) : (tensor<3x4x4xi1>, tensor<3x4x4xi1>) -> tensor<3x4x4xi1>
    %14 = "stablehlo.convert"(%13) : (tensor<3x4x4xi1>) -> tensor<3x4x4xi32>
    %15 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %16 = "stablehlo.reduce"(%14, %15) <{dimensions = array<i64: 2>}> ({
    ^bb0(%25: tensor<i32>, %26: tensor<i32>):
      %27 = "stablehlo.add"(%25, %26) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%27) : (tensor<i32>) -> ()
    }) : (tensor<3x4x4xi32>, tensor<i32>) -> tensor<3x4xi32>
    %17 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<3x4xi32>) -> tensor<3x4x4xi32>
    %18 = "stablehlo.compare"(%17, %2) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x4x4xi32>, tensor<3x4x4xi32>) -> tensor<3x4x4xi1>
    %19 = "stablehlo.constant"() <{value = dense<0> : tensor<3x4x4xi32>}> : () -> tensor<3x4x4xi32>
    %20 = "stablehlo.select"(%18, %3, %19) : (tensor<3x4x4xi1>, tensor<3x4x4xi32>, tensor<3x4x4xi32>) -> tensor<3x4x4xi32>
    %21 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %22 = "stablehlo.reduce"(%20, %21) <{dimensions = array<i64: 2>}> ({
    ^bb0(%25: tensor<i32>, %26: tensor<i32>):
      %27 = "stablehlo.add"(%25, %26) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%27) : (tensor<i32>) -> ()
    }) : (tensor<3x4x4xi32>, tensor<i32>) -> tensor<3x4xi32>
    %23 = "stablehlo.gather"(%0, %22) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<3x4xf32>, tensor<3x4xi32>) -> tensor<3x4xf32>
    %24 = "stablehlo.convert"(%22) : (tensor<3x4xi32>) -> tensor<3x4xi32>
    "func.return"(%23, %24) : (tensor<3x4xf32>, tensor<3x4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-sorts
// Many, all of them alike where they are equal: a network, without numbers.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1000xi32>) -> tensor<1000xi32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1000xi32>):
    %2 = "stablehlo.sort"(%0) <{dimension = -1 : i64}> ({
    ^bb0(%3: tensor<i32>, %4: tensor<i32>):
      %7 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }) : (tensor<1000xi32>) -> tensor<1000xi32>
    "func.return"(%2) : (tensor<1000xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1000xi32>) -> tensor<1000xi32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1000xi32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%3: tensor<i32>, %4: tensor<1000xi32>):
      %5 = "stablehlo.constant"() <{value = dense<55> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.compare"(%3, %5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%3: tensor<i32>, %4: tensor<1000xi32>):
      %5 = "stablehlo.constant"() <{value = dense_resource<c_93b8d064c5da30224d0c55931452680f> : tensor<55xi32>}> : () -> tensor<55xi32>
      %6 = "stablehlo.dynamic_slice"(%5, %3) <{slice_sizes = array<i64: 1>}> : (tensor<55xi32>, tensor<i32>) -> tensor<1xi32>
      %7 = "stablehlo.reshape"(%6) : (tensor<1xi32>) -> tensor<i32>
      %8 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<1000xi32>
      %9 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1000xi32>
      %10 = "stablehlo.xor"(%8, %9) : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi32>
      %11 = "stablehlo.constant"() <{value = dense<1000> : tensor<1000xi32>}> : () -> tensor<1000xi32>
      %12 = "stablehlo.compare"(%10, %11) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi1>
      %13 = "stablehlo.compare"(%8, %10) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi1>
      %14 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1000xi1>) -> tensor<1000xi1>
      %15 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1000xi1>) -> tensor<1000xi1>
      %16 = "stablehlo.gather"(%4, %10) <{dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi32>
      %17 = "stablehlo.select"(%14, %4, %16) : (tensor<1000xi1>, tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi32>
      %18 = "stablehlo.select"(%14, %16, %4) : (tensor<1000xi1>, tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi32>
      %19 = "stablehlo.compare"(%18, %17) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi1>
      %20 = "stablehlo.and"(%19, %15) : (tensor<1000xi1>, tensor<1000xi1>) -> tensor<1000xi1>
      %21 = "stablehlo.select"(%20, %16, %4) : (tensor<1000xi1>, tensor<1000xi32>, tensor<1000xi32>) -> tensor<1000xi32>
      %22 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %23 = "stablehlo.add"(%3, %22) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%23, %21) : (tensor<i32>, tensor<1000xi32>) -> ()
    }) : (tensor<i32>, tensor<1000xi32>) -> (tensor<i32>, tensor<1000xi32>)
    "func.return"(%2#1) : (tensor<1000xi32>) -> ()
  }) : () -> ()
}) : () -> ()

{-#
  dialect_resources: {
    builtin: {
      c_93b8d064c5da30224d0c55931452680f: "0x400000000100000003000000010000000700000002000000010000000F0000000400000002000000010000001F000000080000000400000002000000010000003F00000010000000080000000400000002000000010000007F000000200000001000000008000000040000000200000001000000FF00000040000000200000001000000008000000040000000200000001000000FF0100008000000040000000200000001000000008000000040000000200000001000000FF030000000100008000000040000000200000001000000008000000040000000200000001000000"
    }
  }
#-}
// -----
// passes: lower-sorts
// Many, of two operands: the one that the comparator does not read follows by the numbers. Short lines are sorted.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x700xi32>, tensor<2x700xf64>) -> (tensor<2x700xi32>, tensor<2x700xf64>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x700xi32>, %1: tensor<2x700xf64>):
    %2:2 = "stablehlo.sort"(%0, %1) <{dimension = 1 : i64}> ({
    ^bb0(%3: tensor<i32>, %4: tensor<i32>, %5: tensor<f64>, %6: tensor<f64>):
      %7 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }) : (tensor<2x700xi32>, tensor<2x700xf64>) -> (tensor<2x700xi32>, tensor<2x700xf64>)
    %3 = "stablehlo.reshape"(%2#0) : (tensor<2x700xi32>) -> tensor<1400x1xi32>
    %4 = "stablehlo.sort"(%3) <{dimension = 1 : i64}> ({
    ^bb0(%5: tensor<i32>, %6: tensor<i32>):
      %7 = "stablehlo.compare"(%5, %6) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }) : (tensor<1400x1xi32>) -> tensor<1400x1xi32>
    %5 = "stablehlo.reshape"(%4) : (tensor<1400x1xi32>) -> tensor<2x700xi32>
    "func.return"(%5, %2#1) : (tensor<2x700xi32>, tensor<2x700xf64>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x700xi32>, tensor<2x700xf64>) -> (tensor<2x700xi32>, tensor<2x700xf64>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x700xi32>, %1: tensor<2x700xf64>):
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x700xi32>
    %4:3 = "stablehlo.while"(%2, %0, %3) ({
    ^bb0(%8: tensor<i32>, %9: tensor<2x700xi32>, %10: tensor<2x700xi32>):
      %11 = "stablehlo.constant"() <{value = dense<55> : tensor<i32>}> : () -> tensor<i32>
      %12 = "stablehlo.compare"(%8, %11) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%12) : (tensor<i1>) -> ()
    }, {
    ^bb0(%8: tensor<i32>, %9: tensor<2x700xi32>, %10: tensor<2x700xi32>):
      %11 = "stablehlo.constant"() <{value = dense_resource<c_93b8d064c5da30224d0c55931452680f> : tensor<55xi32>}> : () -> tensor<55xi32>
      %12 = "stablehlo.dynamic_slice"(%11, %8) <{slice_sizes = array<i64: 1>}> : (tensor<55xi32>, tensor<i32>) -> tensor<1xi32>
      %13 = "stablehlo.reshape"(%12) : (tensor<1xi32>) -> tensor<i32>
      %14 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<700xi32>
      %15 = "stablehlo.broadcast_in_dim"(%13) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<700xi32>
      %16 = "stablehlo.xor"(%14, %15) : (tensor<700xi32>, tensor<700xi32>) -> tensor<700xi32>
      %17 = "stablehlo.constant"() <{value = dense<700> : tensor<700xi32>}> : () -> tensor<700xi32>
      %18 = "stablehlo.compare"(%16, %17) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<700xi32>, tensor<700xi32>) -> tensor<700xi1>
      %19 = "stablehlo.compare"(%14, %16) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<700xi32>, tensor<700xi32>) -> tensor<700xi1>
      %20 = "stablehlo.broadcast_in_dim"(%19) <{broadcast_dimensions = array<i64: 1>}> : (tensor<700xi1>) -> tensor<2x700xi1>
      %21 = "stablehlo.broadcast_in_dim"(%18) <{broadcast_dimensions = array<i64: 1>}> : (tensor<700xi1>) -> tensor<2x700xi1>
      %22 = "stablehlo.gather"(%9, %16) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>}> : (tensor<2x700xi32>, tensor<700xi32>) -> tensor<2x700xi32>
      %23 = "stablehlo.gather"(%10, %16) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1>}> : (tensor<2x700xi32>, tensor<700xi32>) -> tensor<2x700xi32>
      %24 = "stablehlo.select"(%20, %9, %22) : (tensor<2x700xi1>, tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi32>
      %25 = "stablehlo.select"(%20, %10, %23) : (tensor<2x700xi1>, tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi32>
      %26 = "stablehlo.select"(%20, %22, %9) : (tensor<2x700xi1>, tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi32>
      %27 = "stablehlo.select"(%20, %23, %10) : (tensor<2x700xi1>, tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi32>
      %28 = "stablehlo.compare"(%26, %24) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi1>
      %29 = "stablehlo.compare"(%24, %26) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi1>
      %30 = "stablehlo.not"(%29) : (tensor<2x700xi1>) -> tensor<2x700xi1>
      %31 = "stablehlo.compare"(%27, %25) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi1>
      %32 = "stablehlo.and"(%30, %31) : (tensor<2x700xi1>, tensor<2x700xi1>) -> tensor<2x700xi1>
      %33 = "stablehlo.or"(%28, %32) : (tensor<2x700xi1>, tensor<2x700xi1>) -> tensor<2x700xi1>
      %34 = "stablehlo.and"(%33, %21) : (tensor<2x700xi1>, tensor<2x700xi1>) -> tensor<2x700xi1>
      %35 = "stablehlo.select"(%34, %22, %9) : (tensor<2x700xi1>, tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi32>
      %36 = "stablehlo.select"(%34, %23, %10) : (tensor<2x700xi1>, tensor<2x700xi32>, tensor<2x700xi32>) -> tensor<2x700xi32>
      %37 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %38 = "stablehlo.add"(%8, %37) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%38, %35, %36) : (tensor<i32>, tensor<2x700xi32>, tensor<2x700xi32>) -> ()
    }) : (tensor<i32>, tensor<2x700xi32>, tensor<2x700xi32>) -> (tensor<i32>, tensor<2x700xi32>, tensor<2x700xi32>)
    %5 = "stablehlo.gather"(%1, %4#2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x700xf64>, tensor<2x700xi32>) -> tensor<2x700xf64>
    %6 = "stablehlo.reshape"(%4#1) : (tensor<2x700xi32>) -> tensor<1400x1xi32>
    %7 = "stablehlo.reshape"(%6) : (tensor<1400x1xi32>) -> tensor<2x700xi32>
    "func.return"(%7, %5) : (tensor<2x700xi32>, tensor<2x700xf64>) -> ()
  }) : () -> ()
}) : () -> ()

{-#
  dialect_resources: {
    builtin: {
      c_93b8d064c5da30224d0c55931452680f: "0x400000000100000003000000010000000700000002000000010000000F0000000400000002000000010000001F000000080000000400000002000000010000003F00000010000000080000000400000002000000010000007F000000200000001000000008000000040000000200000001000000FF00000040000000200000001000000008000000040000000200000001000000FF0100008000000040000000200000001000000008000000040000000200000001000000FF030000000100008000000040000000200000001000000008000000040000000200000001000000"
    }
  }
#-}
