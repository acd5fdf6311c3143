// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, share-bindings
// The two constants lie in one buffer, which is bound once; their offsets become parameters.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv_least"}> ({
    "util.global"() <{sym_name = "constant_0", type = !hl_seq.resource<constant, 16>, value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>}> : () -> ()
    "util.global"() <{sym_name = "constant_1", type = !hl_seq.resource<constant, 16>, value = dense<[1, 2, 3, 4]> : tensor<4xi32>}> : () -> ()
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xf32>, kind = "elementwise", schedules = [#kernel.schedule<[bind(grid, invocation, 64)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xi32>, %3: tensor<4xi32>):
        %4 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %5 = "stablehlo.add"(%2, %3) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %6 = "stablehlo.convert"(%5) : (tensor<4xi32>) -> tensor<4xf32>
        %7 = "stablehlo.multiply"(%4, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%7) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xi32>):
      %2 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.import"(%1) : (tensor<4xi32>) -> !hl_seq.resource<external, 16>
      %4 = "util.global_load"() <{ref = @constant_0}> : () -> !hl_seq.resource<constant, 16>
      %5 = "util.global_load"() <{ref = @constant_1}> : () -> !hl_seq.resource<constant, 16>
      %6 = "flow.dispatch"(%2, %4, %3, %5) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0, 1, 2, 3>, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>, !hl_seq.resource<constant, 16>, !hl_seq.resource<external, 16>, !hl_seq.resource<constant, 16>) -> !hl_seq.resource<external, 16>
      %7 = "hl_seq.export"(%6) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%7) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv_least"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "read", length = 16 : i64}, {access = "read", length = 16 : i64}, {access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], kind = "elementwise", schedules = [#kernel.schedule<[bind(grid, invocation, 64)]>], shared = array<i64: 0, 1, 2, 1, 3>, sym_name = "main_dispatch_0", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding, %3: !ll_seq.binding, %4: !ll_seq.binding):
        %5 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %6 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<4xf32>
        %7 = "ll_seq.load_input"(%2) : (!ll_seq.binding) -> tensor<4xi32>
        %8 = "ll_seq.load_input"(%3) : (!ll_seq.binding) -> tensor<4xi32>
        %9 = "stablehlo.add"(%5, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %10 = "stablehlo.add"(%7, %8) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %11 = "stablehlo.convert"(%10) : (tensor<4xi32>) -> tensor<4xf32>
        %12 = "stablehlo.multiply"(%9, %11) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%12, %4) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>, sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view):
        %3 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %4 = "ll_seq.constant"() <{label = "constants", offsets = array<i64: 0, 512>, size = 528 : i64, values = [dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>, dense<[1, 2, 3, 4]> : tensor<4xi32>]}> : () -> !hal.buffer
        %5 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %6 = "ll_seq.check"(%1) <{type = tensor<4xi32>}> : (!hal.view) -> !hal.buffer
        %7 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
        %8 = "ll_seq.storage"(%7) : (!hal.view) -> !hal.buffer
        %9 = "ll_seq.record"() ({
        ^bb0(%10: !ll_seq.slot, %11: !ll_seq.slot, %12: !ll_seq.slot):
          "ll_seq.dispatch"(%3, %10, %4, %11, %4, %12) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0, 512, 0>, spans = array<i64: 16, 528, 16, 16>}> : (!hal.executable, !ll_seq.slot, !hal.buffer, !ll_seq.slot, !hal.buffer, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%9, %5, %6, %8) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%7) : (!hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, share-bindings
// Five buffers are of the caller: the smallest two are copied beside each other.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv_least"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>, kind = "elementwise", schedules = [#kernel.schedule<[bind(grid, invocation, 64)]>], sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<f32>, %3: tensor<4xf32>):
        %4 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %5 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
        %6 = "stablehlo.subtract"(%4, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %7 = "stablehlo.divide"(%6, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%7) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<f32>, %3: tensor<4xf32>):
      %4 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %5 = "hl_seq.import"(%1) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %6 = "hl_seq.import"(%2) : (tensor<f32>) -> !hl_seq.resource<external, 4>
      %7 = "hl_seq.import"(%3) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %8 = "flow.dispatch"(%4, %5, %6, %7) <{entry = @main_dispatch_0::@main_dispatch_0, in_place = array<i64: 0, 1, 3>, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>, !hl_seq.resource<external, 16>, !hl_seq.resource<external, 4>, !hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %9 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%9) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv_least"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "read", length = 16 : i64}, {access = "read", length = 4 : i64}, {access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], kind = "elementwise", schedules = [#kernel.schedule<[bind(grid, invocation, 64)]>], shared = array<i64: 0, 1, 2, 3, 2>, sym_name = "main_dispatch_0", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding, %3: !ll_seq.binding, %4: !ll_seq.binding):
        %5 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %6 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<4xf32>
        %7 = "ll_seq.load_input"(%2) : (!ll_seq.binding) -> tensor<f32>
        %8 = "ll_seq.load_input"(%3) : (!ll_seq.binding) -> tensor<4xf32>
        %9 = "stablehlo.add"(%5, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %10 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
        %11 = "stablehlo.subtract"(%9, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %12 = "stablehlo.divide"(%11, %8) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%12, %4) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view, %4: !hal.view):
        %5 = "ll_seq.allocate"() <{label = "operands", lifetime = "transient", size = 1024 : i64}> : () -> !hal.buffer
        %6 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %7 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %8 = "ll_seq.check"(%1) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %9 = "ll_seq.check"(%2) <{type = tensor<f32>}> : (!hal.view) -> !hal.buffer
        %10 = "ll_seq.check"(%3) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %11 = "ll_seq.destination"(%4) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
        %12 = "ll_seq.storage"(%11) : (!hal.view) -> !hal.buffer
        %13 = "ll_seq.record"() ({
        ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot, %16: !ll_seq.slot, %17: !ll_seq.slot, %18: !ll_seq.slot):
          "ll_seq.copy"(%16, %5) <{length = 4 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%6, %14, %15, %5, %17, %5) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0, 0, 512>, spans = array<i64: 16, 16, 1024, 16>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%5, %18) <{length = 16 : i64, source_offset = 512 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%13, %7, %8, %9, %10, %12) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%11) : (!hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
