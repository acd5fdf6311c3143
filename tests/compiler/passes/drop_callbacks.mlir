// passes: drop-callbacks, dce
// callbacks: drop
// An ordered print in a loop and in a function, and a callback whose result nobody uses. Tokens go with them.
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{}, {tf.aliasing_output = 1 : i32}], function_type = (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%t: !stablehlo.token, %x: tensor<4xf32>):
    %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.custom_call"(%0) <{call_target_name = "xla_ffi_python_cpu_callback", has_side_effect = true}> : (tensor<4xf32>) -> tensor<4xf32>
    %2:2 = "stablehlo.while"(%t, %x) ({
    ^bb0(%a: !stablehlo.token, %b: tensor<4xf32>):
      %c = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%c) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: !stablehlo.token, %b: tensor<4xf32>):
      %3 = "stablehlo.custom_call"(%a, %b) <{call_target_name = "xla_ffi_python_cpu_callback", has_side_effect = true}> : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
      %4 = "func.call"(%3, %b) <{callee = @print}> : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
      "stablehlo.return"(%4, %b) : (!stablehlo.token, tensor<4xf32>) -> ()
    }) : (!stablehlo.token, tensor<4xf32>) -> (!stablehlo.token, tensor<4xf32>)
    %5 = "stablehlo.after_all"(%2#0) : (!stablehlo.token) -> !stablehlo.token
    "func.return"(%5, %2#1) : (!stablehlo.token, tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token, sym_name = "print", sym_visibility = "private"}> ({
  ^bb0(%t: !stablehlo.token, %x: tensor<4xf32>):
    %0 = "stablehlo.custom_call"(%t, %x) <{call_target_name = "xla_python_cpu_callback", has_side_effect = true}> : (!stablehlo.token, tensor<4xf32>) -> !stablehlo.token
    "func.return"(%0) : (!stablehlo.token) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 0 : i32}], function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.while"(%0) ({
    ^bb0(%2: tensor<4xf32>):
      %3 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
      "stablehlo.return"(%3) : (tensor<i1>) -> ()
    }, {
    ^bb0(%2: tensor<4xf32>):
      "func.call"(%2) <{callee = @print}> : (tensor<4xf32>) -> ()
      "stablehlo.return"(%2) : (tensor<4xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> (), sym_name = "print", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<4xf32>):
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
