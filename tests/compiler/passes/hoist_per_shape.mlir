// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, hoist-per-shape
// Memory and recording depend on the size that a request brings, and on nothing else of it.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "e"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "d0"}], function_type = (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>, sym_name = "e"}> ({
      ^bb0(%0: tensor<?x4xf32, #util.dims<d0>>, %1: tensor<?x4xf32, #util.dims<d0>>):
        %2 = "stablehlo.add"(%0, %1) : (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>
        "func.return"(%2) : (tensor<?x4xf32, #util.dims<d0>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{arg_attrs = [{orchestrion.name = "x"}, {orchestrion.name = "y"}], dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], function_type = (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x4xf32, #util.dims<d0>>, %1: tensor<?x4xf32, #util.dims<d0>>):
      %2 = "hl_seq.import"(%0) : (tensor<?x4xf32, #util.dims<d0>>) -> !hl_seq.resource<external, 16 * d0>
      %3 = "hl_seq.import"(%1) : (tensor<?x4xf32, #util.dims<d0>>) -> !hl_seq.resource<external, 16 * d0>
      "util.assert"() <{lhs = #util.dims<arg1_0>, message = "rows of y are {0}, of x {1}", numbers = #util.dims<arg1_0, arg0_0>, predicate = "eq", rhs = #util.dims<arg0_0>}> : () -> ()
      %4 = "flow.dispatch"(%2, %3) <{entry = @e::@e, workload = #util.dims<4 * d0, 1, 1>}> : (!hl_seq.resource<external, 16 * d0>, !hl_seq.resource<external, 16 * d0>) -> !hl_seq.resource<transient, 16 * d0>
      %5 = "flow.dispatch"(%4, %3) <{entry = @e::@e, workload = #util.dims<4 * d0, 1, 1>}> : (!hl_seq.resource<transient, 16 * d0>, !hl_seq.resource<external, 16 * d0>) -> !hl_seq.resource<external, 16 * d0>
      %6 = "hl_seq.export"(%5) : (!hl_seq.resource<external, 16 * d0>) -> tensor<?x4xf32, #util.dims<d0>>
      "func.return"(%6) : (tensor<?x4xf32, #util.dims<d0>>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "ll_seq.executable"() <{sym_name = "e"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = #util.dims<16 * d0>}, {access = "read", length = #util.dims<16 * d0>}, {access = "write", length = #util.dims<16 * d0>}], dims = [{least = 1 : i64, name = "d0"}], sym_name = "e", workload = #util.dims<4 * d0, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<?x4xf32, #util.dims<d0>>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<?x4xf32, #util.dims<d0>>
        %5 = "stablehlo.add"(%3, %4) : (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>
        "ll_seq.store_output"(%5, %2) : (tensor<?x4xf32, #util.dims<d0>>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      %0 = "ll_seq.create_executable"() <{executable = @e}> : () -> !hal.executable
      "ll_seq.run_loop"() <{arg_attrs = [{orchestrion.name = "x"}, {orchestrion.name = "y"}], dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], signature = (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>, sym_name = "main"}> ({
      ^bb0(%1: !hal.view, %2: !hal.view, %3: !hal.view):
        %4 = "ll_seq.check"(%1) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view) -> !hal.buffer
        %5 = "ll_seq.check"(%2) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view) -> !hal.buffer
        %6 = "ll_seq.measure"(%1) <{axis = 0 : i64}> : (!hal.view) -> i64
        %7 = "ll_seq.measure"(%2) <{axis = 0 : i64}> : (!hal.view) -> i64
        %8:2 = "ll_seq.per_shape"(%6, %7) ({
          "util.assert"() <{lhs = #util.dims<arg1_0>, message = "rows of y are {0}, of x {1}", numbers = #util.dims<arg1_0, arg0_0>, predicate = "eq", rhs = #util.dims<arg0_0>}> : () -> ()
          "util.assert"() <{lhs = #util.dims<arg0_0>, message = "size d0 is {0}, {1} is the least", numbers = #util.dims<arg0_0, 1>, predicate = "ge", rhs = array<i64: 1>}> : () -> ()
          "util.assert"() <{lhs = #util.dims<arg0_0>, message = "size d0 is {0}, {1} is the most", numbers = #util.dims<arg0_0, 2147483647>, predicate = "le", rhs = array<i64: 2147483647>}> : () -> ()
          "util.assert"() <{lhs = #util.dims<arg1_0>, message = "argument 1, dimension 0 is {0}, d0 = {1} wanted", numbers = #util.dims<arg1_0, d0>, predicate = "eq", rhs = #util.dims<d0>}> : () -> ()
          "util.assert"() <{lhs = #util.dims<4 * d0>, message = "tensor<?x4xf32, d0> has {0} elements, 2147483647 are the most", numbers = #util.dims<4 * d0>, predicate = "le", rhs = array<i64: 2147483647>}> : () -> ()
          %11 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = #util.dims<512 * floordiv(16 * d0 + 511, 512)>}> : () -> !hal.buffer
          %12 = "ll_seq.size"() <{value = #util.dims<d0>}> : () -> i64
          %13 = "ll_seq.record"() ({
          ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot, %16: !ll_seq.slot):
            "ll_seq.dispatch"(%0, %14, %15, %11) <{entry = @e::@e, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
            "ll_seq.barrier"() : () -> ()
            "ll_seq.dispatch"(%0, %11, %15, %16) <{entry = @e::@e, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !ll_seq.slot) -> ()
            "ll_seq.end"() : () -> ()
          }) : () -> !hal.recording
          "ll_seq.return"(%12, %13) : (i64, !hal.recording) -> ()
        }) : (i64, i64) -> (i64, !hal.recording)
        %9 = "ll_seq.destination"(%3, %8#0) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view, i64) -> !hal.view
        %10 = "ll_seq.storage"(%9) : (!hal.view) -> !hal.buffer
        "ll_seq.execute"(%8#1, %4, %5, %10) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%9) : (!hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, hoist-per-shape, split-setup
// With a loop: its states too, and how often it turns. The recording of what needs no size is the context's.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "step"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "d0"}], function_type = (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>, sym_name = "step"}> ({
      ^bb0(%0: tensor<?x4xf32, #util.dims<d0>>, %1: tensor<?x4xf32, #util.dims<d0>>):
        %2 = "stablehlo.add"(%0, %1) : (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>
        "func.return"(%2) : (tensor<?x4xf32, #util.dims<d0>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "fixed"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "fixed"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], function_type = (tensor<?x4xf32, #util.dims<d0>>, tensor<4xf32>) -> (tensor<?x4xf32, #util.dims<2 * d0>>, tensor<?x4xf32, #util.dims<d0>>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<?x4xf32, #util.dims<d0>>, %1: tensor<4xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<?x4xf32, #util.dims<d0>>) -> !hl_seq.resource<external, 16 * d0>
      %3 = "hl_seq.import"(%1) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %4 = "flow.dispatch"(%3) <{entry = @fixed::@fixed, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %6 = "util.constant"() <{value = 0 : i32}> : () -> i32
      %7 = "flow.splat"() <{value = dense<1.0> : tensor<f32>}> : () -> !hl_seq.resource<transient, 16 * d0>
      %8 = "hl_seq.clone"(%2) : (!hl_seq.resource<external, 16 * d0>) -> !hl_seq.resource<transient, 16 * d0>
      "util.branch"(%8, %7, %6)[^bb1] : (!hl_seq.resource<transient, 16 * d0>, !hl_seq.resource<transient, 16 * d0>, i32) -> ()
    ^bb1(%9: !hl_seq.resource<transient, 16 * d0>, %10: !hl_seq.resource<transient, 16 * d0>, %11: i32):
      %12 = "util.dim"() <{value = #util.dims<2 * d0>}> : () -> i32
      %13 = "util.compare_lt"(%11, %12) : (i32, i32) -> i32
      "util.cond_branch"(%13)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb2:
      %14 = "flow.dispatch"(%9, %10) <{entry = @step::@step, workload = #util.dims<4 * d0, 1, 1>}> : (!hl_seq.resource<transient, 16 * d0>, !hl_seq.resource<transient, 16 * d0>) -> !hl_seq.resource<transient, 16 * d0>
      %15 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %16 = "util.add"(%11, %15) : (i32, i32) -> i32
      "util.branch"(%10, %14, %16)[^bb1] : (!hl_seq.resource<transient, 16 * d0>, !hl_seq.resource<transient, 16 * d0>, i32) -> ()
    ^bb3:
      %17 = "flow.splat"() <{value = dense<2.0> : tensor<f32>}> : () -> !hl_seq.resource<external, 32 * d0>
      %18 = "hl_seq.export"(%17) : (!hl_seq.resource<external, 32 * d0>) -> tensor<?x4xf32, #util.dims<2 * d0>>
      %19 = "hl_seq.clone"(%9) : (!hl_seq.resource<transient, 16 * d0>) -> !hl_seq.resource<external, 16 * d0>
      %20 = "hl_seq.export"(%19) : (!hl_seq.resource<external, 16 * d0>) -> tensor<?x4xf32, #util.dims<d0>>
      "func.return"(%18, %20, %5) : (tensor<?x4xf32, #util.dims<2 * d0>>, tensor<?x4xf32, #util.dims<d0>>, tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "ll_seq.executable"() <{sym_name = "step"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = #util.dims<16 * d0>}, {access = "read", length = #util.dims<16 * d0>}, {access = "write", length = #util.dims<16 * d0>}], dims = [{least = 1 : i64, name = "d0"}], sym_name = "step", workload = #util.dims<4 * d0, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<?x4xf32, #util.dims<d0>>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<?x4xf32, #util.dims<d0>>
        %5 = "stablehlo.add"(%3, %4) : (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>
        "ll_seq.store_output"(%5, %2) : (tensor<?x4xf32, #util.dims<d0>>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "fixed"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "fixed", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "fixed_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "step_executable", type = !hal.executable}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @fixed}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @fixed_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @step}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @step_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.setup_func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], sizes = ["arg0_0"], sym_name = "main_setup"}> ({
    ^bb0(%0: i64):
      "util.assert"() <{lhs = #util.dims<arg0_0>, message = "size d0 is {0}, {1} is the least", numbers = #util.dims<arg0_0, 1>, predicate = "ge", rhs = array<i64: 1>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<arg0_0>, message = "size d0 is {0}, {1} is the most", numbers = #util.dims<arg0_0, 2147483647>, predicate = "le", rhs = array<i64: 2147483647>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<4 * d0>, message = "tensor<?x4xf32, d0> has {0} elements, 2147483647 are the most", numbers = #util.dims<4 * d0>, predicate = "le", rhs = array<i64: 2147483647>}> : () -> ()
      %1 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = #util.dims<1024 * floordiv(16 * d0 + 511, 512)>}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = #util.dims<1024 * floordiv(16 * d0 + 511, 512)>}> : () -> !hal.buffer
      %3 = "ll_seq.size"() <{value = #util.dims<2 * d0>}> : () -> i64
      %4 = "ll_seq.size"() <{value = #util.dims<d0>}> : () -> i64
      %5 = "util.global_load"() <{ref = @fixed_executable}> : () -> !hal.executable
      %6 = "ll_seq.record"() ({
      ^bb0(%11: !ll_seq.slot, %12: !ll_seq.slot, %13: !ll_seq.slot):
        "ll_seq.dispatch"(%5, %12, %13) <{entry = @fixed::@fixed, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.fill"(%1) <{length = #util.dims<16 * d0>, offset = #util.dims<512 * floordiv(16 * d0 + 511, 512)>, value = dense<1.000000e+00> : tensor<f32>}> : (!hal.buffer) -> ()
        "ll_seq.copy"(%11, %1) <{length = #util.dims<16 * d0>, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      %7 = "util.dim"() <{value = #util.dims<2 * d0>}> : () -> i32
      %8 = "util.global_load"() <{ref = @step_executable}> : () -> !hal.executable
      %9 = "ll_seq.record"() ({
      ^bb0(%11: !ll_seq.slot, %12: !ll_seq.slot):
        "ll_seq.dispatch"(%8, %11, %11, %12) <{entry = @step::@step, offsets = #util.dims<0, 512 * floordiv(16 * d0 + 511, 512), 512 * floordiv(16 * d0 + 511, 512)>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.copy"(%11, %12) <{length = #util.dims<16 * d0>, source_offset = #util.dims<512 * floordiv(16 * d0 + 511, 512)>, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      %10 = "ll_seq.record"() ({
      ^bb0(%11: !ll_seq.slot, %12: !ll_seq.slot, %13: !ll_seq.slot):
        "ll_seq.fill"(%12) <{length = #util.dims<32 * d0>, offset = 0 : i64, value = dense<2.000000e+00> : tensor<f32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%11, %13) <{length = #util.dims<16 * d0>, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "ll_seq.return"(%1, %2, %3, %4, %6, %7, %9, %10) : (!hal.buffer, !hal.buffer, i64, i64, !hal.recording, i32, !hal.recording, !hal.recording) -> ()
    }) : () -> ()
    "ll_seq.function"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], signature = (tensor<?x4xf32, #util.dims<d0>>, tensor<4xf32>) -> (tensor<?x4xf32, #util.dims<2 * d0>>, tensor<?x4xf32, #util.dims<d0>>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view, %4: !hal.view):
      %5 = "ll_seq.check"(%0) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view) -> !hal.buffer
      %6 = "ll_seq.check"(%1) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
      %7 = "ll_seq.measure"(%0) <{axis = 0 : i64}> : (!hal.view) -> i64
      %8:8 = "ll_seq.call_setup"(%7) <{callee = @main_setup}> : (i64) -> (!hal.buffer, !hal.buffer, i64, i64, !hal.recording, i32, !hal.recording, !hal.recording)
      %9 = "ll_seq.destination"(%2, %8#2) <{type = tensor<?x4xf32, #util.dims<2 * d0>>}> : (!hal.view, i64) -> !hal.view
      %10 = "ll_seq.destination"(%3, %8#3) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view, i64) -> !hal.view
      %11 = "ll_seq.destination"(%4) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %12 = "ll_seq.storage"(%9) : (!hal.view) -> !hal.buffer
      %13 = "ll_seq.storage"(%10) : (!hal.view) -> !hal.buffer
      %14 = "ll_seq.storage"(%11) : (!hal.view) -> !hal.buffer
      %15 = "util.constant"() <{value = 0 : i32}> : () -> i32
      "ll_seq.enqueue"(%8#4, %5, %6, %14) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "util.branch"(%8#0, %8#1, %15)[^bb1] : (!hal.buffer, !hal.buffer, i32) -> ()
    ^bb1(%16: !hal.buffer, %17: !hal.buffer, %18: i32):
      %19 = "util.compare_lt"(%18, %8#5) : (i32, i32) -> i32
      "util.cond_branch"(%19)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb2:
      %20 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %21 = "util.add"(%18, %20) : (i32, i32) -> i32
      "ll_seq.enqueue"(%8#6, %16, %17) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"(%17, %16, %21)[^bb1] : (!hal.buffer, !hal.buffer, i32) -> ()
    ^bb3:
      "ll_seq.execute"(%8#7, %16, %12, %13) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%9, %10, %11) : (!hal.view, !hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @step_executable}> : () -> ()
      "util.global_release"() <{ref = @fixed_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
