// passes: lower-control-flow
// A loop whose length is known only when it runs; what its results are used for comes behind it.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>, %2: tensor<4xf32>):
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %4:2 = "stablehlo.while"(%3, %0) ({
    ^bb0(%6: tensor<i32>, %7: tensor<4xf32>):
      %8 = "stablehlo.compare"(%6, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%6: tensor<i32>, %7: tensor<4xf32>):
      %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %9 = "stablehlo.add"(%6, %8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %10 = "stablehlo.multiply"(%7, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%9, %10) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    %5 = "stablehlo.negate"(%4#1) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%4#0, %5) : (tensor<i32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>, %2: tensor<4xf32>):
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    "util.branch"(%3, %0)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb1(%4: tensor<i32>, %5: tensor<4xf32>):
    %6 = "stablehlo.compare"(%4, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "util.cond_branch"(%6)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    %7 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %8 = "stablehlo.add"(%4, %7) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %9 = "stablehlo.multiply"(%5, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%8, %9)[^bb1] : (tensor<i32>, tensor<4xf32>) -> ()
  ^bb3:
    %10 = "stablehlo.negate"(%5) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%4, %10) : (tensor<i32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-control-flow
// A loop of known length counts on the host.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>):
      %5 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.compare"(%3, %5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>):
      %5 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.add"(%3, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %7 = "stablehlo.exponential"(%4) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%6, %7) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    "func.return"(%2#1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
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
// -----
// passes: lower-control-flow
// An `if` in a loop: the blocks of the loop stay together, a branch that computes nothing is a block, too.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "stablehlo.while"(%0) ({
    ^bb0(%3: tensor<4xf32>):
      "stablehlo.return"(%1) : (tensor<i1>) -> ()
    }, {
    ^bb0(%3: tensor<4xf32>):
      %4 = "stablehlo.if"(%1) ({
        %5 = "stablehlo.exponential"(%3) : (tensor<4xf32>) -> tensor<4xf32>
        "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
      }, {
        "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
      }) : (tensor<i1>) -> tensor<4xf32>
      "stablehlo.return"(%4) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    "util.branch"(%0)[^bb1] : (tensor<4xf32>) -> ()
  ^bb1(%2: tensor<4xf32>):
    "util.cond_branch"(%1)[^bb2, ^bb6] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb2:
    "util.cond_branch"(%1)[^bb3, ^bb4] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb3:
    %3 = "stablehlo.exponential"(%2) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%3)[^bb5] : (tensor<4xf32>) -> ()
  ^bb4:
    "util.branch"(%2)[^bb5] : (tensor<4xf32>) -> ()
  ^bb5(%4: tensor<4xf32>):
    "util.branch"(%4)[^bb1] : (tensor<4xf32>) -> ()
  ^bb6:
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: lower-control-flow
// A `case` is a switch; the last branch is that of every index without one.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>):
    %2 = "stablehlo.case"(%1) ({
      %3 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }, {
      %3 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }, {
      %3 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>):
    "util.switch"(%1)[^bb1, ^bb2, ^bb3] <{counts = array<i64: 0, 0, 0>}> : (tensor<i32>) -> ()
  ^bb1:
    %2 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%2)[^bb4] : (tensor<4xf32>) -> ()
  ^bb2:
    %3 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%3)[^bb4] : (tensor<4xf32>) -> ()
  ^bb3:
    %4 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.branch"(%4)[^bb4] : (tensor<4xf32>) -> ()
  ^bb4(%5: tensor<4xf32>):
    "func.return"(%5) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
