// relu, then tanh of that; both are results, and both come from one launch.
// docs/one-launch.md follows it.
func.func @relu_tanh(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<2xf32>
  %relu = stablehlo.maximum %x, %zero : tensor<2xf32>
  %tanh = stablehlo.tanh %relu : tensor<2xf32>
  return %relu, %tanh : tensor<2xf32>, tensor<2xf32>
}
