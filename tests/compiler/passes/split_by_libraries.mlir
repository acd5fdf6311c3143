// passes: split-by-libraries
// targets: reference, opencl
// One copy for each kind of target.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1, %2 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.potrf"}> : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    "func.return"(%1) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "builtin.module"() <{sym_name = "with_libraries"}> ({
    "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<2x2xf32>):
      %1:2 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.potrf"}> : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      "func.return"(%1#0) : (tensor<2x2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "builtin.module"() <{sym_name = "without_libraries"}> ({
    "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<2x2xf32>):
      %1:2 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.potrf"}> : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      "func.return"(%1#0) : (tensor<2x2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-by-libraries
// targets: reference
// All targets are of one kind.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1, %2 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.potrf"}> : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    "func.return"(%1) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1:2 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {lower = true}, call_target_name = "lapack.potrf"}> : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    "func.return"(%1#0) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-by-libraries
// targets: reference, opencl
// No call for them to differ in: this one is a loop for none.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {}, call_target_name = "mine.f"}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
    "func.return"(%1) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x2xf32>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x2xf32>):
    %1 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {}, call_target_name = "mine.f"}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
    "func.return"(%1) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
