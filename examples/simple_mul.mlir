// The smallest program: one multiplication of two vectors of four floats.
// docs/walkthrough.md follows it from here to the device.
func.func @simple_mul(%lhs: tensor<4xf32>, %rhs: tensor<4xf32>) -> tensor<4xf32> {
  %product = stablehlo.multiply %lhs, %rhs : tensor<4xf32>
  return %product : tensor<4xf32>
}
