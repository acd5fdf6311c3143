// passes: unroll-short-loops, canonicalize, dce
// Two turns, one after the other; what changes its place, and the counter, are known in each.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<4xui32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xui32>, %1: tensor<4xui32>):
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3:3 = "stablehlo.while"(%2, %0, %1) ({
    ^bb0(%4: tensor<i32>, %5: tensor<4xui32>, %6: tensor<4xui32>):
      %7 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %8 = "stablehlo.compare"(%4, %7) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%4: tensor<i32>, %5: tensor<4xui32>, %6: tensor<4xui32>):
      %7 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %8 = "stablehlo.add"(%4, %7) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %9 = "stablehlo.convert"(%8) : (tensor<i32>) -> tensor<ui32>
      %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<4xui32>
      %11 = "stablehlo.shift_left"(%5, %10) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
      "stablehlo.return"(%8, %6, %11) : (tensor<i32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<4xui32>, tensor<4xui32>)
    %12 = "stablehlo.xor"(%3#1, %3#2) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    "func.return"(%3#0, %12) : (tensor<i32>, tensor<4xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xui32>, tensor<4xui32>) -> (tensor<i32>, tensor<4xui32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xui32>, %1: tensor<4xui32>):
    %2 = "stablehlo.constant"() <{value = dense<1> : tensor<4xui32>}> : () -> tensor<4xui32>
    %3 = "stablehlo.shift_left"(%0, %2) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %4 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.constant"() <{value = dense<2> : tensor<4xui32>}> : () -> tensor<4xui32>
    %6 = "stablehlo.shift_left"(%1, %5) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %7 = "stablehlo.xor"(%3, %6) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    "func.return"(%4, %7) : (tensor<i32>, tensor<4xui32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: unroll-short-loops
// A reduction in each turn, and nine turns: loops they stay.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>):
      %5 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.compare"(%3, %5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>):
      %5 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.add"(%3, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %8 = "stablehlo.reduce"(%4, %7) <{dimensions = array<i64: 0>}> ({
      ^bb0(%9: tensor<f32>, %10: tensor<f32>):
        %11 = "stablehlo.add"(%9, %10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%11) : (tensor<f32>) -> ()
      }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %12 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
      "stablehlo.return"(%6, %12) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    %13:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%14: tensor<i32>, %15: tensor<4xf32>):
      %16 = "stablehlo.constant"() <{value = dense<9> : tensor<i32>}> : () -> tensor<i32>
      %17 = "stablehlo.compare"(%14, %16) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%17) : (tensor<i1>) -> ()
    }, {
    ^bb0(%14: tensor<i32>, %15: tensor<4xf32>):
      %16 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %17 = "stablehlo.add"(%14, %16) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %18 = "stablehlo.sine"(%15) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%17, %18) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    "func.return"(%2#1, %13#1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %2:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%4: tensor<i32>, %5: tensor<4xf32>):
      %6 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %7 = "stablehlo.compare"(%4, %6) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }, {
    ^bb0(%4: tensor<i32>, %5: tensor<4xf32>):
      %6 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %7 = "stablehlo.add"(%4, %6) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %9 = "stablehlo.reduce"(%5, %8) <{dimensions = array<i64: 0>}> ({
      ^bb0(%11: tensor<f32>, %12: tensor<f32>):
        %13 = "stablehlo.add"(%11, %12) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%13) : (tensor<f32>) -> ()
      }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %10 = "stablehlo.broadcast_in_dim"(%9) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
      "stablehlo.return"(%7, %10) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    %3:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%4: tensor<i32>, %5: tensor<4xf32>):
      %6 = "stablehlo.constant"() <{value = dense<9> : tensor<i32>}> : () -> tensor<i32>
      %7 = "stablehlo.compare"(%4, %6) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%7) : (tensor<i1>) -> ()
    }, {
    ^bb0(%4: tensor<i32>, %5: tensor<4xf32>):
      %6 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %7 = "stablehlo.add"(%4, %6) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %8 = "stablehlo.sine"(%5) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%7, %8) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    "func.return"(%2#1, %3#1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: unroll-short-loops, dce
// A loop that does not run, one that runs once.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<6> : tensor<ui8>}> : () -> tensor<ui8>
    %2:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%5: tensor<ui8>, %6: tensor<4xf32>):
      %7 = "stablehlo.constant"() <{value = dense<5> : tensor<ui8>}> : () -> tensor<ui8>
      %8 = "stablehlo.compare"(%7, %5) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%5: tensor<ui8>, %6: tensor<4xf32>):
      %7 = "stablehlo.constant"() <{value = dense<3> : tensor<ui8>}> : () -> tensor<ui8>
      %8 = "stablehlo.add"(%5, %7) : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
      %9 = "stablehlo.exponential"(%6) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8, %9) : (tensor<ui8>, tensor<4xf32>) -> ()
    }) : (tensor<ui8>, tensor<4xf32>) -> (tensor<ui8>, tensor<4xf32>)
    %3 = "stablehlo.constant"() <{value = dense<3> : tensor<ui8>}> : () -> tensor<ui8>
    %4:2 = "stablehlo.while"(%3, %0) ({
    ^bb0(%5: tensor<ui8>, %6: tensor<4xf32>):
      %7 = "stablehlo.constant"() <{value = dense<5> : tensor<ui8>}> : () -> tensor<ui8>
      %8 = "stablehlo.compare"(%7, %5) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%5: tensor<ui8>, %6: tensor<4xf32>):
      %7 = "stablehlo.constant"() <{value = dense<3> : tensor<ui8>}> : () -> tensor<ui8>
      %8 = "stablehlo.add"(%5, %7) : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
      %9 = "stablehlo.exponential"(%6) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8, %9) : (tensor<ui8>, tensor<4xf32>) -> ()
    }) : (tensor<ui8>, tensor<4xf32>) -> (tensor<ui8>, tensor<4xf32>)
    "func.return"(%2#1, %4#1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
