// passes: lower-imported-calls
// Each call has globals of its own, and what follows it is a block.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<2xi32>):
    %2 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %3:2 = "util.imported_call"(%2, %1) <{callee = "encoder.encode"}> : (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<f32>)
    %4 = "stablehlo.add"(%3#0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5:2 = "util.imported_call"(%4, %1) <{callee = "encoder.encode"}> : (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<f32>)
    "func.return"(%5#0, %3#1) : (tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{mutable, sym_name = "encoder_encode_argument", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_argument_1", type = tensor<2xi32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_result", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_result_1", type = tensor<f32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_argument_2", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_argument_3", type = tensor<2xi32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_result_2", type = tensor<4xf32>}> : () -> ()
  "util.global"() <{mutable, sym_name = "encoder_encode_result_3", type = tensor<f32>}> : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<2xi32>):
    %2 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%2) <{ref = @encoder_encode_argument}> : (tensor<4xf32>) -> ()
    "util.global_store"(%1) <{ref = @encoder_encode_argument_1}> : (tensor<2xi32>) -> ()
    "util.imported_call_branch"()[^bb1] <{arguments = [@encoder_encode_argument, @encoder_encode_argument_1], callee = "encoder.encode", function_type = (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<f32>), outputs = [@encoder_encode_result, @encoder_encode_result_1]}> : () -> ()
  ^bb1:
    %3 = "util.global_load"() <{ref = @encoder_encode_result}> : () -> tensor<4xf32>
    %4 = "util.global_load"() <{ref = @encoder_encode_result_1}> : () -> tensor<f32>
    %5 = "stablehlo.add"(%3, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "util.global_store"(%5) <{ref = @encoder_encode_argument_2}> : (tensor<4xf32>) -> ()
    "util.global_store"(%1) <{ref = @encoder_encode_argument_3}> : (tensor<2xi32>) -> ()
    "util.imported_call_branch"()[^bb2] <{arguments = [@encoder_encode_argument_2, @encoder_encode_argument_3], callee = "encoder.encode", function_type = (tensor<4xf32>, tensor<2xi32>) -> (tensor<4xf32>, tensor<f32>), outputs = [@encoder_encode_result_2, @encoder_encode_result_3]}> : () -> ()
  ^bb2:
    %6 = "util.global_load"() <{ref = @encoder_encode_result_2}> : () -> tensor<4xf32>
    %7 = "util.global_load"() <{ref = @encoder_encode_result_3}> : () -> tensor<f32>
    "func.return"(%6, %4) : (tensor<4xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
