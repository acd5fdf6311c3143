// passes: hoist-constants, hoist-into-initializers
// Only the last derived value is kept; the function only loads it. The scale of the argument is no business of the initializer.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1 = "stablehlo.constant"() <{value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
    %2 = "stablehlo.constant"() <{value = dense<2.0> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
    %3 = "stablehlo.transpose"(%1) <{permutation = array<i64: 1, 0>}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %4 = "stablehlo.exponential"(%3) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %5 = "stablehlo.multiply"(%4, %2) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %6 = "stablehlo.multiply"(%0, %2) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %7 = "stablehlo.add"(%6, %5) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    "func.return"(%7) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "constant_0", type = tensor<2x2xf32>, value = dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>}> : () -> ()
  "util.global"() <{sym_name = "hoisted_0", type = tensor<2x2xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "util.global_load"() <{ref = @constant_0}> : () -> tensor<2x2xf32>
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = "stablehlo.exponential"(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %3 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
    %4 = "stablehlo.multiply"(%2, %3) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    "util.global_store"(%4) <{ref = @hoisted_0}> : (tensor<2x2xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1 = "util.global_load"() <{ref = @hoisted_0}> : () -> tensor<2x2xf32>
    %2 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<2x2xf32>}> : () -> tensor<2x2xf32>
    %3 = "stablehlo.multiply"(%0, %2) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %4 = "stablehlo.add"(%3, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    "func.return"(%4) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: hoist-into-initializers
// What is free, only chooses elements, reads nothing at low cost, or grows stays; a small derived part of it goes.
"builtin.module"() ({
  "util.global"() <{sym_name = "c", type = tensor<4xf32>, value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>}> : () -> ()
  "func.func"() <{function_type = () -> (tensor<8xf32>, tensor<2xf32>, tensor<8xi32>, tensor<8x4xf32>), sym_name = "main"}> ({
    %0 = "stablehlo.constant"() <{value = dense<2.0> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %2 = "util.global_load"() <{ref = @c}> : () -> tensor<4xf32>
    %3 = "stablehlo.slice"(%2) <{limit_indices = array<i64: 3>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<2xf32>
    %4 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8xi32>
    %5 = "stablehlo.add"(%4, %4) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %6 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<8x4xf32>
    %8 = "stablehlo.add"(%7, %7) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    "func.return"(%1, %3, %5, %8) : (tensor<8xf32>, tensor<2xf32>, tensor<8xi32>, tensor<8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "c", type = tensor<4xf32>, value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>}> : () -> ()
  "util.global"() <{sym_name = "hoisted_0", type = tensor<4xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "util.global_load"() <{ref = @c}> : () -> tensor<4xf32>
    %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%1) <{ref = @hoisted_0}> : (tensor<4xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> (tensor<8xf32>, tensor<2xf32>, tensor<8xi32>, tensor<8x4xf32>), sym_name = "main"}> ({
    %0 = "util.global_load"() <{ref = @hoisted_0}> : () -> tensor<4xf32>
    %1 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
    %3 = "util.global_load"() <{ref = @c}> : () -> tensor<4xf32>
    %4 = "stablehlo.slice"(%3) <{limit_indices = array<i64: 3>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xf32>) -> tensor<2xf32>
    %5 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8xi32>
    %6 = "stablehlo.add"(%5, %5) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %7 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<8x4xf32>
    %8 = "stablehlo.add"(%7, %7) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    "func.return"(%2, %4, %6, %8) : (tensor<8xf32>, tensor<2xf32>, tensor<8xi32>, tensor<8x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: hoist-into-initializers
// Expensive ops may grow, and read nothing; equal results of two functions are one global.
"builtin.module"() ({
  "func.func"() <{function_type = () -> tensor<8xf32>, sym_name = "main"}> ({
    %0 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8xf32>
    %1 = "stablehlo.sine"(%0) : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%1) : (tensor<8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "other"}> ({
  ^bb0(%0: tensor<8xf32>):
    %1 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8xf32>
    %2 = "stablehlo.sine"(%1) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = "stablehlo.add"(%0, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%3) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "hoisted_0", type = tensor<8xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<8xf32>
    %1 = "stablehlo.sine"(%0) : (tensor<8xf32>) -> tensor<8xf32>
    "util.global_store"(%1) <{ref = @hoisted_0}> : (tensor<8xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> tensor<8xf32>, sym_name = "main"}> ({
    %0 = "util.global_load"() <{ref = @hoisted_0}> : () -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "other"}> ({
  ^bb0(%0: tensor<8xf32>):
    %1 = "util.global_load"() <{ref = @hoisted_0}> : () -> tensor<8xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%2) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: hoist-into-initializers
// In a loop, too; what a mutable global holds is no constant.
"builtin.module"() ({
  "util.global"() <{sym_name = "c", type = tensor<2xf32>, value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "v", type = tensor<2xf32>, value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<i1>, %1: tensor<2xf32>):
    "util.branch"(%1)[^bb1] : (tensor<2xf32>) -> ()
  ^bb1(%2: tensor<2xf32>):
    %3 = "util.global_load"() <{ref = @c}> : () -> tensor<2xf32>
    %4 = "stablehlo.tanh"(%3) : (tensor<2xf32>) -> tensor<2xf32>
    %5 = "util.global_load"() <{ref = @v}> : () -> tensor<2xf32>
    %6 = "stablehlo.tanh"(%5) : (tensor<2xf32>) -> tensor<2xf32>
    %7 = "stablehlo.add"(%2, %4) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %8 = "stablehlo.add"(%7, %6) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "util.cond_branch"(%0, %8, %8)[^bb1, ^bb2] <{counts = array<i64: 1, 1>}> : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  ^bb2(%9: tensor<2xf32>):
    "func.return"(%9) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "c", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "v", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}> : () -> ()
  "util.global"() <{sym_name = "hoisted_0", type = tensor<2xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "util.global_load"() <{ref = @c}> : () -> tensor<2xf32>
    %1 = "stablehlo.tanh"(%0) : (tensor<2xf32>) -> tensor<2xf32>
    "util.global_store"(%1) <{ref = @hoisted_0}> : (tensor<2xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<i1>, %1: tensor<2xf32>):
    %2 = "util.global_load"() <{ref = @hoisted_0}> : () -> tensor<2xf32>
    "util.branch"(%1)[^bb1] : (tensor<2xf32>) -> ()
  ^bb1(%3: tensor<2xf32>):
    %4 = "util.global_load"() <{ref = @v}> : () -> tensor<2xf32>
    %5 = "stablehlo.tanh"(%4) : (tensor<2xf32>) -> tensor<2xf32>
    %6 = "stablehlo.add"(%3, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %7 = "stablehlo.add"(%6, %5) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "util.cond_branch"(%0, %7, %7)[^bb1, ^bb2] <{counts = array<i64: 1, 1>}> : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> ()
  ^bb2(%8: tensor<2xf32>):
    "func.return"(%8) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: set-encodings, hoist-into-initializers
// The encoding of a constant joins the initializer that is there; the constant itself, if nobody else reads it, is gone from the function.
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<512x64xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "flow.dispatch_region"() ({
      %1 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<512x64xf32>
      "flow.yield"(%1) : (tensor<512x64xf32>) -> ()
    }) : () -> tensor<512x64xf32>
    "util.global_store"(%0) <{ref = @w}> : (tensor<512x64xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<32x512xf32>) -> tensor<32x64xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<32x512xf32>):
    %1 = "util.global_load"() <{ref = @w}> : () -> tensor<512x64xf32>
    %2 = "flow.dispatch_region"() ({
      %3 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<32x512xf32>, tensor<512x64xf32>) -> tensor<32x64xf32>
      "flow.yield"(%3) : (tensor<32x64xf32>) -> ()
    }) : () -> tensor<32x64xf32>
    "func.return"(%2) : (tensor<32x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "hoisted_1", type = tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "flow.dispatch_region"() ({
      %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<512x64xf32>
      "flow.yield"(%2) : (tensor<512x64xf32>) -> ()
    }) : () -> tensor<512x64xf32>
    %1 = "flow.hoistable_dispatch"() ({
      %2 = "flow.set_encoding"(%0) : (tensor<512x64xf32>) -> tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>
      "flow.yield"(%2) : (tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>) -> ()
    }) : () -> tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>
    "util.global_store"(%1) <{ref = @hoisted_1}> : (tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<32x512xf32>) -> tensor<32x64xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<32x512xf32>):
    %1 = "util.global_load"() <{ref = @hoisted_1}> : () -> tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>
    %2 = "flow.hoistable_dispatch"() ({
      %4 = "flow.set_encoding"(%0) : (tensor<32x512xf32>) -> tensor<32x512xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [32, 64, 512]>>
      "flow.yield"(%4) : (tensor<32x512xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [32, 64, 512]>>) -> ()
    }) : () -> tensor<32x512xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [32, 64, 512]>>
    %3 = "flow.dispatch_region"() ({
      %4 = "flow.unset_encoding"(%2) : (tensor<32x512xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [32, 64, 512]>>) -> tensor<32x512xf32>
      %5 = "flow.unset_encoding"(%1) : (tensor<512x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [32, 64, 512]>>) -> tensor<512x64xf32>
      %6 = "stablehlo.dot_general"(%4, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<32x512xf32>, tensor<512x64xf32>) -> tensor<32x64xf32>
      "flow.yield"(%6) : (tensor<32x64xf32>) -> ()
    }) : () -> tensor<32x64xf32>
    "func.return"(%3) : (tensor<32x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
