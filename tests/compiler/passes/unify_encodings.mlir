// passes: unify-encodings
// encodings: test
// A matrix and its transpose: no layout serves both, the constant is read as it is.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "util.global"() <{sym_name = "w", type = tensor<64x64xf32>, value = dense<1.0> : tensor<64x64xf32>}> : () -> ()
    "util.global"() <{sym_name = "a", type = tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>}> : () -> ()
    "util.global"() <{sym_name = "b", type = tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>}> : () -> ()
    "flow.executable"() <{sym_name = "dot_0"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_0"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "dot_1"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_1"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "util.global_load"() <{ref = @w}> : () -> tensor<64x64xf32>
      %1 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      "util.global_store"(%1) <{ref = @a}> : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      %2 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      "util.global_store"(%2) <{ref = @b}> : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<64x64xf32>):
      %1 = "util.global_load"() <{ref = @a}> : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      %2 = "util.global_load"() <{ref = @b}> : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      %3 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      %4 = "flow.dispatch"(%3, %1) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %5 = "flow.dispatch"(%3, %2) <{entry = @dot_1::@dot_1, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      "func.return"(%4, %5) : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "util.global"() <{sym_name = "w", type = tensor<64x64xf32>, value = dense<1.000000e+00> : tensor<64x64xf32>}> : () -> ()
    "util.global"() <{sym_name = "a", type = tensor<64x64xf32>}> : () -> ()
    "util.global"() <{sym_name = "b", type = tensor<64x64xf32>}> : () -> ()
    "flow.executable"() <{sym_name = "dot_0_1"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>, sym_name = "dot_0_1"}> ({
      ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "dot_1_1"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>, sym_name = "dot_1_1"}> ({
      ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "util.global_load"() <{ref = @w}> : () -> tensor<64x64xf32>
      "util.global_store"(%0) <{ref = @a}> : (tensor<64x64xf32>) -> ()
      "util.global_store"(%0) <{ref = @b}> : (tensor<64x64xf32>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<64x64xf32>):
      %1 = "util.global_load"() <{ref = @a}> : () -> tensor<64x64xf32>
      %2 = "util.global_load"() <{ref = @b}> : () -> tensor<64x64xf32>
      %3 = "flow.dispatch"(%0, %1) <{entry = @dot_0_1::@dot_0_1, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %4 = "flow.dispatch"(%0, %2) <{entry = @dot_1_1::@dot_1_1, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      "func.return"(%3, %4) : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: unify-encodings
// encodings: test
// Encodings that differ in what the layout does not depend on are left alone: they will be equal.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "util.global"() <{sym_name = "w", type = tensor<64x64xf32>, value = dense<1.0> : tensor<64x64xf32>}> : () -> ()
    "util.global"() <{sym_name = "a", type = tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>}> : () -> ()
    "util.global"() <{sym_name = "b", type = tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>}> : () -> ()
    "flow.executable"() <{sym_name = "dot_0"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_0"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "dot_1"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_1"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "util.global_load"() <{ref = @w}> : () -> tensor<64x64xf32>
      %1 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      "util.global_store"(%1) <{ref = @a}> : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      %2 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>
      "util.global_store"(%2) <{ref = @b}> : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<64x64xf32>):
      %1 = "util.global_load"() <{ref = @a}> : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      %2 = "util.global_load"() <{ref = @b}> : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>
      %3 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      %4 = "flow.dispatch"(%3, %1) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %5 = "flow.dispatch"(%3, %2) <{entry = @dot_1::@dot_1, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> tensor<64x64xf32>
      "func.return"(%4, %5) : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "util.global"() <{sym_name = "w", type = tensor<64x64xf32>, value = dense<1.000000e+00> : tensor<64x64xf32>}> : () -> ()
    "util.global"() <{sym_name = "a", type = tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>}> : () -> ()
    "util.global"() <{sym_name = "b", type = tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>}> : () -> ()
    "flow.executable"() <{sym_name = "dot_0"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_0"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "dot_1"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_1"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "util.global_load"() <{ref = @w}> : () -> tensor<64x64xf32>
      %1 = "flow.hoistable_dispatch"() ({
        %3 = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
        "flow.yield"(%3) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      "util.global_store"(%1) <{ref = @a}> : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      %2 = "flow.hoistable_dispatch"() ({
        %3 = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>
        "flow.yield"(%3) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>
      "util.global_store"(%2) <{ref = @b}> : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<64x64xf32>):
      %1 = "util.global_load"() <{ref = @a}> : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      %2 = "util.global_load"() <{ref = @b}> : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>
      %3 = "flow.hoistable_dispatch"() ({
        %6 = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
        "flow.yield"(%6) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      %4 = "flow.dispatch"(%3, %1) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %5 = "flow.dispatch"(%3, %2) <{entry = @dot_1::@dot_1, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [8, 64, 64]>>) -> tensor<64x64xf32>
      "func.return"(%4, %5) : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
