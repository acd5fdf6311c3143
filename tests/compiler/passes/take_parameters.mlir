// passes: inline, take-parameters
// A constant that two calls bring in is one argument, also where a loop uses it; another of equal bytes is another one.
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{orchestrion.name = "x"}], function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2xf32>):
    %1 = "func.call"(%0) <{callee = @layer}> : (tensor<2xf32>) -> tensor<2xf32>
    %2 = "func.call"(%1) <{callee = @layer}> : (tensor<2xf32>) -> tensor<2xf32>
    %3 = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> {orchestrion.parameter = {name = "b", type = tensor<2xf32>, value = dense<[1.0, 2.0]> : tensor<2xf32>}} : () -> tensor<2xf32>
    %4 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %5 = "stablehlo.if"(%4) ({
      %6 = "stablehlo.add"(%2, %3) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%6) : (tensor<2xf32>) -> ()
    }, {
      "stablehlo.return"(%2) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    "func.return"(%5) : (tensor<2xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "layer", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<2xf32>):
    %1 = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> {orchestrion.parameter = {name = "a", type = tensor<2xf32>, value = dense<[1.0, 2.0]> : tensor<2xf32>}} : () -> tensor<2xf32>
    %2 = "stablehlo.multiply"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%2) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{orchestrion.name = "x"}, {orchestrion.parameter = {name = "a", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}}, {orchestrion.parameter = {name = "b", type = tensor<2xf32>, value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}}], function_type = (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2xf32>, %1: tensor<2xf32>, %2: tensor<2xf32>):
    %3 = "stablehlo.multiply"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %4 = "stablehlo.multiply"(%3, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %5 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %6 = "stablehlo.if"(%5) ({
      %7 = "stablehlo.add"(%4, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%7) : (tensor<2xf32>) -> ()
    }, {
      "stablehlo.return"(%4) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> tensor<2xf32>
    "func.return"(%6) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
