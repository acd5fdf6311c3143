// passes: flatten-tuples, expand
// A tuple that a function takes and hands on, round a loop: everything in it goes by itself. The alias keeps its result.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tuple<tensor<4xf32>, tuple<tensor<i32>>>) -> (tuple<tensor<4xf32>, tuple<tensor<i32>>>, tensor<4xf32>), sym_name = "main", arg_attrs = [{tf.aliasing_output = 1 : i32}, {}]}> ({
  ^bb0(%x: tensor<4xf32>, %t: tuple<tensor<4xf32>, tuple<tensor<i32>>>):
    %r = "stablehlo.while"(%t) ({
    ^bb0(%s: tuple<tensor<4xf32>, tuple<tensor<i32>>>):
      %i = "stablehlo.get_tuple_element"(%s) <{index = 1 : i32}> : (tuple<tensor<4xf32>, tuple<tensor<i32>>>) -> tuple<tensor<i32>>
      %j = "stablehlo.get_tuple_element"(%i) <{index = 0 : i32}> : (tuple<tensor<i32>>) -> tensor<i32>
      %k = "stablehlo.compare"(%j, %j) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%k) : (tensor<i1>) -> ()
    }, {
    ^bb0(%s: tuple<tensor<4xf32>, tuple<tensor<i32>>>):
      "stablehlo.return"(%s) : (tuple<tensor<4xf32>, tuple<tensor<i32>>>) -> ()
    }) : (tuple<tensor<4xf32>, tuple<tensor<i32>>>) -> tuple<tensor<4xf32>, tuple<tensor<i32>>>
    "func.return"(%r, %x) : (tuple<tensor<4xf32>, tuple<tensor<i32>>>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 2 : i32}, {}, {}], function_type = (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<i32>):
    %3:2 = "stablehlo.while"(%1, %2) ({
    ^bb0(%4: tensor<4xf32>, %5: tensor<i32>):
      %6 = "stablehlo.compare"(%5, %5) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%4: tensor<4xf32>, %5: tensor<i32>):
      "stablehlo.return"(%4, %5) : (tensor<4xf32>, tensor<i32>) -> ()
    }) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>)
    "func.return"(%3#0, %3#1, %0) : (tensor<4xf32>, tensor<i32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
