// A shape that values decide, and one that cannot be known.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1xi32>, tensor<f32>) -> tensor<?xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1xi32>, %1: tensor<f32>):
    %2 = "stablehlo.dynamic_broadcast_in_dim"(%1, %0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    "func.return"(%2) : (tensor<?xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.dynamic_broadcast_in_dim: its sizes depend on the values of tensors, which is not supported; only on other sizes
// -----
// Two sizes that nothing says are one.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<?xf32>, %1: tensor<?xf32>):
    %2 = "stablehlo.add"(%0, %1) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    "func.return"(%2) : (tensor<?xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.add: operand 1 has shape [d1], must have [d0]
// -----
// A slice that may not fit; a result of which the program says something else.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<?xf32>):
    %2 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 4>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<?xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 5:10: stablehlo.slice: whether d0 < 4 depends on the sizes of a call
// -----
// A list of sizes of which one is wrong.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?x3xf32>) -> tensor<?x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<?x3xf32>):
    %1 = "stablehlo.get_dimension_size"(%0) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
    %2 = "stablehlo.reshape"(%1) : (tensor<i32>) -> tensor<1xi32>
    %3 = "stablehlo.constant"() <{value = dense<4> : tensor<1xi32>}> : () -> tensor<1xi32>
    %4 = "stablehlo.concatenate"(%2, %3) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %5 = "stablehlo.dynamic_reshape"(%0, %4) : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    "func.return"(%5) : (tensor<?x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
// 9:10: stablehlo.reshape: 3 * d0 elements of tensor<d0x3xf32> into 4 * d0 of tensor<d0x4xf32>
