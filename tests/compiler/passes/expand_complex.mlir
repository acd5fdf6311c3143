// passes: expand-complex, canonicalize
// every complex value is two real ones: at the boundary side by side, in reducers and loops one after the other
"func.func"() <{sym_name = "main", function_type = (tensor<4xcomplex<f32>>) -> (tensor<2xcomplex<f32>>, tensor<complex<f32>>, tensor<4xf32>)}> ({
^bb0(%z: tensor<4xcomplex<f32>>):
  %w = "stablehlo.constant"() <{value = dense<[(1.0, -0.0), (0x7F800000, 2.5), (0.0, 1.0), (3.0, 4.0)]> : tensor<4xcomplex<f32>>}> : () -> tensor<4xcomplex<f32>>
  %zero = "stablehlo.constant"() <{value = dense<(0.0, 0.0)> : tensor<complex<f32>>}> : () -> tensor<complex<f32>>
  %p = "stablehlo.multiply"(%z, %w) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  %s = "stablehlo.slice"(%p) <{limit_indices = array<i64: 4>, start_indices = array<i64: 0>, strides = array<i64: 2>}> : (tensor<4xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  %r = "stablehlo.reduce"(%z, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
    %c = "stablehlo.add"(%a, %b) : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
    "stablehlo.return"(%c) : (tensor<complex<f32>>) -> ()
  }) : (tensor<4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  %i = "stablehlo.imag"(%p) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  "func.return"(%s, %r, %i) : (tensor<2xcomplex<f32>>, tensor<complex<f32>>, tensor<4xf32>) -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{orchestrion.type = tensor<4xcomplex<f32>>}], function_type = (tensor<4x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<4xf32>), res_attrs = [{orchestrion.type = tensor<2xcomplex<f32>>}, {orchestrion.type = tensor<complex<f32>>}, {}], sym_name = "main"}> ({
  ^bb0(%0: tensor<4x2xf32>):
    %1 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 4, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %2 = "stablehlo.reshape"(%1) : (tensor<4x1xf32>) -> tensor<4xf32>
    %3 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 4, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<4x1xf32>) -> tensor<4xf32>
    %5 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 0x7F800000, 0.000000e+00, 3.000000e+00]> : tensor<4xf32>}> : () -> tensor<4xf32>
    %6 = "stablehlo.constant"() <{value = dense<[-0.000000e+00, 2.500000e+00, 1.000000e+00, 4.000000e+00]> : tensor<4xf32>}> : () -> tensor<4xf32>
    %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.multiply"(%2, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10 = "stablehlo.multiply"(%4, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %11 = "stablehlo.subtract"(%9, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.multiply"(%2, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %13 = "stablehlo.multiply"(%4, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %14 = "stablehlo.add"(%12, %13) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %15 = "stablehlo.slice"(%11) <{limit_indices = array<i64: 4>, start_indices = array<i64: 0>, strides = array<i64: 2>}> : (tensor<4xf32>) -> tensor<2xf32>
    %16 = "stablehlo.slice"(%14) <{limit_indices = array<i64: 4>, start_indices = array<i64: 0>, strides = array<i64: 2>}> : (tensor<4xf32>) -> tensor<2xf32>
    %17:2 = "stablehlo.reduce"(%2, %4, %7, %8) <{dimensions = array<i64: 0>}> ({
    ^bb0(%24: tensor<f32>, %25: tensor<f32>, %26: tensor<f32>, %27: tensor<f32>):
      %28 = "stablehlo.add"(%24, %26) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %29 = "stablehlo.add"(%25, %27) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%28, %29) : (tensor<f32>, tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    %18 = "stablehlo.reshape"(%15) : (tensor<2xf32>) -> tensor<2x1xf32>
    %19 = "stablehlo.reshape"(%16) : (tensor<2xf32>) -> tensor<2x1xf32>
    %20 = "stablehlo.concatenate"(%18, %19) <{dimension = 1 : i64}> : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
    %21 = "stablehlo.reshape"(%17#0) : (tensor<f32>) -> tensor<1xf32>
    %22 = "stablehlo.reshape"(%17#1) : (tensor<f32>) -> tensor<1xf32>
    %23 = "stablehlo.concatenate"(%21, %22) <{dimension = 0 : i64}> : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    "func.return"(%20, %23, %14) : (tensor<2x2xf32>, tensor<2xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: expand-complex, canonicalize
// a transform is a product with a matrix; what lies in two parts already is not cut and joined again
"func.func"() <{sym_name = "main", function_type = (tensor<3xf32>) -> tensor<2xcomplex<f32>>}> ({
^bb0(%x: tensor<3xf32>):
  %f = "stablehlo.fft"(%x) <{fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<3xf32>) -> tensor<2xcomplex<f32>>
  "func.return"(%f) : (tensor<2xcomplex<f32>>) -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3xf32>) -> tensor<2x2xf32>, res_attrs = [{orchestrion.type = tensor<2xcomplex<f32>>}], sym_name = "main"}> ({
  ^bb0(%0: tensor<3xf32>):
    %1 = "stablehlo.reshape"(%0) : (tensor<3xf32>) -> tensor<3x1xf32>
    %2 = "stablehlo.constant"() <{value = dense<[[1.000000e+00, -0.000000e+00], [-5.000000e-01, -8.660254e-01], [-5.000000e-01, 8.660254e-01]]> : tensor<3x2xf32>}> : () -> tensor<3x2xf32>
    %3 = "flow.fft"(%1, %2) <{dimension = 0 : i64, inverse = false}> : (tensor<3x1xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    "func.return"(%3) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
