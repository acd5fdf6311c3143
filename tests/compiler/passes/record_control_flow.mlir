// passes: record-control-flow, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// One recording holds the loop; the state is copied in each iteration.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
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
        "util.cond_branch"(%20)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
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
  "hl_seq.program"() <{sym_name = "reference"}> ({
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
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_1_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_2_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_dispatch_1_executable}> : (!hal.executable) -> ()
      %2 = "ll_seq.create_executable"() <{executable = @main_dispatch_2}> : () -> !hal.executable
      "util.global_store"(%2) <{ref = @main_dispatch_2_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      %1 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
      %3 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %4 = "util.global_load"() <{ref = @main_dispatch_1_executable}> : () -> !hal.executable
      %5 = "util.global_load"() <{ref = @main_dispatch_2_executable}> : () -> !hal.executable
      %6 = "ll_seq.record"() ({
      ^bb0(%7: !ll_seq.slot, %8: !ll_seq.slot, %9: !ll_seq.slot, %10: !ll_seq.slot):
        "ll_seq.fill"(%10) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%7, %1) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%3, %10, %8, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.loop"(%0) <{offset = 0 : i64}> ({
          "ll_seq.dispatch"(%4, %10, %10) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.dispatch"(%5, %1, %2) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%2, %1) <{length = 256 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !hal.buffer) -> ()
          "ll_seq.dispatch"(%3, %10, %8, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!hal.buffer) -> ()
        "ll_seq.copy"(%1, %9) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%6) <{ref = @main_recording}> : (!hal.recording) -> ()
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
      "ll_seq.execute"(%10, %4, %5, %8, %9) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%6, %7) : (!hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @main_dispatch_2_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_1_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: record-control-flow, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// The recorded body is two iterations of a loop with a large state.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
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
        "util.cond_branch"(%20)[^bb2, ^bb3] <{counts = array<i64: 0, 0>}> : (i32) -> ()
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
  "hl_seq.program"() <{sym_name = "reference"}> ({
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
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_1_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_2_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_dispatch_1_executable}> : (!hal.executable) -> ()
      %2 = "ll_seq.create_executable"() <{executable = @main_dispatch_2}> : () -> !hal.executable
      "util.global_store"(%2) <{ref = @main_dispatch_2_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      %1 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 32768 : i64}> : () -> !hal.buffer
      %3 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %4 = "util.global_load"() <{ref = @main_dispatch_1_executable}> : () -> !hal.executable
      %5 = "util.global_load"() <{ref = @main_dispatch_2_executable}> : () -> !hal.executable
      %6 = "ll_seq.record"() ({
      ^bb0(%7: !ll_seq.slot, %8: !ll_seq.slot, %9: !ll_seq.slot, %10: !ll_seq.slot):
        "ll_seq.fill"(%10) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%7, %1) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.dispatch"(%3, %10, %8, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.loop"(%0) <{offset = 0 : i64}> ({
          "ll_seq.dispatch"(%4, %10, %10) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.dispatch"(%5, %1, %2) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%3, %10, %8, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.branch"(%0) <{offset = 0 : i64, type = "i1"}> ({
            "ll_seq.dispatch"(%4, %10, %10) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
            "ll_seq.dispatch"(%5, %2, %1) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
            "ll_seq.barrier"() : () -> ()
            "ll_seq.dispatch"(%3, %10, %8, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
            "ll_seq.end"() : () -> ()
          }, {
            "ll_seq.copy"(%2, %1) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !hal.buffer) -> ()
            "ll_seq.end"() : () -> ()
          }) : (!hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!hal.buffer) -> ()
        "ll_seq.copy"(%1, %9) <{length = 32768 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%6) <{ref = @main_recording}> : (!hal.recording) -> ()
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
      "ll_seq.execute"(%10, %4, %5, %8, %9) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%6, %7) : (!hal.view, !hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @main_dispatch_2_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_1_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: record-control-flow, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// An argument selects the arm.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 4 : i64}], kind = "contraction", sym_name = "main_dispatch_0", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
        %4 = "stablehlo.dot_general"(%3, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
        "ll_seq.store_output"(%4, %1) : (tensor<f32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "write", length = 16 : i64}], kind = "elementwise", sym_name = "main_dispatch_1", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<f32>
        %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view):
        %3 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %4 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
        %5 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
        %6 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %7 = "ll_seq.check"(%1) <{type = tensor<i1>}> : (!hal.view) -> !hal.buffer
        %8 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
        %9 = "ll_seq.storage"(%8) : (!hal.view) -> !hal.buffer
        %10 = "ll_seq.read"(%7) <{offset = 0 : i64, type = "i1"}> : (!hal.buffer) -> i32
        "util.cond_branch"(%10)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (i32) -> ()
      ^bb1:
        %11 = "ll_seq.record"() ({
        ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot):
          "ll_seq.dispatch"(%3, %14, %4) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%5, %4, %15) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%11, %6, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "util.branch"()[^bb3] : () -> ()
      ^bb2:
        %12 = "ll_seq.record"() ({
        ^bb0(%14: !ll_seq.slot, %15: !ll_seq.slot):
          "ll_seq.copy"(%14, %15) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.enqueue"(%12, %6, %9) : (!hal.recording, !hal.buffer, !hal.buffer) -> ()
        "util.branch"()[^bb3] : () -> ()
      ^bb3:
        %13 = "ll_seq.record"() ({
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%13) : (!hal.recording) -> ()
        "ll_seq.return"(%8) : (!hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "ll_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 4 : i64}], kind = "contraction", sym_name = "main_dispatch_0", workload = array<i64: 1, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
        %4 = "stablehlo.dot_general"(%3, %2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
        "ll_seq.store_output"(%4, %1) : (tensor<f32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "main_dispatch_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 4 : i64}, {access = "write", length = 16 : i64}], kind = "elementwise", sym_name = "main_dispatch_1", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<f32>
        %3 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_1_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_dispatch_1_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      %1 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %2 = "util.global_load"() <{ref = @main_dispatch_1_executable}> : () -> !hal.executable
      %3 = "ll_seq.record"() ({
      ^bb0(%4: !ll_seq.slot, %5: !ll_seq.slot, %6: !ll_seq.slot):
        "ll_seq.branch"(%5) <{offset = 0 : i64, type = "i1"}> ({
          "ll_seq.dispatch"(%1, %4, %0) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%2, %0, %6) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }, {
          "ll_seq.copy"(%4, %6) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%3) <{ref = @main_recording}> : (!hal.recording) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "ll_seq.function"() <{signature = (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view):
      %3 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
      %4 = "ll_seq.check"(%1) <{type = tensor<i1>}> : (!hal.view) -> !hal.buffer
      %5 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
      %6 = "ll_seq.storage"(%5) : (!hal.view) -> !hal.buffer
      %7 = "util.global_load"() <{ref = @main_recording}> : () -> !hal.recording
      "ll_seq.execute"(%7, %3, %4, %6) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "ll_seq.return"(%5) : (!hal.view) -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "context"}> ({
      "util.global_release"() <{ref = @main_recording}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.finalizer"() <{kind = "program"}> ({
      "util.global_release"() <{ref = @main_dispatch_1_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: record-control-flow, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup
// The host submits batches of a recording that runs one iteration if the latch is set.
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
    "util.global"() <{sym_name = "latch", type = !hal.buffer}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_1_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_dispatch_2_executable", type = !hal.executable}> : () -> ()
    "util.global"() <{sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_1", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_2", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_3", type = !hal.recording}> : () -> ()
    "util.global"() <{sym_name = "main_recording_4", type = !hal.recording}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
      "util.global_store"(%0) <{ref = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %1 = "ll_seq.create_executable"() <{executable = @main_dispatch_1}> : () -> !hal.executable
      "util.global_store"(%1) <{ref = @main_dispatch_1_executable}> : (!hal.executable) -> ()
      %2 = "ll_seq.create_executable"() <{executable = @main_dispatch_2}> : () -> !hal.executable
      "util.global_store"(%2) <{ref = @main_dispatch_2_executable}> : (!hal.executable) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "context"}> ({
      %0 = "ll_seq.allocate"() <{label = "latch", lifetime = "transient", size = 512 : i64}> : () -> !hal.buffer
      "util.global_store"(%0) <{ref = @latch}> : (!hal.buffer) -> ()
      %1 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 256 : i64}> : () -> !hal.buffer
      %2 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
      %3 = "ll_seq.allocate"() <{label = "main_state", lifetime = "state", size = 256 : i64}> : () -> !hal.buffer
      %4 = "ll_seq.record"() ({
      ^bb0(%12: !ll_seq.slot, %13: !ll_seq.slot):
        "ll_seq.fill"(%13) <{length = 4 : i64, offset = 0 : i64, value = dense<0> : tensor<i32>}> : (!ll_seq.slot) -> ()
        "ll_seq.copy"(%12, %2) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%4) <{ref = @main_recording}> : (!hal.recording) -> ()
      %5 = "util.global_load"() <{ref = @main_dispatch_0_executable}> : () -> !hal.executable
      %6 = "ll_seq.record"() ({
      ^bb0(%12: !ll_seq.slot, %13: !ll_seq.slot):
        "ll_seq.dispatch"(%5, %13, %12, %1) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
        "ll_seq.barrier"() : () -> ()
        "ll_seq.copy"(%1, %0) <{length = 1 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%6) <{ref = @main_recording_1}> : (!hal.recording) -> ()
      %7 = "util.global_load"() <{ref = @main_dispatch_1_executable}> : () -> !hal.executable
      %8 = "util.global_load"() <{ref = @main_dispatch_2_executable}> : () -> !hal.executable
      %9 = "ll_seq.record"() ({
      ^bb0(%12: !ll_seq.slot, %13: !ll_seq.slot):
        "ll_seq.loop"(%0) <{most = 1 : i32, offset = 0 : i64}> ({
          "ll_seq.dispatch"(%7, %13, %13) <{entry = @main_dispatch_1::@main_dispatch_1, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.dispatch"(%8, %2, %3) <{entry = @main_dispatch_2::@main_dispatch_2, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%3, %2) <{length = 256 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !hal.buffer) -> ()
          "ll_seq.dispatch"(%5, %13, %12, %1) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0, 0>}> : (!hal.executable, !ll_seq.slot, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%1, %0) <{length = 1 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !hal.buffer) -> ()
          "ll_seq.end"() : () -> ()
        }) : (!hal.buffer) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%9) <{ref = @main_recording_2}> : (!hal.recording) -> ()
      %10 = "ll_seq.record"() ({
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%10) <{ref = @main_recording_3}> : (!hal.recording) -> ()
      %11 = "ll_seq.record"() ({
      ^bb0(%12: !ll_seq.slot):
        "ll_seq.copy"(%2, %12) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> !hal.recording
      "util.global_store"(%11) <{ref = @main_recording_4}> : (!hal.recording) -> ()
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
      "util.global_release"() <{ref = @main_dispatch_2_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_1_executable}> : () -> ()
      "util.global_release"() <{ref = @main_dispatch_0_executable}> : () -> ()
      "util.return"() : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
