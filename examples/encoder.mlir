// An encoder that several models share: docs/module-imports.md runs it.
module @encoder {
  func.func @encode(%x: tensor<8xf32>) -> (tensor<4xf32> {jax.result_info = "code"}) {
    %w = stablehlo.constant dense<0.5> : tensor<8x4xf32>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
