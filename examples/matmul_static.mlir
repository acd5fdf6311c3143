// A product with weights that never change: they are computed and put into tiles when the module is loaded.
// docs/matmul-static.md follows it through the compiler.
func.func @matmul_static(%x: tensor<64x128xf32>) -> tensor<64x256xf32> {
  %places = stablehlo.iota dim = 0 : tensor<32768xf32>
  %waves = stablehlo.sine %places : tensor<32768xf32>
  %weights = stablehlo.reshape %waves : (tensor<32768xf32>) -> tensor<128x256xf32>
  %product = stablehlo.dot_general %x, %weights, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  return %product : tensor<64x256xf32>
}
