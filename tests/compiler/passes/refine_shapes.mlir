// passes: refine-shapes, dce
// A size that is twice another, by assertions and a division downwards; a shape, and a number, computed of it.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?x3xf32>, tensor<?xf32>) -> (tensor<?x3xf32>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<?x3xf32>, %1: tensor<?xf32>):
    %2 = "stablehlo.get_dimension_size"(%0) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>
    %3 = "stablehlo.get_dimension_size"(%1) <{dimension = 0 : i64}> : (tensor<?xf32>) -> tensor<i32>
    %4:2 = "func.call"(%2) <{callee = @halved}> : (tensor<i32>) -> (tensor<i32>, tensor<i32>)
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.compare"(%4#1, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.custom_call"(%6, %4#1) <{call_target_name = "shape_assertion", has_side_effect = true}> {error_message = "odd by {0}"} : (tensor<i1>, tensor<i32>) -> ()
    %7 = "stablehlo.compare"(%3, %4#0) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.custom_call"(%7, %3, %2) <{call_target_name = "shape_assertion", has_side_effect = true}> {error_message = "{0} is not half of {1}"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %8 = "stablehlo.reshape"(%4#0) : (tensor<i32>) -> tensor<1xi32>
    %9 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi32>}> : () -> tensor<1xi32>
    %10 = "stablehlo.concatenate"(%8, %9) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %11 = "stablehlo.dynamic_broadcast_in_dim"(%1, %10) <{broadcast_dimensions = array<i64: 0>}> : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    %12 = "stablehlo.tanh"(%11) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %13 = "stablehlo.convert"(%2) : (tensor<i32>) -> tensor<f32>
    "func.return"(%12, %13) : (tensor<?x3xf32>, tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i32>) -> (tensor<i32>, tensor<i32>), sym_name = "halved", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<i32>):
    %1 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %2 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %4 = "stablehlo.divide"(%0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %5 = "stablehlo.remainder"(%0, %1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %6 = "stablehlo.sign"(%0) : (tensor<i32>) -> tensor<i32>
    %7 = "stablehlo.compare"(%6, %2) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %8 = "stablehlo.compare"(%5, %3) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %9 = "stablehlo.and"(%7, %8) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %10 = "stablehlo.subtract"(%4, %2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %11 = "stablehlo.select"(%9, %10, %4) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    "func.return"(%11, %5) : (tensor<i32>, tensor<i32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<floordiv(arg0_0, 2)>}], function_type = (tensor<?x3xf32, #util.dims<2 * d0>>, tensor<?xf32, #util.dims<d0>>) -> (tensor<?x3xf32, #util.dims<d0>>, tensor<f32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<?x3xf32, #util.dims<2 * d0>>, %1: tensor<?xf32, #util.dims<d0>>):
    %2 = "flow.size"() <{value = #util.dims<2 * d0>}> : () -> tensor<i32>
    "util.assert"() <{lhs = #util.dims<mod(arg0_0, 2)>, message = "odd by {0}", numbers = #util.dims<mod(arg0_0, 2)>, predicate = "eq", rhs = #util.dims<0>}> : () -> ()
    "util.assert"() <{lhs = #util.dims<arg1_0>, message = "{0} is not half of {1}", numbers = #util.dims<arg1_0, arg0_0>, predicate = "eq", rhs = #util.dims<floordiv(arg0_0, 2)>}> : () -> ()
    %3 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0>}> : (tensor<?xf32, #util.dims<d0>>) -> tensor<?x3xf32, #util.dims<d0>>
    %4 = "stablehlo.tanh"(%3) : (tensor<?x3xf32, #util.dims<d0>>) -> tensor<?x3xf32, #util.dims<d0>>
    %5 = "stablehlo.convert"(%2) : (tensor<i32>) -> tensor<f32>
    "func.return"(%4, %5) : (tensor<?x3xf32, #util.dims<d0>>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: refine-shapes, dce
// A slice as long as a size, from where a loop says: the clamp that a dynamic slice does anyway goes.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<7x?xf32>) -> tensor<1x?xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<7x?xf32>):
    %1 = "stablehlo.get_dimension_size"(%0) <{dimension = 1 : i64}> : (tensor<7x?xf32>) -> tensor<i32>
    %2 = "stablehlo.reshape"(%1) : (tensor<i32>) -> tensor<1xi32>
    %3 = "stablehlo.constant"() <{value = dense<[0, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %4 = "stablehlo.constant"() <{value = dense<[1, 1]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %5 = "stablehlo.constant"() <{value = dense<7> : tensor<1xi32>}> : () -> tensor<1xi32>
    %6 = "stablehlo.constant"() <{value = dense<1> : tensor<1xi32>}> : () -> tensor<1xi32>
    %7 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %8 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.concatenate"(%5, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = "stablehlo.concatenate"(%6, %2) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %11 = "stablehlo.dynamic_broadcast_in_dim"(%8, %10) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<1x?xf32>
    %12:2 = "stablehlo.while"(%7, %11) ({
    ^bb0(%13: tensor<i32>, %14: tensor<1x?xf32>):
      %15 = "stablehlo.compare"(%13, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%15) : (tensor<i1>) -> ()
    }, {
    ^bb0(%13: tensor<i32>, %14: tensor<1x?xf32>):
      %15 = "stablehlo.reshape"(%13) : (tensor<i32>) -> tensor<1xi32>
      %16 = "stablehlo.reshape"(%7) : (tensor<i32>) -> tensor<1xi32>
      %17 = "stablehlo.concatenate"(%15, %16) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %18 = "stablehlo.subtract"(%9, %10) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      %19 = "stablehlo.clamp"(%3, %17, %18) : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      %20 = "stablehlo.add"(%19, %10) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      %21 = "stablehlo.real_dynamic_slice"(%0, %19, %20, %4) : (tensor<7x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<1x?xf32>
      %22 = "stablehlo.add"(%14, %21) : (tensor<1x?xf32>, tensor<1x?xf32>) -> tensor<1x?xf32>
      %23 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %24 = "stablehlo.add"(%13, %23) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%24, %22) : (tensor<i32>, tensor<1x?xf32>) -> ()
    }) : (tensor<i32>, tensor<1x?xf32>) -> (tensor<i32>, tensor<1x?xf32>)
    "func.return"(%12#1) : (tensor<1x?xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{dims = [{least = 1 : i64, name = "d0", value = #util.dims<arg0_1>}], function_type = (tensor<7x?xf32, #util.dims<d0>>) -> tensor<1x?xf32, #util.dims<d0>>, sym_name = "main"}> ({
  ^bb0(%0: tensor<7x?xf32, #util.dims<d0>>):
    %1 = "flow.size"() <{value = #util.dims<d0>}> : () -> tensor<i32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x?xf32, #util.dims<d0>>
    %5:2 = "stablehlo.while"(%2, %4) ({
    ^bb0(%6: tensor<i32>, %7: tensor<1x?xf32, #util.dims<d0>>):
      %8 = "stablehlo.compare"(%6, %1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%6: tensor<i32>, %7: tensor<1x?xf32, #util.dims<d0>>):
      %8 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
      %9 = "stablehlo.dynamic_slice"(%0, %6, %8) <{slice_sizes = #util.dims<1, d0>}> : (tensor<7x?xf32, #util.dims<d0>>, tensor<i32>, tensor<i32>) -> tensor<1x?xf32, #util.dims<d0>>
      %10 = "stablehlo.add"(%7, %9) : (tensor<1x?xf32, #util.dims<d0>>, tensor<1x?xf32, #util.dims<d0>>) -> tensor<1x?xf32, #util.dims<d0>>
      %11 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %12 = "stablehlo.add"(%6, %11) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%12, %10) : (tensor<i32>, tensor<1x?xf32, #util.dims<d0>>) -> ()
    }) : (tensor<i32>, tensor<1x?xf32, #util.dims<d0>>) -> (tensor<i32>, tensor<1x?xf32, #util.dims<d0>>)
    "func.return"(%5#1) : (tensor<1x?xf32, #util.dims<d0>>) -> ()
  }) : () -> ()
}) : () -> ()
