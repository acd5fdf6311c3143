// passes: form-programs
// targets: reference, opencl
// Every target has its own copy.
"builtin.module"() ({
  "util.global"() <{sym_name = "c", type = tensor<2xf32>, value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> ()
  "func.func"() <{function_type = () -> tensor<2xf32>, sym_name = "main"}> ({
    %0 = "util.global_load"() <{ref = @c}> : () -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "util.global"() <{sym_name = "c", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}> : () -> ()
    "func.func"() <{function_type = () -> tensor<2xf32>, sym_name = "main"}> ({
      %0 = "util.global_load"() <{ref = @c}> : () -> tensor<2xf32>
      "func.return"(%0) : (tensor<2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "util.global"() <{sym_name = "c", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}> : () -> ()
    "func.func"() <{function_type = () -> tensor<2xf32>, sym_name = "main"}> ({
      %0 = "util.global_load"() <{ref = @c}> : () -> tensor<2xf32>
      "func.return"(%0) : (tensor<2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: form-programs
// targets: reference, spirv
// machines: gpu, cpu
// Each target has a program per machine, and one where it has no machines.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2xf32>):
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<2xf32>):
      "func.return"(%0) : (tensor<2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{machine = "gpu", sym_name = "spirv_gpu"}> ({
    "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<2xf32>):
      "func.return"(%0) : (tensor<2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<2xf32>):
      "func.return"(%0) : (tensor<2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
