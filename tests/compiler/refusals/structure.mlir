// What breaks the general rules: dominance, isolation, terminators, symbols, declarations.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>):
    %0 = "stablehlo.negate"(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "func.call"(%1) <{callee = @gone}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    "func.return"() : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<f32>) -> (), sym_name = 5 : i32, surprise}> ({
  ^bb0(%x: tensor<f32>):
    %0 = "stablehlo.add"(%x) : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.transpose"(%x) : (tensor<f32>) -> tensor<f32>
    "some.use"(%0, %1) : (tensor<f32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 2:1: builtin.module: symbol @main is defined twice
// 5:10: stablehlo.negate: operand 0 is used before its definition
// 7:10: func.call: symbol @gone is not defined
// 11:5: func.return: ends its block but func.return follows
// 14:3: func.func: property sym_name must be a StringAttr, is 5 : i32
// 14:3: func.func: unknown property surprise
// 16:10: stablehlo.add: needs 2 operands, has 1
// 17:10: stablehlo.transpose: property permutation is missing
// 18:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Functions, calls and returns that do not fit each other.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main", arg_attrs = [{a.b}, {}]}> ({
  ^bb0(%x: tensor<8xf32>):
    %0 = "func.call"(%x) <{callee = @main}> : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%x) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 3:3: func.func: type (tensor<4xf32>) -> tensor<4xf32> does not fit the arguments (tensor<8xf32>)
// 3:3: func.func: 2 attribute dictionaries for 1 arguments
// 5:10: func.call: calls @main in a circle: recursion is not supported
// 6:5: func.return: returns (tensor<8xf32>) from a function of type (tensor<4xf32>) -> tensor<4xf32>
// -----
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>),
      sym_name = "main",
      arg_attrs = [{tf.aliasing_output = 2 : i32}, {tf.aliasing_output = 1 : i32}, {tf.aliasing_output = 0 : i32}]}> ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<f32>):
    "func.return"(%x, %z) : (tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 2:3: func.func: argument 0 aliases result 2, of which there are 2
// 2:3: func.func: argument 1 of type tensor<4xf32> aliases result 1 of type tensor<f32>
// 2:3: func.func: argument 2 of type tensor<f32> aliases result 0 of type tensor<4xf32>
