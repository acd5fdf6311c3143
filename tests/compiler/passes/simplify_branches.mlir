// passes: simplify-branches
// A constant decides: the other branch goes, and what is left is one block.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    "util.cond_branch"(%2)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb1:
    %3 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%3)[^bb3] : (tensor<4xf32>) -> ()
  ^bb2:
    %4 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%4)[^bb3] : (tensor<4xf32>) -> ()
  ^bb3(%5: tensor<4xf32>):
    "func.return"(%5) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: simplify-branches
// The tensor that counts the turns is for nobody once the host counts.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2 = "util.constant"() <{value = 0 : i32}> : () -> i32
    "util.branch"(%1, %0, %2)[^bb1] : (tensor<i32>, tensor<4xf32>, i32) -> ()
  ^bb1(%3: tensor<i32>, %4: tensor<4xf32>, %5: i32):
    %6 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
    %7 = "stablehlo.compare"(%3, %6) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %8 = "util.constant"() <{value = 10 : i32}> : () -> i32
    %9 = "util.compare_lt"(%5, %8) : (i32, i32) -> i32
    "util.cond_branch"(%9)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
  ^bb2:
    %10 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %11 = "stablehlo.add"(%3, %10) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %12 = "stablehlo.exponential"(%4) : (tensor<4xf32>) -> tensor<4xf32>
    %13 = "util.constant"() <{value = 1 : i32}> : () -> i32
    %14 = "util.add"(%5, %13) : (i32, i32) -> i32
    "util.branch"(%11, %12, %14)[^bb1] : (tensor<i32>, tensor<4xf32>, i32) -> ()
  ^bb3:
    "func.return"(%4) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.constant"() <{value = 0 : i32}> : () -> i32
    "util.branch"(%0, %1)[^bb1] : (tensor<4xf32>, i32) -> ()
  ^bb1(%2: tensor<4xf32>, %3: i32):
    %4 = "util.constant"() <{value = 10 : i32}> : () -> i32
    %5 = "util.compare_lt"(%3, %4) : (i32, i32) -> i32
    "util.cond_branch"(%5)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
  ^bb2:
    %6 = "stablehlo.exponential"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "util.constant"() <{value = 1 : i32}> : () -> i32
    %8 = "util.add"(%3, %7) : (i32, i32) -> i32
    "util.branch"(%6, %8)[^bb1] : (tensor<4xf32>, i32) -> ()
  ^bb3:
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: simplify-branches
// What a loop never changes is no argument of its blocks.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    "util.branch"(%0)[^bb1] : (tensor<4xf32>) -> ()
  ^bb1(%2: tensor<4xf32>):
    "util.cond_branch"(%1)[^bb2, ^bb6] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    "util.cond_branch"(%1)[^bb3, ^bb4] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb3:
    %3 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%2)[^bb5] : (tensor<4xf32>) -> ()
  ^bb4:
    "util.branch"(%2)[^bb5] : (tensor<4xf32>) -> ()
  ^bb5(%4: tensor<4xf32>):
    "util.branch"(%4)[^bb1] : (tensor<4xf32>) -> ()
  ^bb6:
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    "util.branch"()[^bb1] : () -> ()
  ^bb1:
    "util.cond_branch"(%1)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    "util.branch"()[^bb1] : () -> ()
  ^bb3:
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: simplify-branches
// A loop without end: nothing is behind it.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    "util.branch"(%0)[^bb1] : (tensor<4xf32>) -> ()
  ^bb1(%2: tensor<4xf32>):
    %3 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    "util.cond_branch"(%3)[^bb2, ^bb6] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    "util.cond_branch"(%1)[^bb3, ^bb4] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb3:
    %4 = "stablehlo.exponential"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%4)[^bb5] : (tensor<4xf32>) -> ()
  ^bb4:
    "util.branch"(%2)[^bb5] : (tensor<4xf32>) -> ()
  ^bb5(%5: tensor<4xf32>):
    "util.branch"(%5)[^bb1] : (tensor<4xf32>) -> ()
  ^bb6:
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    "util.branch"()[^bb1] : () -> ()
  ^bb1:
    "util.branch"()[^bb1] : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize, lower-control-flow, simplify-branches
// Results that nobody uses, or that all branches give alike.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2:4 = "stablehlo.if"(%1) ({
      %3 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %5 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      "stablehlo.return"(%3, %4, %0, %5) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> ()
    }, {
      %3 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      "stablehlo.return"(%3, %3, %0, %4) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> ()
    }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
    "func.return"(%2#0, %2#2, %2#3) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    "util.cond_branch"(%1)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb1:
    %2 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    "util.branch"(%2, %3)[^bb3] : (tensor<4xf32>, tensor<f32>) -> ()
  ^bb2:
    %4 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    "util.branch"(%4, %5)[^bb3] : (tensor<4xf32>, tensor<f32>) -> ()
  ^bb3(%6: tensor<4xf32>, %7: tensor<f32>):
    "func.return"(%6, %0, %7) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize, lower-control-flow, simplify-branches
// A loop carries what it changes, once: not the bound, not the scale, not a second counter.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>, %2: tensor<4xf32>):
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %5:5 = "stablehlo.while"(%3, %0, %2, %1, %4) ({
    ^bb0(%6: tensor<i32>, %7: tensor<4xf32>, %8: tensor<4xf32>, %9: tensor<i32>, %10: tensor<i32>):
      %11 = "stablehlo.compare"(%6, %9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%11) : (tensor<i1>) -> ()
    }, {
    ^bb0(%6: tensor<i32>, %7: tensor<4xf32>, %8: tensor<4xf32>, %9: tensor<i32>, %10: tensor<i32>):
      %11 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %12 = "stablehlo.add"(%6, %11) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %13 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %14 = "stablehlo.add"(%10, %13) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %15 = "stablehlo.convert"(%10) : (tensor<i32>) -> tensor<f32>
      %16 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
      %17 = "stablehlo.add"(%7, %16) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %18 = "stablehlo.multiply"(%17, %8) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%12, %18, %8, %9, %14) : (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>)
    "func.return"(%5#1, %5#2) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>, %2: tensor<4xf32>):
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    "util.branch"(%3, %0)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb1(%4: tensor<i32>, %5: tensor<4xf32>):
    %6 = "stablehlo.compare"(%4, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "util.cond_branch"(%6)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    %7 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %8 = "stablehlo.add"(%4, %7) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %9 = "stablehlo.convert"(%4) : (tensor<i32>) -> tensor<f32>
    %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
    %11 = "stablehlo.add"(%5, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.multiply"(%11, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%8, %12)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb3:
    "func.return"(%5, %2) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
