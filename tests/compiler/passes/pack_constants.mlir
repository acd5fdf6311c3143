// passes: pack-constants
// Constant @v has padded tiles in the file. Constant @w is read in row-major order as well, so the initializer packs it.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "cpu"}> ({
    "util.global"() <{sym_name = "v", type = tensor<2x3xf32>, value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>}> : () -> ()
    "util.global"() <{sym_name = "w", type = tensor<2x3xf32>, value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]> : tensor<2x3xf32>}> : () -> ()
    "util.global"() <{sym_name = "a", type = tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>}> : () -> ()
    "util.global"() <{sym_name = "b", type = tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>}> : () -> ()
    "flow.executable"() <{sym_name = "add_0"}> ({
      "func.func"() <{function_type = (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32>) -> tensor<2x3xf32>, sym_name = "add_0"}> ({
      ^bb0(%0: tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, %1: tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, %2: tensor<2x3xf32>):
        %3 = "flow.unset_encoding"(%0) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> tensor<2x3xf32>
        %4 = "flow.unset_encoding"(%1) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> tensor<2x3xf32>
        %5 = "stablehlo.add"(%3, %4) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %6 = "stablehlo.add"(%5, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        "func.return"(%6) : (tensor<2x3xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "util.global_load"() <{ref = @v}> : () -> tensor<2x3xf32>
      %1 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
        "flow.yield"(%e) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> ()
      }) : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      "util.global_store"(%1) <{ref = @a}> : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> ()
      %2 = "util.global_load"() <{ref = @w}> : () -> tensor<2x3xf32>
      %3 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%2) : (tensor<2x3xf32>) -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
        "flow.yield"(%e) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> ()
      }) : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      "util.global_store"(%3) <{ref = @b}> : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = () -> tensor<2x3xf32>, sym_name = "main"}> ({
      %0 = "util.global_load"() <{ref = @a}> : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      %1 = "util.global_load"() <{ref = @b}> : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      %2 = "util.global_load"() <{ref = @w}> : () -> tensor<2x3xf32>
      %3 = "flow.dispatch"(%0, %1, %2) <{entry = @add_0::@add_0, workload = array<i64: 6, 1, 1>}> : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32>) -> tensor<2x3xf32>
      "func.return"(%3) : (tensor<2x3xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "cpu"}> ({
    "util.global"() <{sym_name = "w", type = tensor<2x3xf32>, value = dense<[[1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 7.000000e+00]]> : tensor<2x3xf32>}> : () -> ()
    "util.global"() <{sym_name = "a", type = tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, value = dense<[[[1.000000e+00, 2.000000e+00], [4.000000e+00, 5.000000e+00]], [[3.000000e+00, 0.000000e+00], [6.000000e+00, 0.000000e+00]]]> : tensor<2x2x2xf32>}> : () -> ()
    "util.global"() <{sym_name = "b", type = tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>}> : () -> ()
    "flow.executable"() <{sym_name = "add_0"}> ({
      "func.func"() <{function_type = (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32>) -> tensor<2x3xf32>, sym_name = "add_0"}> ({
      ^bb0(%0: tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, %1: tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, %2: tensor<2x3xf32>):
        %3 = "flow.unset_encoding"(%0) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> tensor<2x3xf32>
        %4 = "flow.unset_encoding"(%1) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> tensor<2x3xf32>
        %5 = "stablehlo.add"(%3, %4) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %6 = "stablehlo.add"(%5, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        "func.return"(%6) : (tensor<2x3xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "util.initializer"() <{kind = "program"}> ({
      %0 = "util.global_load"() <{ref = @w}> : () -> tensor<2x3xf32>
      %1 = "flow.hoistable_dispatch"() ({
        %2 = "flow.set_encoding"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
        "flow.yield"(%2) : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> ()
      }) : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      "util.global_store"(%1) <{ref = @b}> : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>) -> ()
      "util.return"() : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = () -> tensor<2x3xf32>, sym_name = "main"}> ({
      %0 = "util.global_load"() <{ref = @a}> : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      %1 = "util.global_load"() <{ref = @b}> : () -> tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>
      %2 = "util.global_load"() <{ref = @w}> : () -> tensor<2x3xf32>
      %3 = "flow.dispatch"(%0, %1, %2) <{entry = @add_0::@add_0, workload = array<i64: 6, 1, 1>}> : (tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32, #util.layout<axes = [[1], [0]], tiles = [2, 1], inner = [0]>>, tensor<2x3xf32>) -> tensor<2x3xf32>
      "func.return"(%3) : (tensor<2x3xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
