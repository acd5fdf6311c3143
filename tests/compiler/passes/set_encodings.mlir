// passes: set-encodings
// Both operands of a large dot are encoded, the weights once for both dots; a small dot is left alone.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x64xf32>, tensor<7x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<7x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>, %2: tensor<7x64xf32>):
    %3 = "flow.dispatch_region"() ({
      %6 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%6) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    %4 = "flow.dispatch_region"() ({
      %6 = "stablehlo.dot_general"(%3, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%6) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    %5 = "flow.dispatch_region"() ({
      %6 = "stablehlo.dot_general"(%2, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<7x64xf32>, tensor<64x64xf32>) -> tensor<7x64xf32>
      "flow.yield"(%6) : (tensor<7x64xf32>) -> ()
    }) : () -> tensor<7x64xf32>
    "func.return"(%3, %4, %5) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<7x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x64xf32>, tensor<7x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<7x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>, %2: tensor<7x64xf32>):
    %3 = "flow.hoistable_dispatch"() ({
      %9 = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      "flow.yield"(%9) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
    }) : () -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
    %4 = "flow.hoistable_dispatch"() ({
      %9 = "flow.set_encoding"(%1) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      "flow.yield"(%9) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
    }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
    %5 = "flow.dispatch_region"() ({
      %9 = "flow.unset_encoding"(%3) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %10 = "flow.unset_encoding"(%4) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %11 = "stablehlo.dot_general"(%9, %10) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%11) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    %6 = "flow.hoistable_dispatch"() ({
      %9 = "flow.set_encoding"(%5) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      "flow.yield"(%9) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
    }) : () -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
    %7 = "flow.dispatch_region"() ({
      %9 = "flow.unset_encoding"(%6) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %10 = "flow.unset_encoding"(%4) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %11 = "stablehlo.dot_general"(%9, %10) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%11) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    %8 = "flow.dispatch_region"() ({
      %9 = "stablehlo.dot_general"(%2, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<7x64xf32>, tensor<64x64xf32>) -> tensor<7x64xf32>
      "flow.yield"(%9) : (tensor<7x64xf32>) -> ()
    }) : () -> tensor<7x64xf32>
    "func.return"(%5, %7, %8) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<7x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings
// Batches; axes are followed through transposes, joins and elementwise ops.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x2x8x8xi8>, tensor<2x128x64xf32>) -> tensor<2x64x128xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<64x2x8x8xi8>, %1: tensor<2x128x64xf32>):
    %2 = "flow.dispatch_region"() ({
      %4 = "stablehlo.convert"(%0) : (tensor<64x2x8x8xi8>) -> tensor<64x2x8x8xf32>
      %5 = "stablehlo.transpose"(%4) <{permutation = array<i64: 1, 2, 3, 0>}> : (tensor<64x2x8x8xf32>) -> tensor<2x8x8x64xf32>
      %6 = "stablehlo.reshape"(%5) : (tensor<2x8x8x64xf32>) -> tensor<2x64x64xf32>
      %7 = "stablehlo.dot_general"(%6, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2]>}> : (tensor<2x64x64xf32>, tensor<2x128x64xf32>) -> tensor<2x64x128xf32>
      "flow.yield"(%7) : (tensor<2x64x128xf32>) -> ()
    }) : () -> tensor<2x64x128xf32>
    "func.return"(%2) : (tensor<2x64x128xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x2x8x8xi8>, tensor<2x128x64xf32>) -> tensor<2x64x128xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<64x2x8x8xi8>, %1: tensor<2x128x64xf32>):
    %2 = "flow.hoistable_dispatch"() ({
      %5 = "flow.set_encoding"(%0) : (tensor<64x2x8x8xi8>) -> tensor<64x2x8x8xi8, #util.encoding<role = lhs, batch = [1], free = [0], contract = [2, 3], sizes = [64, 128, 64]>>
      "flow.yield"(%5) : (tensor<64x2x8x8xi8, #util.encoding<role = lhs, batch = [1], free = [0], contract = [2, 3], sizes = [64, 128, 64]>>) -> ()
    }) : () -> tensor<64x2x8x8xi8, #util.encoding<role = lhs, batch = [1], free = [0], contract = [2, 3], sizes = [64, 128, 64]>>
    %3 = "flow.hoistable_dispatch"() ({
      %5 = "flow.set_encoding"(%1) : (tensor<2x128x64xf32>) -> tensor<2x128x64xf32, #util.encoding<role = rhs, batch = [0], free = [1], contract = [2], sizes = [64, 128, 64]>>
      "flow.yield"(%5) : (tensor<2x128x64xf32, #util.encoding<role = rhs, batch = [0], free = [1], contract = [2], sizes = [64, 128, 64]>>) -> ()
    }) : () -> tensor<2x128x64xf32, #util.encoding<role = rhs, batch = [0], free = [1], contract = [2], sizes = [64, 128, 64]>>
    %4 = "flow.dispatch_region"() ({
      %5 = "flow.unset_encoding"(%2) : (tensor<64x2x8x8xi8, #util.encoding<role = lhs, batch = [1], free = [0], contract = [2, 3], sizes = [64, 128, 64]>>) -> tensor<64x2x8x8xi8>
      %6 = "stablehlo.convert"(%5) : (tensor<64x2x8x8xi8>) -> tensor<64x2x8x8xf32>
      %7 = "stablehlo.transpose"(%6) <{permutation = array<i64: 1, 2, 3, 0>}> : (tensor<64x2x8x8xf32>) -> tensor<2x8x8x64xf32>
      %8 = "stablehlo.reshape"(%7) : (tensor<2x8x8x64xf32>) -> tensor<2x64x64xf32>
      %9 = "flow.unset_encoding"(%3) : (tensor<2x128x64xf32, #util.encoding<role = rhs, batch = [0], free = [1], contract = [2], sizes = [64, 128, 64]>>) -> tensor<2x128x64xf32>
      %10 = "stablehlo.dot_general"(%8, %9) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [2]>}> : (tensor<2x64x64xf32>, tensor<2x128x64xf32>) -> tensor<2x64x128xf32>
      "flow.yield"(%10) : (tensor<2x64x128xf32>) -> ()
    }) : () -> tensor<2x64x128xf32>
    "func.return"(%4) : (tensor<2x64x128xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings
// Both operands or none: a reshape that splits an axis is not followed, and a splat is not in memory.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x64x64xf32>, tensor<16x128x64xf32>) -> (tensor<2x64x128xf32>, tensor<2x64x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x64x64xf32>, %1: tensor<16x128x64xf32>):
    %2 = "flow.dispatch_region"() ({
      %4 = "stablehlo.reshape"(%1) : (tensor<16x128x64xf32>) -> tensor<2x8x128x64xf32>
      %5 = "stablehlo.slice"(%4) <{limit_indices = array<i64: 2, 1, 128, 64>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x8x128x64xf32>) -> tensor<2x1x128x64xf32>
      %6 = "stablehlo.reshape"(%5) : (tensor<2x1x128x64xf32>) -> tensor<2x128x64xf32>
      %7 = "stablehlo.dot_general"(%0, %6) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>}> : (tensor<2x64x64xf32>, tensor<2x128x64xf32>) -> tensor<2x64x128xf32>
      "flow.yield"(%7) : (tensor<2x64x128xf32>) -> ()
    }) : () -> tensor<2x64x128xf32>
    %3 = "flow.dispatch_region"() ({
      %4 = "stablehlo.constant"() <{value = dense<2.0> : tensor<2x64x64xf32>}> : () -> tensor<2x64x64xf32>
      %5 = "stablehlo.dot_general"(%0, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
      "flow.yield"(%5) : (tensor<2x64x64xf32>) -> ()
    }) : () -> tensor<2x64x64xf32>
    "func.return"(%2, %3) : (tensor<2x64x128xf32>, tensor<2x64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x64x64xf32>, tensor<16x128x64xf32>) -> (tensor<2x64x128xf32>, tensor<2x64x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<2x64x64xf32>, %1: tensor<16x128x64xf32>):
    %2 = "flow.dispatch_region"() ({
      %4 = "stablehlo.reshape"(%1) : (tensor<16x128x64xf32>) -> tensor<2x8x128x64xf32>
      %5 = "stablehlo.slice"(%4) <{limit_indices = array<i64: 2, 1, 128, 64>, start_indices = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>}> : (tensor<2x8x128x64xf32>) -> tensor<2x1x128x64xf32>
      %6 = "stablehlo.reshape"(%5) : (tensor<2x1x128x64xf32>) -> tensor<2x128x64xf32>
      %7 = "stablehlo.dot_general"(%0, %6) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]>}> : (tensor<2x64x64xf32>, tensor<2x128x64xf32>) -> tensor<2x64x128xf32>
      "flow.yield"(%7) : (tensor<2x64x128xf32>) -> ()
    }) : () -> tensor<2x64x128xf32>
    %3 = "flow.dispatch_region"() ({
      %4 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<2x64x64xf32>}> : () -> tensor<2x64x64xf32>
      %5 = "stablehlo.dot_general"(%0, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
      "flow.yield"(%5) : (tensor<2x64x64xf32>) -> ()
    }) : () -> tensor<2x64x64xf32>
    "func.return"(%2, %3) : (tensor<2x64x128xf32>, tensor<2x64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings
// encodings: test
// Any size, and one operand alone, when asked for.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<2x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = "flow.dispatch_region"() ({
      %2 = "stablehlo.constant"() <{value = dense<2.0> : tensor<3x5xf32>}> : () -> tensor<3x5xf32>
      %3 = "stablehlo.dot_general"(%0, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
      "flow.yield"(%3) : (tensor<2x5xf32>) -> ()
    }) : () -> tensor<2x5xf32>
    "func.return"(%1) : (tensor<2x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<2x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = "flow.hoistable_dispatch"() ({
      %3 = "flow.set_encoding"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [2, 5, 3]>>
      "flow.yield"(%3) : (tensor<2x3xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [2, 5, 3]>>) -> ()
    }) : () -> tensor<2x3xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [2, 5, 3]>>
    %2 = "flow.dispatch_region"() ({
      %3 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<3x5xf32>}> : () -> tensor<3x5xf32>
      %4 = "flow.unset_encoding"(%1) : (tensor<2x3xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [2, 5, 3]>>) -> tensor<2x3xf32>
      %5 = "stablehlo.dot_general"(%4, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
      "flow.yield"(%5) : (tensor<2x5xf32>) -> ()
    }) : () -> tensor<2x5xf32>
    "func.return"(%2) : (tensor<2x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings
// Where a call brings the rows: the right operand if it is constant, and nothing else.
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<256x256xf32>}> : () -> ()
  "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}], function_type = (tensor<?x256xf32, #util.dims<b>>, tensor<256x256xf32>) -> (tensor<?x256xf32, #util.dims<b>>, tensor<?x256xf32, #util.dims<b>>), sym_name = "main"}> ({
  ^bb0(%0: tensor<?x256xf32, #util.dims<b>>, %1: tensor<256x256xf32>):
    %2 = "util.global_load"() <{ref = @w}> : () -> tensor<256x256xf32>
    %3 = "flow.dispatch_region"() ({
      %5 = "stablehlo.dot_general"(%0, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x256xf32, #util.dims<b>>, tensor<256x256xf32>) -> tensor<?x256xf32, #util.dims<b>>
      "flow.yield"(%5) : (tensor<?x256xf32, #util.dims<b>>) -> ()
    }) : () -> tensor<?x256xf32, #util.dims<b>>
    %4 = "flow.dispatch_region"() ({
      %5 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x256xf32, #util.dims<b>>, tensor<256x256xf32>) -> tensor<?x256xf32, #util.dims<b>>
      "flow.yield"(%5) : (tensor<?x256xf32, #util.dims<b>>) -> ()
    }) : () -> tensor<?x256xf32, #util.dims<b>>
    "func.return"(%3, %4) : (tensor<?x256xf32, #util.dims<b>>, tensor<?x256xf32, #util.dims<b>>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<256x256xf32>}> : () -> ()
  "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}], function_type = (tensor<?x256xf32, #util.dims<b>>, tensor<256x256xf32>) -> (tensor<?x256xf32, #util.dims<b>>, tensor<?x256xf32, #util.dims<b>>), sym_name = "main"}> ({
  ^bb0(%0: tensor<?x256xf32, #util.dims<b>>, %1: tensor<256x256xf32>):
    %2 = "util.global_load"() <{ref = @w}> : () -> tensor<256x256xf32>
    %3 = "flow.hoistable_dispatch"() ({
      %6 = "flow.set_encoding"(%2) : (tensor<256x256xf32>) -> tensor<256x256xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>
      "flow.yield"(%6) : (tensor<256x256xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>) -> ()
    }) : () -> tensor<256x256xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>
    %4 = "flow.dispatch_region"() ({
      %6 = "flow.unset_encoding"(%3) : (tensor<256x256xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>) -> tensor<256x256xf32>
      %7 = "stablehlo.dot_general"(%0, %6) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x256xf32, #util.dims<b>>, tensor<256x256xf32>) -> tensor<?x256xf32, #util.dims<b>>
      "flow.yield"(%7) : (tensor<?x256xf32, #util.dims<b>>) -> ()
    }) : () -> tensor<?x256xf32, #util.dims<b>>
    %5 = "flow.dispatch_region"() ({
      %6 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x256xf32, #util.dims<b>>, tensor<256x256xf32>) -> tensor<?x256xf32, #util.dims<b>>
      "flow.yield"(%6) : (tensor<?x256xf32, #util.dims<b>>) -> ()
    }) : () -> tensor<?x256xf32, #util.dims<b>>
    "func.return"(%4, %5) : (tensor<?x256xf32, #util.dims<b>>, tensor<?x256xf32, #util.dims<b>>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings
// a dot of a slice from zero on: the operand in memory is deeper than the dot
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x128xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<64x128xf32>, %1: tensor<64x64xf32>):
    %3 = "flow.dispatch_region"() ({
      %5 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 64, 64>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<64x128xf32>) -> tensor<64x64xf32>
      %6 = "stablehlo.dot_general"(%5, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%6) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    "func.return"(%3) : (tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x128xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<64x128xf32>, %1: tensor<64x64xf32>):
    %2 = "flow.dispatch_region"() ({
      %3 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 64, 64>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<64x128xf32>) -> tensor<64x64xf32>
      %4 = "stablehlo.dot_general"(%3, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%4) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    "func.return"(%2) : (tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings
// a dot of every other row: its right operand alone, as weights, if that is a constant
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<256x256xf32>}> : () -> ()
  "func.func"() <{function_type = (tensor<128x256xf32>, tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<128x256xf32>, %1: tensor<256x256xf32>):
    %2 = "util.global_load"() <{ref = @w}> : () -> tensor<256x256xf32>
    %3 = "flow.dispatch_region"() ({
      %5 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 127, 256>, start_indices = array<i64: 0, 0>, strides = array<i64: 2, 1>}> : (tensor<128x256xf32>) -> tensor<64x256xf32>
      %6 = "stablehlo.dot_general"(%5, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      "flow.yield"(%6) : (tensor<64x256xf32>) -> ()
    }) : () -> tensor<64x256xf32>
    %4 = "flow.dispatch_region"() ({
      %5 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 127, 256>, start_indices = array<i64: 0, 0>, strides = array<i64: 2, 1>}> : (tensor<128x256xf32>) -> tensor<64x256xf32>
      %6 = "stablehlo.dot_general"(%5, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      "flow.yield"(%6) : (tensor<64x256xf32>) -> ()
    }) : () -> tensor<64x256xf32>
    "func.return"(%3, %4) : (tensor<64x256xf32>, tensor<64x256xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<256x256xf32>}> : () -> ()
  "func.func"() <{function_type = (tensor<128x256xf32>, tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<128x256xf32>, %1: tensor<256x256xf32>):
    %2 = "util.global_load"() <{ref = @w}> : () -> tensor<256x256xf32>
    %3 = "flow.hoistable_dispatch"() ({
      %6 = "flow.set_encoding"(%2) : (tensor<256x256xf32>) -> tensor<256x256xf32, #util.encoding<role = weights, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>
      "flow.yield"(%6) : (tensor<256x256xf32, #util.encoding<role = weights, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>) -> ()
    }) : () -> tensor<256x256xf32, #util.encoding<role = weights, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>
    %4 = "flow.dispatch_region"() ({
      %6 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 127, 256>, start_indices = array<i64: 0, 0>, strides = array<i64: 2, 1>}> : (tensor<128x256xf32>) -> tensor<64x256xf32>
      %7 = "flow.unset_encoding"(%3) : (tensor<256x256xf32, #util.encoding<role = weights, batch = [], free = [1], contract = [0], sizes = [64, 256, 256]>>) -> tensor<256x256xf32>
      %8 = "stablehlo.dot_general"(%6, %7) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      "flow.yield"(%8) : (tensor<64x256xf32>) -> ()
    }) : () -> tensor<64x256xf32>
    %5 = "flow.dispatch_region"() ({
      %6 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 127, 256>, start_indices = array<i64: 0, 0>, strides = array<i64: 2, 1>}> : (tensor<128x256xf32>) -> tensor<64x256xf32>
      %7 = "stablehlo.dot_general"(%6, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
      "flow.yield"(%7) : (tensor<64x256xf32>) -> ()
    }) : () -> tensor<64x256xf32>
    "func.return"(%4, %5) : (tensor<64x256xf32>, tensor<64x256xf32>) -> ()
  }) : () -> ()
}) : () -> ()
