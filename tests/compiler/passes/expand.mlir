// passes: expand
// What chlo says in other words; identities for one device; a composite is a call.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "chlo.square"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "chlo.is_inf"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    %3 = "chlo.is_pos_inf"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    %4 = "chlo.is_neg_inf"(%0) : (tensor<4xf32>) -> tensor<4xi1>
    %5 = "stablehlo.custom_call"(%0) <{call_target_name = "Sharding"}> : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "stablehlo.optimization_barrier"(%5) : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "sdy.sharding_constraint"(%6) <{sharding = #sdy.sharding<@mesh, [{}]>}> : (tensor<4xf32>) -> tensor<4xf32>
    %8 = "stablehlo.composite"(%0) <{decomposition = @parts, name = "my.op"}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1, %2, %3, %4, %7, %8, %0) : (tensor<4xf32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "parts", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xf32>):
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.multiply"(%0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<4xf32>}> : () -> tensor<4xf32>
    %4 = "stablehlo.compare"(%2, %3) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %5 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<4xf32>}> : () -> tensor<4xf32>
    %6 = "stablehlo.compare"(%0, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %7 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<4xf32>}> : () -> tensor<4xf32>
    %8 = "stablehlo.compare"(%0, %7) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %9 = "func.call"(%0) <{callee = @parts}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1, %4, %6, %8, %0, %9, %0) : (tensor<4xf32>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "parts", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xf32>):
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// Dots in one element type: widened before, narrowed after; the precision that is asked for goes.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xi8>, tensor<3x4xi8>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x4xi32>, tensor<f32>, tensor<f64>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xi8>, %1: tensor<3x4xi8>, %2: tensor<3xf64>, %3: tensor<3xf64>):
    %4 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
    %5 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<f32>
    %6 = "stablehlo.dot"(%2, %3) : (tensor<3xf64>, tensor<3xf64>) -> tensor<f64>
    "func.return"(%4, %5, %6) : (tensor<2x4xi32>, tensor<f32>, tensor<f64>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xi8>, tensor<3x4xi8>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x4xi32>, tensor<f32>, tensor<f64>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xi8>, %1: tensor<3x4xi8>, %2: tensor<3xf64>, %3: tensor<3xf64>):
    %4 = "stablehlo.convert"(%0) : (tensor<2x3xi8>) -> tensor<2x3xi32>
    %5 = "stablehlo.convert"(%1) : (tensor<3x4xi8>) -> tensor<3x4xi32>
    %6 = "stablehlo.dot_general"(%4, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
    %7 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<f64>
    %8 = "stablehlo.convert"(%7) : (tensor<f64>) -> tensor<f32>
    %9 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<f64>
    "func.return"(%6, %8, %9) : (tensor<2x4xi32>, tensor<f32>, tensor<f64>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand, canonicalize
// Rounded to bfloat16 in integers.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.reduce_precision"(%0) <{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.bitcast_convert"(%0) : (tensor<4xf32>) -> tensor<4xui32>
    %2 = "stablehlo.constant"() <{value = dense<16> : tensor<4xui32>}> : () -> tensor<4xui32>
    %3 = "stablehlo.shift_right_logical"(%1, %2) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %4 = "stablehlo.constant"() <{value = dense<1> : tensor<4xui32>}> : () -> tensor<4xui32>
    %5 = "stablehlo.and"(%3, %4) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %6 = "stablehlo.constant"() <{value = dense<32767> : tensor<4xui32>}> : () -> tensor<4xui32>
    %7 = "stablehlo.add"(%1, %6) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %8 = "stablehlo.add"(%7, %5) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %9 = "stablehlo.constant"() <{value = dense<4294901760> : tensor<4xui32>}> : () -> tensor<4xui32>
    %10 = "stablehlo.and"(%8, %9) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %11 = "stablehlo.compare"(%0, %0) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %12 = "stablehlo.bitcast_convert"(%10) : (tensor<4xui32>) -> tensor<4xf32>
    %13 = "stablehlo.select"(%11, %0, %12) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%13) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// A library call as JAX writes it, with layouts and the dictionary where older readers do not look; one that says no more
// than it must; one in the form that all get.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = "stablehlo.custom_call"(%0) <{api_version = 1 : i32, backend_config = "", call_target_name = "blas.f", called_computations = [], has_side_effect = false, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> {mhlo.backend_config = {alpha = 2.0 : f64, sizes = dense<[1, 2]> : tensor<2xi64>}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "stablehlo.custom_call"(%1) <{call_target_name = "blas.g"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.custom_call"(%2) <{api_version = 4 : i32, backend_config = {}, call_target_name = "blas.g"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "func.return"(%1, %2, %3) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {alpha = 2.000000e+00 : f64, sizes = dense<[1, 2]> : tensor<2xi64>}, call_target_name = "blas.f"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "stablehlo.custom_call"(%1) <{api_version = 4 : i32, backend_config = {}, call_target_name = "blas.g"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.custom_call"(%2) <{api_version = 4 : i32, backend_config = {}, call_target_name = "blas.g"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "func.return"(%1, %2, %3) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// A scatter of one window is an update of a slice, with what is there already when the window lies outside.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<8x4xf32>, %1: tensor<1xi32>, %2: tensor<4xf32>):
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
    "func.return"(%3) : (tensor<8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<8x4xf32>, %1: tensor<1xi32>, %2: tensor<4xf32>):
    %3 = "stablehlo.reshape"(%1) : (tensor<1xi32>) -> tensor<i32>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.dynamic_slice"(%0, %3, %4) <{slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %6 = "stablehlo.reshape"(%2) : (tensor<4xf32>) -> tensor<1x4xf32>
    %7 = "stablehlo.add"(%5, %6) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %8 = "stablehlo.constant"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.compare"(%3, %9) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %11 = "stablehlo.compare"(%3, %8) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %12 = "stablehlo.and"(%10, %11) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %13 = "stablehlo.select"(%12, %7, %5) : (tensor<i1>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %14 = "stablehlo.dynamic_update_slice"(%0, %13, %3, %4) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    "func.return"(%14) : (tensor<8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// One of two windows is left as it is, and refused.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<8x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<8x4xf32>, %1: tensor<2x1xi32>, %2: tensor<2x4xf32>):
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) : (tensor<8x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    "func.return"(%3) : (tensor<8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<8x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<8x4xf32>, %1: tensor<2x1xi32>, %2: tensor<2x4xf32>):
    %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) : (tensor<8x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    "func.return"(%3) : (tensor<8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// JAX's calls of LAPACK: characters become flags, and results that the library function has not go.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x4xf32>):
    %1:2 = "stablehlo.custom_call"(%0) <{call_target_name = "lapack_spotrf_ffi"}> {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
    %2 = "stablehlo.custom_call"(%0, %1#0) <{call_target_name = "lapack_strsm_ffi"}> {mhlo.backend_config = {diag = 78 : ui8, side = 82 : ui8, trans_x = 84 : ui8, uplo = 85 : ui8}} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3:3 = "stablehlo.custom_call"(%2) <{call_target_name = "lapack_ssyevd_ffi"}> {mhlo.backend_config = {mode = 78 : ui8, uplo = 76 : ui8}} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
    "func.return"(%1#0, %1#1, %2, %3#1) : (tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x4xf32>):
    %1:2 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.potrf"}> : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
    %2 = "stablehlo.custom_call"(%0, %1#0) <{api_version = 4 : i32, backend_config = {left = false, lower = false, trans_a = true, unit_diagonal = false}, call_target_name = "blas.trsm"}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3:2 = "stablehlo.custom_call"(%2) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.syevd"}> : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<i32>)
    "func.return"(%1#0, %1#1, %2, %3#0) : (tensor<4x4xf32>, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// The largest of a line: a sort downwards. Bits as parts, and parts as bits. What has another form stays.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x9xi32>, tensor<4xui16>) -> (tensor<3x2xi32>, tensor<3x2xi32>, tensor<4x2xi8>, tensor<2xui32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<3x9xi32>, %1: tensor<4xui16>):
    %2:2 = "chlo.top_k"(%0) <{k = 2 : i64}> : (tensor<3x9xi32>) -> (tensor<3x2xi32>, tensor<3x2xi32>)
    %3:2 = "chlo.top_k"(%0) <{k = 10 : i64}> : (tensor<3x9xi32>) -> (tensor<3x10xi32>, tensor<3x10xi32>)
    %4 = "stablehlo.bitcast_convert"(%1) : (tensor<4xui16>) -> tensor<4x2xi8>
    %5 = "stablehlo.reshape"(%1) : (tensor<4xui16>) -> tensor<2x2xui16>
    %6 = "stablehlo.bitcast_convert"(%5) : (tensor<2x2xui16>) -> tensor<2xui32>
    "some.use"(%3#0) : (tensor<3x10xi32>) -> ()
    "func.return"(%2#0, %2#1, %4, %6) : (tensor<3x2xi32>, tensor<3x2xi32>, tensor<4x2xi8>, tensor<2xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x9xi32>, tensor<4xui16>) -> (tensor<3x2xi32>, tensor<3x2xi32>, tensor<4x2xi8>, tensor<2xui32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<3x9xi32>, %1: tensor<4xui16>):
    %2 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x9xi32>
    %3 = "stablehlo.constant"() <{value = dense<-2147483648> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.reduce"(%0, %3) <{dimensions = array<i64: 1>}> ({
    ^bb0(%57: tensor<i32>, %58: tensor<i32>):
      %59 = "stablehlo.maximum"(%57, %58) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%59) : (tensor<i32>) -> ()
    }) : (tensor<3x9xi32>, tensor<i32>) -> tensor<3xi32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x9xi32>
    %6 = "stablehlo.compare"(%0, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi1>
    %7 = "stablehlo.constant"() <{value = dense<9> : tensor<3x9xi32>}> : () -> tensor<3x9xi32>
    %8 = "stablehlo.select"(%6, %2, %7) : (tensor<3x9xi1>, tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi32>
    %9 = "stablehlo.constant"() <{value = dense<2147483647> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.reduce"(%8, %9) <{dimensions = array<i64: 1>}> ({
    ^bb0(%57: tensor<i32>, %58: tensor<i32>):
      %59 = "stablehlo.minimum"(%57, %58) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%59) : (tensor<i32>) -> ()
    }) : (tensor<3x9xi32>, tensor<i32>) -> tensor<3xi32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x9xi32>
    %12 = "stablehlo.compare"(%0, %5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi1>
    %13 = "stablehlo.compare"(%0, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi1>
    %14 = "stablehlo.compare"(%2, %11) <{comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi1>
    %15 = "stablehlo.and"(%13, %14) : (tensor<3x9xi1>, tensor<3x9xi1>) -> tensor<3x9xi1>
    %16 = "stablehlo.or"(%12, %15) : (tensor<3x9xi1>, tensor<3x9xi1>) -> tensor<3x9xi1>
    %17 = "stablehlo.constant"() <{value = dense<-2147483648> : tensor<3x9xi32>}> : () -> tensor<3x9xi32>
    %18 = "stablehlo.select"(%16, %0, %17) : (tensor<3x9xi1>, tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi32>
    %19 = "stablehlo.constant"() <{value = dense<-2147483648> : tensor<i32>}> : () -> tensor<i32>
    %20 = "stablehlo.reduce"(%18, %19) <{dimensions = array<i64: 1>}> ({
    ^bb0(%57: tensor<i32>, %58: tensor<i32>):
      %59 = "stablehlo.maximum"(%57, %58) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%59) : (tensor<i32>) -> ()
    }) : (tensor<3x9xi32>, tensor<i32>) -> tensor<3xi32>
    %21 = "stablehlo.broadcast_in_dim"(%20) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x9xi32>
    %22 = "stablehlo.compare"(%0, %21) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi1>
    %23 = "stablehlo.and"(%22, %16) : (tensor<3x9xi1>, tensor<3x9xi1>) -> tensor<3x9xi1>
    %24 = "stablehlo.constant"() <{value = dense<9> : tensor<3x9xi32>}> : () -> tensor<3x9xi32>
    %25 = "stablehlo.select"(%23, %2, %24) : (tensor<3x9xi1>, tensor<3x9xi32>, tensor<3x9xi32>) -> tensor<3x9xi32>
    %26 = "stablehlo.constant"() <{value = dense<2147483647> : tensor<i32>}> : () -> tensor<i32>
    %27 = "stablehlo.reduce"(%25, %26) <{dimensions = array<i64: 1>}> ({
    ^bb0(%57: tensor<i32>, %58: tensor<i32>):
      %59 = "stablehlo.minimum"(%57, %58) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%59) : (tensor<i32>) -> ()
    }) : (tensor<3x9xi32>, tensor<i32>) -> tensor<3xi32>
    %28 = "stablehlo.reshape"(%4) : (tensor<3xi32>) -> tensor<3x1xi32>
    %29 = "stablehlo.reshape"(%20) : (tensor<3xi32>) -> tensor<3x1xi32>
    %30 = "stablehlo.concatenate"(%28, %29) <{dimension = 1 : i64}> : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
    %31 = "stablehlo.reshape"(%10) : (tensor<3xi32>) -> tensor<3x1xi32>
    %32 = "stablehlo.reshape"(%27) : (tensor<3xi32>) -> tensor<3x1xi32>
    %33 = "stablehlo.concatenate"(%31, %32) <{dimension = 1 : i64}> : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
    %34:2 = "chlo.top_k"(%0) <{k = 10 : i64}> : (tensor<3x9xi32>) -> (tensor<3x10xi32>, tensor<3x10xi32>)
    %35 = "stablehlo.constant"() <{value = dense<0> : tensor<4xui16>}> : () -> tensor<4xui16>
    %36 = "stablehlo.shift_right_logical"(%1, %35) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
    %37 = "stablehlo.convert"(%36) : (tensor<4xui16>) -> tensor<4xui8>
    %38 = "stablehlo.reshape"(%37) : (tensor<4xui8>) -> tensor<4x1xui8>
    %39 = "stablehlo.constant"() <{value = dense<8> : tensor<4xui16>}> : () -> tensor<4xui16>
    %40 = "stablehlo.shift_right_logical"(%1, %39) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
    %41 = "stablehlo.convert"(%40) : (tensor<4xui16>) -> tensor<4xui8>
    %42 = "stablehlo.reshape"(%41) : (tensor<4xui8>) -> tensor<4x1xui8>
    %43 = "stablehlo.concatenate"(%38, %42) <{dimension = 1 : i64}> : (tensor<4x1xui8>, tensor<4x1xui8>) -> tensor<4x2xui8>
    %44 = "stablehlo.bitcast_convert"(%43) : (tensor<4x2xui8>) -> tensor<4x2xi8>
    %45 = "stablehlo.reshape"(%1) : (tensor<4xui16>) -> tensor<2x2xui16>
    %46 = "stablehlo.slice"(%45) <{limit_indices = array<i64: 2, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<2x2xui16>) -> tensor<2x1xui16>
    %47 = "stablehlo.reshape"(%46) : (tensor<2x1xui16>) -> tensor<2xui16>
    %48 = "stablehlo.convert"(%47) : (tensor<2xui16>) -> tensor<2xui32>
    %49 = "stablehlo.constant"() <{value = dense<0> : tensor<2xui32>}> : () -> tensor<2xui32>
    %50 = "stablehlo.shift_left"(%48, %49) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %51 = "stablehlo.slice"(%45) <{limit_indices = array<i64: 2, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<2x2xui16>) -> tensor<2x1xui16>
    %52 = "stablehlo.reshape"(%51) : (tensor<2x1xui16>) -> tensor<2xui16>
    %53 = "stablehlo.convert"(%52) : (tensor<2xui16>) -> tensor<2xui32>
    %54 = "stablehlo.constant"() <{value = dense<16> : tensor<2xui32>}> : () -> tensor<2xui32>
    %55 = "stablehlo.shift_left"(%53, %54) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    %56 = "stablehlo.or"(%50, %55) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui32>
    "some.use"(%34#0) : (tensor<3x10xi32>) -> ()
    "func.return"(%30, %33, %44, %56) : (tensor<3x2xi32>, tensor<3x2xi32>, tensor<4x2xi8>, tensor<2xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand, canonicalize, cse
// Two words of ThreeFry.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2xui64>):
    %1:2 = "stablehlo.rng_bit_generator"(%0) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>)
    "func.return"(%1#0, %1#1) : (tensor<2xui64>, tensor<2xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2xui64>):
    %1 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<2xui64>) -> tensor<1xui64>
    %2 = "stablehlo.reshape"(%1) : (tensor<1xui64>) -> tensor<ui64>
    %3 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<2xui64>) -> tensor<1xui64>
    %4 = "stablehlo.reshape"(%3) : (tensor<1xui64>) -> tensor<ui64>
    %5 = "stablehlo.constant"() <{value = dense<32> : tensor<1xui64>}> : () -> tensor<1xui64>
    %6 = "stablehlo.shift_right_logical"(%3, %5) : (tensor<1xui64>, tensor<1xui64>) -> tensor<1xui64>
    %7 = "stablehlo.convert"(%3) : (tensor<1xui64>) -> tensor<1xui32>
    %8 = "stablehlo.convert"(%6) : (tensor<1xui64>) -> tensor<1xui32>
    %9 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %10 = "stablehlo.shift_right_logical"(%2, %9) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %11 = "stablehlo.convert"(%2) : (tensor<ui64>) -> tensor<ui32>
    %12 = "stablehlo.convert"(%10) : (tensor<ui64>) -> tensor<ui32>
    %13 = "stablehlo.xor"(%11, %12) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %14 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %15 = "stablehlo.xor"(%13, %14) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %16 = "stablehlo.reshape"(%11) : (tensor<ui32>) -> tensor<1xui32>
    %17 = "stablehlo.reshape"(%12) : (tensor<ui32>) -> tensor<1xui32>
    %18 = "stablehlo.reshape"(%15) : (tensor<ui32>) -> tensor<1xui32>
    %19 = "stablehlo.add"(%7, %16) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %20 = "stablehlo.add"(%8, %17) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %21 = "stablehlo.add"(%19, %20) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %22 = "stablehlo.constant"() <{value = dense<13> : tensor<1xui32>}> : () -> tensor<1xui32>
    %23 = "stablehlo.shift_left"(%20, %22) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %24 = "stablehlo.constant"() <{value = dense<19> : tensor<1xui32>}> : () -> tensor<1xui32>
    %25 = "stablehlo.shift_right_logical"(%20, %24) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %26 = "stablehlo.or"(%23, %25) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %27 = "stablehlo.xor"(%26, %21) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %28 = "stablehlo.add"(%21, %27) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %29 = "stablehlo.constant"() <{value = dense<15> : tensor<1xui32>}> : () -> tensor<1xui32>
    %30 = "stablehlo.shift_left"(%27, %29) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %31 = "stablehlo.constant"() <{value = dense<17> : tensor<1xui32>}> : () -> tensor<1xui32>
    %32 = "stablehlo.shift_right_logical"(%27, %31) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %33 = "stablehlo.or"(%30, %32) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %34 = "stablehlo.xor"(%33, %28) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %35 = "stablehlo.add"(%28, %34) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %36 = "stablehlo.constant"() <{value = dense<26> : tensor<1xui32>}> : () -> tensor<1xui32>
    %37 = "stablehlo.shift_left"(%34, %36) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %38 = "stablehlo.constant"() <{value = dense<6> : tensor<1xui32>}> : () -> tensor<1xui32>
    %39 = "stablehlo.shift_right_logical"(%34, %38) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %40 = "stablehlo.or"(%37, %39) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %41 = "stablehlo.xor"(%40, %35) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %42 = "stablehlo.add"(%35, %41) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %43 = "stablehlo.shift_left"(%41, %38) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %44 = "stablehlo.shift_right_logical"(%41, %36) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %45 = "stablehlo.or"(%43, %44) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %46 = "stablehlo.xor"(%45, %42) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %47 = "stablehlo.add"(%42, %17) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %48 = "stablehlo.add"(%46, %18) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %49 = "stablehlo.constant"() <{value = dense<1> : tensor<1xui32>}> : () -> tensor<1xui32>
    %50 = "stablehlo.add"(%48, %49) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %51 = "stablehlo.add"(%47, %50) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %52 = "stablehlo.shift_left"(%50, %31) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %53 = "stablehlo.shift_right_logical"(%50, %29) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %54 = "stablehlo.or"(%52, %53) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %55 = "stablehlo.xor"(%54, %51) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %56 = "stablehlo.add"(%51, %55) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %57 = "stablehlo.constant"() <{value = dense<29> : tensor<1xui32>}> : () -> tensor<1xui32>
    %58 = "stablehlo.shift_left"(%55, %57) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %59 = "stablehlo.constant"() <{value = dense<3> : tensor<1xui32>}> : () -> tensor<1xui32>
    %60 = "stablehlo.shift_right_logical"(%55, %59) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %61 = "stablehlo.or"(%58, %60) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %62 = "stablehlo.xor"(%61, %56) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %63 = "stablehlo.add"(%56, %62) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %64 = "stablehlo.constant"() <{value = dense<16> : tensor<1xui32>}> : () -> tensor<1xui32>
    %65 = "stablehlo.shift_left"(%62, %64) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %66 = "stablehlo.shift_right_logical"(%62, %64) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %67 = "stablehlo.or"(%65, %66) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %68 = "stablehlo.xor"(%67, %63) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %69 = "stablehlo.add"(%63, %68) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %70 = "stablehlo.constant"() <{value = dense<24> : tensor<1xui32>}> : () -> tensor<1xui32>
    %71 = "stablehlo.shift_left"(%68, %70) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %72 = "stablehlo.constant"() <{value = dense<8> : tensor<1xui32>}> : () -> tensor<1xui32>
    %73 = "stablehlo.shift_right_logical"(%68, %72) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %74 = "stablehlo.or"(%71, %73) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %75 = "stablehlo.xor"(%74, %69) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %76 = "stablehlo.add"(%69, %18) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %77 = "stablehlo.add"(%75, %16) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %78 = "stablehlo.constant"() <{value = dense<2> : tensor<1xui32>}> : () -> tensor<1xui32>
    %79 = "stablehlo.add"(%77, %78) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %80 = "stablehlo.add"(%76, %79) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %81 = "stablehlo.shift_left"(%79, %22) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %82 = "stablehlo.shift_right_logical"(%79, %24) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %83 = "stablehlo.or"(%81, %82) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %84 = "stablehlo.xor"(%83, %80) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %85 = "stablehlo.add"(%80, %84) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %86 = "stablehlo.shift_left"(%84, %29) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %87 = "stablehlo.shift_right_logical"(%84, %31) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %88 = "stablehlo.or"(%86, %87) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %89 = "stablehlo.xor"(%88, %85) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %90 = "stablehlo.add"(%85, %89) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %91 = "stablehlo.shift_left"(%89, %36) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %92 = "stablehlo.shift_right_logical"(%89, %38) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %93 = "stablehlo.or"(%91, %92) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %94 = "stablehlo.xor"(%93, %90) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %95 = "stablehlo.add"(%90, %94) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %96 = "stablehlo.shift_left"(%94, %38) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %97 = "stablehlo.shift_right_logical"(%94, %36) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %98 = "stablehlo.or"(%96, %97) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %99 = "stablehlo.xor"(%98, %95) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %100 = "stablehlo.add"(%95, %16) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %101 = "stablehlo.add"(%99, %17) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %102 = "stablehlo.add"(%101, %59) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %103 = "stablehlo.add"(%100, %102) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %104 = "stablehlo.shift_left"(%102, %31) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %105 = "stablehlo.shift_right_logical"(%102, %29) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %106 = "stablehlo.or"(%104, %105) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %107 = "stablehlo.xor"(%106, %103) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %108 = "stablehlo.add"(%103, %107) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %109 = "stablehlo.shift_left"(%107, %57) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %110 = "stablehlo.shift_right_logical"(%107, %59) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %111 = "stablehlo.or"(%109, %110) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %112 = "stablehlo.xor"(%111, %108) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %113 = "stablehlo.add"(%108, %112) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %114 = "stablehlo.shift_left"(%112, %64) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %115 = "stablehlo.shift_right_logical"(%112, %64) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %116 = "stablehlo.or"(%114, %115) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %117 = "stablehlo.xor"(%116, %113) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %118 = "stablehlo.add"(%113, %117) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %119 = "stablehlo.shift_left"(%117, %70) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %120 = "stablehlo.shift_right_logical"(%117, %72) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %121 = "stablehlo.or"(%119, %120) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %122 = "stablehlo.xor"(%121, %118) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %123 = "stablehlo.add"(%118, %17) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %124 = "stablehlo.add"(%122, %18) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %125 = "stablehlo.constant"() <{value = dense<4> : tensor<1xui32>}> : () -> tensor<1xui32>
    %126 = "stablehlo.add"(%124, %125) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %127 = "stablehlo.add"(%123, %126) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %128 = "stablehlo.shift_left"(%126, %22) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %129 = "stablehlo.shift_right_logical"(%126, %24) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %130 = "stablehlo.or"(%128, %129) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %131 = "stablehlo.xor"(%130, %127) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %132 = "stablehlo.add"(%127, %131) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %133 = "stablehlo.shift_left"(%131, %29) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %134 = "stablehlo.shift_right_logical"(%131, %31) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %135 = "stablehlo.or"(%133, %134) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %136 = "stablehlo.xor"(%135, %132) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %137 = "stablehlo.add"(%132, %136) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %138 = "stablehlo.shift_left"(%136, %36) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %139 = "stablehlo.shift_right_logical"(%136, %38) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %140 = "stablehlo.or"(%138, %139) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %141 = "stablehlo.xor"(%140, %137) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %142 = "stablehlo.add"(%137, %141) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %143 = "stablehlo.shift_left"(%141, %38) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %144 = "stablehlo.shift_right_logical"(%141, %36) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %145 = "stablehlo.or"(%143, %144) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %146 = "stablehlo.xor"(%145, %142) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %147 = "stablehlo.add"(%142, %18) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %148 = "stablehlo.add"(%146, %16) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %149 = "stablehlo.constant"() <{value = dense<5> : tensor<1xui32>}> : () -> tensor<1xui32>
    %150 = "stablehlo.add"(%148, %149) : (tensor<1xui32>, tensor<1xui32>) -> tensor<1xui32>
    %151 = "stablehlo.reshape"(%147) : (tensor<1xui32>) -> tensor<1x1xui32>
    %152 = "stablehlo.reshape"(%150) : (tensor<1xui32>) -> tensor<1x1xui32>
    %153 = "stablehlo.concatenate"(%151, %152) <{dimension = 1 : i64}> : (tensor<1x1xui32>, tensor<1x1xui32>) -> tensor<1x2xui32>
    %154 = "stablehlo.reshape"(%153) : (tensor<1x2xui32>) -> tensor<2xui32>
    %155 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %156 = "stablehlo.add"(%4, %155) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %157 = "stablehlo.reshape"(%156) : (tensor<ui64>) -> tensor<1xui64>
    %158 = "stablehlo.concatenate"(%1, %157) <{dimension = 0 : i64}> : (tensor<1xui64>, tensor<1xui64>) -> tensor<2xui64>
    "func.return"(%158, %154) : (tensor<2xui64>, tensor<2xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// Ops that broadcast; the upper half of a product; a number in the shape of a value; a narrow float by way of f32.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x1xi32>, tensor<4xi32>, tensor<3xi32>, tensor<3xbf16>) -> (tensor<3x4xi1>, tensor<3xi32>, tensor<3xi32>, tensor<3xbf16>), sym_name = "main"}> ({
  ^bb0(%0: tensor<3x1xi32>, %1: tensor<4xi32>, %2: tensor<3xi32>, %3: tensor<3xbf16>):
    %4 = "chlo.broadcast_add"(%0, %1) : (tensor<3x1xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %5 = "chlo.broadcast_compare"(%4, %2) <{broadcast_dimensions = array<i64: 0>, comparison_direction = #chlo<comparison_direction LT>}> : (tensor<3x4xi32>, tensor<3xi32>) -> tensor<3x4xi1>
    %6 = "chlo.mulhi"(%2, %2) : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %7 = "chlo.constant_like"(%2) <{value = 3 : i32}> : (tensor<3xi32>) -> tensor<3xi32>
    %8 = "chlo.tan"(%3) : (tensor<3xbf16>) -> tensor<3xbf16>
    "func.return"(%5, %6, %7, %8) : (tensor<3x4xi1>, tensor<3xi32>, tensor<3xi32>, tensor<3xbf16>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x1xi32>, tensor<4xi32>, tensor<3xi32>, tensor<3xbf16>) -> (tensor<3x4xi1>, tensor<3xi32>, tensor<3xi32>, tensor<3xbf16>), sym_name = "main"}> ({
  ^bb0(%0: tensor<3x1xi32>, %1: tensor<4xi32>, %2: tensor<3xi32>, %3: tensor<3xbf16>):
    %4 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xi32>) -> tensor<3x4xi32>
    %5 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xi32>) -> tensor<3x4xi32>
    %6 = "stablehlo.add"(%4, %5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %7 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi32>) -> tensor<3x4xi32>
    %8 = "stablehlo.compare"(%6, %7) <{comparison_direction = #chlo<comparison_direction LT>}> : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi1>
    %9 = "stablehlo.convert"(%2) : (tensor<3xi32>) -> tensor<3xi64>
    %10 = "stablehlo.convert"(%2) : (tensor<3xi32>) -> tensor<3xi64>
    %11 = "stablehlo.multiply"(%9, %10) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %12 = "stablehlo.constant"() <{value = dense<32> : tensor<3xi64>}> : () -> tensor<3xi64>
    %13 = "stablehlo.shift_right_logical"(%11, %12) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
    %14 = "stablehlo.convert"(%13) : (tensor<3xi64>) -> tensor<3xi32>
    %15 = "stablehlo.constant"() <{value = dense<3> : tensor<3xi32>}> : () -> tensor<3xi32>
    %16 = "stablehlo.convert"(%3) : (tensor<3xbf16>) -> tensor<3xf32>
    %17 = "stablehlo.tan"(%16) : (tensor<3xf32>) -> tensor<3xf32>
    %18 = "stablehlo.convert"(%17) : (tensor<3xf32>) -> tensor<3xbf16>
    "func.return"(%8, %14, %15, %18) : (tensor<3x4xi1>, tensor<3xi32>, tensor<3xi32>, tensor<3xbf16>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand
// A composite of a function of CHLO is that function; of what that does not take, it is its decomposition.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xi32>):
    %2 = "stablehlo.composite"(%0) <{decomposition = @own, name = "chlo.erf"}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.composite"(%1) <{decomposition = @other, name = "chlo.erf"}> : (tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.composite"(%0) <{decomposition = @own, name = "chlo.erf_of_mine"}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2, %3, %4) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "own", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xf32>):
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xi32>) -> tensor<4xi32>, sym_name = "other", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xi32>):
    "func.return"(%0) : (tensor<4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xi32>):
    %2 = "chlo.erf"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "func.call"(%1) <{callee = @other}> : (tensor<4xi32>) -> tensor<4xi32>
    %4 = "func.call"(%0) <{callee = @own}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2, %3, %4) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "own", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xf32>):
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xi32>) -> tensor<4xi32>, sym_name = "other", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xi32>):
    "func.return"(%0) : (tensor<4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
