// passes: split-by-libraries, expand-libraries, form-programs
// targets: reference, opencl
// The program of each target is made of its part: a call here, a loop there.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<1x1xf32>, %1: tensor<1x1xf32>):
    %2 = "stablehlo.custom_call"(%0, %1) <{api_version = 4 : i32, backend_config = {}, call_target_name = "blas.trsm"}> : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
    "func.return"(%2) : (tensor<1x1xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "func.func"() <{function_type = (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<1x1xf32>, %1: tensor<1x1xf32>):
      %2 = "stablehlo.custom_call"(%0, %1) <{api_version = 4 : i32, backend_config = {}, call_target_name = "blas.trsm"}> : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>
      "func.return"(%2) : (tensor<1x1xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "func.func"() <{function_type = (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<1x1xf32>, %1: tensor<1x1xf32>):
      %2 = "stablehlo.reshape"(%0) : (tensor<1x1xf32>) -> tensor<1x1x1xf32>
      %3 = "stablehlo.reshape"(%1) : (tensor<1x1xf32>) -> tensor<1x1x1xf32>
      %4 = "stablehlo.iota"() <{iota_dimension = 2 : i64}> : () -> tensor<1x1x1xi32>
      %5 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<1x1x1xi32>
      %6 = "stablehlo.compare"(%5, %4) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<1x1x1xi32>, tensor<1x1x1xi32>) -> tensor<1x1x1xi1>
      %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
      %8 = "stablehlo.select"(%6, %2, %7) : (tensor<1x1x1xi1>, tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
      %9 = "stablehlo.transpose"(%3) <{permutation = array<i64: 0, 2, 1>}> : (tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
      %10 = "flow.solve_rows"(%8, %9) <{factor = false}> : (tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
      %11 = "stablehlo.transpose"(%10) <{permutation = array<i64: 0, 2, 1>}> : (tensor<1x1x1xf32>) -> tensor<1x1x1xf32>
      %12 = "stablehlo.reshape"(%11) : (tensor<1x1x1xf32>) -> tensor<1x1xf32>
      "func.return"(%12) : (tensor<1x1xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
