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
