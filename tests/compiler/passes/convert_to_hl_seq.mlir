// passes: form-programs, convert-to-hl-seq
// targets: reference, spirv
// One copy per target. The result twice: the second is a clone; the argument and the constant are cloned, too.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "func.return"(%1) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "util.global"() <{sym_name = "constant_0", type = tensor<2xi8>, value = dense<[1, 2]> : tensor<2xi8>}> : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi8>, tensor<0xf32>, tensor<3xi16>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "util.global_load"() <{ref = @constant_0}> : () -> tensor<2xi8>
    %2 = "flow.dispatch"(%0) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "flow.dispatch"(%2) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "flow.empty"() : () -> tensor<0xf32>
    %5 = "flow.splat"() <{value = dense<7> : tensor<i16>}> : () -> tensor<3xi16>
    "func.return"(%3, %3, %0, %1, %4, %5) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi8>, tensor<0xf32>, tensor<3xi16>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "constant_0", type = !hl_seq.resource<constant, 2>, value = dense<[1, 2]> : tensor<2xi8>}> : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi8>, tensor<0xf32>, tensor<3xi16>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "util.global_load"() <{ref = @constant_0}> : () -> !hl_seq.resource<constant, 2>
      %3 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %5 = "flow.empty"() : () -> !hl_seq.resource<external, 0>
      %6 = "flow.splat"() <{value = dense<7> : tensor<i16>}> : () -> !hl_seq.resource<external, 6>
      %7 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %8 = "hl_seq.clone"(%4) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %9 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %10 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %11 = "hl_seq.export"(%10) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %12 = "hl_seq.clone"(%2) : (!hl_seq.resource<constant, 2>) -> !hl_seq.resource<external, 2>
      %13 = "hl_seq.export"(%12) : (!hl_seq.resource<external, 2>) -> tensor<2xi8>
      %14 = "hl_seq.export"(%5) : (!hl_seq.resource<external, 0>) -> tensor<0xf32>
      %15 = "hl_seq.export"(%6) : (!hl_seq.resource<external, 6>) -> tensor<3xi16>
      "func.return"(%7, %9, %11, %13, %14, %15) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi8>, tensor<0xf32>, tensor<3xi16>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "constant_0", type = !hl_seq.resource<constant, 2>, value = dense<[1, 2]> : tensor<2xi8>}> : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi8>, tensor<0xf32>, tensor<3xi16>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "util.global_load"() <{ref = @constant_0}> : () -> !hl_seq.resource<constant, 2>
      %3 = "flow.dispatch"(%1) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %5 = "flow.empty"() : () -> !hl_seq.resource<external, 0>
      %6 = "flow.splat"() <{value = dense<7> : tensor<i16>}> : () -> !hl_seq.resource<external, 6>
      %7 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %8 = "hl_seq.clone"(%4) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %9 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %10 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %11 = "hl_seq.export"(%10) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %12 = "hl_seq.clone"(%2) : (!hl_seq.resource<constant, 2>) -> !hl_seq.resource<external, 2>
      %13 = "hl_seq.export"(%12) : (!hl_seq.resource<external, 2>) -> tensor<2xi8>
      %14 = "hl_seq.export"(%5) : (!hl_seq.resource<external, 0>) -> tensor<0xf32>
      %15 = "hl_seq.export"(%6) : (!hl_seq.resource<external, 6>) -> tensor<3xi16>
      "func.return"(%7, %9, %11, %13, %14, %15) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi8>, tensor<0xf32>, tensor<3xi16>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
