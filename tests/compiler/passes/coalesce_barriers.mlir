// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers
// Barriers stand between the four dispatches of the chain. The fill needs none, the copy of the last result does.
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
    "ll_seq.instance"() ({
      "ll_seq.run_loop"() <{signature = (tensor<4xf32>, tensor<9xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xi8>, tensor<0xf32>, tensor<3xi16>), sym_name = "main"}> ({
      ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view, %4: !hal.view, %5: !hal.view, %6: !hal.view):
        %7 = "ll_seq.create_executable"() <{executable = @main_dispatch_0}> : () -> !hal.executable
        %8 = "ll_seq.allocate"() <{label = "arena", lifetime = "transient", size = 1024 : i64}> : () -> !hal.buffer
        %9 = "ll_seq.constant"() <{label = "constants", offsets = array<i64: 0, 512>, size = 515 : i64, values = [dense<[1, 2]> : tensor<2xi8>, dense<[3, 4, 5]> : tensor<3xi8>]}> : () -> !hal.buffer
        %10 = "ll_seq.check"(%0) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.buffer
        %11 = "ll_seq.check"(%1) <{type = tensor<9xf32>}> : (!hal.view) -> !hal.buffer
        %12 = "ll_seq.destination"(%2) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
        %13 = "ll_seq.destination"(%3) <{type = tensor<4xf32>}> : (!hal.view) -> !hal.view
        %14 = "ll_seq.destination"(%4) <{type = tensor<3xi8>}> : (!hal.view) -> !hal.view
        %15 = "ll_seq.destination"(%5) <{type = tensor<0xf32>}> : (!hal.view) -> !hal.view
        %16 = "ll_seq.destination"(%6) <{type = tensor<3xi16>}> : (!hal.view) -> !hal.view
        %17 = "ll_seq.storage"(%12) : (!hal.view) -> !hal.buffer
        %18 = "ll_seq.storage"(%13) : (!hal.view) -> !hal.buffer
        %19 = "ll_seq.storage"(%14) : (!hal.view) -> !hal.buffer
        %20 = "ll_seq.storage"(%16) : (!hal.view) -> !hal.buffer
        %21 = "ll_seq.record"() ({
        ^bb0(%22: !ll_seq.slot, %23: !ll_seq.slot, %24: !ll_seq.slot, %25: !ll_seq.slot, %26: !ll_seq.slot):
          "ll_seq.dispatch"(%7, %22, %8) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0>}> : (!hal.executable, !ll_seq.slot, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%7, %8, %8) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 512>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%7, %8, %8) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 512, 0>}> : (!hal.executable, !hal.buffer, !hal.buffer) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.dispatch"(%7, %8, %23) <{entry = @main_dispatch_0::@main_dispatch_0, offsets = array<i64: 0, 0>}> : (!hal.executable, !hal.buffer, !ll_seq.slot) -> ()
          "ll_seq.fill"(%26) <{length = 6 : i64, offset = 0 : i64, value = dense<7> : tensor<i16>}> : (!ll_seq.slot) -> ()
          "ll_seq.barrier"() : () -> ()
          "ll_seq.copy"(%23, %24) <{length = 16 : i64, source_offset = 0 : i64, target_offset = 0 : i64}> : (!ll_seq.slot, !ll_seq.slot) -> ()
          "ll_seq.copy"(%9, %25) <{length = 3 : i64, source_offset = 512 : i64, target_offset = 0 : i64}> : (!hal.buffer, !ll_seq.slot) -> ()
          "ll_seq.end"() : () -> ()
        }) : () -> !hal.recording
        "ll_seq.execute"(%21, %10, %17, %18, %19, %20) : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
        "ll_seq.return"(%12, %13, %14, %15, %16) : (!hal.view, !hal.view, !hal.view, !hal.view, !hal.view) -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
