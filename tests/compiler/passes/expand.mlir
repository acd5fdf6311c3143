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
    %7 = "stablehlo.add"(%5, %6) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %8 = "stablehlo.add"(%1, %7) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %9 = "stablehlo.constant"() <{value = dense<4294901760> : tensor<4xui32>}> : () -> tensor<4xui32>
    %10 = "stablehlo.and"(%8, %9) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %11 = "stablehlo.bitcast_convert"(%10) : (tensor<4xui32>) -> tensor<4xf32>
    %12 = "stablehlo.compare"(%0, %0) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %13 = "stablehlo.select"(%12, %0, %11) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
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
    %3 = "stablehlo.reshape"(%1) : (tensor<1xi32>) -> tensor<1xi32>
    %4 = "stablehlo.slice"(%3) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<1xi32>) -> tensor<1xi32>
    %5 = "stablehlo.reshape"(%4) : (tensor<1xi32>) -> tensor<i32>
    %6 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %7 = "stablehlo.dynamic_slice"(%0, %5, %6) <{slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %8 = "stablehlo.reshape"(%2) : (tensor<4xf32>) -> tensor<1x4xf32>
    %9 = "stablehlo.add"(%7, %8) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %10 = "stablehlo.constant"() <{value = dense<7> : tensor<i32>}> : () -> tensor<i32>
    %11 = "stablehlo.compare"(%5, %6) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %12 = "stablehlo.compare"(%5, %10) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %13 = "stablehlo.and"(%11, %12) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %14 = "stablehlo.select"(%13, %9, %7) : (tensor<i1>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %15 = "stablehlo.dynamic_update_slice"(%0, %14, %5, %6) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    "func.return"(%15) : (tensor<8x4xf32>) -> ()
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
    %7 = "stablehlo.bitcast_convert"(%1) : (tensor<4xui16>) -> tensor<2xui32>
    "some.use"(%3#0, %7) : (tensor<3x10xi32>, tensor<2xui32>) -> ()
    "func.return"(%2#0, %2#1, %4, %6) : (tensor<3x2xi32>, tensor<3x2xi32>, tensor<4x2xi8>, tensor<2xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
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
