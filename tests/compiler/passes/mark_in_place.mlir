// passes: mark-in-place
// Element i of the first argument is read for element i only, of the second for all, of the third it is a smaller one.
"builtin.module"() ({
  "flow.executable"() <{sym_name = "a"}> ({
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<2x2xf32>, sym_name = "a"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xi8>):
      %3 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.convert"(%2) : (tensor<4xi8>) -> tensor<4xf32>
      %5 = "stablehlo.add"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %6 = "stablehlo.add"(%0, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %7 = "stablehlo.multiply"(%6, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %8 = "stablehlo.reshape"(%7) : (tensor<4xf32>) -> tensor<2x2xf32>
      "func.return"(%8) : (tensor<2x2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xi8>):
    %3 = "flow.dispatch"(%0, %1, %2) <{entry = @a::@a, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<2x2xf32>
    "func.return"(%3) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "flow.executable"() <{sym_name = "a"}> ({
    "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<2x2xf32>, sym_name = "a"}> ({
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xi8>):
      %3 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
      %4 = "stablehlo.convert"(%2) : (tensor<4xi8>) -> tensor<4xf32>
      %5 = "stablehlo.add"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %6 = "stablehlo.add"(%0, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %7 = "stablehlo.multiply"(%6, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %8 = "stablehlo.reshape"(%7) : (tensor<4xf32>) -> tensor<2x2xf32>
      "func.return"(%8) : (tensor<2x2xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<2x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xi8>):
    %3 = "flow.dispatch"(%0, %1, %2) <{entry = @a::@a, in_place = array<i64: 0>, workload = array<i64: 4, 1, 1>}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<2x2xf32>
    "func.return"(%3) : (tensor<2x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
