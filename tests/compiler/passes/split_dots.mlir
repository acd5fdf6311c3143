// passes: form-programs, split-dots
// targets: cpu, reference
// A dot of one row becomes dots of 64 products each and their sums, which the ops behind the dot follow, for target cpu.
// The reference device keeps one dispatch.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<1x256xf32>, %1: tensor<256x256xf32>, %2: tensor<256xf32>, %3: tensor<1x256xf32>):
      %4 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<1x256xf32>
      %5 = "stablehlo.reshape"(%2) : (tensor<256xf32>) -> tensor<1x256xf32>
      %6 = "stablehlo.add"(%4, %5) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
      %7 = "stablehlo.add"(%6, %3) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
      "func.return"(%7) : (tensor<1x256xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1x256xf32>, %1: tensor<256x256xf32>, %2: tensor<256xf32>, %3: tensor<1x256xf32>):
    %4 = "flow.dispatch"(%0, %1, %2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 2, 3>, workload = array<i64: 256, 1, 1>}> : (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
    "func.return"(%4) : (tensor<1x256xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "cpu"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0_parts"}> ({
      "func.func"() <{function_type = (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<4x1x256xf32>, kind = "contraction", sym_name = "main_dispatch_0_parts"}> ({
      ^bb0(%0: tensor<1x256xf32>, %1: tensor<256x256xf32>):
        %2 = "stablehlo.reshape"(%0) : (tensor<1x256xf32>) -> tensor<1x4x64xf32>
        %3 = "stablehlo.reshape"(%1) : (tensor<256x256xf32>) -> tensor<4x64x256xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [1], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<1x4x64xf32>, tensor<4x64x256xf32>) -> tensor<4x1x256xf32>
        "func.return"(%4) : (tensor<4x1x256xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "main_dispatch_0_sums"}> ({
      "func.func"() <{function_type = (tensor<4x1x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>, kind = "reduction", sym_name = "main_dispatch_0_sums"}> ({
      ^bb0(%0: tensor<4x1x256xf32>, %1: tensor<256xf32>, %2: tensor<1x256xf32>):
        %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %4 = "stablehlo.reduce"(%0, %3) <{dimensions = array<i64: 0>}> ({
        ^bb0(%8: tensor<f32>, %9: tensor<f32>):
          %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%10) : (tensor<f32>) -> ()
        }) : (tensor<4x1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
        %5 = "stablehlo.reshape"(%1) : (tensor<256xf32>) -> tensor<1x256xf32>
        %6 = "stablehlo.add"(%4, %5) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
        %7 = "stablehlo.add"(%6, %2) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
        "func.return"(%7) : (tensor<1x256xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<1x256xf32>, %1: tensor<256x256xf32>, %2: tensor<256xf32>, %3: tensor<1x256xf32>):
      %4 = "flow.dispatch"(%0, %1) <{entry = @main_dispatch_0_parts::@main_dispatch_0_parts, workload = array<i64: 1024, 1, 1>}> : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<4x1x256xf32>
      %5 = "flow.dispatch"(%4, %2, %3) <{entry = @main_dispatch_0_sums::@main_dispatch_0_sums, in_place = array<i64: 1, 2>, workload = array<i64: 256, 1, 1>}> : (tensor<4x1x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
      "func.return"(%5) : (tensor<1x256xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<1x256xf32>, %1: tensor<256x256xf32>, %2: tensor<256xf32>, %3: tensor<1x256xf32>):
        %4 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<1x256xf32>
        %5 = "stablehlo.reshape"(%2) : (tensor<256xf32>) -> tensor<1x256xf32>
        %6 = "stablehlo.add"(%4, %5) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
        %7 = "stablehlo.add"(%6, %3) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
        "func.return"(%7) : (tensor<1x256xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<1x256xf32>, %1: tensor<256x256xf32>, %2: tensor<256xf32>, %3: tensor<1x256xf32>):
      %4 = "flow.dispatch"(%0, %1, %2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 2, 3>, workload = array<i64: 256, 1, 1>}> : (tensor<1x256xf32>, tensor<256x256xf32>, tensor<256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
      "func.return"(%4) : (tensor<1x256xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
