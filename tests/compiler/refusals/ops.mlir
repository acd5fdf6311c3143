// Ops that are not there, by family, each with what tells it from others; private functions nobody calls do not count.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>):
    %0 = "stablehlo.custom_call"(%x) <{call_target_name = "annotate_device_placement"}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.while"(%0) ({
    ^bb0(%a: tensor<4xf32>):
      %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<4xf32>):
      %b = "chlo.rank_specialization_cluster"(%a) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%b) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.infeed"(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "mystery.op"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%3) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "unused", sym_visibility = "private"}> ({
    "stablehlo.infeed"() : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.custom_call: is not supported (a call of code that the module does not have): 'annotate_device_placement' is not the name of a library function (LIBRARY.FUNCTION)
// 12:12: chlo.rank_specialization_cluster: is not supported (an op of CHLO)
// 15:10: stablehlo.infeed: is not supported (transfers while the program runs: use arguments)
// 16:10: mystery.op: is not supported (dialect mystery)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Things beside functions, a function from elsewhere, several blocks, no public function at all, several devices.
"builtin.module"() ({
  "ml_program.global"() <{sym_name = "g"}> : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "elsewhere", sym_visibility = "private"}> ({}) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    "func.call"() <{callee = @elsewhere}> : () -> ()
    "cf.br"()[^next] : () -> ()
  ^next:
    "func.return"() : () -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 2 : i32} : () -> ()
// =====
// 2:1: builtin.module: mhlo.num_partitions is 2: programs for several devices are not supported
// 3:3: ml_program.global: is not supported outside of functions
// 4:3: func.func: has no body: a function of another module is declared private, with a name like @module.function
// 5:3: func.func: has 2 blocks: control flow other than stablehlo.if, case and while is not supported
// 7:5: cf.br: is not supported (control flow other than stablehlo.if, case and while)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
"builtin.module"() ({
  "func.func"() <{function_type = () -> (), sym_name = "f", sym_visibility = "private"}> ({
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 1:1: builtin.module: has no public function
// -----
// Recursion, by way of another function.
"builtin.module"() ({
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    "func.call"() <{callee = @a}> : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "a", sym_visibility = "private"}> ({
    "func.call"() <{callee = @b}> : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "b", sym_visibility = "private"}> ({
    "func.call"() <{callee = @a}> : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 12:5: func.call: calls @a in a circle: recursion is not supported
// -----
// A reducer that holds more than scalars, itself and by way of a function.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<f32>):
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xf32>
      %6 = "func.call"(%3) <{callee = @wide}> : (tensor<f32>) -> tensor<f32>
      %7 = "stablehlo.dot_general"(%5, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%2) : (tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "wide", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<f32>):
    %1 = "stablehlo.pad"(%0, %0) <{edge_padding_high = array<i64>, edge_padding_low = array<i64>, interior_padding = array<i64>}> : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "func.return"(%1) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.reduce: its reducer holds stablehlo.iota; supported are elementwise ops on scalars and constants
// 5:10: stablehlo.reduce: its reducer holds stablehlo.dot_general; supported are elementwise ops on scalars and constants
// 5:10: stablehlo.reduce: its reducer holds stablehlo.pad; supported are elementwise ops on scalars and constants
// -----
// Attributes that ask for what is not there.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>, tensor<2xf64>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.tanh"(%0) <{result_accuracy = #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.dot_general"(%0, %0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = f80, rhs_precision_type = f80, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    %3 = "stablehlo.bitcast_convert"(%0) : (tensor<4xf32>) -> tensor<2xf64>
    "func.return"(%1, %2, %3) : (tensor<4xf32>, tensor<f32>, tensor<2xf64>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.tanh: result_accuracy #stablehlo.result_accuracy<ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>> is not supported; supported are the modes DEFAULT and HIGHEST
// 6:10: stablehlo.dot_general: algorithm #stablehlo.dot_algorithm<lhs_precision_type = f80, rhs_precision_type = f80, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> is not supported; supported are element types and tf32, accumulated in a type that holds them
// 7:10: stablehlo.bitcast_convert: from tensor<4xf32> to tensor<2xf64> is not supported; the parts of the wider type need a last axis; no i1
// -----
// Sorts: what is no axis, operands of two shapes, comparators of other types or of more than scalars.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4x2xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<4x2xi32>):
    %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %1:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %d: tensor<i32>, %e: tensor<i32>):
      %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) : (tensor<4xf32>, tensor<4x2xi32>) -> (tensor<4xf32>, tensor<4x2xi32>)
    %2 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<i32>):
      %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      "stablehlo.return"(%a) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %i = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
      %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.sort"(%x) ({}) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0, %1#0, %2, %3, %4, %5) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.sort: dimension 1 is not an axis of rank 1
// 10:12: stablehlo.sort: operands differ in shape: tensor<4xf32>, tensor<4x2xi32>
// 15:10: stablehlo.sort: the comparator must take (tensor<f32>, tensor<f32>), takes (tensor<f32>, tensor<i32>)
// 20:10: stablehlo.sort: the comparator must return (tensor<i1>), returns (tensor<f32>)
// 30:10: stablehlo.sort: the comparator needs one block, has 0
// -----
// Several devices, and what comes or goes while a program runs.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>, !stablehlo.token) -> (), sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %n: tensor<i32>, %t: !stablehlo.token):
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
    %1 = "stablehlo.send"(%x, %t) : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %2:2 = "stablehlo.infeed"(%1) : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    %3 = "stablehlo.set_dimension_size"(%x, %n) <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32>
    %4 = "stablehlo.tuple"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>>
    "some.use"(%0, %2#0, %3, %4) : (tensor<8xf32>, tensor<4xf32>, tensor<?xf32>, tuple<tensor<4xf32>, tensor<4xf32>>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 3:3: func.func: argument 2 is !stablehlo.token: values must be tensors; tokens, which order side effects, are not supported
// 5:10: stablehlo.all_gather: is not supported (several devices)
// 6:10: stablehlo.send: is not supported (several devices: there is no receiver)
// 7:12: stablehlo.infeed: is not supported (transfers while the program runs: use arguments)
// 8:10: stablehlo.set_dimension_size: is not supported (dimensions with a bound, of which a part is used)
// 9:10: stablehlo.tuple: is not supported (a tuple as operand of an op other than calls and control flow)
// 10:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
