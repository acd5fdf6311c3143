// The largest singular value of a matrix by power iteration, and how many turns that took: a conditional and a loop
// that the values decide. docs/control-flow.md follows it.
func.func @spectral_norm(%a: tensor<4x4xf32>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %tolerance = stablehlo.constant dense<1.0e-6> : tensor<f32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %next = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<200> : tensor<i32>
  %start = stablehlo.constant dense<0.5> : tensor<4xf32>

  // of a symmetric matrix the largest eigenvalue will do, of another the root of that of its transpose times itself
  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %same = stablehlo.compare EQ, %a, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  %symmetric = stablehlo.reduce(%same init: %true) applies stablehlo.and across dimensions = [0, 1]
    : (tensor<4x4xi1>, tensor<i1>) -> tensor<i1>
  %m = "stablehlo.if"(%symmetric) ({
    stablehlo.return %a : tensor<4x4xf32>
  }, {
    %square = stablehlo.dot_general %t, %a, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %square : tensor<4x4xf32>
  }) : (tensor<i1>) -> tensor<4x4xf32>

  %vector, %norm, %change, %turns = stablehlo.while(%x = %start, %n = %one, %d = %one, %i = %none)
      : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i32>
  cond {
    %limit = stablehlo.multiply %n, %tolerance : tensor<f32>
    %moves = stablehlo.compare GT, %d, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %more = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %go = stablehlo.and %moves, %more : tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %y = stablehlo.dot_general %m, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %squares = stablehlo.multiply %y, %y : tensor<4xf32>
    %sum = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %length = stablehlo.sqrt %sum : tensor<f32>
    %divisor = stablehlo.broadcast_in_dim %length, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %scaled = stablehlo.divide %y, %divisor : tensor<4xf32>
    %difference = stablehlo.subtract %length, %n : tensor<f32>
    %distance = stablehlo.abs %difference : tensor<f32>
    %count = stablehlo.add %i, %next : tensor<i32>
    stablehlo.return %scaled, %length, %distance, %count : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i32>
  }

  %root = stablehlo.sqrt %norm : tensor<f32>
  %value = stablehlo.select %symmetric, %norm, %root : tensor<i1>, tensor<f32>
  return %value, %turns : tensor<f32>, tensor<i32>
}
