// passes: mark-kernel-loops, count-on-device
// A loop of small dispatches becomes one kernel: its header is marked, and its counter is in memory.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "util.constant"() <{value = 0 : i32}> : () -> i32
      %3 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      "util.branch"(%3, %2)[^bb1] : (!hl_seq.resource<transient, 16>, i32) -> ()
    ^bb1(%4: !hl_seq.resource<transient, 16>, %5: i32):
      %6 = "util.constant"() <{value = 9 : i32}> : () -> i32
      %7 = "util.compare_lt"(%5, %6) : (i32, i32) -> i32
      "util.cond_branch"(%7)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb2:
      %8 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %9 = "util.add"(%5, %8) : (i32, i32) -> i32
      %10 = "flow.dispatch"(%4) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0>, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      "util.branch"(%10, %9)[^bb1] : (!hl_seq.resource<transient, 16>, i32) -> ()
    ^bb3:
      %11 = "hl_seq.clone"(%4) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%12) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "next_iteration"}> ({
      "func.func"() <{function_type = (tensor<i32>) -> tensor<i32>, kind = "elementwise", sym_name = "next_iteration"}> ({
      ^bb0(%0: tensor<i32>):
        %1 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %2 = "stablehlo.add"(%0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "func.return"(%2) : (tensor<i32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.splat"() <{value = dense<-9> : tensor<i32>}> : () -> !hl_seq.resource<transient, 4>
      "util.branch"(%2, %3)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 4>) -> ()
    ^bb1(%4: !hl_seq.resource<transient, 16>, %5: !hl_seq.resource<transient, 4>):
      "util.cond_branch"(%5)[^bb2, ^bb3] <{counts = array<i64: 0, 0>, kernel_loop = 9 : i32}> : (!hl_seq.resource<transient, 4>) -> ()
    ^bb2:
      %6 = "flow.dispatch"(%4) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0>, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %7 = "flow.dispatch"(%5) <{entry = @next_iteration::@next_iteration, in_place = array<i64: 0>, workload = array<i64: 1, 1, 1>}> : (!hl_seq.resource<transient, 4>) -> !hl_seq.resource<transient, 4>
      "util.branch"(%6, %7)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 4>) -> ()
    ^bb3:
      %8 = "hl_seq.clone"(%4) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %9 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%9) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: mark-kernel-loops, count-on-device
// An iteration with too many ops for one invocation stays with the host.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<400000xf32>) -> tensor<400000xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<400000xf32>):
        %1 = "stablehlo.sine"(%0) : (tensor<400000xf32>) -> tensor<400000xf32>
        "func.return"(%1) : (tensor<400000xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<400000xf32>) -> tensor<400000xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<400000xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<400000xf32>) -> !hl_seq.resource<external, 1600000>
      %2 = "util.constant"() <{value = 0 : i32}> : () -> i32
      %3 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 1600000>) -> !hl_seq.resource<transient, 1600000>
      "util.branch"(%3, %2)[^bb1] : (!hl_seq.resource<transient, 1600000>, i32) -> ()
    ^bb1(%4: !hl_seq.resource<transient, 1600000>, %5: i32):
      %6 = "util.constant"() <{value = 9 : i32}> : () -> i32
      %7 = "util.compare_lt"(%5, %6) : (i32, i32) -> i32
      "util.cond_branch"(%7)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb2:
      %8 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %9 = "util.add"(%5, %8) : (i32, i32) -> i32
      %10 = "flow.dispatch"(%4) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0>, workload = array<i64: 400000, 1, 1>}> : (!hl_seq.resource<transient, 1600000>) -> !hl_seq.resource<transient, 1600000>
      "util.branch"(%10, %9)[^bb1] : (!hl_seq.resource<transient, 1600000>, i32) -> ()
    ^bb3:
      %11 = "hl_seq.clone"(%4) : (!hl_seq.resource<transient, 1600000>) -> !hl_seq.resource<external, 1600000>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 1600000>) -> tensor<400000xf32>
      "func.return"(%12) : (tensor<400000xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<400000xf32>) -> tensor<400000xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<400000xf32>):
        %1 = "stablehlo.sine"(%0) : (tensor<400000xf32>) -> tensor<400000xf32>
        "func.return"(%1) : (tensor<400000xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<400000xf32>) -> tensor<400000xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<400000xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<400000xf32>) -> !hl_seq.resource<external, 1600000>
      %2 = "util.constant"() <{value = 0 : i32}> : () -> i32
      %3 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 1600000>) -> !hl_seq.resource<transient, 1600000>
      "util.branch"(%3, %2)[^bb1] : (!hl_seq.resource<transient, 1600000>, i32) -> ()
    ^bb1(%4: !hl_seq.resource<transient, 1600000>, %5: i32):
      %6 = "util.constant"() <{value = 9 : i32}> : () -> i32
      %7 = "util.compare_lt"(%5, %6) : (i32, i32) -> i32
      "util.cond_branch"(%7)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb2:
      %8 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %9 = "util.add"(%5, %8) : (i32, i32) -> i32
      %10 = "flow.dispatch"(%4) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0>, workload = array<i64: 400000, 1, 1>}> : (!hl_seq.resource<transient, 1600000>) -> !hl_seq.resource<transient, 1600000>
      "util.branch"(%10, %9)[^bb1] : (!hl_seq.resource<transient, 1600000>, i32) -> ()
    ^bb3:
      %11 = "hl_seq.clone"(%4) : (!hl_seq.resource<transient, 1600000>) -> !hl_seq.resource<external, 1600000>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 1600000>) -> tensor<400000xf32>
      "func.return"(%12) : (tensor<400000xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: mark-kernel-loops, count-on-device
// A loop of unknown length with a large dispatch runs in batches, of fewer iterations the more ops they have.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<40000xf32>) -> tensor<40000xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<40000xf32>):
        %1 = "stablehlo.sine"(%0) : (tensor<40000xf32>) -> tensor<40000xf32>
        "func.return"(%1) : (tensor<40000xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
      "func.func"() <{function_type = (tensor<40000xf32>) -> tensor<i1>, kind = "elementwise", sym_name = "main_dispatch_1"}> ({
      ^bb0(%0: tensor<40000xf32>):
        %1 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<40000xf32>) -> tensor<1xf32>
        %2 = "stablehlo.reshape"(%1) : (tensor<1xf32>) -> tensor<f32>
        %3 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %4 = "stablehlo.compare"(%2, %3) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "func.return"(%4) : (tensor<i1>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<40000xf32>) -> tensor<40000xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<40000xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<40000xf32>) -> !hl_seq.resource<external, 160000>
      %3 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 160000>) -> !hl_seq.resource<transient, 160000>
      "util.branch"(%3)[^bb1] : (!hl_seq.resource<transient, 160000>) -> ()
    ^bb1(%4: !hl_seq.resource<transient, 160000>):
      %7 = "flow.dispatch"(%4) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 1, 1, 1>}> : (!hl_seq.resource<transient, 160000>) -> !hl_seq.resource<transient, 1>
      "util.cond_branch"(%7)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (!hl_seq.resource<transient, 1>) -> ()
    ^bb2:
      %10 = "flow.dispatch"(%4) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0>, workload = array<i64: 40000, 1, 1>}> : (!hl_seq.resource<transient, 160000>) -> !hl_seq.resource<transient, 160000>
      "util.branch"(%10)[^bb1] : (!hl_seq.resource<transient, 160000>) -> ()
    ^bb3:
      %11 = "hl_seq.clone"(%4) : (!hl_seq.resource<transient, 160000>) -> !hl_seq.resource<external, 160000>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 160000>) -> tensor<40000xf32>
      "func.return"(%12) : (tensor<40000xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<40000xf32>) -> tensor<40000xf32>, kind = "elementwise", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<40000xf32>):
        %1 = "stablehlo.sine"(%0) : (tensor<40000xf32>) -> tensor<40000xf32>
        "func.return"(%1) : (tensor<40000xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "main_dispatch_1"}> ({
      "func.func"() <{function_type = (tensor<40000xf32>) -> tensor<i1>, kind = "elementwise", sym_name = "main_dispatch_1"}> ({
      ^bb0(%0: tensor<40000xf32>):
        %1 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<40000xf32>) -> tensor<1xf32>
        %2 = "stablehlo.reshape"(%1) : (tensor<1xf32>) -> tensor<f32>
        %3 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %4 = "stablehlo.compare"(%2, %3) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "func.return"(%4) : (tensor<i1>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<40000xf32>) -> tensor<40000xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<40000xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<40000xf32>) -> !hl_seq.resource<external, 160000>
      %2 = "hl_seq.clone"(%1) : (!hl_seq.resource<external, 160000>) -> !hl_seq.resource<transient, 160000>
      "util.branch"(%2)[^bb1] : (!hl_seq.resource<transient, 160000>) -> ()
    ^bb1(%3: !hl_seq.resource<transient, 160000>):
      %4 = "flow.dispatch"(%3) <{entry = @main_dispatch_1::@main_dispatch_1, workload = array<i64: 1, 1, 1>}> : (!hl_seq.resource<transient, 160000>) -> !hl_seq.resource<transient, 1>
      "util.cond_branch"(%4)[^bb2, ^bb3] <{batch = 32 : i32, counts = array<i64: 0, 0>}> : (!hl_seq.resource<transient, 1>) -> ()
    ^bb2:
      %5 = "flow.dispatch"(%3) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0>, workload = array<i64: 40000, 1, 1>}> : (!hl_seq.resource<transient, 160000>) -> !hl_seq.resource<transient, 160000>
      "util.branch"(%5)[^bb1] : (!hl_seq.resource<transient, 160000>) -> ()
    ^bb3:
      %6 = "hl_seq.clone"(%3) : (!hl_seq.resource<transient, 160000>) -> !hl_seq.resource<external, 160000>
      %7 = "hl_seq.export"(%6) : (!hl_seq.resource<external, 160000>) -> tensor<40000xf32>
      "func.return"(%7) : (tensor<40000xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
