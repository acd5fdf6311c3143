// Elementwise ops: shapes and element types.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<5xf32>, tensor<4xi32>) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<5xf32>, %i: tensor<4xi32>):
    %r1 = "stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
    "some.use"(%r1) : (tensor<4xf32>) -> ()
    %r2 = "stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi32>
    "some.use"(%r2) : (tensor<4xi32>) -> ()
    %r3 = "stablehlo.and"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "some.use"(%r3) : (tensor<4xf32>) -> ()
    %r4 = "stablehlo.exponential"(%i) : (tensor<4xi32>) -> tensor<4xi32>
    "some.use"(%r4) : (tensor<4xi32>) -> ()
    %r5 = "stablehlo.not"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "some.use"(%r5) : (tensor<4xf32>) -> ()
    %r6 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    "some.use"(%r6) : (tensor<4xi1>) -> ()
    %r7 = "stablehlo.compare"(%i, %i) <{comparison_direction = #stablehlo<comparison_direction UP>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    "some.use"(%r7) : (tensor<4xi1>) -> ()
    %r8 = "stablehlo.compare"(%x, %x) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "some.use"(%r8) : (tensor<4xf32>) -> ()
    %r9 = "stablehlo.select"(%x, %x, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "some.use"(%r9) : (tensor<4xf32>) -> ()
    %r10 = "stablehlo.clamp"(%y, %x, %x) : (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "some.use"(%r10) : (tensor<4xf32>) -> ()
    %r11 = "stablehlo.convert"(%x) : (tensor<4xf32>) -> tensor<5xi32>
    "some.use"(%r11) : (tensor<5xi32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:11: stablehlo.add: operand 1 has shape [5], must have [4]
// 6:5: some.use: is not supported (dialect some)
// 7:11: stablehlo.add: does not take (f32, f32) -> i32
// 8:5: some.use: is not supported (dialect some)
// 9:11: stablehlo.and: does not take (f32, f32) -> f32
// 10:5: some.use: is not supported (dialect some)
// 11:11: stablehlo.exponential: does not take (i32) -> i32
// 12:5: some.use: is not supported (dialect some)
// 13:11: stablehlo.not: does not take (f32) -> f32
// 14:5: some.use: is not supported (dialect some)
// 15:11: stablehlo.compare: compare_type SIGNED does not fit f32, must be FLOAT or TOTALORDER
// 16:5: some.use: is not supported (dialect some)
// 17:11: stablehlo.compare: comparison_direction UP is not one of EQ, NE, LT, LE, GT, GE
// 18:5: some.use: is not supported (dialect some)
// 19:11: stablehlo.compare: does not take (f32, f32) -> f32
// 20:5: some.use: is not supported (dialect some)
// 21:11: stablehlo.select: does not take (f32, f32, f32) -> f32
// 22:5: some.use: is not supported (dialect some)
// 23:12: stablehlo.clamp: operand 0 has shape [5], must have [4]
// 24:5: some.use: is not supported (dialect some)
// 25:12: stablehlo.convert: result 0 must be tensor<4xi32>, is tensor<5xi32>
// 26:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Ops that move or combine elements.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>, tensor<f32>, tensor<4xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%m: tensor<2x3xf32>, %s: tensor<f32>, %x: tensor<4xf32>):
    %r12 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<4xf32>
    "some.use"(%r12) : (tensor<4xf32>) -> ()
    %r13 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi1>
    "some.use"(%r13) : (tensor<4xi1>) -> ()
    %r14 = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<5xf32>
    "some.use"(%r14) : (tensor<5xf32>) -> ()
    %r15 = "stablehlo.broadcast_in_dim"(%m) <{broadcast_dimensions = array<i64: 0>}> : (tensor<2x3xf32>) -> tensor<2x3x4xf32>
    "some.use"(%r15) : (tensor<2x3x4xf32>) -> ()
    %r16 = "stablehlo.broadcast_in_dim"(%m) <{broadcast_dimensions = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<2x3x4xf32>
    "some.use"(%r16) : (tensor<2x3x4xf32>) -> ()
    %r17 = "stablehlo.broadcast_in_dim"(%m) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<2x3xf32>) -> tensor<2x3x4xf32>
    "some.use"(%r17) : (tensor<2x3x4xf32>) -> ()
    %r18 = "stablehlo.reshape"(%m) : (tensor<2x3xf32>) -> tensor<7xf32>
    "some.use"(%r18) : (tensor<7xf32>) -> ()
    %r19 = "stablehlo.transpose"(%m) <{permutation = array<i64: 0, 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r19) : (tensor<2x3xf32>) -> ()
    %r20 = "stablehlo.transpose"(%m) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r20) : (tensor<2x3xf32>) -> ()
    %r21 = "stablehlo.slice"(%m) <{limit_indices = array<i64: 2, 4>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r21) : (tensor<2x3xf32>) -> ()
    %r22 = "stablehlo.slice"(%m) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r22) : (tensor<2x3xf32>) -> ()
    %r23 = "stablehlo.slice"(%m) <{limit_indices = array<i64: 2>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r23) : (tensor<2x3xf32>) -> ()
    %r24 = "stablehlo.pad"(%m, %m) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r24) : (tensor<2x3xf32>) -> ()
    %r25 = "stablehlo.pad"(%m, %s) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: -3, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    "some.use"(%r25) : (tensor<2x3xf32>) -> ()
    %r26 = "stablehlo.pad"(%m, %s) <{edge_padding_high = array<i64: 0, 0>, edge_padding_low = array<i64: 0, 0>, interior_padding = array<i64: 0, -1>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    "some.use"(%r26) : (tensor<2x3xf32>) -> ()
    %r27 = "stablehlo.concatenate"(%m, %x) <{dimension = 0 : i64}> : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
    "some.use"(%r27) : (tensor<2x3xf32>) -> ()
    %r28 = "stablehlo.concatenate"(%m, %m) <{dimension = 2 : i64}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r28) : (tensor<2x3xf32>) -> ()
    %r29 = "stablehlo.concatenate"() <{dimension = 0 : i64}> : () -> tensor<2x3xf32>
    "some.use"(%r29) : (tensor<2x3xf32>) -> ()
    %r30 = "stablehlo.reverse"(%m) <{dimensions = array<i64: 2>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r30) : (tensor<2x3xf32>) -> ()
    %r31 = "stablehlo.dot_general"(%m, %m) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r31) : (tensor<2x3xf32>) -> ()
    %r32 = "stablehlo.dot_general"(%m, %m) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r32) : (tensor<2x3xf32>) -> ()
    %r33 = "stablehlo.dot_general"(%m, %m) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r33) : (tensor<2x3xf32>) -> ()
    %r34 = "stablehlo.dot_general"(%m, %m) <{dot_dimension_numbers = #stablehlo.dot<something = [1]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "some.use"(%r34) : (tensor<2x3xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:12: stablehlo.iota: axis [1] for rank 1
// 6:5: some.use: is not supported (dialect some)
// 7:12: stablehlo.iota: iota of i1
// 8:5: some.use: is not supported (dialect some)
// 9:12: stablehlo.constant: result 0 must be tensor<4xf32>, is tensor<5xf32>
// 10:5: some.use: is not supported (dialect some)
// 11:12: stablehlo.broadcast_in_dim: 1 axes for an operand of rank 2
// 12:5: some.use: is not supported (dialect some)
// 13:12: stablehlo.broadcast_in_dim: axes [1, 1] for rank 3
// 14:5: some.use: is not supported (dialect some)
// 15:12: stablehlo.broadcast_in_dim: dimension 3 cannot be broadcast to 4 (axis 2)
// 16:5: some.use: is not supported (dialect some)
// 17:12: stablehlo.reshape: 6 elements of tensor<2x3xf32> into 7 of tensor<7xf32>
// 18:5: some.use: is not supported (dialect some)
// 19:12: stablehlo.transpose: [0, 0] is not a permutation of rank 2
// 20:5: some.use: is not supported (dialect some)
// 21:12: stablehlo.transpose: result 0 must be tensor<3x2xf32>, is tensor<2x3xf32>
// 22:5: some.use: is not supported (dialect some)
// 23:12: stablehlo.slice: slice 0:4:1 of a dimension of 3
// 24:5: some.use: is not supported (dialect some)
// 25:12: stablehlo.slice: slice 0:3:0 of a dimension of 3
// 26:5: some.use: is not supported (dialect some)
// 27:12: stablehlo.slice: 1 limits for an operand of rank 2
// 28:5: some.use: is not supported (dialect some)
// 29:12: stablehlo.pad: padding value of type tensor<2x3xf32> for tensor<2x3xf32>
// 30:5: some.use: is not supported (dialect some)
// 31:12: stablehlo.pad: padding (-3, 0, 0) of a dimension of 2
// 32:5: some.use: is not supported (dialect some)
// 33:12: stablehlo.pad: padding (0, 0, -1) of a dimension of 3
// 34:5: some.use: is not supported (dialect some)
// 35:12: stablehlo.concatenate: tensor<4xf32> beside tensor<2x3xf32> along axis 0
// 36:5: some.use: is not supported (dialect some)
// 37:12: stablehlo.concatenate: axis [2] for rank 2
// 38:5: some.use: is not supported (dialect some)
// 39:12: stablehlo.concatenate: no operands
// 40:5: some.use: is not supported (dialect some)
// 41:12: stablehlo.reverse: axes [2] for rank 2
// 42:5: some.use: is not supported (dialect some)
// 43:12: stablehlo.dot_general: contracting axes 1 of tensor<2x3xf32> and 0 of tensor<2x3xf32> do not match
// 44:5: some.use: is not supported (dialect some)
// 45:12: stablehlo.dot_general: lhs axes [0, 0] are not distinct axes of rank 2
// 46:5: some.use: is not supported (dialect some)
// 47:12: stablehlo.dot_general: result 0 must be tensor<2x2xf32>, is tensor<2x3xf32>
// 48:5: some.use: is not supported (dialect some)
// 49:12: stablehlo.dot_general: dot_dimension_numbers #stablehlo.dot<something = [1]> is not understood
// 50:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Reductions.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>, tensor<f32>, tensor<4xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%m: tensor<2x3xf32>, %s: tensor<f32>, %x: tensor<4xf32>):
    %q0 = "stablehlo.reduce"(%m, %s) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<i32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    "some.use"(%q0) : (tensor<2xf32>) -> ()
    %q1 = "stablehlo.reduce"(%m, %s) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a, %b) : (tensor<f32>, tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    "some.use"(%q1) : (tensor<2xf32>) -> ()
    %q2 = "stablehlo.reduce"(%m, %s) <{dimensions = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    "some.use"(%q2) : (tensor<2xf32>) -> ()
    %q3 = "stablehlo.reduce"(%m, %s) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    "some.use"(%q3) : (tensor<3xf32>) -> ()
    %q4 = "stablehlo.reduce"(%m, %x) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2xf32>
    "some.use"(%q4) : (tensor<2xf32>) -> ()
    %q5 = "stablehlo.reduce"(%m) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>) -> tensor<2xf32>
    "some.use"(%q5) : (tensor<2xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:11: stablehlo.reduce: the reducer must take (tensor<f32>, tensor<f32>), takes (tensor<f32>, tensor<i32>)
// 9:5: some.use: is not supported (dialect some)
// 10:11: stablehlo.reduce: the reducer must return (tensor<f32>), returns (tensor<f32>, tensor<f32>)
// 14:5: some.use: is not supported (dialect some)
// 15:11: stablehlo.reduce: dimensions [2] are not distinct axes of rank 2
// 19:5: some.use: is not supported (dialect some)
// 20:11: stablehlo.reduce: result 0 must be tensor<2xf32>, is tensor<3xf32>
// 24:5: some.use: is not supported (dialect some)
// 25:11: stablehlo.reduce: init values must be (tensor<f32>), are (tensor<4xf32>)
// 29:5: some.use: is not supported (dialect some)
// 30:11: stablehlo.reduce: its 1 operands do not divide into 2 groups of equal length
// 34:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Lists of axes that are no lists of numbers.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<4x4xf32>):
    %0 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1 0], rhs_contracting_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1,,], rhs_contracting_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    "func.return"(%0, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.dot_general: dot_dimension_numbers #stablehlo.dot<lhs_contracting_dimensions = [1 0], rhs_contracting_dimensions = [0]> is not understood
// 6:10: stablehlo.dot_general: dot_dimension_numbers #stablehlo.dot<lhs_contracting_dimensions = [1,,], rhs_contracting_dimensions = [0]> is not understood
// -----
// Starts known at run time.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<i32>, tensor<i8>, tensor<f32>, tensor<1xi32>) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<4x6xf32>, %i: tensor<i32>, %j: tensor<i8>, %f: tensor<f32>, %v: tensor<1xi32>):
    %r1 = "stablehlo.dynamic_slice"(%x, %i) <{slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<i32>) -> tensor<1x6xf32>
    "some.use"(%r1) : (tensor<1x6xf32>) -> ()
    %r2 = "stablehlo.dynamic_slice"(%x, %i, %j) <{slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<i32>, tensor<i8>) -> tensor<1x6xf32>
    "some.use"(%r2) : (tensor<1x6xf32>) -> ()
    %r3 = "stablehlo.dynamic_slice"(%x, %f, %f) <{slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<f32>, tensor<f32>) -> tensor<1x6xf32>
    "some.use"(%r3) : (tensor<1x6xf32>) -> ()
    %r4 = "stablehlo.dynamic_slice"(%x, %v, %v) <{slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1x6xf32>
    "some.use"(%r4) : (tensor<1x6xf32>) -> ()
    %r5 = "stablehlo.dynamic_slice"(%x, %i, %i) <{slice_sizes = array<i64: 1, 7>}> : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x7xf32>
    "some.use"(%r5) : (tensor<1x7xf32>) -> ()
    %r6 = "stablehlo.dynamic_slice"(%x, %i, %i) <{slice_sizes = array<i64: 1>}> : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
    "some.use"(%r6) : (tensor<1x6xf32>) -> ()
    %r7 = "stablehlo.dynamic_slice"(%x, %i, %i) <{slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    "some.use"(%r7) : (tensor<4x6xf32>) -> ()
    %r8 = "stablehlo.dynamic_update_slice"(%x, %f, %i, %i) : (tensor<4x6xf32>, tensor<f32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    "some.use"(%r8) : (tensor<4x6xf32>) -> ()
    %u = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x1xf32>
    %r9 = "stablehlo.dynamic_update_slice"(%x, %u, %i, %i) : (tensor<4x6xf32>, tensor<5x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    "some.use"(%r9) : (tensor<4x6xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:11: stablehlo.dynamic_slice: 1 start indices for rank 2
// 6:5: some.use: is not supported (dialect some)
// 7:11: stablehlo.dynamic_slice: start indices must be scalars of one integer type, are tensor<i32>, tensor<i8>
// 8:5: some.use: is not supported (dialect some)
// 9:11: stablehlo.dynamic_slice: start indices must be scalars of one integer type, are tensor<f32>, tensor<f32>
// 10:5: some.use: is not supported (dialect some)
// 11:11: stablehlo.dynamic_slice: start indices must be scalars of one integer type, are tensor<1xi32>, tensor<1xi32>
// 12:5: some.use: is not supported (dialect some)
// 13:11: stablehlo.dynamic_slice: slice size 7 does not fit axis 1 of size 6
// 14:5: some.use: is not supported (dialect some)
// 15:11: stablehlo.dynamic_slice: slice_sizes has 1 numbers for rank 2
// 16:5: some.use: is not supported (dialect some)
// 17:11: stablehlo.dynamic_slice: result 0 must be tensor<1x6xf32>, is tensor<4x6xf32>
// 18:5: some.use: is not supported (dialect some)
// 19:11: stablehlo.dynamic_update_slice: update tensor<f32> does not fit tensor<4x6xf32>
// 20:5: some.use: is not supported (dialect some)
// 22:11: stablehlo.dynamic_update_slice: update of size 5 does not fit axis 0 of size 4
// 23:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Gather: what its axes must be.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<3x1xi32>, tensor<3x1xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<4x6xf32>, %i: tensor<3x1xi32>, %f: tensor<3x1xf32>):
    %r1 = "stablehlo.gather"(%x, %f) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3x1xf32>) -> tensor<3x6xf32>
    "some.use"(%r1) : (tensor<3x6xf32>) -> ()
    %r2 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<6x3xf32>
    "some.use"(%r2) : (tensor<6x3xf32>) -> ()
    %r3 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], vector = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<3x6xf32>
    "some.use"(%r3) : (tensor<3x6xf32>) -> ()
    %r4 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 6>}> : (tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<3x6xf32>
    "some.use"(%r4) : (tensor<3x6xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:11: stablehlo.gather: indices of type tensor<3x1xf32>
// 6:5: some.use: is not supported (dialect some)
// 7:11: stablehlo.gather: result 0 must be tensor<3x6xf32>, is tensor<6x3xf32>
// 8:5: some.use: is not supported (dialect some)
// 9:11: stablehlo.gather: dimension_numbers #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], vector = 1> is not understood
// 10:5: some.use: is not supported (dialect some)
// 11:11: stablehlo.gather: slice of 2 along axis 0, which the result does not have; must be 1
// 12:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
