// passes: share-scalars, deduplicate-executables
// One kernel with an argument; what all have in common stays a constant.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<2.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<3.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<4.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_3"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_3"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<5.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_4"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_4"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<6.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_5"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_5"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<7.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_6"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_6"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<8.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_7"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_7"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<9.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_3::@main_dispatch_3, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "flow.dispatch"(%4) <{entry = @main_dispatch_4::@main_dispatch_4, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "flow.dispatch"(%5) <{entry = @main_dispatch_5::@main_dispatch_5, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "flow.dispatch"(%6) <{entry = @main_dispatch_6::@main_dispatch_6, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %8 = "flow.dispatch"(%7) <{entry = @main_dispatch_7::@main_dispatch_7, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%8) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<f32>):
      %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %5 = "stablehlo.add"(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%5) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "util.global"() <{sym_name = "scalar_0", type = tensor<f32>, value = dense<2.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_1", type = tensor<f32>, value = dense<3.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_2", type = tensor<f32>, value = dense<4.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_3", type = tensor<f32>, value = dense<5.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_4", type = tensor<f32>, value = dense<6.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_5", type = tensor<f32>, value = dense<7.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_6", type = tensor<f32>, value = dense<8.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_7", type = tensor<f32>, value = dense<9.250000e+00> : tensor<f32>}> : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @scalar_0}> : () -> tensor<f32>
    %2 = "flow.dispatch"(%0, %1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = "util.global_load"() <{ref = @scalar_1}> : () -> tensor<f32>
    %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %5 = "util.global_load"() <{ref = @scalar_2}> : () -> tensor<f32>
    %6 = "flow.dispatch"(%4, %5) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %7 = "util.global_load"() <{ref = @scalar_3}> : () -> tensor<f32>
    %8 = "flow.dispatch"(%6, %7) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = "util.global_load"() <{ref = @scalar_4}> : () -> tensor<f32>
    %10 = "flow.dispatch"(%8, %9) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %11 = "util.global_load"() <{ref = @scalar_5}> : () -> tensor<f32>
    %12 = "flow.dispatch"(%10, %11) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %13 = "util.global_load"() <{ref = @scalar_6}> : () -> tensor<f32>
    %14 = "flow.dispatch"(%12, %13) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %15 = "util.global_load"() <{ref = @scalar_7}> : () -> tensor<f32>
    %16 = "flow.dispatch"(%14, %15) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    "func.return"(%16) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: share-scalars, deduplicate-executables
// Zero and one stay what they are, with kernels of their own.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<2.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<3.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<4.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_3"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_3"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<5.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_4"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_4"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<6.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_5"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_5"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<7.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_6"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_6"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<8.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_7"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_7"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<9.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_8"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_8"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_9"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_9"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<-0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_10"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_10"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_11"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_11"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<-1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_3::@main_dispatch_3, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "flow.dispatch"(%4) <{entry = @main_dispatch_4::@main_dispatch_4, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "flow.dispatch"(%5) <{entry = @main_dispatch_5::@main_dispatch_5, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "flow.dispatch"(%6) <{entry = @main_dispatch_6::@main_dispatch_6, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %8 = "flow.dispatch"(%7) <{entry = @main_dispatch_7::@main_dispatch_7, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %9 = "flow.dispatch"(%8) <{entry = @main_dispatch_8::@main_dispatch_8, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %10 = "flow.dispatch"(%9) <{entry = @main_dispatch_9::@main_dispatch_9, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %11 = "flow.dispatch"(%10) <{entry = @main_dispatch_10::@main_dispatch_10, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %12 = "flow.dispatch"(%11) <{entry = @main_dispatch_11::@main_dispatch_11, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%12) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<f32>):
      %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %5 = "stablehlo.add"(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%5) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %4 = "stablehlo.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<-0.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %4 = "stablehlo.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_3"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_3"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %4 = "stablehlo.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_4"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_4"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<-1.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %4 = "stablehlo.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "util.global"() <{sym_name = "scalar_0", type = tensor<f32>, value = dense<2.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_1", type = tensor<f32>, value = dense<3.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_2", type = tensor<f32>, value = dense<4.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_3", type = tensor<f32>, value = dense<5.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_4", type = tensor<f32>, value = dense<6.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_5", type = tensor<f32>, value = dense<7.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_6", type = tensor<f32>, value = dense<8.250000e+00> : tensor<f32>}> : () -> ()
  "util.global"() <{sym_name = "scalar_7", type = tensor<f32>, value = dense<9.250000e+00> : tensor<f32>}> : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @scalar_0}> : () -> tensor<f32>
    %2 = "flow.dispatch"(%0, %1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = "util.global_load"() <{ref = @scalar_1}> : () -> tensor<f32>
    %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %5 = "util.global_load"() <{ref = @scalar_2}> : () -> tensor<f32>
    %6 = "flow.dispatch"(%4, %5) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %7 = "util.global_load"() <{ref = @scalar_3}> : () -> tensor<f32>
    %8 = "flow.dispatch"(%6, %7) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = "util.global_load"() <{ref = @scalar_4}> : () -> tensor<f32>
    %10 = "flow.dispatch"(%8, %9) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %11 = "util.global_load"() <{ref = @scalar_5}> : () -> tensor<f32>
    %12 = "flow.dispatch"(%10, %11) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %13 = "util.global_load"() <{ref = @scalar_6}> : () -> tensor<f32>
    %14 = "flow.dispatch"(%12, %13) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %15 = "util.global_load"() <{ref = @scalar_7}> : () -> tensor<f32>
    %16 = "flow.dispatch"(%14, %15) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %17 = "flow.dispatch"(%16) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %18 = "flow.dispatch"(%17) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %19 = "flow.dispatch"(%18) <{entry = @main_dispatch_3::@main_dispatch_3, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %20 = "flow.dispatch"(%19) <{entry = @main_dispatch_4::@main_dispatch_4, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%20) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: share-scalars
// Of seven each is left as it is.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<2.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<3.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<4.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_3"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_3"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<5.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_4"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_4"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<6.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_5"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_5"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<7.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_6"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_6"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<8.25> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.5> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_3::@main_dispatch_3, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "flow.dispatch"(%4) <{entry = @main_dispatch_4::@main_dispatch_4, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "flow.dispatch"(%5) <{entry = @main_dispatch_5::@main_dispatch_5, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "flow.dispatch"(%6) <{entry = @main_dispatch_6::@main_dispatch_6, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%7) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<2.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_1"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<3.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_2"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_2"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<4.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_3"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_3"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<5.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_4"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_4"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<6.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_5"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_5"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<7.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "flow.executable"() <{sym_name = "main_dispatch_6"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_6"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.constant"() <{value = dense<8.250000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %2 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
      %3 = "stablehlo.multiply"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "flow.dispatch"(%1) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_2::@main_dispatch_2, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_3::@main_dispatch_3, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "flow.dispatch"(%4) <{entry = @main_dispatch_4::@main_dispatch_4, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "flow.dispatch"(%5) <{entry = @main_dispatch_5::@main_dispatch_5, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "flow.dispatch"(%6) <{entry = @main_dispatch_6::@main_dispatch_6, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%7) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
