// passes: lower-windows, dce
// Features last: the windows are the left operand, the kernel as it is; then strided and cut, with one feature group per two channels.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x7x4xf32>, tensor<3x2x4x5xf32>, tensor<3x2x2x6xf32>) -> (tensor<2x4x8x5xf32>, tensor<2x7x6x6xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<2x9x7x4xf32>, %k: tensor<3x2x4x5xf32>, %g: tensor<3x2x2x6xf32>):
    %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_strides = array<i64: 2, 1>}> : (tensor<2x9x7x4xf32>, tensor<3x2x4x5xf32>) -> tensor<2x4x8x5xf32>
    %1 = "stablehlo.convolution"(%x, %g) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64, window_reversal = array<i1: true, true>}> : (tensor<2x9x7x4xf32>, tensor<3x2x2x6xf32>) -> tensor<2x7x6x6xf32>
    "func.return"(%0, %1) : (tensor<2x4x8x5xf32>, tensor<2x7x6x6xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x7x4xf32>, tensor<3x2x4x5xf32>, tensor<3x2x2x6xf32>) -> (tensor<2x4x8x5xf32>, tensor<2x7x6x6xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x9x7x4xf32>, %1: tensor<3x2x4x5xf32>, %2: tensor<3x2x2x6xf32>):
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.pad"(%0, %3) <{edge_padding_high = array<i64: 0, 0, 1, 0>, edge_padding_low = array<i64: 0, 0, 1, 0>, interior_padding = array<i64: 0, 0, 0, 0>}> : (tensor<2x9x7x4xf32>, tensor<f32>) -> tensor<2x9x9x4xf32>
    %5 = "flow.windows"(%4) <{axes = array<i64: 1, 2>, dilations = array<i64: 1, 1>, sizes = array<i64: 3, 2>, strides = array<i64: 2, 1>}> : (tensor<2x9x9x4xf32>) -> tensor<2x4x8x4x3x2xf32>
    %6 = "stablehlo.dot_general"(%5, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [4, 5, 3], rhs_contracting_dimensions = [0, 1, 2]>}> : (tensor<2x4x8x4x3x2xf32>, tensor<3x2x4x5xf32>) -> tensor<2x4x8x5xf32>
    %7 = "stablehlo.reshape"(%0) : (tensor<2x9x7x4xf32>) -> tensor<2x9x7x2x2xf32>
    %8 = "flow.windows"(%7) <{axes = array<i64: 1, 2>, dilations = array<i64: 1, 1>, sizes = array<i64: 3, 2>, strides = array<i64: 1, 1>}> : (tensor<2x9x7x2x2xf32>) -> tensor<2x7x6x2x2x3x2xf32>
    %9 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 0, 1>}> : (tensor<3x2x2x6xf32>) -> tensor<3x2x2x6xf32>
    %10 = "stablehlo.reshape"(%9) : (tensor<3x2x2x6xf32>) -> tensor<3x2x2x2x3xf32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64: 3, 4, 5, 6, 7>}> : (tensor<3x2x2x2x3xf32>) -> tensor<2x7x6x3x2x2x2x3xf32>
    %12 = "stablehlo.dot_general"(%8, %11) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1, 2, 3], rhs_batching_dimensions = [0, 1, 2, 6], lhs_contracting_dimensions = [5, 6, 4], rhs_contracting_dimensions = [3, 4, 5]>}> : (tensor<2x7x6x2x2x3x2xf32>, tensor<2x7x6x3x2x2x2x3xf32>) -> tensor<2x7x6x2x3xf32>
    %13 = "stablehlo.reshape"(%12) : (tensor<2x7x6x2x3xf32>) -> tensor<2x7x6x6xf32>
    "func.return"(%6, %13) : (tensor<2x4x8x5xf32>, tensor<2x7x6x6xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows, dce
// Features first: the kernel is the left operand, repeated along the batch. A window of one element needs no windows.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x9x7xf32>, tensor<5x4x1x1xf32>) -> tensor<2x5x5x3xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<2x4x9x7xf32>, %k: tensor<5x4x1x1xf32>):
    %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, window_strides = array<i64: 2, 3>}> : (tensor<2x4x9x7xf32>, tensor<5x4x1x1xf32>) -> tensor<2x5x5x3xf32>
    "func.return"(%0) : (tensor<2x5x5x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x9x7xf32>, tensor<5x4x1x1xf32>) -> tensor<2x5x5x3xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x4x9x7xf32>, %1: tensor<5x4x1x1xf32>):
    %2 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 2, 4, 9, 7>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 2, 3>}> : (tensor<2x4x9x7xf32>) -> tensor<2x4x5x3xf32>
    %3 = "stablehlo.reshape"(%1) : (tensor<5x4x1x1xf32>) -> tensor<5x4xf32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<5x4xf32>) -> tensor<2x5x4xf32>
    %5 = "stablehlo.dot_general"(%4, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x5x4xf32>, tensor<2x4x5x3xf32>) -> tensor<2x5x5x3xf32>
    "func.return"(%5) : (tensor<2x5x5x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows, dce
// The padding of a reduction is its initial value.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9x7xf32>, tensor<f32>) -> tensor<5x9xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<9x7xf32>, %i: tensor<f32>):
    %0 = "stablehlo.reduce_window"(%x, %i) <{base_dilations = array<i64: 1, 2>, padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%m) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<f32>) -> tensor<5x9xf32>
    "func.return"(%0) : (tensor<5x9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9x7xf32>, tensor<f32>) -> tensor<5x9xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<9x7xf32>, %1: tensor<f32>):
    %2 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: 1, 0>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 1>}> : (tensor<9x7xf32>, tensor<f32>) -> tensor<11x13xf32>
    %3 = "flow.windows"(%2) <{axes = array<i64: 0, 1>, dilations = array<i64: 1, 2>, sizes = array<i64: 3, 3>, strides = array<i64: 2, 1>}> : (tensor<11x13xf32>) -> tensor<5x9x3x3xf32>
    %4 = "stablehlo.reduce"(%3, %1) <{dimensions = array<i64: 2, 3>}> ({
    ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.maximum"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<5x9x3x3xf32>, tensor<f32>) -> tensor<5x9xf32>
    "func.return"(%4) : (tensor<5x9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows, dce
// The gradient of a pooling layer: which place each window selects, then what each place is given.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9xf32>, tensor<4xf32>, tensor<f32>) -> tensor<9xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<9xf32>, %y: tensor<4xf32>, %s: tensor<f32>):
    %0 = "stablehlo.select_and_scatter"(%x, %y, %s) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<9xf32>, tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
    "func.return"(%0) : (tensor<9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9xf32>, tensor<4xf32>, tensor<f32>) -> tensor<9xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<9xf32>, %1: tensor<4xf32>, %2: tensor<f32>):
    %3 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<9xi32>
    %4 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "flow.windows"(%0) <{axes = array<i64: 0>, dilations = array<i64: 1>, sizes = array<i64: 3>, strides = array<i64: 2>}> : (tensor<9xf32>) -> tensor<4x3xf32>
    %7 = "flow.windows"(%3) <{axes = array<i64: 0>, dilations = array<i64: 1>, sizes = array<i64: 3>, strides = array<i64: 2>}> : (tensor<9xi32>) -> tensor<4x3xi32>
    %8:2 = "stablehlo.reduce"(%6, %7, %5, %4) <{dimensions = array<i64: 1>}> ({
    ^bb0(%17: tensor<f32>, %18: tensor<i32>, %19: tensor<f32>, %20: tensor<i32>):
      %21 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %22 = "stablehlo.compare"(%20, %21) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %23 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %24 = "stablehlo.compare"(%18, %23) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %25 = "stablehlo.compare"(%17, %19) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %26 = "stablehlo.and"(%24, %25) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %27 = "stablehlo.or"(%22, %26) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %28 = "stablehlo.select"(%27, %17, %19) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %29 = "stablehlo.select"(%27, %18, %20) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%28, %29) : (tensor<f32>, tensor<i32>) -> ()
    }) : (tensor<4x3xf32>, tensor<4x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    %9 = "stablehlo.pad"(%1, %5) <{edge_padding_high = array<i64: 2>, edge_padding_low = array<i64: 2>, interior_padding = array<i64: 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<11xf32>
    %10 = "flow.windows"(%9) <{axes = array<i64: 0>, dilations = array<i64: 1>, sizes = array<i64: 3>, strides = array<i64: 1>}> : (tensor<11xf32>) -> tensor<9x3xf32>
    %11 = "stablehlo.pad"(%8#1, %4) <{edge_padding_high = array<i64: 2>, edge_padding_low = array<i64: 2>, interior_padding = array<i64: 1>}> : (tensor<4xi32>, tensor<i32>) -> tensor<11xi32>
    %12 = "flow.windows"(%11) <{axes = array<i64: 0>, dilations = array<i64: 1>, sizes = array<i64: 3>, strides = array<i64: 1>}> : (tensor<11xi32>) -> tensor<9x3xi32>
    %13 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64: 0>}> : (tensor<9xi32>) -> tensor<9x3xi32>
    %14 = "stablehlo.compare"(%12, %13) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<9x3xi32>, tensor<9x3xi32>) -> tensor<9x3xi1>
    %15 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %16:2 = "stablehlo.reduce"(%10, %14, %2, %15) <{dimensions = array<i64: 1>}> ({
    ^bb0(%17: tensor<f32>, %18: tensor<i1>, %19: tensor<f32>, %20: tensor<i1>):
      %21 = "stablehlo.add"(%17, %19) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %22 = "stablehlo.select"(%18, %21, %19) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %23 = "stablehlo.select"(%20, %22, %17) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %24 = "stablehlo.or"(%18, %20) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%23, %24) : (tensor<f32>, tensor<i1>) -> ()
    }) : (tensor<9x3xf32>, tensor<9x3xi1>, tensor<f32>, tensor<i1>) -> (tensor<9xf32>, tensor<9xi1>)
    "func.return"(%16#0) : (tensor<9xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows
// Wide windows by doubling: of 8 neighbours first, then of four of those; what stands before the first element is zero.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<32xi32>) -> tensor<32xi32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<32xi32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.reduce_window"(%0, %1) <{padding = dense<[[31, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 32>}> ({
    ^bb0(%3: tensor<i32>, %4: tensor<i32>):
      %5 = "stablehlo.add"(%3, %4) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%5) : (tensor<i32>) -> ()
    }) : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    "func.return"(%2) : (tensor<32xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<32xi32>) -> tensor<32xi32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<32xi32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -1>, edge_padding_low = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %3 = "stablehlo.add"(%2, %0) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %4 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -2>, edge_padding_low = array<i64: 2>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %5 = "stablehlo.add"(%4, %3) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %6 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -3>, edge_padding_low = array<i64: 3>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %7 = "stablehlo.add"(%6, %5) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %8 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -4>, edge_padding_low = array<i64: 4>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %9 = "stablehlo.add"(%8, %7) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %10 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -5>, edge_padding_low = array<i64: 5>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %11 = "stablehlo.add"(%10, %9) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %12 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -6>, edge_padding_low = array<i64: 6>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %13 = "stablehlo.add"(%12, %11) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %14 = "stablehlo.pad"(%0, %1) <{edge_padding_high = array<i64: -7>, edge_padding_low = array<i64: 7>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %15 = "stablehlo.add"(%14, %13) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %16 = "stablehlo.pad"(%15, %1) <{edge_padding_high = array<i64: -8>, edge_padding_low = array<i64: 8>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %17 = "stablehlo.add"(%16, %15) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %18 = "stablehlo.pad"(%15, %1) <{edge_padding_high = array<i64: -16>, edge_padding_low = array<i64: 16>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %19 = "stablehlo.add"(%18, %17) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    %20 = "stablehlo.pad"(%15, %1) <{edge_padding_high = array<i64: -24>, edge_padding_low = array<i64: 24>, interior_padding = array<i64: 0>}> : (tensor<32xi32>, tensor<i32>) -> tensor<32xi32>
    %21 = "stablehlo.add"(%20, %19) : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi32>
    "func.return"(%21) : (tensor<32xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows, canonicalize, dce
// Features first, and enough of them: a convolution with features last, and its result transposed.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x16x9x7xf32>, tensor<8x16x3x3xf32>) -> tensor<2x8x7x5xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<2x16x9x7xf32>, %k: tensor<8x16x3x3xf32>):
    %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64}> : (tensor<2x16x9x7xf32>, tensor<8x16x3x3xf32>) -> tensor<2x8x7x5xf32>
    "func.return"(%0) : (tensor<2x8x7x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x16x9x7xf32>, tensor<8x16x3x3xf32>) -> tensor<2x8x7x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x16x9x7xf32>, %1: tensor<8x16x3x3xf32>):
    %2 = "stablehlo.transpose"(%0) <{permutation = array<i64: 0, 2, 3, 1>}> : (tensor<2x16x9x7xf32>) -> tensor<2x9x7x16xf32>
    %3 = "stablehlo.reshape"(%1) : (tensor<8x16x3x3xf32>) -> tensor<8x144xf32>
    %4 = "stablehlo.transpose"(%3) <{permutation = array<i64: 1, 0>}> : (tensor<8x144xf32>) -> tensor<144x8xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<144x8xf32>) -> tensor<16x3x3x8xf32>
    %6 = "flow.windows"(%2) <{axes = array<i64: 1, 2>, dilations = array<i64: 1, 1>, sizes = array<i64: 3, 3>, strides = array<i64: 1, 1>}> : (tensor<2x9x7x16xf32>) -> tensor<2x7x5x16x3x3xf32>
    %7 = "stablehlo.dot_general"(%6, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [4, 5, 3], rhs_contracting_dimensions = [1, 2, 0]>}> : (tensor<2x7x5x16x3x3xf32>, tensor<16x3x3x8xf32>) -> tensor<2x7x5x8xf32>
    %8 = "stablehlo.transpose"(%7) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<2x7x5x8xf32>) -> tensor<2x8x7x5xf32>
    "func.return"(%8) : (tensor<2x8x7x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows, canonicalize, dce
// A base dilation: results with even and odd places are convolutions by two elements and by one.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x4xf32>, tensor<3x4x5xf32>) -> tensor<2x17x5xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<2x9x4xf32>, %k: tensor<3x4x5xf32>):
    %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2>, padding = dense<1> : tensor<1x2xi64>}> : (tensor<2x9x4xf32>, tensor<3x4x5xf32>) -> tensor<2x17x5xf32>
    "func.return"(%0) : (tensor<2x17x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x4xf32>, tensor<3x4x5xf32>) -> tensor<2x17x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x9x4xf32>, %1: tensor<3x4x5xf32>):
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.pad"(%0, %2) <{edge_padding_high = array<i64: 0, 1, 0>, edge_padding_low = array<i64: 0, 0, 0>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<2x9x4xf32>, tensor<f32>) -> tensor<2x10x4xf32>
    %4 = "stablehlo.slice"(%3) <{limit_indices = array<i64: 2, 9, 4>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x10x4xf32>) -> tensor<2x9x4xf32>
    %5 = "stablehlo.slice"(%1) <{limit_indices = array<i64: 2, 4, 5>, start_indices = array<i64: 1, 0, 0>, strides = array<i64: 2, 1, 1>}> : (tensor<3x4x5xf32>) -> tensor<1x4x5xf32>
    %6 = "stablehlo.reshape"(%5) : (tensor<1x4x5xf32>) -> tensor<4x5xf32>
    %7 = "stablehlo.dot_general"(%4, %6) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x9x4xf32>, tensor<4x5xf32>) -> tensor<2x9x5xf32>
    %8 = "stablehlo.reshape"(%7) : (tensor<2x9x5xf32>) -> tensor<2x9x1x5xf32>
    %9 = "stablehlo.slice"(%1) <{limit_indices = array<i64: 3, 4, 5>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 2, 1, 1>}> : (tensor<3x4x5xf32>) -> tensor<2x4x5xf32>
    %10 = "flow.windows"(%3) <{axes = array<i64: 1>, dilations = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 1>}> : (tensor<2x10x4xf32>) -> tensor<2x9x4x2xf32>
    %11 = "stablehlo.dot_general"(%10, %9) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [3, 2], rhs_contracting_dimensions = [0, 1]>}> : (tensor<2x9x4x2xf32>, tensor<2x4x5xf32>) -> tensor<2x9x5xf32>
    %12 = "stablehlo.reshape"(%11) : (tensor<2x9x5xf32>) -> tensor<2x9x1x5xf32>
    %13 = "stablehlo.concatenate"(%8, %12) <{dimension = 2 : i64}> : (tensor<2x9x1x5xf32>, tensor<2x9x1x5xf32>) -> tensor<2x9x2x5xf32>
    %14 = "stablehlo.reshape"(%13) : (tensor<2x9x2x5xf32>) -> tensor<2x18x5xf32>
    %15 = "stablehlo.slice"(%14) <{limit_indices = array<i64: 2, 17, 5>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x18x5xf32>) -> tensor<2x17x5xf32>
    "func.return"(%15) : (tensor<2x17x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-windows, canonicalize, dce
// A base dilation as long as the kernel: all phases are features of one convolution, which is a dot.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x4xf32>, tensor<2x4x5xf32>) -> tensor<2x18x5xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<2x9x4xf32>, %k: tensor<2x4x5xf32>):
    %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2>, padding = dense<1> : tensor<1x2xi64>}> : (tensor<2x9x4xf32>, tensor<2x4x5xf32>) -> tensor<2x18x5xf32>
    "func.return"(%0) : (tensor<2x18x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x4xf32>, tensor<2x4x5xf32>) -> tensor<2x18x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x9x4xf32>, %1: tensor<2x4x5xf32>):
    %2 = "stablehlo.reshape"(%1) : (tensor<2x4x5xf32>) -> tensor<1x2x4x5xf32>
    %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 1>}> : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
    %4 = "stablehlo.transpose"(%3) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x2x4x5xf32>) -> tensor<1x4x2x5xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<1x4x2x5xf32>) -> tensor<4x10xf32>
    %6 = "stablehlo.dot_general"(%0, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<2x9x4xf32>, tensor<4x10xf32>) -> tensor<2x9x10xf32>
    %7 = "stablehlo.reshape"(%6) : (tensor<2x9x10xf32>) -> tensor<2x18x5xf32>
    "func.return"(%7) : (tensor<2x18x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
