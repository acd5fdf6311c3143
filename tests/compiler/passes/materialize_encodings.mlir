// passes: specialize-encodings, materialize-encodings
// encodings: test
// Encodings are executables; equal ones of several tensors share one. The workload counts padding.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "dot_0"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>, sym_name = "dot_0"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, %1: tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>, %2: tensor<64x64xf32>):
      %3 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>
      %4 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%1) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      %5 = "flow.hoistable_dispatch"() ({
        %e = "flow.set_encoding"(%2) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
        "flow.yield"(%e) : (tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> ()
      }) : () -> tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>
      %6 = "flow.dispatch"(%3, %4) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      %7 = "flow.dispatch"(%3, %5) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 64, 64]>>, tensor<64x64xf32, #util.encoding<role = rhs, batch = [], free = [1], contract = [0], sizes = [64, 64, 64]>>) -> tensor<64x64xf32>
      "func.return"(%6, %7) : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "dot_0"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>, tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>) -> tensor<64x64xf32>, sym_name = "dot_0"}> ({
      ^bb0(%0: tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>, %1: tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>):
        %2 = "flow.unset_encoding"(%0) : (tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>) -> tensor<64x64xf32>
        %3 = "flow.unset_encoding"(%1) : (tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>) -> tensor<64x64xf32>
        %4 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        "func.return"(%4) : (tensor<64x64xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "encoding_0"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>, kind = "elementwise", sym_name = "encoding_0"}> ({
      ^bb0(%0: tensor<64x64xf32>):
        %1 = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>
        "func.return"(%1) : (tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "encoding_1"}> ({
      "func.func"() <{function_type = (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>, kind = "elementwise", sym_name = "encoding_1"}> ({
      ^bb0(%0: tensor<64x64xf32>):
        %1 = "flow.set_encoding"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>
        "func.return"(%1) : (tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>), sym_name = "main"}> ({
    ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>, %2: tensor<64x64xf32>):
      %3 = "flow.dispatch"(%0) <{entry = @encoding_0::@encoding_0, workload = array<i64: 4290, 1, 1>}> : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>
      %4 = "flow.dispatch"(%1) <{entry = @encoding_1::@encoding_1, workload = array<i64: 4290, 1, 1>}> : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>
      %5 = "flow.dispatch"(%2) <{entry = @encoding_1::@encoding_1, workload = array<i64: 4290, 1, 1>}> : (tensor<64x64xf32>) -> tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>
      %6 = "flow.dispatch"(%3, %4) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>, tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>) -> tensor<64x64xf32>
      %7 = "flow.dispatch"(%3, %5) <{entry = @dot_0::@dot_0, workload = array<i64: 4096, 1, 1>}> : (tensor<64x64xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>, tensor<64x64xf32, #util.layout<axes = [[0], [1]], tiles = [3, 5], inner = [1, 0]>>) -> tensor<64x64xf32>
      "func.return"(%6, %7) : (tensor<64x64xf32>, tensor<64x64xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
