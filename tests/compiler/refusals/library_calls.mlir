// Custom calls that are no calls of library functions, and those that are not supported.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %none: tensor<0xf32>):
    %0 = "stablehlo.custom_call"(%x) <{call_target_name = "cu_something"}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.custom_call"(%0) <{call_target_name = "a.b", has_side_effect = true}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.custom_call"(%1) <{call_target_name = "a.b", called_computations = [@main]}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.custom_call"(%2) <{call_target_name = "a.b", backend_config = "opaque"}> : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.custom_call"(%3) <{api_version = 4 : i32, call_target_name = "a.b", backend_config = {nested = {a = 1 : i64}, half = 1.5 : bf16, table = dense<[[1, 2]]> : tensor<1x2xi64>, great = 18446744073709551615 : ui64, key.dot = true}}> : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.custom_call"(%4) <{call_target_name = "a.b", has_side_effect = true}> : (tensor<4xf32>) -> ()
    %5 = "stablehlo.custom_call"(%4) <{call_target_name = "a.b"}> : (tensor<4xf32>) -> tensor<0xf32>
    %6 = "stablehlo.custom_call"(%5, %none) <{call_target_name = "a.b"}> : (tensor<0xf32>, tensor<0xf32>) -> tensor<4xbf16>
    %7 = "stablehlo.custom_call"(%6) <{call_target_name = "a.b", unknown = 1 : i64}> : (tensor<4xbf16>) -> tensor<4xf32>
    %8 = "stablehlo.custom_call"(%7) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%8) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.custom_call: is not supported: cu_something is code for CUDA; export the program for cpu: jax.export.export(f, platforms=['cpu'])
// 6:10: stablehlo.custom_call: calls a.b, which has side effects; functions over tensors only are supported
// 7:10: stablehlo.custom_call: calls a.b with computations, which is not supported
// 8:10: stablehlo.custom_call: calls a.b with backend_config "opaque", a dictionary (api_version = 4) is supported
// 9:10: stablehlo.custom_call: attribute great: 18446744073709551615 does not fit 64 bits
// 9:10: stablehlo.custom_call: attribute half: 0x3FC0 : bf16 is not supported; supported are bool, int, float, string, list of ints, list of floats, list of bools
// 9:10: stablehlo.custom_call: attribute key.dot: 'key.dot' is no name of an attribute
// 9:10: stablehlo.custom_call: attribute nested: {a = 1 : i64} is not supported; supported are bool, int, float, string, list of ints, list of floats, list of bools
// 9:10: stablehlo.custom_call: attribute table: dense<[[1, 2]]> : tensor<1x2xi64> is not supported; supported are bool, int, float, string, list of ints, list of floats, list of bools
// 10:5: stablehlo.custom_call: calls a.b, which has side effects; functions over tensors only are supported
// 10:5: stablehlo.custom_call: calls a.b without results; a library function needs one
// 11:10: stablehlo.custom_call: result 0 is tensor<0xf32>, which has no elements for a.b to compute
// 12:10: stablehlo.custom_call: result 0 is tensor<4xbf16>; library functions are over i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64
// 13:10: stablehlo.custom_call: unknown property unknown
// 14:10: stablehlo.custom_call: property call_target_name is missing
// -----
// What JAX makes of callbacks and prints.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, !stablehlo.token) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %t: !stablehlo.token):
    %0 = "stablehlo.custom_call"(%x) <{call_target_name = "xla_ffi_python_cpu_callback", has_side_effect = true}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.custom_call"(%t, %x) <{call_target_name = "xla_ffi_python_cpu_callback", has_side_effect = true}> : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// the program calls back into Python, and a module has no Python:
//   5:10: xla_ffi_python_cpu_callback, whose result is used
//   6:10: xla_ffi_python_cpu_callback
// callbacks="drop" (--callbacks=drop) leaves out those with unused results
// the computation can be written in jax.numpy, or done by the caller and passed as an argument
// -----
// Inside a reducer.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %i: tensor<f32>):
    %0 = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.custom_call"(%a, %b) <{call_target_name = "a.b"}> : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%0) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.reduce: its reducer holds stablehlo.custom_call; supported are elementwise ops on scalars and constants
// -----
// Calls of LAPACK as JAX does not write them: a character that means nothing, an attribute more, a result that is none.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x4xf32>):
    %1:2 = "stablehlo.custom_call"(%0) <{call_target_name = "lapack_spotrf_ffi"}> {mhlo.backend_config = {uplo = 77 : ui8}} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
    %2 = "stablehlo.custom_call"(%0) <{call_target_name = "lapack_sgeqrf_ffi"}> {mhlo.backend_config = {more = 1 : i64}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %3:3 = "stablehlo.custom_call"(%2) <{call_target_name = "lapack_ssyevd_ffi"}> {mhlo.backend_config = {mode = 78 : ui8, uplo = 76 : ui8}} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
    %4 = "stablehlo.custom_call"(%2) <{call_target_name = "lapack_sgeev_ffi"}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
    "func.return"(%1#0, %3#0, %4) : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:12: stablehlo.custom_call: is not supported (a call of code that the module does not have): 'lapack_spotrf_ffi' is not the name of a library function (LIBRARY.FUNCTION)
// 6:10: stablehlo.custom_call: is not supported (a call of code that the module does not have): 'lapack_sgeqrf_ffi' is not the name of a library function (LIBRARY.FUNCTION)
// 7:12: stablehlo.custom_call: is not supported (a call of code that the module does not have): 'lapack_ssyevd_ffi' is not the name of a library function (LIBRARY.FUNCTION)
// 8:10: stablehlo.custom_call: is not supported (a call of code that the module does not have): 'lapack_sgeev_ffi' is not the name of a library function (LIBRARY.FUNCTION)
