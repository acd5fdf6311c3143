// passes: form-programs, fuse-attention
// targets: cpu, reference
// Two dots and the rows between them become one dispatch where a schedule keeps the scores of a workgroup in its memory.
// The reference device keeps three. Executables that nothing dispatches any more are erased.
"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<2x16x8xf32>, %1: tensor<2x8x16xf32>):
      %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>
      "func.return"(%2) : (tensor<2x16x16xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>, kind = "rows", sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<2x16x16xf32>):
      %1 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
      %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 2>}> ({
      ^bb0(%10: tensor<f32>, %11: tensor<f32>):
        %12 = "stablehlo.maximum"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%12) : (tensor<f32>) -> ()
      }) : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
      %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
      %4 = "stablehlo.subtract"(%0, %3) : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
      %5 = "stablehlo.exponential"(%4) : (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
      %6 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
      %7 = "stablehlo.reduce"(%5, %6) <{dimensions = array<i64: 2>}> ({
      ^bb0(%10: tensor<f32>, %11: tensor<f32>):
        %12 = "stablehlo.add"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%12) : (tensor<f32>) -> ()
      }) : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
      %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
      %9 = "stablehlo.divide"(%5, %8) : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
      "func.return"(%9) : (tensor<2x16x16xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>, kind = "contraction", sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<2x16x16xf32>, %1: tensor<2x16x8xf32>):
      %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
      "func.return"(%2) : (tensor<2x16x8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{orchestrion.name = "q"}, {orchestrion.name = "k"}, {orchestrion.name = "v"}], function_type = (tensor<2x16x8xf32>, tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>, res_attrs = [{orchestrion.name = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%0: tensor<2x16x8xf32>, %1: tensor<2x8x16xf32>, %2: tensor<2x16x8xf32>):
    %3 = "flow.dispatch"(%0, %1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 512, 1, 1>}> : (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>
    %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_1::@main_dispatch_1, in_place = array<i64: 0>, workload = array<i64: 512, 1, 1>}> : (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
    %5 = "flow.dispatch"(%4, %2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 256, 1, 1>}> : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
    "func.return"(%5) : (tensor<2x16x8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() <{sym_name = "jit__lambda"}> ({
  "hl_seq.program"() <{sym_name = "cpu"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_2_attention"}> ({
      "func.func"() <{function_type = (tensor<2x16x8xf32>, tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>, kind = "attention", sym_name = "main_dispatch_2_attention"}> ({
      ^bb0(%0: tensor<2x16x8xf32>, %1: tensor<2x8x16xf32>, %2: tensor<2x16x8xf32>):
        %3 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>
        %4 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
        %5 = "stablehlo.reduce"(%3, %4) <{dimensions = array<i64: 2>}> ({
        ^bb0(%14: tensor<f32>, %15: tensor<f32>):
          %16 = "stablehlo.maximum"(%14, %15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%16) : (tensor<f32>) -> ()
        }) : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
        %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
        %7 = "stablehlo.subtract"(%3, %6) : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
        %8 = "stablehlo.exponential"(%7) : (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
        %9 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %10 = "stablehlo.reduce"(%8, %9) <{dimensions = array<i64: 2>}> ({
        ^bb0(%14: tensor<f32>, %15: tensor<f32>):
          %16 = "stablehlo.add"(%14, %15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%16) : (tensor<f32>) -> ()
        }) : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
        %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
        %12 = "stablehlo.divide"(%8, %11) : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
        %13 = "stablehlo.dot_general"(%12, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
        "func.return"(%13) : (tensor<2x16x8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{arg_attrs = [{orchestrion.name = "q"}, {orchestrion.name = "k"}, {orchestrion.name = "v"}], function_type = (tensor<2x16x8xf32>, tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>, res_attrs = [{orchestrion.name = "result"}], sym_name = "main", sym_visibility = "public"}> ({
    ^bb0(%0: tensor<2x16x8xf32>, %1: tensor<2x8x16xf32>, %2: tensor<2x16x8xf32>):
      %3 = "flow.dispatch"(%0, %1, %2) <{entry = @main_dispatch_2_attention::@main_dispatch_2_attention, workload = array<i64: 256, 1, 1>}> : (tensor<2x16x8xf32>, tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
      "func.return"(%3) : (tensor<2x16x8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<2x16x8xf32>, %1: tensor<2x8x16xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>
        "func.return"(%2) : (tensor<2x16x16xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
      "func.func"() <{function_type = (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>, kind = "rows", sym_name = "main_dispatch_1"}> ({
      ^bb0(%0: tensor<2x16x16xf32>):
        %1 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 2>}> ({
        ^bb0(%10: tensor<f32>, %11: tensor<f32>):
          %12 = "stablehlo.maximum"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%12) : (tensor<f32>) -> ()
        }) : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
        %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
        %4 = "stablehlo.subtract"(%0, %3) : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
        %5 = "stablehlo.exponential"(%4) : (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
        %6 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %7 = "stablehlo.reduce"(%5, %6) <{dimensions = array<i64: 2>}> ({
        ^bb0(%10: tensor<f32>, %11: tensor<f32>):
          %12 = "stablehlo.add"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%12) : (tensor<f32>) -> ()
        }) : (tensor<2x16x16xf32>, tensor<f32>) -> tensor<2x16xf32>
        %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<2x16xf32>) -> tensor<2x16x16xf32>
        %9 = "stablehlo.divide"(%5, %8) : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
        "func.return"(%9) : (tensor<2x16x16xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
      "func.func"() <{function_type = (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>, kind = "contraction", sym_name = "main_dispatch_2"}> ({
      ^bb0(%0: tensor<2x16x16xf32>, %1: tensor<2x16x8xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
        "func.return"(%2) : (tensor<2x16x8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{arg_attrs = [{orchestrion.name = "q"}, {orchestrion.name = "k"}, {orchestrion.name = "v"}], function_type = (tensor<2x16x8xf32>, tensor<2x8x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>, res_attrs = [{orchestrion.name = "result"}], sym_name = "main", sym_visibility = "public"}> ({
    ^bb0(%0: tensor<2x16x8xf32>, %1: tensor<2x8x16xf32>, %2: tensor<2x16x8xf32>):
      %3 = "flow.dispatch"(%0, %1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 512, 1, 1>}> : (tensor<2x16x8xf32>, tensor<2x8x16xf32>) -> tensor<2x16x16xf32>
      %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_1::@main_dispatch_1, in_place = array<i64: 0>, workload = array<i64: 512, 1, 1>}> : (tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
      %5 = "flow.dispatch"(%4, %2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 256, 1, 1>}> : (tensor<2x16x16xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
      "func.return"(%5) : (tensor<2x16x8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
