// passes: record-control-flow, coalesce-barriers, loops-to-kernels, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// A loop of unknown length: its kernel runs again while its predicate is true.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "write", length = 1 : i64}], kind = "elementwise", sym_name = "main_dispatch_0", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<i32>
        %5 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "ll_seq.store_output"(%5, %2) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "write", length = 4 : i64}], kind = "elementwise", sym_name = "main_dispatch_1", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %3 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %4 = "stablehlo.add"(%2, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "ll_seq.store_output"(%4, %1) : (tensor<i32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_2"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], kind = "elementwise", sym_name = "main_dispatch_2", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
        %4 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%4, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>), sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
        %4 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %5 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
        %6 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
        %7 = "ll_seq.create_executable"() <{executable = @main_dispatch_2}> : () -> !hal.executable
        %8 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
        %9 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
        %10 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %11 = "ll_seq.check"(%1) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer
        %12 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
        %13 = "ll_seq.destination"(%3) <{type = tensor<i32>}> : (!hal.view) -> !hal.view
        %14 = "ll_seq.storage"(%12) : (!hal.view) -> !hal.buffer
        %15 = "ll_seq.storage"(%13) : (!hal.view) -> !hal.buffer
        %16 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.fill"(%24) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%23, %8) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%16, %10, %15) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "util.branch"(%8, %9)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
      ^bb1(%17: !hal.buffer, %18: !hal.buffer):
        %19 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.dispatch"(%4, %24, %23, %5) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%19, %11, %15) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        %20 = "ll_seq.read"(%5) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
        "util.cond_branch"(%20)[^bb2, ^bb3] <{counts = array<i64: 0, 0>, kernel_loop = 0 : i32}> : (i32) -> ()
      ^bb2:
        %21 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot, %25: !ll_seq.slot):
          "ll_seq.dispatch"(%6, %25, %25) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%7, %23, %24) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%21, %17, %18, %15) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "util.branch"(%18, %17)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
      ^bb3:
        %22 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.copy"(%23, %24) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%22, %17, %14) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%12, %13) : (!hal.view, !hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "write", length = 1 : i64}], kind = "elementwise", sym_name = "main_dispatch_0_outside", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<i32>
        %5 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "ll_seq.store_output"(%5, %2) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_loop"}> ({
      "ll_seq.entry"() <{binding_types = [tensor<1xi1>, tensor<1xi32>, tensor<4xf32>, tensor<4xf32>, tensor<1xi32>], bindings = [{access = "readwrite", length = 1 : i64}, {access = "readwrite", length = 4 : i64}, {access = "readwrite", length = 16 : i64}, {access = "readwrite", length = 16 : i64}, {access = "read", length = 4 : i64}], sym_name = "main_loop", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding, %3: !ll_seq.binding, %4: !ll_seq.binding):
        "ll_seq.loop"(%0) <{most = 4096 : i32, offset = 0 : i64}> ({
          "ll_seq.part"(%1, %1) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
          ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding):
            %7 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
            %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
            %9 = "stablehlo.add"(%7, %8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
            "ll_seq.store_output"(%9, %6) : (tensor<i32>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.part"(%2, %3) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
          ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding):
            %7 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<4xf32>
            %8 = "stablehlo.reverse"(%7) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
            %9 = "stablehlo.add"(%8, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
            "ll_seq.store_output"(%9, %6) : (tensor<4xf32>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%3, %2) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.part"(%1, %4, %0) <{kind = "elementwise", offsets = array<i64: 0, 0, 0>}> ({
          ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding, %7: !ll_seq.binding):
            %8 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
            %9 = "ll_seq.load_input"(%6) : (!ll_seq.binding) -> tensor<i32>
            %10 = "stablehlo.compare"(%8, %9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
            "ll_seq.store_output"(%10, %7) : (tensor<i1>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "arena", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_loop_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_1", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_2", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_3", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_loop}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_loop_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      "util.global_store"(%0) <{ref = @arena}> : (!hal.buffer) -> ()
      %1 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
      %3 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot, %10: !ll_seq.slot):
        "ll_seq.fill"(%10) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%9, %1) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%3) <{ref = @main_recording}> : (!hal.recording) -> ()
      %4 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %5 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot, %10: !ll_seq.slot):
        "ll_seq.dispatch"(%4, %10, %9, %0) <{entry = @main_dispatch_0::@main_dispatch_0_outside, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%5) <{ref = @main_recording_1}> : (!hal.recording) -> ()
      %6 = "util.global_load"() <{ref = @main_loop_executable}> : () -> !hal.executable
      %7 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot, %10: !ll_seq.slot):
        "ll_seq.dispatch"(%6, %0, %10, %1, %2, %9) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0, 0, 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !hal.buffer, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%7) <{ref = @main_recording_2}> : (!hal.recording) -> ()
      %8 = "ll_seq.record"() ({
      ^bb0(%9: !ll_seq.slot):
        "ll_seq.copy"(%1, %9) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%8) <{ref = @main_recording_3}> : (!hal.recording) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.function"() <{signature = (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
      %4 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
      %5 = "ll_seq.check"(%1) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer
      %6 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %7 = "ll_seq.destination"(%3) <{type = tensor<i32>}> : (!hal.view) -> !hal.view
      %8 = "ll_seq.storage"(%6) : (!hal.view) -> !hal.buffer
      %9 = "ll_seq.storage"(%7) : (!hal.view) -> !hal.buffer
      %10 = "util.global_load"() <{ref = @main_recording}> : () -> !hal.recording
      "ll_seq.enqueue"(%10, %4, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"()[^bb1] : () -> ()
    ^bb1:
      %11 = "util.global_load"() <{ref = @main_recording_1}> : () -> !hal.recording
      "ll_seq.enqueue"(%11, %5, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"()[^bb2] : () -> ()
    ^bb2:
      %12 = "util.global_load"() <{ref = @main_recording_2}> : () -> !hal.recording
      "ll_seq.execute"(%12, %5, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      %13 = "util.global_load"() <{ref = @arena}> : () -> !hal.buffer
      %14 = "ll_seq.read"(%13) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
      "util.cond_branch"(%14)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb3:
      %15 = "util.global_load"() <{ref = @main_recording_3}> : () -> !hal.recording
      "ll_seq.execute"(%15, %8) : (!hal.recording, !hal.buffer) -> ()
      "ll_seq.return"(%6, %7) : (!hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording_3}> : () -> ()
      "util.global_release"() <{ref = @main_recording_2}> : () -> ()
      "util.global_release"() <{ref = @main_recording_1}> : () -> ()
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.global_release"() <{ref = @arena}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @main_loop_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: record-control-flow, coalesce-barriers, loops-to-kernels, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// The host does not read the predicate of a loop of known length. Its large state alternates in the kernel.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "write", length = 1 : i64}], kind = "elementwise", sym_name = "main_dispatch_0", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<i32>
        %5 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "ll_seq.store_output"(%5, %2) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "write", length = 4 : i64}], kind = "elementwise", sym_name = "main_dispatch_1", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %3 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %4 = "stablehlo.add"(%2, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "ll_seq.store_output"(%4, %1) : (tensor<i32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_2"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 32768 : i64}, {access = "write", length = 32768 : i64}], kind = "elementwise", sym_name = "main_dispatch_2", workload = array<i64: 8192, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<8192xf32>
        %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 0>}> : (tensor<8192xf32>) -> tensor<8192xf32>
        %4 = "stablehlo.add"(%3, %2) : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
        "ll_seq.store_output"(%4, %1) : (tensor<8192xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<8192xf32>, tensor<i32>) -> (tensor<8192xf32>, tensor<i32>), sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
        %4 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %5 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
        %6 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
        %7 = "ll_seq.create_executable"() <{executable = @main_dispatch_2}> : () -> !hal.executable
        %8 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
        %9 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
        %10 = "ll_seq.check"(%0) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.buffer
        %11 = "ll_seq.check"(%1) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer
        %12 = "ll_seq.destination"(%2) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.view
        %13 = "ll_seq.destination"(%3) <{type = tensor<i32>}> : (!hal.view) -> !hal.view
        %14 = "ll_seq.storage"(%12) : (!hal.view) -> !hal.buffer
        %15 = "ll_seq.storage"(%13) : (!hal.view) -> !hal.buffer
        %16 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.fill"(%24) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%23, %8) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%16, %10, %15) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "util.branch"(%8, %9)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
      ^bb1(%17: !hal.buffer, %18: !hal.buffer):
        %19 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.dispatch"(%4, %24, %23, %5) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%19, %11, %15) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        %20 = "ll_seq.read"(%5) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
        "util.cond_branch"(%20)[^bb2, ^bb3] <{counts = array<i64: 0, 0>, kernel_loop = 9 : i32}> : (i32) -> ()
      ^bb2:
        %21 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot, %25: !ll_seq.slot):
          "ll_seq.dispatch"(%6, %25, %25) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%7, %23, %24) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%21, %17, %18, %15) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "util.branch"(%18, %17)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
      ^bb3:
        %22 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.copy"(%23, %24) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%22, %17, %14) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%12, %13) : (!hal.view, !hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "write", length = 1 : i64}], kind = "elementwise", sym_name = "main_dispatch_0_outside", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<i32>
        %5 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "ll_seq.store_output"(%5, %2) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_loop"}> ({
      "ll_seq.entry"() <{binding_types = [tensor<1xi1>, tensor<1xi32>, tensor<8192xf32>, tensor<8192xf32>, tensor<1xi32>], bindings = [{access = "readwrite", length = 1 : i64}, {access = "readwrite", length = 4 : i64}, {access = "readwrite", length = 32768 : i64}, {access = "readwrite", length = 32768 : i64}, {access = "read", length = 4 : i64}], shared = array<i64: 0, 1, 2, 3, 4>, sym_name = "main_loop", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding, %3: !ll_seq.binding, %4: !ll_seq.binding):
        "ll_seq.loop"(%0) <{most = 2 : i32, offset = 0 : i64}> ({
          "ll_seq.part"(%1, %1) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
          ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding):
            %7 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
            %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
            %9 = "stablehlo.add"(%7, %8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
            "ll_seq.store_output"(%9, %6) : (tensor<i32>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.part"(%2, %3) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
          ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding):
            %7 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<8192xf32>
            %8 = "stablehlo.reverse"(%7) <{dimensions = array<i64: 0>}> : (tensor<8192xf32>) -> tensor<8192xf32>
            %9 = "stablehlo.add"(%8, %7) : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
            "ll_seq.store_output"(%9, %6) : (tensor<8192xf32>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.part"(%1, %4, %0) <{kind = "elementwise", offsets = array<i64: 0, 0, 0>}> ({
          ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding, %7: !ll_seq.binding):
            %8 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
            %9 = "ll_seq.load_input"(%6) : (!ll_seq.binding) -> tensor<i32>
            %10 = "stablehlo.compare"(%8, %9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
            "ll_seq.store_output"(%10, %7) : (tensor<i1>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.branch"(%0) <{offset = 0 : i64, type = "i1"}> ({
            "ll_seq.part"(%1, %1) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
            ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding):
              %7 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
              %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
              %9 = "stablehlo.add"(%7, %8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
              "ll_seq.store_output"(%9, %6) : (tensor<i32>, !ll_seq.binding) -> ()
              "ll_seq.end"() : () -> ()
            }) : (!ll_seq.binding, !ll_seq.binding) -> ()
            "ll_seq.part"(%3, %2) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
            ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding):
              %7 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<8192xf32>
              %8 = "stablehlo.reverse"(%7) <{dimensions = array<i64: 0>}> : (tensor<8192xf32>) -> tensor<8192xf32>
              %9 = "stablehlo.add"(%8, %7) : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
              "ll_seq.store_output"(%9, %6) : (tensor<8192xf32>, !ll_seq.binding) -> ()
              "ll_seq.end"() : () -> ()
            }) : (!ll_seq.binding, !ll_seq.binding) -> ()
            "ll_seq.barrier"() : () -> ()
            "ll_seq.part"(%1, %4, %0) <{kind = "elementwise", offsets = array<i64: 0, 0, 0>}> ({
            ^bb0(%5: !ll_seq.binding, %6: !ll_seq.binding, %7: !ll_seq.binding):
              %8 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
              %9 = "ll_seq.load_input"(%6) : (!ll_seq.binding) -> tensor<i32>
              %10 = "stablehlo.compare"(%8, %9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
              "ll_seq.store_output"(%10, %7) : (tensor<i1>, !ll_seq.binding) -> ()
              "ll_seq.end"() : () -> ()
            }) : (!ll_seq.binding, !ll_seq.binding, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }, {
            "ll_seq.copy"(%3, %2) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.binding, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_loop_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_1", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_2", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_loop}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_loop_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      %1 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
      %3 = "ll_seq.record"() ({
      ^bb0(%8: !ll_seq.slot, %9: !ll_seq.slot):
        "ll_seq.fill"(%9) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%8, %1) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%3) <{ref = @main_recording}> : (!hal.recording) -> ()
      %4 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %5 = "util.global_load"() <{ref = @main_loop_executable}> : () -> !hal.executable
      %6 = "ll_seq.record"() ({
      ^bb0(%8: !ll_seq.slot, %9: !ll_seq.slot):
        "ll_seq.dispatch"(%4, %9, %8, %0) <{entry = @main_dispatch_0::@main_dispatch_0_outside, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%5, %0, %9, %1, %2, %8) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0, 0, 0, 0>, spans = array<i64: 256, 4, 32768, 32768, 4>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !hal.buffer, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%5, %0, %9, %1, %2, %8) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0, 0, 0, 0>, spans = array<i64: 256, 4, 32768, 32768, 4>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !hal.buffer, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%5, %0, %9, %1, %2, %8) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0, 0, 0, 0>, spans = array<i64: 256, 4, 32768, 32768, 4>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !hal.buffer, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%5, %0, %9, %1, %2, %8) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0, 0, 0, 0>, spans = array<i64: 256, 4, 32768, 32768, 4>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !hal.buffer, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%5, %0, %9, %1, %2, %8) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0, 0, 0, 0>, spans = array<i64: 256, 4, 32768, 32768, 4>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !hal.buffer, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%6) <{ref = @main_recording_1}> : (!hal.recording) -> ()
      %7 = "ll_seq.record"() ({
      ^bb0(%8: !ll_seq.slot):
        "ll_seq.copy"(%1, %8) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%7) <{ref = @main_recording_2}> : (!hal.recording) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.function"() <{signature = (tensor<8192xf32>, tensor<i32>) -> (tensor<8192xf32>, tensor<i32>), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
      %4 = "ll_seq.check"(%0) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.buffer
      %5 = "ll_seq.check"(%1) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer
      %6 = "ll_seq.destination"(%2) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.view
      %7 = "ll_seq.destination"(%3) <{type = tensor<i32>}> : (!hal.view) -> !hal.view
      %8 = "ll_seq.storage"(%6) : (!hal.view) -> !hal.buffer
      %9 = "ll_seq.storage"(%7) : (!hal.view) -> !hal.buffer
      %10 = "util.global_load"() <{ref = @main_recording}> : () -> !hal.recording
      "ll_seq.enqueue"(%10, %4, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"()[^bb1] : () -> ()
    ^bb1:
      %11 = "util.global_load"() <{ref = @main_recording_1}> : () -> !hal.recording
      "ll_seq.enqueue"(%11, %5, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"()[^bb2] : () -> ()
    ^bb2:
      %12 = "util.global_load"() <{ref = @main_recording_2}> : () -> !hal.recording
      "ll_seq.execute"(%12, %8) : (!hal.recording, !hal.buffer) -> ()
      "ll_seq.return"(%6, %7) : (!hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording_2}> : () -> ()
      "util.global_release"() <{ref = @main_recording_1}> : () -> ()
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @main_loop_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: record-control-flow, coalesce-barriers, loops-to-kernels, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// The host submits batches of iterations: a dispatch and a copy with predicates, and a kernel of the small commands.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "write", length = 1 : i64}], kind = "elementwise", sym_name = "main_dispatch_0", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<i32>
        %5 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "ll_seq.store_output"(%5, %2) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "write", length = 4 : i64}], kind = "elementwise", sym_name = "main_dispatch_1", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %3 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
        %4 = "stablehlo.add"(%2, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        "ll_seq.store_output"(%4, %1) : (tensor<i32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_2"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 32768 : i64}, {access = "write", length = 32768 : i64}], kind = "elementwise", sym_name = "main_dispatch_2", workload = array<i64: 8192, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<8192xf32>
        %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 0>}> : (tensor<8192xf32>) -> tensor<8192xf32>
        %4 = "stablehlo.add"(%3, %2) : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
        "ll_seq.store_output"(%4, %1) : (tensor<8192xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<8192xf32>, tensor<i32>) -> (tensor<8192xf32>, tensor<i32>), sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
        %4 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %5 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
        %6 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
        %7 = "ll_seq.create_executable"() <{executable = @main_dispatch_2}> : () -> !hal.executable
        %8 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
        %9 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
        %10 = "ll_seq.check"(%0) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.buffer
        %11 = "ll_seq.check"(%1) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer
        %12 = "ll_seq.destination"(%2) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.view
        %13 = "ll_seq.destination"(%3) <{type = tensor<i32>}> : (!hal.view) -> !hal.view
        %14 = "ll_seq.storage"(%12) : (!hal.view) -> !hal.buffer
        %15 = "ll_seq.storage"(%13) : (!hal.view) -> !hal.buffer
        %16 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.fill"(%24) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%23, %8) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%16, %10, %15) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "util.branch"(%8, %9)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
      ^bb1(%17: !hal.buffer, %18: !hal.buffer):
        %19 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.dispatch"(%4, %24, %23, %5) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%19, %11, %15) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        %20 = "ll_seq.read"(%5) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
        "util.cond_branch"(%20)[^bb2, ^bb3] <{counts = array<i64: 0, 0>, batch = 64 : i32}> : (i32) -> ()
      ^bb2:
        %21 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot, %25: !ll_seq.slot):
          "ll_seq.dispatch"(%6, %25, %25) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%7, %23, %24) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%21, %17, %18, %15) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "util.branch"(%18, %17)[^bb1] : (!hal.buffer, !hal.buffer) -> ()
      ^bb3:
        %22 = "ll_seq.record"() ({
        ^bb0(%23: !ll_seq.slot, %24: !ll_seq.slot):
          "ll_seq.copy"(%23, %24) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%22, %17, %14) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%12, %13) : (!hal.view, !hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "write", length = 1 : i64}], kind = "elementwise", sym_name = "main_dispatch_0_outside", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<i32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<i32>
        %5 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
        "ll_seq.store_output"(%5, %2) : (tensor<i1>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_2_predicated"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 32768 : i64}, {access = "write", length = 32768 : i64}, {access = "read", length = 1 : i64}], kind = "elementwise", predicate = 2 : i64, sym_name = "main_dispatch_2_predicated", workload = array<i64: 8192, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<8192xf32>
        %4 = "stablehlo.reverse"(%3) <{dimensions = array<i64: 0>}> : (tensor<8192xf32>) -> tensor<8192xf32>
        %5 = "stablehlo.add"(%4, %3) : (tensor<8192xf32>, tensor<8192xf32>) -> tensor<8192xf32>
        "ll_seq.store_output"(%5, %1) : (tensor<8192xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "copy_predicated"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 32768 : i64}, {access = "write", length = 32768 : i64}, {access = "read", length = 1 : i64}], kind = "elementwise", predicate = 2 : i64, sym_name = "copy_predicated", workload = array<i64: 8192, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<8192xui32>
        "ll_seq.store_output"(%3, %1) : (tensor<8192xui32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_loop"}> ({
      "ll_seq.entry"() <{binding_types = [tensor<1xi1>, tensor<1xi32>], bindings = [{access = "read", length = 1 : i64}, {access = "readwrite", length = 4 : i64}], sym_name = "main_loop", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        "ll_seq.loop"(%0) <{most = 1 : i32, offset = 0 : i64}> ({
          "ll_seq.part"(%1, %1) <{kind = "elementwise", offsets = array<i64: 0, 0>}> ({
          ^bb0(%2: !ll_seq.binding, %3: !ll_seq.binding):
            %4 = "ll_seq.load_input"(%2) : (!ll_seq.binding) -> tensor<i32>
            %5 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
            %6 = "stablehlo.add"(%4, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
            "ll_seq.store_output"(%6, %3) : (tensor<i32>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_loop_1"}> ({
      "ll_seq.entry"() <{binding_types = [tensor<1xi1>, tensor<1xi32>, tensor<1xi32>, tensor<1xi1>], bindings = [{access = "readwrite", length = 1 : i64}, {access = "read", length = 4 : i64}, {access = "read", length = 4 : i64}, {access = "readwrite", length = 1 : i64}], sym_name = "main_loop_1", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding, %3: !ll_seq.binding):
        "ll_seq.loop"(%0) <{most = 1 : i32, offset = 0 : i64}> ({
          "ll_seq.part"(%1, %2, %3) <{kind = "elementwise", offsets = array<i64: 0, 0, 0>}> ({
          ^bb0(%4: !ll_seq.binding, %5: !ll_seq.binding, %6: !ll_seq.binding):
            %7 = "ll_seq.load_input"(%4) : (!ll_seq.binding) -> tensor<i32>
            %8 = "ll_seq.load_input"(%5) : (!ll_seq.binding) -> tensor<i32>
            %9 = "stablehlo.compare"(%7, %8) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
            "ll_seq.store_output"(%9, %6) : (tensor<i1>, !ll_seq.binding) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!ll_seq.binding, !ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.copy"(%3, %0) <{length = 1 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.binding, !ll_seq.binding) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "latch", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_2_predicated_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "copy_predicated_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_loop_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_loop_1_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_1", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_2", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_3", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_4", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_dispatch_2_predicated}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_dispatch_2_predicated_executable}> : (!hal.executable) -> ()
      %2 = "ll_seq.create_executable"() <{executable = @copy_predicated}> : () -> !hal.executable
      "util.global_store"(%2) <{ref = @copy_predicated_executable}> : (!hal.executable) -> ()
      %3 = "ll_seq.create_executable"() <{executable = @main_loop}> : () -> !hal.executable
      "util.global_store"(%3) <{ref = @main_loop_executable}> : (!hal.executable) -> ()
      %4 = "ll_seq.create_executable"() <{executable = @main_loop_1}> : () -> !hal.executable
      "util.global_store"(%4) <{ref = @main_loop_1_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "latch", lifetime = "transient", size = 512 : i64}> : () -> !hal.buffer
      "util.global_store"(%0) <{ref = @latch}> : (!hal.buffer) -> ()
      %1 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
      %3 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
      %4 = "ll_seq.record"() ({
      ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot):
        "ll_seq.fill"(%15) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%14, %2) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%4) <{ref = @main_recording}> : (!hal.recording) -> ()
      %5 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %6 = "ll_seq.record"() ({
      ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot):
        "ll_seq.dispatch"(%5, %15, %14, %1) <{entry = @main_dispatch_0::@main_dispatch_0_outside, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.copy"(%1, %0) <{length = 1 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%6) <{ref = @main_recording_1}> : (!hal.recording) -> ()
      %7 = "util.global_load"() <{ref = @main_loop_executable}> : () -> !hal.executable
      %8 = "util.global_load"() <{ref = @main_dispatch_2_predicated_executable}> : () -> !hal.executable
      %9 = "util.global_load"() <{ref = @copy_predicated_executable}> : () -> !hal.executable
      %10 = "util.global_load"() <{ref = @main_loop_1_executable}> : () -> !hal.executable
      %11 = "ll_seq.record"() ({
      ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot):
        "ll_seq.dispatch"(%7, %0, %15) <{entry = @main_loop::@main_loop, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%8, %2, %3, %0) <{entry = @main_dispatch_2_predicated::@main_dispatch_2_predicated, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%9, %3, %2, %0) <{entry = @copy_predicated::@copy_predicated, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%10, %0, %15, %14, %1) <{entry = @main_loop_1::@main_loop_1, offsets = array<i64: 0, 0, 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%11) <{ref = @main_recording_2}> : (!hal.recording) -> ()
      %12 = "ll_seq.record"() ({
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%12) <{ref = @main_recording_3}> : (!hal.recording) -> ()
      %13 = "ll_seq.record"() ({
      ^bb0(%14: !ll_seq.slot):
        "ll_seq.copy"(%2, %14) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%13) <{ref = @main_recording_4}> : (!hal.recording) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.function"() <{signature = (tensor<8192xf32>, tensor<i32>) -> (tensor<8192xf32>, tensor<i32>), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view):
      %4 = "ll_seq.check"(%0) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.buffer
      %5 = "ll_seq.check"(%1) <{type = tensor<i32>}> : (!hal.view) -> !hal.buffer
      %6 = "ll_seq.destination"(%2) <{type = tensor<8192xf32>}> : (!hal.view) -> !hal.view
      %7 = "ll_seq.destination"(%3) <{type = tensor<i32>}> : (!hal.view) -> !hal.view
      %8 = "ll_seq.storage"(%6) : (!hal.view) -> !hal.buffer
      %9 = "ll_seq.storage"(%7) : (!hal.view) -> !hal.buffer
      %10 = "util.global_load"() <{ref = @main_recording}> : () -> !hal.recording
      "ll_seq.enqueue"(%10, %4, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"()[^bb1] : () -> ()
    ^bb1:
      %11 = "util.global_load"() <{ref = @main_recording_1}> : () -> !hal.recording
      "ll_seq.enqueue"(%11, %5, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"()[^bb2] : () -> ()
    ^bb2:
      %12 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %13 = "util.constant"() <{value = 0 : i32}> : () -> i32
      "util.branch"(%12, %13)[^bb3] : (i32, i32) -> ()
    ^bb3(%14: i32, %15: i32):
      %16 = "util.compare_lt"(%15, %14) : (i32, i32) -> i32
      "util.cond_branch"(%16)[^bb4, ^bb5] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb4:
      %17 = "util.constant"() <{value = 1 : i32}> : () -> i32
      %18 = "util.add"(%15, %17) : (i32, i32) -> i32
      %19 = "util.global_load"() <{ref = @main_recording_2}> : () -> !hal.recording
      "ll_seq.enqueue"(%19, %5, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
      "util.branch"(%14, %18)[^bb3] : (i32, i32) -> ()
    ^bb5:
      %20 = "util.global_load"() <{ref = @main_recording_3}> : () -> !hal.recording
      "ll_seq.execute"(%20) : (!hal.recording) -> ()
      %21 = "util.global_load"() <{ref = @latch}> : () -> !hal.buffer
      %22 = "ll_seq.read"(%21) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
      "util.cond_branch"(%22)[^bb6, ^bb7] <{counts = array<i64: 0, 0>}> : (i32) -> ()
    ^bb6:
      %23 = "util.constant"() <{value = 64 : i32}> : () -> i32
      %24 = "util.compare_lt"(%14, %23) : (i32, i32) -> i32
      %25 = "util.constant"() <{value = 0 : i32}> : () -> i32
      %26 = "util.add"(%14, %14) : (i32, i32) -> i32
      "util.cond_branch"(%24, %26, %25, %14, %25)[^bb3, ^bb3] <{counts = array<i64: 2, 2>}> : (i32, i32, i32, i32, i32) -> ()
    ^bb7:
      %27 = "util.global_load"() <{ref = @main_recording_4}> : () -> !hal.recording
      "ll_seq.execute"(%27, %8) : (!hal.recording, !hal.buffer) -> ()
      "ll_seq.return"(%6, %7) : (!hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording_4}> : () -> ()
      "util.global_release"() <{ref = @main_recording_3}> : () -> ()
      "util.global_release"() <{ref = @main_recording_2}> : () -> ()
      "util.global_release"() <{ref = @main_recording_1}> : () -> ()
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.global_release"() <{ref = @latch}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @main_loop_1_executable}> : () -> ()
      "util.global_release"() <{ref = @main_loop_executable}> : () -> ()
      "util.global_release"() <{ref = @copy_predicated_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_2_predicated_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
