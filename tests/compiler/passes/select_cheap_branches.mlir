// passes: select-cheap-branches
// All branches are computed: that is less than to read an index back.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>):
    %2 = "stablehlo.case"(%1) ({
      %3 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }, {
      %3 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }, {
      %3 = "stablehlo.floor"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%3) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i32>):
    %2 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.floor"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.compare"(%1, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = "stablehlo.select"(%6, %3, %4) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.compare"(%1, %8) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = "stablehlo.select"(%9, %2, %7) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%10) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: select-cheap-branches
// Too much to compute in vain.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<200x200xf32>, tensor<i32>) -> tensor<200x200xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<200x200xf32>, %1: tensor<i32>):
    %2 = "stablehlo.case"(%1) ({
      %3 = "stablehlo.negate"(%0) : (tensor<200x200xf32>) -> tensor<200x200xf32>
      "stablehlo.return"(%3) : (tensor<200x200xf32>) -> ()
    }, {
      %3 = "stablehlo.abs"(%0) : (tensor<200x200xf32>) -> tensor<200x200xf32>
      "stablehlo.return"(%3) : (tensor<200x200xf32>) -> ()
    }) : (tensor<i32>) -> tensor<200x200xf32>
    "func.return"(%2) : (tensor<200x200xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<200x200xf32>, tensor<i32>) -> tensor<200x200xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<200x200xf32>, %1: tensor<i32>):
    %2 = "stablehlo.case"(%1) ({
      %3 = "stablehlo.negate"(%0) : (tensor<200x200xf32>) -> tensor<200x200xf32>
      "stablehlo.return"(%3) : (tensor<200x200xf32>) -> ()
    }, {
      %3 = "stablehlo.abs"(%0) : (tensor<200x200xf32>) -> tensor<200x200xf32>
      "stablehlo.return"(%3) : (tensor<200x200xf32>) -> ()
    }) : (tensor<i32>) -> tensor<200x200xf32>
    "func.return"(%2) : (tensor<200x200xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: select-cheap-branches
// A reduction is no little work, whatever its size.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.if"(%1) ({
      %4 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0>}> ({
      ^bb0(%5: tensor<f32>, %6: tensor<f32>):
        %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%7) : (tensor<f32>) -> ()
      }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }, {
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) : (tensor<i1>) -> tensor<f32>
    "func.return"(%3) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>):
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.if"(%1) ({
      %4 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0>}> ({
      ^bb0(%5: tensor<f32>, %6: tensor<f32>):
        %7 = "stablehlo.add"(%5, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%7) : (tensor<f32>) -> ()
      }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }, {
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) : (tensor<i1>) -> tensor<f32>
    "func.return"(%3) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: select-cheap-branches
// An `if` in an `if`, and a result that both give alike.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>, %2: tensor<i1>):
    %3:2 = "stablehlo.if"(%1) ({
      %4 = "stablehlo.if"(%2) ({
        %5 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
      }, {
        "stablehlo.return"(%0) : (tensor<4xf32>) -> ()
      }) : (tensor<i1>) -> tensor<4xf32>
      "stablehlo.return"(%4, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }, {
      %4 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%4, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
    "func.return"(%3#0, %3#1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>, %2: tensor<i1>):
    %3 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.select"(%2, %3, %0) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "stablehlo.select"(%1, %4, %5) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%6, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
