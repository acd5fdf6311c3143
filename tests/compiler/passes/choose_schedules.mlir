// passes: choose-schedules
// A machine of graphics processors stages operands of a dot, one of processors tiles it; the reference has no schedules.
"builtin.module"() ({
  "hl_seq.program"() <{machine = "gpu", sym_name = "spirv_gpu"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{machine = "gpu", sym_name = "spirv_gpu"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", schedules = [#kernel.schedule<[tile(m, 2), tile(n, 1), bind(grid, workgroup), bind(m, local, 8), bind(n, local, 16), unroll(k, 8), stage(lhs, shared, 16), stage(rhs, shared, 16)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", schedules = [#kernel.schedule<[tile(m, 8), tile(n, 8), bind(grid, invocation, 32), unroll(k, 4)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: choose-schedules
// Dispatches with few rows have a schedule of their own: it stands first, with its condition.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "d0"}], function_type = (tensor<?x32xf32, #util.dims<d0>>, tensor<32x64xf32>) -> tensor<?x64xf32, #util.dims<d0>>, kind = "contraction", sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<?x32xf32, #util.dims<d0>>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x32xf32, #util.dims<d0>>, tensor<32x64xf32>) -> tensor<?x64xf32, #util.dims<d0>>
        "func.return"(%2) : (tensor<?x64xf32, #util.dims<d0>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], function_type = (tensor<?x32xf32, #util.dims<d0>>, tensor<32x64xf32>) -> tensor<?x64xf32, #util.dims<d0>>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x32xf32, #util.dims<d0>>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<?x32xf32, #util.dims<d0>>) -> !hl_seq.resource<external, 128 * d0>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = #util.dims<64 * d0, 1, 1>}> : (!hl_seq.resource<external, 128 * d0>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 256 * d0>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 256 * d0>) -> tensor<?x64xf32, #util.dims<d0>>
      "func.return"(%5) : (tensor<?x64xf32, #util.dims<d0>>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "d0"}], function_type = (tensor<?x32xf32, #util.dims<d0>>, tensor<32x64xf32>) -> tensor<?x64xf32, #util.dims<d0>>, kind = "contraction", schedules = [#kernel.schedule<[specialize(m, ..7), tile(m, 2), tile(n, 8), bind(grid, invocation, 32), unroll(k, 4), guard(m, clamp)]>, #kernel.schedule<[assume(m, 8..), tile(m, 8), tile(n, 8), bind(grid, invocation, 32), unroll(k, 4), guard(m, shift)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<?x32xf32, #util.dims<d0>>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<?x32xf32, #util.dims<d0>>, tensor<32x64xf32>) -> tensor<?x64xf32, #util.dims<d0>>
        "func.return"(%2) : (tensor<?x64xf32, #util.dims<d0>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], function_type = (tensor<?x32xf32, #util.dims<d0>>, tensor<32x64xf32>) -> tensor<?x64xf32, #util.dims<d0>>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x32xf32, #util.dims<d0>>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<?x32xf32, #util.dims<d0>>) -> !hl_seq.resource<external, 128 * d0>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = #util.dims<64 * d0, 1, 1>}> : (!hl_seq.resource<external, 128 * d0>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 256 * d0>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 256 * d0>) -> tensor<?x64xf32, #util.dims<d0>>
      "func.return"(%5) : (tensor<?x64xf32, #util.dims<d0>>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: choose-schedules
// An entry that has a schedule keeps it.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", schedules = [#kernel.schedule<[tile(m, 2), tile(n, 4), bind(grid, invocation, 64)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, kind = "contraction", schedules = [#kernel.schedule<[tile(m, 2), tile(n, 4), bind(grid, invocation, 64)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
        %2 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
        "func.return"(%2) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<64x32xf32>, %1: tensor<32x64xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<64x32xf32>) -> !hl_seq.resource<external, 8192>
      %3 = "hl_seq.import"(%1) : (tensor<32x64xf32>) -> !hl_seq.resource<external, 8192>
      %4 = "flow.dispatch"(%2, %3) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4096, 1, 1>}> : (!hl_seq.resource<external, 8192>, !hl_seq.resource<external, 8192>) -> !hl_seq.resource<external, 16384>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16384>) -> tensor<64x64xf32>
      "func.return"(%5) : (tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
