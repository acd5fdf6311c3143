// passes: freeze-abi, link-executables
// One for what initializers alone run, whose name a global has, one for the function: it also runs @c, which has an entry of a name of its own.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "a"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "a"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "b"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "b"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "c"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "d"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.sqrt"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "e"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "e"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.exponential"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "linked_0", type = !hl_seq.resource<constant, 16>}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "flow.splat"() <{value = dense<7> : tensor<i32>}> : () -> !hl_seq.resource<transient, 16>
      %1 = "flow.dispatch"(%0) <{entry = @a::@a, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %2 = "flow.dispatch"(%1) <{entry = @b::@b, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<constant, 16>
      "util.global_store"(%2) <{ref = @linked_0}> : (!hl_seq.resource<constant, 16>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @c::@d, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @e::@e, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %4 = "hl_seq.export"(%3) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "ll_seq.executable"() <{sym_name = "linked_0_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "a", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "b", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.abs"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "linked_1"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "d", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.sqrt"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "e", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.exponential"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "util.global"() <{sym_name = "linked_0", type = !hl_seq.resource<constant, 16>}> : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "flow.splat"() <{value = dense<7> : tensor<i32>}> : () -> !hl_seq.resource<transient, 16>
      %1 = "flow.dispatch"(%0) <{entry = @linked_0_1::@a, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %2 = "flow.dispatch"(%1) <{entry = @linked_0_1::@b, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<constant, 16>
      "util.global_store"(%2) <{ref = @linked_0}> : (!hl_seq.resource<constant, 16>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @linked_1::@d, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @linked_1::@e, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %4 = "hl_seq.export"(%3) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: freeze-abi, link-executables
// Two entries of one name stay in executables of their own.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "a"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "same"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "b"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "same"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "c"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "c"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.sqrt"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @a::@same, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @b::@same, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %4 = "flow.dispatch"(%3) <{entry = @c::@c, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%5) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "ll_seq.executable"() <{sym_name = "a"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "same", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "linked_0"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "same", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.abs"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "c", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.sqrt"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @a::@same, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @linked_0::@same, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<transient, 16>
      %4 = "flow.dispatch"(%3) <{entry = @linked_0::@c, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %5 = "hl_seq.export"(%4) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%5) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: freeze-abi, link-executables
// Drivers of SPIR-V build a pipeline per entry, whatever it is in.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "a"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "a"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "b"}> ({
      "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "b"}> ({
      ^bb0(%0: tensor<4xf32>):
        %1 = "stablehlo.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>
        "func.return"(%1) : (tensor<4xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @a::@a, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @b::@b, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %4 = "hl_seq.export"(%3) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "ll_seq.executable"() <{sym_name = "a"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "a", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.negate"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "ll_seq.executable"() <{sym_name = "b"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 16 : i64}, {access = "write", length = 16 : i64}], sym_name = "b", workload = array<i64: 4, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding):
        %2 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<4xf32>
        %3 = "stablehlo.abs"(%2) : (tensor<4xf32>) -> tensor<4xf32>
        "ll_seq.store_output"(%3, %1) : (tensor<4xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      %1 = "hl_seq.import"(%0) : (tensor<4xf32>) -> !hl_seq.resource<external, 16>
      %2 = "flow.dispatch"(%1) <{entry = @a::@a, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<external, 16>) -> !hl_seq.resource<transient, 16>
      %3 = "flow.dispatch"(%2) <{entry = @b::@b, workload = array<i64: 4, 1, 1>}> : (!hl_seq.resource<transient, 16>) -> !hl_seq.resource<external, 16>
      %4 = "hl_seq.export"(%3) : (!hl_seq.resource<external, 16>) -> tensor<4xf32>
      "func.return"(%4) : (tensor<4xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
