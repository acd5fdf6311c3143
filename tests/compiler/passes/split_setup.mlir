// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// Four dispatches in a chain: the first and the third transient share memory, barriers stand between. The fill needs
// none, the copy of the last result does. The unused argument and the empty result have no slot.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "main_dispatch_0"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main_dispatch_0"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "constant_0", type = !hl_seq.resource<constant, 2>, value = dense<[1, 2]> : tensor<2xi8>}> : () -> ()
    "util.global"() <{sym_name = "constant_1", type = !hl_seq.resource<constant, 3>, value = dense<[3, 4, 5]> : tensor<3xi8>}> : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>, tensor<9xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xi8>, tensor<0xf32>, tensor<3xi16>), sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<9xf32>):
      %2 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %3 = "hl_seq.import"(%1) : (tensor<9xf32>) -> !hl_seq.resource<external, 36>
      %4 = "util.global_load"() <{ref = @constant_1}> : () -> !hl_seq.resource<constant, 3>
      %5 = "flow.dispatch"(%2) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %6 = "flow.dispatch"(%5) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %7 = "flow.dispatch"(%6) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %8 = "flow.dispatch"(%7) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %9 = "flow.empty"() : () -> !hl_seq.resource<external, 0>
      %10 = "flow.splat"() <{value = dense<7> : tensor<i16>}> : () -> !hl_seq.resource<external, 6>
      %11 = "hl_seq.export"(%8) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %12 = "hl_seq.clone"(%8) : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<external, 16>
      %13 = "hl_seq.export"(%12) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      %14 = "hl_seq.clone"(%4) : (!hl_seq.resource<constant, 3>) -> !hl_seq.resource<external, 3>
      %15 = "hl_seq.export"(%14) : (!hl_seq.resource<external, 3>) -> tensor<3xi8>
      %16 = "hl_seq.export"(%9) : (!hl_seq.resource<external, 0>) -> tensor<0xf32>
      %17 = "hl_seq.export"(%10) : (!hl_seq.resource<external, 6>) -> tensor<3xi16>
      "func.return"(%11, %13, %15, %16, %17) : (tensor<4xf32>, tensor<4xf32>, tensor<3xi8>, tensor<0xf32>, tensor<3xi16>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "main_dispatch_0", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "constants_buffer", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.constant"() <{label = "constants", offsets = array<i64: 0, 512>, size = 515 : i64, values = [dense<[1, 2]> : tensor<2xi8>, dense<[3, 4, 5]> : tensor<3xi8>]}> : () -> !hal.buffer
      "util.global_store"(%1) <{ref = @constants_buffer}> : (!hal.buffer) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 1024 : i64}> : () -> !hal.buffer
      %1 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %2 = "util.global_load"() <{ref = @constants_buffer}> : () -> !hal.buffer
      %3 = "ll_seq.record"() ({
      ^bb0(%4: !ll_seq.slot, %5: !ll_seq.slot, %6: !ll_seq.slot, %7: !ll_seq.slot, %8: !ll_seq.slot):
        "ll_seq.dispatch"(%1, %4, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%1, %0, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 512>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%1, %0, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 512, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%1, %0, %5) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.fill"(%8) <{length = 6 : i64, offset = 0 : i64, value = dense<7> : tensor<i16>}> : (!ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.copy"(%5, %6) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.copy"(%2, %7) <{length = 3 : i64, source_offset = 512 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%3) <{ref = @main_recording}> : (!hal.recording) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.function"() <{signature = (tensor<4xf32>, tensor<9xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xi8>, tensor<0xf32>, tensor<3xi16>), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view, %4: !hal.view, %5: !hal.view, %6: !hal.view):
      %7 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
      %8 = "ll_seq.check"(%1) <{type = tensor<9xf32>}> : (!hal.view) -> !hal.buffer
      %9 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %10 = "ll_seq.destination"(%3) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %11 = "ll_seq.destination"(%4) <{type = tensor<3xi8>}> : (!hal.view) -> !hal.view
      %12 = "ll_seq.destination"(%5) <{type = tensor<0xf32>}> : (!hal.view) -> !hal.view
      %13 = "ll_seq.destination"(%6) <{type = tensor<3xi16>}> : (!hal.view) -> !hal.view
      %14 = "ll_seq.storage"(%9) : (!hal.view) -> !hal.buffer
      %15 = "ll_seq.storage"(%10) : (!hal.view) -> !hal.buffer
      %16 = "ll_seq.storage"(%11) : (!hal.view) -> !hal.buffer
      %17 = "ll_seq.storage"(%13) : (!hal.view) -> !hal.buffer
      %18 = "util.global_load"() <{ref = @main_recording}> : () -> !hal.recording
      "ll_seq.execute"(%18, %7, %14, %15, %16, %17) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%9, %10, %11, %12, %13) : (!hal.view, !hal.view, !hal.view, !hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @constants_buffer}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// The states of the loop belong to the context, executables to the program.
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
      %7 = "flow.dispatch"(%4, %5) <{entry = @step::@step, in_place = array<i64: 0>, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %8 = "flow.dispatch"(%7, %5) <{entry = @step::@step, in_place = array<i64: 0>, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      "util.branch"(%7, %8)[^bb1] : (!hl_seq.resource<transient, 16>, !hl_seq.resource<transient, 16>) -> ()
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
    "ll_seq.executable"() <{sym_name = "step"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "step", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<4xf32>
        %5 = "stablehlo.add"(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%5, %2) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "test"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 1 : i64}], sym_name = "test", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
        "ll_seq.store_output"(%3, %1) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "arena", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "main_state", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "main_state_1", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "test_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "step_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_1", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_2", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_3", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @test}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @test_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @step}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @step_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 512 : i64}> : () -> !hal.buffer
      "util.global_store"(%0) <{ref = @arena}> : (!hal.buffer) -> ()
      %1 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 512 : i64}> : () -> !hal.buffer
      "util.global_store"(%1) <{ref = @main_state}> : (!hal.buffer) -> ()
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 512 : i64}> : () -> !hal.buffer
      "util.global_store"(%2) <{ref = @main_state_1}> : (!hal.buffer) -> ()
      %3 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot, %10: !ll_seq.slot, %11: !ll_seq.slot):
        "ll_seq.copy"(%9, %11) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.copy"(%10, %1) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%3) <{ref = @main_recording}> : (!hal.recording) -> ()
      %4 = "util.global_load"() <{ref = @test_executable}> : () -> !hal.executable
      %5 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot):
        "ll_seq.dispatch"(%4, %9, %0) <{entry = @test::@test, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%5) <{ref = @main_recording_1}> : (!hal.recording) -> ()
      %6 = "util.global_load"() <{ref = @step_executable}> : () -> !hal.executable
      %7 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot, %10: !ll_seq.slot, %11: !ll_seq.slot):
        "ll_seq.dispatch"(%6, %11, %9, %11) <{entry = @step::@step, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%6, %11, %9, %10) <{entry = @step::@step, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%7) <{ref = @main_recording_2}> : (!hal.recording) -> ()
      %8 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot, %10: !ll_seq.slot):
        "ll_seq.copy"(%9, %10) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%8) <{ref = @main_recording_3}> : (!hal.recording) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.function"() <{signature = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
      %4 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
      %5 = "ll_seq.check"(%1) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
      %6 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %7 = "ll_seq.destination"(%3) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %8 = "ll_seq.storage"(%6) : (!hal.view) -> !hal.buffer
      %9 = "ll_seq.storage"(%7) : (!hal.view) -> !hal.buffer
      %10 = "util.global_load"() <{ref = @main_recording}> : () -> !hal.recording
      "ll_seq.enqueue"(%10, %4, %5, %8) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      %11 = "util.global_load"() <{ref = @main_state}> : () -> !hal.buffer
      %12 = "util.global_load"() <{ref = @main_state_1}> : () -> !hal.buffer
      "util.branch"(%11, %12)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
    ^bb1(%13: !hal.buffer, %14: !hal.buffer):
      %15 = "util.global_load"() <{ref = @main_recording_1}> : () -> !hal.recording
      "ll_seq.execute"(%15, %8) : (!hal.recording, !hal.buffer) -> ()
      %16 = "util.global_load"() <{ref = @arena}> : () -> !hal.buffer
      %17 = "ll_seq.read"(%16) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
      "util.cond_branch"(%17)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb2:
      %18 = "util.global_load"() <{ref = @main_recording_2}> : () -> !hal.recording
      "ll_seq.enqueue"(%18, %13, %14, %8) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "util.branch"(%14, %13)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
    ^bb3:
      %19 = "util.global_load"() <{ref = @main_recording_3}> : () -> !hal.recording
      "ll_seq.execute"(%19, %13, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%6, %7) : (!hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording_3}> : () -> ()
      "util.global_release"() <{ref = @main_recording_2}> : () -> ()
      "util.global_release"() <{ref = @main_recording_1}> : () -> ()
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.global_release"() <{ref = @main_state_1}> : () -> ()
      "util.global_release"() <{ref = @main_state}> : () -> ()
      "util.global_release"() <{ref = @arena}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @step_executable}> : () -> ()
      "util.global_release"() <{ref = @test_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
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
    "util.global"() <{sym_name = "e_executable", type = !hal.executable}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @e}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @e_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.setup_func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], sizes = ["arg0_0", "arg1_0"], sym_name = "main_setup"}> ({
    ^bb0(%0: i64, %1: i64):
      "util.assert"() <{lhs = #util.dims<arg1_0>, message = "rows of y are {0}, of x {1}", numbers = #util.dims<arg1_0, arg0_0>, predicate = "eq", rhs = #util.dims<arg0_0>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<arg0_0>, message = "size d0 is {0}, {1} is the least", numbers = #util.dims<arg0_0, 1>, predicate = "ge", rhs = array<i64: 1>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<arg0_0>, message = "size d0 is {0}, {1} is the most", numbers = #util.dims<arg0_0, 2147483647>, predicate = "le", rhs = array<i64: 2147483647>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<arg1_0>, message = "argument 1, dimension 0 is {0}, d0 = {1} wanted", numbers = #util.dims<arg1_0, d0>, predicate = "eq", rhs = #util.dims<d0>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<4 * d0>, message = "tensor<?x4xf32, d0> has {0} elements, 2147483647 are the most", numbers = #util.dims<4 * d0>, predicate = "le", rhs = array<i64: 2147483647>}> : () -> ()
      %2 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = #util.dims<512 * floordiv(16 * d0 + 511, 512)>}> : () -> !hal.buffer
      %3 = "ll_seq.size"() <{value = #util.dims<d0>}> : () -> i64
      %4 = "util.global_load"() <{ref = @e_executable}> : () -> !hal.executable
      %5 = "ll_seq.record"() ({
      ^bb0(%6: !ll_seq.slot, %7: !ll_seq.slot, %8: !ll_seq.slot):
        "ll_seq.dispatch"(%4, %6, %7, %2) <{entry = @e::@e, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%4, %2, %7, %8) <{entry = @e::@e, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "ll_seq.return"(%3, %5) : (i64, !hal.recording) -> ()
    }) : () -> ()
    "ll_seq.function"() <{arg_attrs = [{orchestrion.name = "x"}, {orchestrion.name = "y"}], dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_0>}], signature = (tensor<?x4xf32, #util.dims<d0>>, tensor<?x4xf32, #util.dims<d0>>) -> tensor<?x4xf32, #util.dims<d0>>, sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view):
      %3 = "ll_seq.check"(%0) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view) -> !hal.buffer
      %4 = "ll_seq.check"(%1) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view) -> !hal.buffer
      %5 = "ll_seq.measure"(%0) <{axis = 0 : i64}> : (!hal.view) -> i64
      %6 = "ll_seq.measure"(%1) <{axis = 0 : i64}> : (!hal.view) -> i64
      %7:2 = "ll_seq.call_setup"(%5, %6) <{callee = @main_setup}> : (i64, i64) -> (i64, !hal.recording)
      %8 = "ll_seq.destination"(%2, %7#0) <{type = tensor<?x4xf32, #util.dims<d0>>}> : (!hal.view, i64) -> !hal.view
      %9 = "ll_seq.storage"(%8) : (!hal.view) -> !hal.buffer
      "ll_seq.execute"(%7#1, %3, %4, %9) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%8) : (!hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @e_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
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
