// passes: form-dispatch-regions
// One region: what is elementwise before a reduction and behind it belongs to it.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<4xf32>):
    %2 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.exponential"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %4 = "stablehlo.reduce"(%3, %2) <{dimensions = array<i64: 1>}> ({
    ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = "stablehlo.divide"(%4, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%8) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<4xf32>):
    %2 = "flow.dispatch_region"() ({
      %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %4 = "stablehlo.exponential"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %5 = "stablehlo.reduce"(%4, %3) <{dimensions = array<i64: 1>}> ({
      ^bb0(%7: tensor<f32>, %8: tensor<f32>):
        %9 = "stablehlo.add"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%9) : (tensor<f32>) -> ()
      }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %6 = "stablehlo.divide"(%5, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%6) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// Two regions: a dot reads each element of its operand many times, so tanh is computed before; the transpose is not.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<5x8xf32>):
    %2 = "stablehlo.tanh"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = "stablehlo.transpose"(%1) <{permutation = array<i64: 1, 0>}> : (tensor<5x8xf32>) -> tensor<8x5xf32>
    %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
    %5 = "stablehlo.negate"(%4) : (tensor<4x5xf32>) -> tensor<4x5xf32>
    "func.return"(%5) : (tensor<4x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x5xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<5x8xf32>):
    %2 = "flow.dispatch_region"() ({
      %4 = "stablehlo.tanh"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      "flow.yield"(%4) : (tensor<4x8xf32>) -> ()
    }) : () -> tensor<4x8xf32>
    %3 = "flow.dispatch_region"() ({
      %4 = "stablehlo.transpose"(%1) <{permutation = array<i64: 1, 0>}> : (tensor<5x8xf32>) -> tensor<8x5xf32>
      %5 = "stablehlo.dot_general"(%2, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
      %6 = "stablehlo.negate"(%5) : (tensor<4x5xf32>) -> tensor<4x5xf32>
      "flow.yield"(%6) : (tensor<4x5xf32>) -> ()
    }) : () -> tensor<4x5xf32>
    "func.return"(%3) : (tensor<4x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// One region with two results: exp is needed in memory and as an operand, on the same elements.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6xf32>) -> (tensor<6xf32>, tensor<2x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<6xf32>):
    %1 = "stablehlo.exponential"(%0) : (tensor<6xf32>) -> tensor<6xf32>
    %2 = "stablehlo.add"(%1, %0) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<6xf32>) -> tensor<2x3xf32>
    "func.return"(%1, %3) : (tensor<6xf32>, tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6xf32>) -> (tensor<6xf32>, tensor<2x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<6xf32>):
    %1:2 = "flow.dispatch_region"() ({
      %2 = "stablehlo.exponential"(%0) : (tensor<6xf32>) -> tensor<6xf32>
      %3 = "stablehlo.add"(%2, %0) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
      %4 = "stablehlo.reshape"(%3) : (tensor<6xf32>) -> tensor<2x3xf32>
      "flow.yield"(%2, %4) : (tensor<6xf32>, tensor<2x3xf32>) -> ()
    }) : () -> (tensor<6xf32>, tensor<2x3xf32>)
    "func.return"(%1#0, %1#1) : (tensor<6xf32>, tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// No region at all: an argument, and a constant that becomes filled memory.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6xf32>) -> (tensor<6xf32>, tensor<6xi32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<6xf32>):
    %1 = "stablehlo.constant"() <{value = dense<7> : tensor<6xi32>}> : () -> tensor<6xi32>
    "func.return"(%0, %1) : (tensor<6xf32>, tensor<6xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<6xf32>) -> (tensor<6xf32>, tensor<6xi32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<6xf32>):
    %1 = "flow.splat"() <{value = dense<7> : tensor<i32>}> : () -> tensor<6xi32>
    "func.return"(%0, %1) : (tensor<6xf32>, tensor<6xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// Two regions: x - mean is cheap and reads one large tensor, so both compute it; exp is computed once.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<4xf32>):
    %2 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4x8xf32>
    %4 = "stablehlo.subtract"(%0, %3) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %5 = "stablehlo.reduce"(%4, %2) <{dimensions = array<i64: 1>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = "stablehlo.exponential"(%4) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    "func.return"(%5, %9) : (tensor<4xf32>, tensor<4x8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x8xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<4xf32>):
    %2 = "flow.dispatch_region"() ({
      %4 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %5 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4x8xf32>
      %6 = "stablehlo.subtract"(%0, %5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %7 = "stablehlo.reduce"(%6, %4) <{dimensions = array<i64: 1>}> ({
      ^bb0(%8: tensor<f32>, %9: tensor<f32>):
        %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%10) : (tensor<f32>) -> ()
      }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      "flow.yield"(%7) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    %3 = "flow.dispatch_region"() ({
      %4 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4x8xf32>
      %5 = "stablehlo.subtract"(%0, %4) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %6 = "stablehlo.exponential"(%5) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      "flow.yield"(%6) : (tensor<4x8xf32>) -> ()
    }) : () -> tensor<4x8xf32>
    "func.return"(%2, %3) : (tensor<4xf32>, tensor<4x8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// A library call is alone, whoever reads or makes what it takes and gives, but for a splat; equal readers stay together.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
    %2 = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    %3 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %4:2 = "stablehlo.custom_call"(%3, %1, %2) <{api_version = 4 : i32, backend_config = {}, call_target_name = "a.b"}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
    %5 = "stablehlo.custom_call"(%4#0) <{api_version = 4 : i32, backend_config = {}, call_target_name = "a.c"}> : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "stablehlo.add"(%5, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%6, %4#1) : (tensor<4xf32>, tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
    %2 = "flow.dispatch_region"() ({
      %6 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%6) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    %3:2 = "flow.dispatch_region"() ({
      %6 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %7:2 = "stablehlo.custom_call"(%2, %1, %6) <{api_version = 4 : i32, backend_config = {}, call_target_name = "a.b"}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
      "flow.yield"(%7#0, %7#1) : (tensor<4xf32>, tensor<2xf32>) -> ()
    }) : () -> (tensor<4xf32>, tensor<2xf32>)
    %4 = "flow.dispatch_region"() ({
      %6 = "stablehlo.custom_call"(%3#0) <{api_version = 4 : i32, backend_config = {}, call_target_name = "a.c"}> : (tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%6) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    %5 = "flow.dispatch_region"() ({
      %6 = "stablehlo.add"(%4, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%6) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "func.return"(%5, %3#1) : (tensor<4xf32>, tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// Blocks: exp is in memory because two others read it, the splat is made wherever it is read, and is memory where it is given away.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>):
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<4xf32>}> : () -> tensor<4xf32>
    %4 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%2, %3)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb1(%5: tensor<i32>, %6: tensor<4xf32>):
    %7 = "stablehlo.compare"(%5, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "util.cond_branch"(%7)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.add"(%5, %8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %10 = "stablehlo.multiply"(%6, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %11 = "stablehlo.add"(%10, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%9, %11)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb3:
    %12 = "stablehlo.multiply"(%6, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %13 = "stablehlo.negate"(%4) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%12, %13) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>):
    %2 = "flow.splat"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "flow.splat"() <{value = dense<5.000000e-01> : tensor<f32>}> : () -> tensor<4xf32>
    %4 = "flow.dispatch_region"() ({
      %12 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%12) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "util.branch"(%2, %3)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb1(%5: tensor<i32>, %6: tensor<4xf32>):
    %7 = "flow.dispatch_region"() ({
      %12 = "stablehlo.compare"(%5, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "flow.yield"(%12) : (tensor<i1>) -> ()
    }) : () -> tensor<i1>
    "util.cond_branch"(%7)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    %8 = "flow.dispatch_region"() ({
      %12 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %13 = "stablehlo.add"(%5, %12) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "flow.yield"(%13) : (tensor<i32>) -> ()
    }) : () -> tensor<i32>
    %9 = "flow.dispatch_region"() ({
      %12 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<4xf32>}> : () -> tensor<4xf32>
      %13 = "stablehlo.multiply"(%6, %12) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %14 = "stablehlo.add"(%13, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%14) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "util.branch"(%8, %9)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb3:
    %10 = "flow.dispatch_region"() ({
      %12 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<4xf32>}> : () -> tensor<4xf32>
      %13 = "stablehlo.multiply"(%6, %12) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%13) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    %11 = "flow.dispatch_region"() ({
      %12 = "stablehlo.negate"(%4) : (tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%12) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "func.return"(%10, %11) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// An initializer is formed, too; stores come last, and what is loaded behind one is what was stored.
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "v", type = tensor<4xf32>, value = dense<1.0> : tensor<4xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xf32>
    %1 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%1) <{ref = @w}> : (tensor<4xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @w}> : () -> tensor<4xf32>
    %2 = "stablehlo.constant"() <{value = dense<2.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    "util.global_store"(%2) <{ref = @v}> : (tensor<4xf32>) -> ()
    %3 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%3) <{ref = @v}> : (tensor<4xf32>) -> ()
    %4 = "util.global_load"() <{ref = @v}> : () -> tensor<4xf32>
    %5 = "stablehlo.multiply"(%4, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%5) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{sym_name = "w", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "v", type = tensor<4xf32>, value = dense<1.000000e+00> : tensor<4xf32>}> : () -> ()
  "util.initializer"() <{kind = "program"}> ({
    %0 = "flow.dispatch_region"() ({
      %1 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xf32>
      %2 = "stablehlo.exponential"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%2) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    "util.global_store"(%0) <{ref = @w}> : (tensor<4xf32>) -> ()
    "util.return"() : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @w}> : () -> tensor<4xf32>
    %2:2 = "flow.dispatch_region"() ({
      %3 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.multiply"(%3, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "flow.yield"(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) : () -> (tensor<4xf32>, tensor<4xf32>)
    "util.global_store"(%2#0) <{ref = @v}> : (tensor<4xf32>) -> ()
    "func.return"(%2#1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// An update in place: its group computes the update, and what it is made of for others; who reads the old tensor comes first.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64xf32>, tensor<i32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64xf32>, %2: tensor<i32>):
    %3 = "stablehlo.tanh"(%1) : (tensor<64xf32>) -> tensor<64xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<64xf32>) -> tensor<1x64xf32>
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.dynamic_update_slice"(%0, %4, %2, %5) : (tensor<64x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<64x64xf32>
    %7 = "stablehlo.exponential"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
    "func.return"(%6, %3, %7) : (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64xf32>, tensor<i32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64xf32>, %2: tensor<i32>):
    %3 = "flow.dispatch_region"() ({
      %5 = "stablehlo.exponential"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
      "flow.yield"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> tensor<64x64xf32>
    %4:2 = "flow.dispatch_region"() <{updates = array<i64: 0, 1>}> ({
      %5 = "stablehlo.tanh"(%1) : (tensor<64xf32>) -> tensor<64xf32>
      %6 = "stablehlo.reshape"(%5) : (tensor<64xf32>) -> tensor<1x64xf32>
      %7 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %8 = "stablehlo.dynamic_update_slice"(%0, %6, %2, %7) : (tensor<64x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<64x64xf32>
      "flow.yield"(%5, %8) : (tensor<64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> (tensor<64xf32>, tensor<64x64xf32>)
    "func.return"(%4#1, %4#0, %3) : (tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// What is updated is not read by the group that writes into it, nor is the result.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2000xf32>, tensor<i32>) -> tensor<2000xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2000xf32>, %1: tensor<i32>):
    %2 = "stablehlo.dynamic_slice"(%0, %1) <{slice_sizes = array<i64: 8>}> : (tensor<2000xf32>, tensor<i32>) -> tensor<8xf32>
    %3 = "stablehlo.negate"(%2) : (tensor<8xf32>) -> tensor<8xf32>
    %4 = "stablehlo.dynamic_update_slice"(%0, %3, %1) : (tensor<2000xf32>, tensor<8xf32>, tensor<i32>) -> tensor<2000xf32>
    %5 = "stablehlo.dynamic_update_slice"(%4, %3, %1) : (tensor<2000xf32>, tensor<8xf32>, tensor<i32>) -> tensor<2000xf32>
    %6 = "stablehlo.negate"(%5) : (tensor<2000xf32>) -> tensor<2000xf32>
    "func.return"(%6) : (tensor<2000xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2000xf32>, tensor<i32>) -> tensor<2000xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2000xf32>, %1: tensor<i32>):
    %2 = "flow.dispatch_region"() ({
      %6 = "stablehlo.dynamic_slice"(%0, %1) <{slice_sizes = array<i64: 8>}> : (tensor<2000xf32>, tensor<i32>) -> tensor<8xf32>
      "flow.yield"(%6) : (tensor<8xf32>) -> ()
    }) : () -> tensor<8xf32>
    %3 = "flow.dispatch_region"() <{updates = array<i64: 1>}> ({
      %6 = "stablehlo.negate"(%2) : (tensor<8xf32>) -> tensor<8xf32>
      %7 = "stablehlo.dynamic_update_slice"(%0, %6, %1) : (tensor<2000xf32>, tensor<8xf32>, tensor<i32>) -> tensor<2000xf32>
      "flow.yield"(%7) : (tensor<2000xf32>) -> ()
    }) : () -> tensor<2000xf32>
    %4 = "flow.dispatch_region"() <{updates = array<i64: 1>}> ({
      %6 = "stablehlo.negate"(%2) : (tensor<8xf32>) -> tensor<8xf32>
      %7 = "stablehlo.dynamic_update_slice"(%3, %6, %1) : (tensor<2000xf32>, tensor<8xf32>, tensor<i32>) -> tensor<2000xf32>
      "flow.yield"(%7) : (tensor<2000xf32>) -> ()
    }) : () -> tensor<2000xf32>
    %5 = "flow.dispatch_region"() ({
      %6 = "stablehlo.negate"(%4) : (tensor<2000xf32>) -> tensor<2000xf32>
      "flow.yield"(%6) : (tensor<2000xf32>) -> ()
    }) : () -> tensor<2000xf32>
    "func.return"(%5) : (tensor<2000xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// Updates of few elements, and of tensors that are not in memory, are written whole.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<20xf32>, tensor<8xf32>, tensor<i32>) -> (tensor<20xf32>, tensor<2000xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<20xf32>, %1: tensor<8xf32>, %2: tensor<i32>):
    %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<20xf32>, tensor<8xf32>, tensor<i32>) -> tensor<20xf32>
    %4 = "stablehlo.negate"(%3) : (tensor<20xf32>) -> tensor<20xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<2000xf32>}> : () -> tensor<2000xf32>
    %6 = "stablehlo.dynamic_update_slice"(%5, %1, %2) : (tensor<2000xf32>, tensor<8xf32>, tensor<i32>) -> tensor<2000xf32>
    "func.return"(%4, %6) : (tensor<20xf32>, tensor<2000xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<20xf32>, tensor<8xf32>, tensor<i32>) -> (tensor<20xf32>, tensor<2000xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<20xf32>, %1: tensor<8xf32>, %2: tensor<i32>):
    %3 = "flow.dispatch_region"() ({
      %5 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<20xf32>, tensor<8xf32>, tensor<i32>) -> tensor<20xf32>
      %6 = "stablehlo.negate"(%5) : (tensor<20xf32>) -> tensor<20xf32>
      "flow.yield"(%6) : (tensor<20xf32>) -> ()
    }) : () -> tensor<20xf32>
    %4 = "flow.dispatch_region"() ({
      %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<2000xf32>}> : () -> tensor<2000xf32>
      %6 = "stablehlo.dynamic_update_slice"(%5, %1, %2) : (tensor<2000xf32>, tensor<8xf32>, tensor<i32>) -> tensor<2000xf32>
      "flow.yield"(%6) : (tensor<2000xf32>) -> ()
    }) : () -> tensor<2000xf32>
    "func.return"(%3, %4) : (tensor<20xf32>, tensor<2000xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// One region: both reductions are of the same rows, and what is between them stays in its row, whatever reads it.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 1>}> ({
    ^bb0(%5: tensor<f32>, %6: tensor<f32>):
      %7 = "stablehlo.maximum"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4x8xf32>
    %9 = "stablehlo.subtract"(%0, %8) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %10 = "stablehlo.exponential"(%9) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %11 = "stablehlo.reduce"(%10, %1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%12: tensor<f32>, %13: tensor<f32>):
      %14 = "stablehlo.add"(%12, %13) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%14) : (tensor<f32>) -> ()
    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    "func.return"(%10, %11) : (tensor<4x8xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>):
    %1:2 = "flow.dispatch_region"() ({
      %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %3 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
      %4 = "stablehlo.reduce"(%0, %3) <{dimensions = array<i64: 1>}> ({
      ^bb0(%9: tensor<f32>, %10: tensor<f32>):
        %11 = "stablehlo.maximum"(%9, %10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%11) : (tensor<f32>) -> ()
      }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4x8xf32>
      %6 = "stablehlo.subtract"(%0, %5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %7 = "stablehlo.exponential"(%6) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %8 = "stablehlo.reduce"(%7, %2) <{dimensions = array<i64: 1>}> ({
      ^bb0(%9: tensor<f32>, %10: tensor<f32>):
        %11 = "stablehlo.add"(%9, %10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%11) : (tensor<f32>) -> ()
      }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      "flow.yield"(%7, %8) : (tensor<4x8xf32>, tensor<4xf32>) -> ()
    }) : () -> (tensor<4x8xf32>, tensor<4xf32>)
    "func.return"(%1#0, %1#1) : (tensor<4x8xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-dispatch-regions
// What is behind a dot is computed once per result, in the region of the dot, if another region would repeat it.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<8x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<8x4xf32>, %2: tensor<3x4x4xf32>):
    %3 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %4 = "stablehlo.negate"(%3) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<4x4xf32>) -> tensor<3x4x4xf32>
    %6 = "stablehlo.add"(%5, %2) : (tensor<3x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
    "func.return"(%6) : (tensor<3x4x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x8xf32>, tensor<8x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x8xf32>, %1: tensor<8x4xf32>, %2: tensor<3x4x4xf32>):
    %3 = "flow.dispatch_region"() ({
      %5 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
      %6 = "stablehlo.negate"(%5) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      "flow.yield"(%6) : (tensor<4x4xf32>) -> ()
    }) : () -> tensor<4x4xf32>
    %4 = "flow.dispatch_region"() ({
      %5 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64: 1, 2>}> : (tensor<4x4xf32>) -> tensor<3x4x4xf32>
      %6 = "stablehlo.add"(%5, %2) : (tensor<3x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
      "flow.yield"(%6) : (tensor<3x4x4xf32>) -> ()
    }) : () -> tensor<3x4x4xf32>
    "func.return"(%4) : (tensor<3x4x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
