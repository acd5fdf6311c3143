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
    ^bb0(%24: tensor<i32>, %25: tensor<i32>):
      %26 = "stablehlo.add"(%24, %25) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%26) : (tensor<i32>) -> ()
    }) : (tensor<3x4x4xi32>, tensor<i32>) -> tensor<3x4xi32>
    %17 = "stablehlo.broadcast_in_dim"(%16) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<3x4xi32>) -> tensor<3x4x4xi32>
    %18 = "stablehlo.compare"(%17, %2) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x4x4xi32>, tensor<3x4x4xi32>) -> tensor<3x4x4xi1>
    %19 = "stablehlo.constant"() <{value = dense<0> : tensor<3x4x4xi32>}> : () -> tensor<3x4x4xi32>
    %20 = "stablehlo.select"(%18, %3, %19) : (tensor<3x4x4xi1>, tensor<3x4x4xi32>, tensor<3x4x4xi32>) -> tensor<3x4x4xi32>
    %21 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %22 = "stablehlo.reduce"(%20, %21) <{dimensions = array<i64: 2>}> ({
    ^bb0(%24: tensor<i32>, %25: tensor<i32>):
      %26 = "stablehlo.add"(%24, %25) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%26) : (tensor<i32>) -> ()
    }) : (tensor<3x4x4xi32>, tensor<i32>) -> tensor<3x4xi32>
    %23 = "stablehlo.gather"(%0, %22) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<3x4xf32>, tensor<3x4xi32>) -> tensor<3x4xf32>
    "func.return"(%23, %22) : (tensor<3x4xf32>, tensor<3x4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-sorts
// Many: a counted loop of merges, of runs of one element at first.
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
      %5 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.compare"(%3, %5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%3: tensor<i32>, %4: tensor<1000xi32>):
      %5 = "flow.merge"(%4, %3) <{dimension = 0 : i64}> ({
      ^bb0(%8: tensor<i32>, %9: tensor<i32>):
        %10 = "stablehlo.compare"(%8, %9) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%10) : (tensor<i1>) -> ()
      }) : (tensor<1000xi32>, tensor<i32>) -> tensor<1000xi32>
      %6 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %7 = "stablehlo.add"(%3, %6) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%7, %5) : (tensor<i32>, tensor<1000xi32>) -> ()
    }) : (tensor<i32>, tensor<1000xi32>) -> (tensor<i32>, tensor<1000xi32>)
    "func.return"(%2#1) : (tensor<1000xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-sorts
// Many, of two operands: the one that the comparator does not read goes along. Short lines are sorted.
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
    %3:3 = "stablehlo.while"(%2, %0, %1) ({
    ^bb0(%6: tensor<i32>, %7: tensor<2x700xi32>, %8: tensor<2x700xf64>):
      %9 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
      %10 = "stablehlo.compare"(%6, %9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%10) : (tensor<i1>) -> ()
    }, {
    ^bb0(%6: tensor<i32>, %7: tensor<2x700xi32>, %8: tensor<2x700xf64>):
      %9:2 = "flow.merge"(%7, %8, %6) <{dimension = 1 : i64}> ({
      ^bb0(%12: tensor<i32>, %13: tensor<i32>, %14: tensor<f64>, %15: tensor<f64>):
        %16 = "stablehlo.compare"(%12, %13) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "stablehlo.return"(%16) : (tensor<i1>) -> ()
      }) : (tensor<2x700xi32>, tensor<2x700xf64>, tensor<i32>) -> (tensor<2x700xi32>, tensor<2x700xf64>)
      %10 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %11 = "stablehlo.add"(%6, %10) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%11, %9#0, %9#1) : (tensor<i32>, tensor<2x700xi32>, tensor<2x700xf64>) -> ()
    }) : (tensor<i32>, tensor<2x700xi32>, tensor<2x700xf64>) -> (tensor<i32>, tensor<2x700xi32>, tensor<2x700xf64>)
    %4 = "stablehlo.reshape"(%3#1) : (tensor<2x700xi32>) -> tensor<1400x1xi32>
    %5 = "stablehlo.reshape"(%4) : (tensor<1400x1xi32>) -> tensor<2x700xi32>
    "func.return"(%5, %3#2) : (tensor<2x700xi32>, tensor<2x700xf64>) -> ()
  }) : () -> ()
}) : () -> ()
