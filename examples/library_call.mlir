// targets: reference
// A dense layer whose product is computed by a library: relu(x w + b) with `blas.gemm`, which adds the bias as well.
// docs/library-calls.md follows it. Only targets that have library calls can run it.
func.func @dense(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %sum = stablehlo.custom_call @blas.gemm(%x, %w, %bias) {
    api_version = 4 : i32, backend_config = {alpha = 1.0 : f64, beta = 1.0 : f64}
  } : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<2x4xf32>
  %y = stablehlo.maximum %sum, %zero : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
