// passes: limit-reductions
// A fold that a call may make too long; rows of which there are many fold less than few. Only programs whose
// machine limits loops assert anything.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "rows"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}, {least = 1 : i64, name = "s"}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>, sym_name = "rows"}> ({
      ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
        %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x?xf32, #util.dims<b, s>>, tensor<f32>) -> tensor<?xf32, #util.dims<b>>
        "func.return"(%2) : (tensor<?xf32, #util.dims<b>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "all"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}], function_type = (tensor<?xf32, #util.dims<b>>) -> tensor<f32>, sym_name = "all"}> ({
      ^bb0(%0: tensor<?xf32, #util.dims<b>>):
        %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?xf32, #util.dims<b>>, tensor<f32>) -> tensor<f32>
        "func.return"(%2) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}, {least = 1 : i64, name = "s", value = #util.dims<arg0_1>}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<f32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
      %1 = "flow.dispatch"(%0) <{entry = @rows::@rows, workload = #util.dims<b, 1, 1>}> : (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>
      %2 = "flow.dispatch"(%1) <{entry = @all::@all, workload = array<i64: 1, 1, 1>}> : (tensor<?xf32, #util.dims<b>>) -> tensor<f32>
      "func.return"(%2) : (tensor<f32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "rows"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}, {least = 1 : i64, name = "s"}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>, sym_name = "rows"}> ({
      ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
        %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x?xf32, #util.dims<b, s>>, tensor<f32>) -> tensor<?xf32, #util.dims<b>>
        "func.return"(%2) : (tensor<?xf32, #util.dims<b>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "all"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}], function_type = (tensor<?xf32, #util.dims<b>>) -> tensor<f32>, sym_name = "all"}> ({
      ^bb0(%0: tensor<?xf32, #util.dims<b>>):
        %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?xf32, #util.dims<b>>, tensor<f32>) -> tensor<f32>
        "func.return"(%2) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}, {least = 1 : i64, name = "s", value = #util.dims<arg0_1>}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<f32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
      %1 = "flow.dispatch"(%0) <{entry = @rows::@rows, workload = #util.dims<b, 1, 1>}> : (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>
      %2 = "flow.dispatch"(%1) <{entry = @all::@all, workload = array<i64: 1, 1, 1>}> : (tensor<?xf32, #util.dims<b>>) -> tensor<f32>
      "func.return"(%2) : (tensor<f32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "rows"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}, {least = 1 : i64, name = "s"}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>, sym_name = "rows"}> ({
      ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
        %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x?xf32, #util.dims<b, s>>, tensor<f32>) -> tensor<?xf32, #util.dims<b>>
        "func.return"(%2) : (tensor<?xf32, #util.dims<b>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "all"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}], function_type = (tensor<?xf32, #util.dims<b>>) -> tensor<f32>, sym_name = "all"}> ({
      ^bb0(%0: tensor<?xf32, #util.dims<b>>):
        %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?xf32, #util.dims<b>>, tensor<f32>) -> tensor<f32>
        "func.return"(%2) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}, {least = 1 : i64, name = "s", value = #util.dims<arg0_1>}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<f32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
      %1 = "flow.dispatch"(%0) <{entry = @rows::@rows, workload = #util.dims<b, 1, 1>}> : (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>
      %2 = "flow.dispatch"(%1) <{entry = @all::@all, workload = array<i64: 1, 1, 1>}> : (tensor<?xf32, #util.dims<b>>) -> tensor<f32>
      "func.return"(%2) : (tensor<f32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "rows"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}, {least = 1 : i64, name = "s"}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>, sym_name = "rows"}> ({
      ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
        %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x?xf32, #util.dims<b, s>>, tensor<f32>) -> tensor<?xf32, #util.dims<b>>
        "func.return"(%2) : (tensor<?xf32, #util.dims<b>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "all"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}], function_type = (tensor<?xf32, #util.dims<b>>) -> tensor<f32>, sym_name = "all"}> ({
      ^bb0(%0: tensor<?xf32, #util.dims<b>>):
        %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?xf32, #util.dims<b>>, tensor<f32>) -> tensor<f32>
        "func.return"(%2) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}, {least = 1 : i64, name = "s", value = #util.dims<arg0_1>}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<f32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
      "util.assert"() <{lhs = #util.dims<s>, message = "a reduction covers {0} elements, 120000 are the most on this machine", numbers = #util.dims<s>, predicate = "le", rhs = #util.dims<120000>}> : () -> ()
      "util.assert"() <{lhs = #util.dims<b>, message = "a reduction covers {0} elements, 15360000 are the most on this machine", numbers = #util.dims<b>, predicate = "le", rhs = #util.dims<15360000>}> : () -> ()
      %1 = "flow.dispatch"(%0) <{entry = @rows::@rows, workload = #util.dims<b, 1, 1>}> : (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>
      %2 = "flow.dispatch"(%1) <{entry = @all::@all, workload = array<i64: 1, 1, 1>}> : (tensor<?xf32, #util.dims<b>>) -> tensor<f32>
      "func.return"(%2) : (tensor<f32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "rows"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}, {least = 1 : i64, name = "s"}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>, sym_name = "rows"}> ({
      ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
        %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x?xf32, #util.dims<b, s>>, tensor<f32>) -> tensor<?xf32, #util.dims<b>>
        "func.return"(%2) : (tensor<?xf32, #util.dims<b>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "all"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}], function_type = (tensor<?xf32, #util.dims<b>>) -> tensor<f32>, sym_name = "all"}> ({
      ^bb0(%0: tensor<?xf32, #util.dims<b>>):
        %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?xf32, #util.dims<b>>, tensor<f32>) -> tensor<f32>
        "func.return"(%2) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}, {least = 1 : i64, name = "s", value = #util.dims<arg0_1>}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<f32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
      %1 = "flow.dispatch"(%0) <{entry = @rows::@rows, workload = #util.dims<b, 1, 1>}> : (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>
      %2 = "flow.dispatch"(%1) <{entry = @all::@all, workload = array<i64: 1, 1, 1>}> : (tensor<?xf32, #util.dims<b>>) -> tensor<f32>
      "func.return"(%2) : (tensor<f32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "rows"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}, {least = 1 : i64, name = "s"}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>, sym_name = "rows"}> ({
      ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
        %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?x?xf32, #util.dims<b, s>>, tensor<f32>) -> tensor<?xf32, #util.dims<b>>
        "func.return"(%2) : (tensor<?xf32, #util.dims<b>>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "all"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "b"}], function_type = (tensor<?xf32, #util.dims<b>>) -> tensor<f32>, sym_name = "all"}> ({
      ^bb0(%0: tensor<?xf32, #util.dims<b>>):
        %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
        %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
        ^bb0(%3: tensor<f32>, %4: tensor<f32>):
          %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<?xf32, #util.dims<b>>, tensor<f32>) -> tensor<f32>
        "func.return"(%2) : (tensor<f32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}, {least = 1 : i64, name = "s", value = #util.dims<arg0_1>}], function_type = (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<f32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<?x?xf32, #util.dims<b, s>>):
      %1 = "flow.dispatch"(%0) <{entry = @rows::@rows, workload = #util.dims<b, 1, 1>}> : (tensor<?x?xf32, #util.dims<b, s>>) -> tensor<?xf32, #util.dims<b>>
      %2 = "flow.dispatch"(%1) <{entry = @all::@all, workload = array<i64: 1, 1, 1>}> : (tensor<?xf32, #util.dims<b>>) -> tensor<f32>
      "func.return"(%2) : (tensor<f32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: limit-reductions
// Updates of rows that may meet are counted, those of rows that do not are not.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "meeting"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "n"}], function_type = (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>, sym_name = "meeting"}> ({
      ^bb0(%0: tensor<1x9x7xf32>, %1: tensor<1x?xi32, #util.dims<n>>, %2: tensor<1x?x7xf32, #util.dims<n>>):
        %3 = "flow.scatter"(%0, %1, %2) ({
        ^bb0(%4: tensor<f32>, %5: tensor<f32>):
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
        "func.return"(%3) : (tensor<1x9x7xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "apart"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "n"}], function_type = (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>, sym_name = "apart"}> ({
      ^bb0(%0: tensor<1x9x7xf32>, %1: tensor<1x?xi32, #util.dims<n>>, %2: tensor<1x?x7xf32, #util.dims<n>>):
        %3 = "flow.scatter"(%0, %1, %2) <{unique = true}> ({
        ^bb0(%4: tensor<f32>, %5: tensor<f32>):
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
        "func.return"(%3) : (tensor<1x9x7xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "n", value = #util.dims<arg1_1>}], function_type = (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<1x9x7xf32>, %1: tensor<1x?xi32, #util.dims<n>>, %2: tensor<1x?x7xf32, #util.dims<n>>):
      %3 = "flow.dispatch"(%0, %1, %2) <{entry = @meeting::@meeting, tied = array<i64: 0>, workload = #util.dims<7 * n, 1, 1>}> : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
      %4 = "flow.dispatch"(%3, %1, %2) <{entry = @apart::@apart, tied = array<i64: 0>, workload = #util.dims<7 * n, 1, 1>}> : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
      "func.return"(%4) : (tensor<1x9x7xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "meeting"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "n"}], function_type = (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>, sym_name = "meeting"}> ({
      ^bb0(%0: tensor<1x9x7xf32>, %1: tensor<1x?xi32, #util.dims<n>>, %2: tensor<1x?x7xf32, #util.dims<n>>):
        %3 = "flow.scatter"(%0, %1, %2) ({
        ^bb0(%4: tensor<f32>, %5: tensor<f32>):
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
        "func.return"(%3) : (tensor<1x9x7xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "flow.executable"() <{sym_name = "apart"}> ({
      "func.func"() <{dims = [{least = 1 : i64, name = "n"}], function_type = (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>, sym_name = "apart"}> ({
      ^bb0(%0: tensor<1x9x7xf32>, %1: tensor<1x?xi32, #util.dims<n>>, %2: tensor<1x?x7xf32, #util.dims<n>>):
        %3 = "flow.scatter"(%0, %1, %2) <{unique = true}> ({
        ^bb0(%4: tensor<f32>, %5: tensor<f32>):
          "stablehlo.return"(%5) : (tensor<f32>) -> ()
        }) : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
        "func.return"(%3) : (tensor<1x9x7xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{dims = [{least = 1 : i64, name = "n", value = #util.dims<arg1_1>}], function_type = (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<1x9x7xf32>, %1: tensor<1x?xi32, #util.dims<n>>, %2: tensor<1x?x7xf32, #util.dims<n>>):
      "util.assert"() <{lhs = #util.dims<n>, message = "a scatter has {0} updates, 262144 are the most on this machine", numbers = #util.dims<n>, predicate = "le", rhs = #util.dims<262144>}> : () -> ()
      %3 = "flow.dispatch"(%0, %1, %2) <{entry = @meeting::@meeting, tied = array<i64: 0>, workload = #util.dims<7 * n, 1, 1>}> : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
      %4 = "flow.dispatch"(%3, %1, %2) <{entry = @apart::@apart, tied = array<i64: 0>, workload = #util.dims<7 * n, 1, 1>}> : (tensor<1x9x7xf32>, tensor<1x?xi32, #util.dims<n>>, tensor<1x?x7xf32, #util.dims<n>>) -> tensor<1x9x7xf32>
      "func.return"(%4) : (tensor<1x9x7xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
