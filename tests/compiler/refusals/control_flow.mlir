// Control flow whose regions do not fit, and what is not supported inside of them, all at once.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>, tensor<i32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %p: tensor<i1>, %i: tensor<i32>):
    %0 = "stablehlo.if"(%i) ({
      "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
    }, {
      "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    %1 = "stablehlo.if"(%p) ({
      "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    %2 = "stablehlo.case"(%p) ({
      "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    %3 = "stablehlo.case"(%i) ({
      "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
    }, {
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    %4 = "stablehlo.case"(%i) : (tensor<i32>) -> tensor<4xf32>
    %5 = "stablehlo.case"(%i) ({
    ^bb0(%a: tensor<4xf32>):
      "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    %6 = "stablehlo.while"(%x) ({
    ^bb0(%a: tensor<4xf32>):
      "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
    }, {
    ^bb0(%a: tensor<4xf32>):
      "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "stablehlo.while"(%x) ({
    ^bb0(%a: tensor<4xf32>):
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<4xf32>):
      "stablehlo.return"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %8 = "stablehlo.while"(%x, %i) ({
    ^bb0(%a: tensor<4xf32>, %b: tensor<i32>):
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<4xf32>, %b: tensor<i32>):
      "stablehlo.return"(%a, %b) : (tensor<4xf32>, tensor<i32>) -> ()
    }) : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
    %9 = "stablehlo.while"(%x) ({
    ^bb0(%a: tensor<4xf32>):
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<4xf32>):
      %b = "stablehlo.cholesky"(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %c = "stablehlo.if"(%p) ({
        %d = "stablehlo.infeed"(%b) : (tensor<4xf32>) -> tensor<4xf32>
        "stablehlo.return"(%d) : (tensor<4xf32>) -> ()
      }, {
        %e = "stablehlo.convert"(%b) : (tensor<4xf32>) -> tensor<4xf80>
        "some.effect"(%e) : (tensor<4xf80>) -> ()
        "stablehlo.return"(%b) : (tensor<4xf32>) -> ()
      }) : (tensor<i1>) -> tensor<4xf32>
      "stablehlo.return"(%c) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %10 = "some.use"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%10) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.if: operand 0 must be tensor<i1>, is tensor<i32>
// 10:10: stablehlo.if: needs 2 regions, has 1
// 13:10: stablehlo.case: operand 0 must be tensor<i32>, is tensor<i1>
// 16:10: stablehlo.case: branch 1 must return (tensor<4xf32>), returns (tensor<i1>)
// 21:10: stablehlo.case: needs a branch
// 22:10: stablehlo.case: branch 0 must take (), takes (tensor<4xf32>)
// 26:10: stablehlo.while: cond must return (tensor<i1>), returns (tensor<4xf32>)
// 33:10: stablehlo.while: body must return (tensor<4xf32>), returns (tensor<4xf32>, tensor<4xf32>)
// 40:10: stablehlo.while: 2 operands need as many results, not 1
// 52:12: stablehlo.cholesky: is not supported
// 54:14: stablehlo.infeed: is not supported (transfers while the program runs: use arguments)
// 57:14: stablehlo.convert: result 0 is tensor<4xf80>: element type f80 is not supported; supported are i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64, i2, i4, ui2, ui4, f16, bf16, f8E3M4, f8E4M3, f8E4M3FN, f8E4M3FNUZ, f8E4M3B11FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f4E2M1FN, f6E2M3FN, f6E3M2FN, complex<f32>, complex<f64>
// 58:9: some.effect: is not supported (dialect some)
// 63:11: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// A reducer holds no control flow; blocks and branches are no StableHLO.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>, tensor<i1>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %i: tensor<f32>, %p: tensor<i1>):
    %0 = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %t = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c = "stablehlo.if"(%t) ({
        "stablehlo.return"(%a) : (tensor<f32>) -> ()
      }, {
        "stablehlo.return"(%b) : (tensor<f32>) -> ()
      }) : (tensor<i1>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "util.branch"()[^bb1] : () -> ()
  ^bb1:
    "func.return"(%0) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 3:3: func.func: has 2 blocks: control flow other than stablehlo.if, case and while is not supported
// 5:10: stablehlo.reduce: its reducer holds stablehlo.if; supported are elementwise ops on scalars and constants
