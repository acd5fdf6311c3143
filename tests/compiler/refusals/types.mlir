// Element types, dynamic dimensions, encodings, what is no tensor, what no address space holds.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf80>, tensor<?xf32>, i32, tensor<4xf32, #stablehlo.bounds<4>>) -> tensor<4xcomplex<f32>>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf80>, %1: tensor<?xf32>, %2: i32, %3: tensor<4xf32, #stablehlo.bounds<4>>):
    %4 = "stablehlo.add"(%0, %0) : (tensor<4xf80>, tensor<4xf80>) -> tensor<4xf80>
    %5 = "stablehlo.negate"(%1) : (tensor<?xf32>) -> tensor<?xf32>
    %6 = "stablehlo.constant"() <{value = dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>}> : () -> tensor<4xcomplex<f32>>
    %7 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4294967296x4294967296xf32>
    %8 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi5>
    %9 = "some.use"(%4, %5, %7, %8) : (tensor<4xf80>, tensor<?xf32>, tensor<4294967296x4294967296xf32>, tensor<4xi5>) -> tensor<4xcomplex<f32>>
    "func.return"(%6) : (tensor<4xcomplex<f32>>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 3:3: func.func: argument 0 is tensor<4xf80>: element type f80 is not supported; supported are i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64, i2, i4, ui2, ui4, f16, bf16, f8E3M4, f8E4M3, f8E4M3FN, f8E4M3FNUZ, f8E4M3B11FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f4E2M1FN, f6E2M3FN, f6E3M2FN, complex<f32>, complex<f64>
// 3:3: func.func: argument 2 is i32: values must be tensors
// 3:3: func.func: argument 3 is tensor<4xf32, #stablehlo.bounds<4>>: encoding #stablehlo.bounds<4> is not supported
// 5:10: stablehlo.add: result 0 is tensor<4xf80>: element type f80 is not supported; supported are i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64, i2, i4, ui2, ui4, f16, bf16, f8E3M4, f8E4M3, f8E4M3FN, f8E4M3FNUZ, f8E4M3B11FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f4E2M1FN, f6E2M3FN, f6E3M2FN, complex<f32>, complex<f64>
// 8:10: stablehlo.iota: result 0 is tensor<4294967296x4294967296xf32>: the tensor does not fit an address space
// 9:10: stablehlo.iota: result 0 is tensor<4xi5>: element type i5 is not supported; supported are i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64, i2, i4, ui2, ui4, f16, bf16, f8E3M4, f8E4M3, f8E4M3FN, f8E4M3FNUZ, f8E4M3B11FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f4E2M1FN, f6E2M3FN, f6E3M2FN, complex<f32>, complex<f64>
// 10:10: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Bits of a type that is not supported, taken for one that is.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi16>) -> tensor<4xi16>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xi16>):
    %0 = "stablehlo.bitcast_convert"(%x) : (tensor<4xi16>) -> tensor<4xf80>
    %1 = "stablehlo.bitcast_convert"(%0) : (tensor<4xf80>) -> tensor<4xi16>
    "func.return"(%1) : (tensor<4xi16>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.bitcast_convert: result 0 is tensor<4xf80>: element type f80 is not supported; supported are i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64, i2, i4, ui2, ui4, f16, bf16, f8E3M4, f8E4M3, f8E4M3FN, f8E4M3FNUZ, f8E4M3B11FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f4E2M1FN, f6E2M3FN, f6E3M2FN, complex<f32>, complex<f64>
// -----
// What complex numbers have no meaning for, or no two parts.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xcomplex<f32>>, tensor<4xf32>) -> tensor<4xi1>, sym_name = "main"}> ({
  ^bb0(%z: tensor<4xcomplex<f32>>, %x: tensor<4xf32>):
    %0 = "stablehlo.remainder"(%z, %z) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %1 = "stablehlo.compare"(%0, %z) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
    %2 = "stablehlo.multiply"(%z, %x) : (tensor<4xcomplex<f32>>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
    %3 = "stablehlo.bitcast_convert"(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xui64>
    %4 = "stablehlo.custom_call"(%z) <{api_version = 4 : i32, backend_config = {}, call_target_name = "blas.x"}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %5 = "stablehlo.complex"(%x, %1) : (tensor<4xf32>, tensor<4xi1>) -> tensor<4xcomplex<f32>>
    %6 = "stablehlo.abs"(%z) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    "some.use"(%2, %3, %4, %5, %6) : (tensor<4xcomplex<f32>>, tensor<4xui64>, tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> ()
    "func.return"(%1) : (tensor<4xi1>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.remainder: does not take (complex<f32>, complex<f32>) -> complex<f32>
// 6:10: stablehlo.compare: comparison_direction LT does not fit complex<f32>, EQ and NE do
// 7:10: stablehlo.multiply: does not take (complex<f32>, f32) -> complex<f32>
// 8:10: stablehlo.bitcast_convert: does not take (complex<f32>) -> ui64
// 9:10: stablehlo.custom_call: operand 0 is tensor<4xcomplex<f32>>; library functions are over i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64
// 9:10: stablehlo.custom_call: result 0 is tensor<4xcomplex<f32>>; library functions are over i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64
// 9:10: stablehlo.custom_call: is not supported on complex numbers
// 10:10: stablehlo.complex: takes two tensors of one type, of f32 or f64, not tensor<4xf32> and tensor<4xi1>
// 11:10: stablehlo.abs: result 0 must be tensor<4xf32>, is tensor<4xcomplex<f32>>
// 12:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
// -----
// Transforms of what has another type, or other lengths.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x5xcomplex<f32>>, tensor<6xf32>) -> (), sym_name = "main"}> ({
  ^bb0(%z: tensor<4x5xcomplex<f32>>, %x: tensor<6xf32>):
    %0 = "stablehlo.fft"(%x) <{fft_length = array<i64: 6>, fft_type = #stablehlo<fft_type FFT>}> : (tensor<6xf32>) -> tensor<6xcomplex<f32>>
    %1 = "stablehlo.fft"(%x) <{fft_length = array<i64: 4>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<6xf32>) -> tensor<3xcomplex<f32>>
    %2 = "stablehlo.fft"(%z) <{fft_length = array<i64: 4, 4, 5>, fft_type = #stablehlo<fft_type IFFT>}> : (tensor<4x5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>
    %3 = "stablehlo.fft"(%z) <{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type IRFFT>}> : (tensor<4x5xcomplex<f32>>) -> tensor<4x7xf32>
    "some.use"(%0, %1, %2, %3) : (tensor<6xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<4x5xcomplex<f32>>, tensor<4x7xf32>) -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.fft: FFT takes complex numbers, not f32
// 6:10: stablehlo.fft: RFFT of lengths [4] takes last axes [4], not tensor<6xf32>
// 7:10: stablehlo.fft: fft_length has 3 numbers for tensor<4x5xcomplex<f32>>, may have 1 to 2
// 8:10: stablehlo.fft: result 0 must be tensor<4x8xf32>, is tensor<4x7xf32>
// 9:5: some.use: is not supported (dialect some)
// supported ops of StableHLO are abs, add, and, atan2, bitcast_convert, broadcast_in_dim, case, cbrt, ceil, clamp, compare, complex, concatenate, constant, convert, convolution, cosine, count_leading_zeros, custom_call, divide, dot_general, dynamic_broadcast_in_dim, dynamic_conv, dynamic_gather, dynamic_iota, dynamic_pad, dynamic_reduce_window, dynamic_reshape, dynamic_slice, dynamic_update_slice, exponential, exponential_minus_one, fft, floor, gather, get_dimension_size, if, imag, iota, is_finite, log, log_plus_one, logistic, maximum, minimum, multiply, negate, not, or, pad, popcnt, power, real, real_dynamic_slice, reduce, reduce_window, remainder, reshape, return, reverse, round_nearest_afz, round_nearest_even, rsqrt, scatter, select, select_and_scatter, shift_left, shift_right_arithmetic, shift_right_logical, sign, sine, slice, sort, sqrt, subtract, tan, tanh, transpose, while, xor; of chlo: bessel_i1e, digamma, erf, erf_inv, erfc, lgamma, polygamma, zeta; of func: func, call, return
