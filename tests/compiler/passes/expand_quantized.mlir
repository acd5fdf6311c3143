// passes: expand-quantized, canonicalize
// quantized: float
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
    %1 = "stablehlo.convert"(%0) : (tensor<4xi8>) -> tensor<4xi32>
    %2 = "stablehlo.constant"() <{value = dense<3> : tensor<4xi32>}> : () -> tensor<4xi32>
    %3 = "stablehlo.subtract"(%1, %2) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
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
// -----
// passes: expand-quantized, canonicalize
// integers of one scale: their sum, minus one zero point, within the limits of the type
"func.func"() <{sym_name = "main", function_type = (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>}> ({
^bb0(%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>):
  %a = "stablehlo.add"(%x, %x) : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>, tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  "func.return"(%a) : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi8>) -> tensor<4xi8>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xi8>):
    %1 = "stablehlo.convert"(%0) : (tensor<4xi8>) -> tensor<4xi32>
    %2 = "stablehlo.constant"() <{value = dense<3> : tensor<4xi32>}> : () -> tensor<4xi32>
    %3 = "stablehlo.subtract"(%1, %2) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.convert"(%0) : (tensor<4xi8>) -> tensor<4xi32>
    %5 = "stablehlo.constant"() <{value = dense<3> : tensor<4xi32>}> : () -> tensor<4xi32>
    %6 = "stablehlo.subtract"(%4, %5) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %7 = "stablehlo.add"(%3, %6) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %8 = "stablehlo.constant"() <{value = dense<3> : tensor<4xi32>}> : () -> tensor<4xi32>
    %9 = "stablehlo.add"(%7, %8) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %10 = "stablehlo.constant"() <{value = dense<-128> : tensor<4xi32>}> : () -> tensor<4xi32>
    %11 = "stablehlo.maximum"(%9, %10) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %12 = "stablehlo.constant"() <{value = dense<127> : tensor<4xi32>}> : () -> tensor<4xi32>
    %13 = "stablehlo.minimum"(%11, %12) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %14 = "stablehlo.convert"(%13) : (tensor<4xi32>) -> tensor<4xi8>
    "func.return"(%14) : (tensor<4xi8>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand-quantized, canonicalize
// products of integers are exact in f32; the zero point is a correction; a column's ratio of scales is m / 2^s
"func.func"() <{sym_name = "main", function_type = (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x2x!quant.uniform<i8:f32:1, {0.25, 0.3}>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.5:-1>>}> ({
^bb0(%x: tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, %w: tensor<3x2x!quant.uniform<i8:f32:1, {0.25, 0.3}>>):
  %a = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>, tensor<3x2x!quant.uniform<i8:f32:1, {0.25, 0.3}>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.5:-1>>
  "func.return"(%a) : (tensor<2x2x!quant.uniform<i8:f32, 0.5:-1>>) -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xi8>, tensor<3x2xi8>) -> tensor<2x2xi8>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3xi8>, %1: tensor<3x2xi8>):
    %2 = "stablehlo.convert"(%0) : (tensor<2x3xi8>) -> tensor<2x3xf32>
    %3 = "stablehlo.constant"() <{value = dense<3.000000e+00> : tensor<2x3xf32>}> : () -> tensor<2x3xf32>
    %4 = "stablehlo.subtract"(%2, %3) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %5 = "stablehlo.convert"(%1) : (tensor<3x2xi8>) -> tensor<3x2xf32>
    %6 = "stablehlo.dot_general"(%4, %5) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %7 = "stablehlo.convert"(%6) : (tensor<2x2xf32>) -> tensor<2x2xi32>
    %8 = "stablehlo.convert"(%7) : (tensor<2x2xi32>) -> tensor<2x2xi64>
    %9 = "stablehlo.constant"() <{value = dense<[[4194304, 5033165], [4194304, 5033165]]> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %10 = "stablehlo.multiply"(%8, %9) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %11 = "stablehlo.constant"() <{value = dense<-16777216> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %12 = "stablehlo.add"(%10, %11) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %13 = "stablehlo.constant"() <{value = dense<24> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %14 = "stablehlo.shift_right_arithmetic"(%12, %13) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %15 = "stablehlo.constant"() <{value = dense<1> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %16 = "stablehlo.and"(%14, %15) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %17 = "stablehlo.add"(%12, %16) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %18 = "stablehlo.constant"() <{value = dense<8388607> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %19 = "stablehlo.add"(%17, %18) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %20 = "stablehlo.shift_right_arithmetic"(%19, %13) : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
    %21 = "stablehlo.convert"(%20) : (tensor<2x2xi64>) -> tensor<2x2xi32>
    %22 = "stablehlo.constant"() <{value = dense<-128> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
    %23 = "stablehlo.maximum"(%21, %22) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
    %24 = "stablehlo.constant"() <{value = dense<127> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
    %25 = "stablehlo.minimum"(%23, %24) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
    %26 = "stablehlo.convert"(%25) : (tensor<2x2xi32>) -> tensor<2x2xi8>
    "func.return"(%26) : (tensor<2x2xi8>) -> ()
  }) : () -> ()
}) : () -> ()
