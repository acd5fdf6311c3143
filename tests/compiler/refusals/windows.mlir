// Convolutions: axes that are none, groups, sizes, steps, padding.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>, tensor<3x3x4x6xi32>) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<2x9x7x4xf32>, %k: tensor<3x3x4x6xf32>, %i: tensor<3x3x4x6xi32>):
    %0 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 0, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %1 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<b, 0, 1, f>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %2 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %3 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %4 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 4 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %5 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 0 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %6 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 3 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %7 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 1>}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %8 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, rhs_dilation = array<i64: 1, 0>}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %9 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<1> : tensor<2xi64>}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %10 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[-5, -5], [0, 0]]> : tensor<2x2xi64>}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %11 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_reversal = array<i1: true>}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    %12 = "stablehlo.convolution"(%x, %i) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xi32>) -> tensor<2x7x5x6xf32>
    %13 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1]>, feature_group_count = 1 : i64}> : (tensor<2x9x7x4xf32>, tensor<3x3x4x6xf32>) -> tensor<2x7x5x6xf32>
    "some.use"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13) : (tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>, tensor<2x7x5x6xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.convolution: dimension_numbers #stablehlo.conv<[b, 0, 0, f]x[0, 1, i, o]->[b, 0, 1, f]>: [b, 0, 0, f] is not an order of its axes
// 6:10: stablehlo.convolution: dimension_numbers #stablehlo.conv<b, 0, 1, f> is not understood
// 7:10: stablehlo.convolution: dimension_numbers are of rank 3, operands are tensor<2x9x7x4xf32> and tensor<3x3x4x6xf32>
// 8:10: stablehlo.convolution: 4 input features, the kernel has 4 for 2 groups
// 9:10: stablehlo.convolution: 6 output features for 4 groups
// 10:10: stablehlo.convolution: 1 feature groups and 0 batch groups: both must be positive, and one of them 1
// 11:10: stablehlo.convolution: a batch of 2 for 3 groups
// 12:10: stablehlo.convolution: strides has 1 numbers for rank 2
// 13:10: stablehlo.convolution: window dilations [1, 0] must be positive
// 14:10: stablehlo.convolution: padding must be tensor<2x2xi64>, is tensor<2xi64>
// 15:11: stablehlo.convolution: padding leaves -1 elements of an axis of size 9
// 16:11: stablehlo.convolution: window_reversal has 1 numbers for rank 2
// 17:11: stablehlo.convolution: operands differ in element type: tensor<2x9x7x4xf32>, tensor<3x3x4x6xi32>
// 18:11: stablehlo.convolution: result 0 must be tensor<2x6x7x5xf32>, is tensor<2x7x5x6xf32>
// 19:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Reductions of windows: sizes, initial values, a reducer that holds what none may hold.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9x7xf32>, tensor<f32>, tensor<i32>) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<9x7xf32>, %s: tensor<f32>, %i: tensor<i32>):
    %0 = "stablehlo.reduce_window"(%x, %s) <{window_dimensions = array<i64: 3>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<f32>) -> tensor<7x7xf32>
    %1 = "stablehlo.reduce_window"(%x, %s) <{window_dimensions = array<i64: 3, 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<f32>) -> tensor<7x7xf32>
    %2 = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 3, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<i32>) -> tensor<7x7xf32>
    %3 = "stablehlo.reduce_window"(%x, %s) <{window_dimensions = array<i64: 3, 1>}> ({
    ^bb0(%a: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<f32>) -> tensor<7x7xf32>
    %4 = "stablehlo.reduce_window"(%x, %s) <{window_dimensions = array<i64: 3, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %l = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<1xf32>
      %m = "stablehlo.reshape"(%l) : (tensor<1xf32>) -> tensor<f32>
      "stablehlo.return"(%m) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<f32>) -> tensor<7x7xf32>
    %5 = "stablehlo.reduce_window"(%x, %s) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9x7xf32>, tensor<f32>) -> tensor<7x7xf32>
    "some.use"(%0, %1, %2, %3, %4, %5) : (tensor<7x7xf32>, tensor<7x7xf32>, tensor<7x7xf32>, tensor<7x7xf32>, tensor<7x7xf32>, tensor<7x7xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.reduce_window: window_dimensions has 1 numbers for rank 2
// 9:10: stablehlo.reduce_window: window sizes [3, 0] must be positive
// 13:10: stablehlo.reduce_window: init values must be (tensor<f32>), are (tensor<i32>)
// 17:10: stablehlo.reduce_window: the reducer must take (tensor<f32>, tensor<f32>), takes (tensor<f32>)
// 21:10: stablehlo.reduce_window: its reducer holds stablehlo.iota; supported are elementwise ops on scalars and constants
// 27:10: stablehlo.reduce_window: result 0 must be tensor<4x4xf32>, is tensor<7x7xf32>
// 31:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Selecting and scattering: the shape of the source, the regions.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<9xf32>, tensor<4xf32>, tensor<f32>) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<9xf32>, %y: tensor<4xf32>, %s: tensor<f32>):
    %0 = "stablehlo.select_and_scatter"(%x, %y, %s) <{window_dimensions = array<i64: 3>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9xf32>, tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
    %1 = "stablehlo.select_and_scatter"(%x, %y, %s) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<9xf32>, tensor<4xf32>, tensor<f32>) -> tensor<9xf32>
    "some.use"(%0, %1) : (tensor<9xf32>, tensor<9xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.select_and_scatter: source must be tensor<7xf32>, one element for each window, is tensor<4xf32>
// 13:10: stablehlo.select_and_scatter: the select must return (tensor<i1>), returns (tensor<f32>)
// 20:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
