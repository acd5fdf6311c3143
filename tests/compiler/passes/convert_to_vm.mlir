// passes: materialize-copies, freeze-abi, convert-to-ll-seq, pack-arena, coalesce-barriers, hoist-allocations, hoist-executables, hoist-recordings, split-setup, lower-executables, convert-to-vm
// What program initializers store is immutable, what context initializers store is mutable. A null buffer and a slot
// number are a binding; the arena and the constants are buffers with an offset. Arguments are checked in order.
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
  "vm.import"() <{signature = "(i32, i64, i64) -> hal.buffer", sym_name = "hal.constant"}> : () -> ()
  "vm.import"() <{signature = "(i64) -> hal.buffer", sym_name = "hal.allocate"}> : () -> ()
  "vm.import"() <{signature = "(hal.view, i32, i64*) -> hal.buffer", sym_name = "hal.view.check"}> : () -> ()
  "vm.import"() <{signature = "(hal.view, i32, i64*) -> hal.view", sym_name = "hal.view.destination"}> : () -> ()
  "vm.import"() <{signature = "(hal.view) -> hal.buffer", sym_name = "hal.view.buffer"}> : () -> ()
  "vm.import"() <{signature = "(i32) -> hal.executable", sym_name = "hal.executable.create"}> : () -> ()
  "vm.import"() <{signature = "(i32) -> hal.recording", sym_name = "hal.recording.create"}> : () -> ()
  "vm.import"() <{signature = "(hal.recording, hal.executable, i32, i64, i64, i64, (hal.buffer, i32, i64, i64)*) -> ()", sym_name = "hal.recording.dispatch"}> : () -> ()
  "vm.import"() <{signature = "(hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()", sym_name = "hal.recording.copy"}> : () -> ()
  "vm.import"() <{signature = "(hal.recording, hal.buffer, i32, i64, i64, i64, i32) -> ()", sym_name = "hal.recording.fill"}> : () -> ()
  "vm.import"() <{signature = "(hal.recording) -> ()", sym_name = "hal.recording.barrier"}> : () -> ()
  "vm.import"() <{signature = "(hal.recording) -> ()", sym_name = "hal.recording.finish"}> : () -> ()
  "vm.import"() <{signature = "(hal.recording, hal.buffer*) -> ()", sym_name = "hal.execute"}> : () -> ()
  "vm.export"() <{arguments = [{name = "arg0", type = tensor<4xf32>}, {name = "arg1", type = tensor<9xf32>}], exported = "main", function = "main", outputs = [{name = "result0", type = tensor<4xf32>}, {name = "result1", type = tensor<4xf32>}, {name = "result2", type = tensor<3xi8>}, {name = "result3", type = tensor<0xf32>}, {name = "result4", type = tensor<3xi16>}]}> : () -> ()
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.executable"() <{entries = [{binding_types = [tensor<4xf32>, tensor<4xf32>], bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], name = "main_dispatch_0", source_ops = ["stablehlo.negate"], workgroup_size = array<i64: 1, 1, 1>}], features = [], format = "tensor-bytecode", payload = dense<[79, 84, 66, 67, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 0, 1, 0, 0, 0, 32, 4, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0]> : tensor<48xui8>, shared_memory = 0 : i64, sym_name = "main_dispatch_0"}> : () -> ()
    "vm.constant"() <{offsets = array<i64: 0, 512>, size = 515 : i64, sym_name = "constants", values = [dense<[1, 2]> : tensor<2xi8>, dense<[3, 4, 5]> : tensor<3xi8>]}> : () -> ()
    "vm.global"() <{sym_name = "main_dispatch_0_executable", type = !hal.executable}> : () -> ()
    "vm.global"() <{sym_name = "constants_buffer", type = !hal.buffer}> : () -> ()
    "vm.global"() <{mutable, sym_name = "main_recording", type = !hal.recording}> : () -> ()
    "vm.func"() <{function_type = () -> (), sym_name = "program_initializer"}> ({
      %0 = "vm.i32.const"() <{value = 0 : i32}> : () -> i32
      %1 = "vm.call_import"(%0) <{callee = @hal.executable.create}> : (i32) -> !hal.executable
      "vm.global.store.ref"(%1) <{to = @main_dispatch_0_executable}> : (!hal.executable) -> ()
      %2 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %3 = "vm.i64.const"() <{value = 515 : i64}> : () -> i64
      %4 = "vm.call_import"(%0, %2, %3) <{callee = @hal.constant}> : (i32, i64, i64) -> !hal.buffer
      "vm.global.store.ref"(%4) <{to = @constants_buffer}> : (!hal.buffer) -> ()
      "vm.return"() : () -> ()
    }) : () -> ()
    "vm.initializer"() <{function = @program_initializer, kind = "program"}> : () -> ()
    "vm.func"() <{function_type = () -> (), sym_name = "context_initializer"}> ({
      %0 = "vm.i64.const"() <{value = 1024 : i64}> : () -> i64
      %1 = "vm.call_import"(%0) <{callee = @hal.allocate}> : (i64) -> !hal.buffer
      %2 = "vm.global.load.ref"() <{from = @main_dispatch_0_executable}> : () -> !hal.executable
      %3 = "vm.global.load.ref"() <{from = @constants_buffer}> : () -> !hal.buffer
      %4 = "vm.i32.const"() <{value = 5 : i32}> : () -> i32
      %5 = "vm.call_import"(%4) <{callee = @hal.recording.create}> : (i32) -> !hal.recording
      %6 = "vm.i32.const"() <{value = 0 : i32}> : () -> i32
      %7 = "vm.i64.const"() <{value = 4 : i64}> : () -> i64
      %8 = "vm.i64.const"() <{value = 1 : i64}> : () -> i64
      %9 = "vm.ref.null"() : () -> !hal.buffer
      %10 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %11 = "vm.i64.const"() <{value = 16 : i64}> : () -> i64
      "vm.call_import"(%5, %2, %6, %7, %8, %8, %9, %6, %10, %11, %1, %6, %10, %11) <{callee = @hal.recording.dispatch}> : (!hal.recording, !hal.executable, i32, i64, i64, i64, !hal.buffer, i32, i64, i64, !hal.buffer, i32, i64, i64) -> ()
      "vm.call_import"(%5) <{callee = @hal.recording.barrier}> : (!hal.recording) -> ()
      %12 = "vm.i32.const"() <{value = 0 : i32}> : () -> i32
      %13 = "vm.i64.const"() <{value = 4 : i64}> : () -> i64
      %14 = "vm.i64.const"() <{value = 1 : i64}> : () -> i64
      %15 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %16 = "vm.i64.const"() <{value = 16 : i64}> : () -> i64
      %17 = "vm.i64.const"() <{value = 512 : i64}> : () -> i64
      "vm.call_import"(%5, %2, %12, %13, %14, %14, %1, %12, %15, %16, %1, %12, %17, %16) <{callee = @hal.recording.dispatch}> : (!hal.recording, !hal.executable, i32, i64, i64, i64, !hal.buffer, i32, i64, i64, !hal.buffer, i32, i64, i64) -> ()
      "vm.call_import"(%5) <{callee = @hal.recording.barrier}> : (!hal.recording) -> ()
      %18 = "vm.i32.const"() <{value = 0 : i32}> : () -> i32
      %19 = "vm.i64.const"() <{value = 4 : i64}> : () -> i64
      %20 = "vm.i64.const"() <{value = 1 : i64}> : () -> i64
      %21 = "vm.i64.const"() <{value = 512 : i64}> : () -> i64
      %22 = "vm.i64.const"() <{value = 16 : i64}> : () -> i64
      %23 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      "vm.call_import"(%5, %2, %18, %19, %20, %20, %1, %18, %21, %22, %1, %18, %23, %22) <{callee = @hal.recording.dispatch}> : (!hal.recording, !hal.executable, i32, i64, i64, i64, !hal.buffer, i32, i64, i64, !hal.buffer, i32, i64, i64) -> ()
      "vm.call_import"(%5) <{callee = @hal.recording.barrier}> : (!hal.recording) -> ()
      %24 = "vm.i32.const"() <{value = 0 : i32}> : () -> i32
      %25 = "vm.i64.const"() <{value = 4 : i64}> : () -> i64
      %26 = "vm.i64.const"() <{value = 1 : i64}> : () -> i64
      %27 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %28 = "vm.i64.const"() <{value = 16 : i64}> : () -> i64
      %29 = "vm.ref.null"() : () -> !hal.buffer
      %30 = "vm.i32.const"() <{value = 1 : i32}> : () -> i32
      "vm.call_import"(%5, %2, %24, %25, %26, %26, %1, %24, %27, %28, %29, %30, %27, %28) <{callee = @hal.recording.dispatch}> : (!hal.recording, !hal.executable, i32, i64, i64, i64, !hal.buffer, i32, i64, i64, !hal.buffer, i32, i64, i64) -> ()
      %31 = "vm.ref.null"() : () -> !hal.buffer
      %32 = "vm.i32.const"() <{value = 4 : i32}> : () -> i32
      %33 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %34 = "vm.i64.const"() <{value = 6 : i64}> : () -> i64
      %35 = "vm.i64.const"() <{value = 7 : i64}> : () -> i64
      %36 = "vm.i32.const"() <{value = 2 : i32}> : () -> i32
      "vm.call_import"(%5, %31, %32, %33, %34, %35, %36) <{callee = @hal.recording.fill}> : (!hal.recording, !hal.buffer, i32, i64, i64, i64, i32) -> ()
      "vm.call_import"(%5) <{callee = @hal.recording.barrier}> : (!hal.recording) -> ()
      %37 = "vm.ref.null"() : () -> !hal.buffer
      %38 = "vm.i32.const"() <{value = 1 : i32}> : () -> i32
      %39 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %40 = "vm.i32.const"() <{value = 2 : i32}> : () -> i32
      %41 = "vm.i64.const"() <{value = 16 : i64}> : () -> i64
      "vm.call_import"(%5, %37, %38, %39, %37, %40, %39, %41) <{callee = @hal.recording.copy}> : (!hal.recording, !hal.buffer, i32, i64, !hal.buffer, i32, i64, i64) -> ()
      %42 = "vm.i32.const"() <{value = 0 : i32}> : () -> i32
      %43 = "vm.i64.const"() <{value = 512 : i64}> : () -> i64
      %44 = "vm.ref.null"() : () -> !hal.buffer
      %45 = "vm.i32.const"() <{value = 3 : i32}> : () -> i32
      %46 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %47 = "vm.i64.const"() <{value = 3 : i64}> : () -> i64
      "vm.call_import"(%5, %3, %42, %43, %44, %45, %46, %47) <{callee = @hal.recording.copy}> : (!hal.recording, !hal.buffer, i32, i64, !hal.buffer, i32, i64, i64) -> ()
      "vm.call_import"(%5) <{callee = @hal.recording.finish}> : (!hal.recording) -> ()
      "vm.global.store.ref"(%5) <{to = @main_recording}> : (!hal.recording) -> ()
      "vm.return"() : () -> ()
    }) : () -> ()
    "vm.initializer"() <{function = @context_initializer, kind = "context"}> : () -> ()
    "vm.func"() <{function_type = (!hal.view, !hal.view, !hal.view, !hal.view, !hal.view, !hal.view, !hal.view) -> (!hal.view, !hal.view, !hal.view, !hal.view, !hal.view), sym_name = "main"}> ({
    ^bb0(%0: !hal.view, %1: !hal.view, %2: !hal.view, %3: !hal.view, %4: !hal.view, %5: !hal.view, %6: !hal.view):
      %7 = "vm.i32.const"() <{value = 1056 : i32}> : () -> i32
      %8 = "vm.i64.const"() <{value = 4 : i64}> : () -> i64
      %9 = "vm.call_import"(%0, %7, %8) <{callee = @hal.view.check}> : (!hal.view, i32, i64) -> !hal.buffer
      %10 = "vm.i64.const"() <{value = 9 : i64}> : () -> i64
      %11 = "vm.call_import"(%1, %7, %10) <{callee = @hal.view.check}> : (!hal.view, i32, i64) -> !hal.buffer
      %12 = "vm.call_import"(%2, %7, %8) <{callee = @hal.view.destination}> : (!hal.view, i32, i64) -> !hal.view
      %13 = "vm.call_import"(%3, %7, %8) <{callee = @hal.view.destination}> : (!hal.view, i32, i64) -> !hal.view
      %14 = "vm.i32.const"() <{value = 520 : i32}> : () -> i32
      %15 = "vm.i64.const"() <{value = 3 : i64}> : () -> i64
      %16 = "vm.call_import"(%4, %14, %15) <{callee = @hal.view.destination}> : (!hal.view, i32, i64) -> !hal.view
      %17 = "vm.i64.const"() <{value = 0 : i64}> : () -> i64
      %18 = "vm.call_import"(%5, %7, %17) <{callee = @hal.view.destination}> : (!hal.view, i32, i64) -> !hal.view
      %19 = "vm.i32.const"() <{value = 528 : i32}> : () -> i32
      %20 = "vm.call_import"(%6, %19, %15) <{callee = @hal.view.destination}> : (!hal.view, i32, i64) -> !hal.view
      %21 = "vm.call_import"(%12) <{callee = @hal.view.buffer}> : (!hal.view) -> !hal.buffer
      %22 = "vm.call_import"(%13) <{callee = @hal.view.buffer}> : (!hal.view) -> !hal.buffer
      %23 = "vm.call_import"(%16) <{callee = @hal.view.buffer}> : (!hal.view) -> !hal.buffer
      %24 = "vm.call_import"(%20) <{callee = @hal.view.buffer}> : (!hal.view) -> !hal.buffer
      %25 = "vm.global.load.ref"() <{from = @main_recording}> : () -> !hal.recording
      "vm.call_import"(%25, %9, %21, %22, %23, %24) <{callee = @hal.execute}> : (!hal.recording, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
      "vm.return"(%12, %13, %16, %18, %20) : (!hal.view, !hal.view, !hal.view, !hal.view, !hal.view) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
