// passes: expand-quantized, canonicalize
// arithmetic on the numbers that integers stand for; what moves elements moves integers
"func.func"() <{sym_name = "main", function_type = (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>}> ({
^bb0(%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>):
  %a = "stablehlo.add"(%x, %x) : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>, tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  %b = "stablehlo.reverse"(%a) <{dimensions = array<i64: 0>}> : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  "func.return"(%b) : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi8>) -> tensor<4xi8>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xi8>):
    %1 = "stablehlo.constant"() <{value = dense<3> : tensor<4xi32>}> : () -> tensor<4xi32>
    %2 = "stablehlo.convert"(%0) : (tensor<4xi8>) -> tensor<4xi32>
    %3 = "stablehlo.subtract"(%2, %1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.convert"(%3) : (tensor<4xi32>) -> tensor<4xf32>
    %5 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<4xf32>}> : () -> tensor<4xf32>
    %6 = "stablehlo.multiply"(%4, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %7 = "stablehlo.add"(%6, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %8 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<4xf32>}> : () -> tensor<4xf32>
    %9 = "stablehlo.divide"(%7, %8) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %11 = "stablehlo.add"(%9, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.constant"() <{value = dense<-1.280000e+02> : tensor<4xf32>}> : () -> tensor<4xf32>
    %13 = "stablehlo.maximum"(%11, %12) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %14 = "stablehlo.constant"() <{value = dense<1.270000e+02> : tensor<4xf32>}> : () -> tensor<4xf32>
    %15 = "stablehlo.minimum"(%13, %14) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %16 = "stablehlo.round_nearest_even"(%15) : (tensor<4xf32>) -> tensor<4xf32>
    %17 = "stablehlo.convert"(%16) : (tensor<4xf32>) -> tensor<4xi8>
    %18 = "stablehlo.reverse"(%17) <{dimensions = array<i64: 0>}> : (tensor<4xi8>) -> tensor<4xi8>
    "func.return"(%18) : (tensor<4xi8>) -> ()
  }) : () -> ()
}) : () -> ()
