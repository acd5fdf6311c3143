// passes: materialize-copies
// Nothing to copy but what must be: the loop's values swap, so each is copied at the back edge.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "step"}> ({
      "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "step"}> ({
      ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
        %2 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%2) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "test"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<i1>, sym_name = "test"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
        "func.return"(%1) : (tensor<i1>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.import"(%1) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %20 = "hl_seq.clone"(%2) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %21 = "hl_seq.clone"(%3) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      "util.branch"(%20, %21)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> ()
    ^bb1(%4: !hl_seq.resource<transient, 16>, %5: !hl_seq.resource<transient, 16>):
      %6 = "flow.dispatch"(%4) <{entry = @test::@test, workload = array<i64: 1, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 1>
      "util.cond_branch"(%6)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (!hl_seq.resource<transient, 1>) -> ()
    ^bb2:
      "util.branch"(%5, %4)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> ()
    ^bb3:
      %9 = "hl_seq.clone"(%4) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %10 = "hl_seq.export"(%9) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %11 = "hl_seq.clone"(%5) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%10, %12) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "step"}> ({
      "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "step"}> ({
      ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
        %2 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%2) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "test"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<i1>, sym_name = "test"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
        "func.return"(%1) : (tensor<i1>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.import"(%1) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %4 = "hl_seq.clone"(%2) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %5 = "hl_seq.clone"(%3) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      "util.branch"(%4, %5)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> ()
    ^bb1(%6: !hl_seq.resource<transient, 16>, %7: !hl_seq.resource<transient, 16>):
      %8 = "flow.dispatch"(%6) <{entry = @test::@test, workload = array<i64: 1, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 1>
      "util.cond_branch"(%8)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (!hl_seq.resource<transient, 1>) -> ()
    ^bb2:
      %9 = "hl_seq.clone"(%7) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %10 = "hl_seq.clone"(%6) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      "util.branch"(%9, %10)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> ()
    ^bb3:
      %11 = "hl_seq.clone"(%6) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %13 = "hl_seq.clone"(%7) : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %14 = "hl_seq.export"(%13) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%12, %14) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies
// An argument is updated in place: a copy of it is. The value that is updated in place and needed later is copied, too.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "update"}> ({
      "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>, sym_name = "update"}> ({
      ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
        %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
        "func.return"(%3) : (tensor<8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
      %3 = "hl_seq.import"(%0) : (tensor<8xf32>) -> !hl_seq.resource<external, 32>
      %4 = "hl_seq.import"(%1) : (tensor<2xf32>) -> !hl_seq.resource<external, 8>
      %5 = "hl_seq.import"(%2) : (tensor<i32>) -> !hl_seq.resource<external, 4>
      %6 = "flow.dispatch"(%3, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<external, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<transient, 32>
      %7 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %8 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %9 = "hl_seq.export"(%7) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      %10 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      "func.return"(%9, %10) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "update"}> ({
      "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>, sym_name = "update"}> ({
      ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
        %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
        "func.return"(%3) : (tensor<8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
      %3 = "hl_seq.import"(%0) : (tensor<8xf32>) -> !hl_seq.resource<external, 32>
      %4 = "hl_seq.import"(%1) : (tensor<2xf32>) -> !hl_seq.resource<external, 8>
      %5 = "hl_seq.import"(%2) : (tensor<i32>) -> !hl_seq.resource<external, 4>
      %6 = "hl_seq.clone"(%3) : (!hl_seq.resource<external, 32>) -> !hl_seq.resource<transient, 32>
      %7 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<transient, 32>
      %8 = "hl_seq.clone"(%7) : (!hl_seq.resource<transient, 32>) -> !hl_seq.resource<transient, 32>
      %9 = "flow.dispatch"(%8, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %10 = "flow.dispatch"(%7, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %11 = "hl_seq.export"(%9) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      %12 = "hl_seq.export"(%10) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      "func.return"(%11, %12) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies
// A result is the caller's when all is done, wherever its export stands: what is updated behind it is a copy.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "update"}> ({
      "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>, sym_name = "update"}> ({
      ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
        %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
        "func.return"(%3) : (tensor<8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
      %3 = "hl_seq.import"(%0) : (tensor<8xf32>) -> !hl_seq.resource<external, 32>
      %4 = "hl_seq.import"(%1) : (tensor<2xf32>) -> !hl_seq.resource<external, 8>
      %5 = "hl_seq.import"(%2) : (tensor<i32>) -> !hl_seq.resource<external, 4>
      %6 = "flow.dispatch"(%3, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<external, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %7 = "hl_seq.export"(%6) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      %8 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<external, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<transient, 32>
      %9 = "flow.dispatch"(%8, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %10 = "hl_seq.export"(%9) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      "func.return"(%7, %10) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "update"}> ({
      "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>, sym_name = "update"}> ({
      ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
        %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
        "func.return"(%3) : (tensor<8xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<8xf32>, %1: tensor<2xf32>, %2: tensor<i32>):
      %3 = "hl_seq.import"(%0) : (tensor<8xf32>) -> !hl_seq.resource<external, 32>
      %4 = "hl_seq.import"(%1) : (tensor<2xf32>) -> !hl_seq.resource<external, 8>
      %5 = "hl_seq.import"(%2) : (tensor<i32>) -> !hl_seq.resource<external, 4>
      %6 = "hl_seq.clone"(%3) : (!hl_seq.resource<external, 32>) -> !hl_seq.resource<transient, 32>
      %7 = "flow.dispatch"(%6, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %8 = "hl_seq.export"(%7) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      %9 = "hl_seq.clone"(%7) : (!hl_seq.resource<external, 32>) -> !hl_seq.resource<transient, 32>
      %10 = "flow.dispatch"(%9, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<transient, 32>
      %11 = "flow.dispatch"(%10, %4, %5) <{entry = @update::@update, tied = array<i64: 0>, workload = array<i64: 2, 1, 1>}> : (!hl_seq.resource<transient, 32>, !hl_seq.resource<external, 8>, !hl_seq.resource<external, 4>) -> !hl_seq.resource<external, 32>
      %12 = "hl_seq.export"(%11) : (!hl_seq.resource<external, 32>) -> tensor<8xf32>
      "func.return"(%8, %12) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
