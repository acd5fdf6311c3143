// Compares two inputs by what the module `encoder` makes of them: docs/module-imports.md runs it.
module @matcher {
  func.func private @encoder.encode(tensor<8xf32>) -> tensor<4xf32>

  func.func @distance(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<f32> {
    %x = func.call @encoder.encode(%a) : (tensor<8xf32>) -> tensor<4xf32>
    %y = func.call @encoder.encode(%b) : (tensor<8xf32>) -> tensor<4xf32>
    %d = stablehlo.subtract %x, %y : tensor<4xf32>
    %s = stablehlo.multiply %d, %d : tensor<4xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %sum : tensor<f32>
  }
}
