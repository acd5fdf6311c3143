// passes: freeze-abi, convert-to-ll-seq, lower-executables, convert-to-vm
// What program initializers store is immutable, what context initializers store is mutable. A null buffer and a slot
// number are a binding; the arena and the constants are buffers with an offset. Arguments are checked in order.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "hl_seq.executable"() <{sym_name = "main_dispatch_0"}> ({
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
      %5 = "hl_seq.dispatch"(%2) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %6 = "hl_seq.dispatch"(%5) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %7 = "hl_seq.dispatch"(%6) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %8 = "hl_seq.dispatch"(%7) <{entry = @main_dispatch_0::@main_dispatch_0, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %9 = "hl_seq.empty"() : () -> !hl_seq.resource<external, 0>
      %10 = "hl_seq.splat"() <{value = dense<7> : tensor<i16>}> : () -> !hl_seq.resource<external, 6>
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
  "vm.program"() <{features = [], sym_name = "reference"}> ({
    "vm.executable"() <{entries = [{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], name = "main_dispatch_0", source_ops = ["stablehlo.negate"], workgroup_size = array<i64: 1, 1, 1>}], features = [], format = "tensor-bytecode", payload = dense<[79, 84, 66, 67, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 0, 1, 0, 0, 0, 32, 4, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0]> : tensor<48xui8>, shared_memory = 0 : i64, sym_name = "main_dispatch_0"}> : () -> ()
    "vm.constant"() <{offsets = array<i64: 0, 256>, size = 259 : i64, sym_name = "constants", values = [dense<[1, 2]> : tensor<2xi8>, dense<[3, 4, 5]> : tensor<3xi8>]}> : () -> ()
  }) : () -> ()
}) : () -> ()
