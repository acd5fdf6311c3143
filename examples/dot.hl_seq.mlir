// phase: hl_seq
// The dot of 8x16 and 16x32 matrices as a compiler of tile kernels emits it: the result is filled with zeros, then a
// kernel adds the product to what is there. Once per target. docs/setup-and-teardown.md follows it.
"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "reference"}> ({
    "flow.executable"() <{sym_name = "accumulate"}> ({
      "func.func"() <{function_type = (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>, sym_name = "accumulate"}> ({
      ^bb0(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %old: tensor<8x32xf32>):
        %product = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %sum = "stablehlo.add"(%old, %product) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
        "func.return"(%sum) : (tensor<8x32xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>, sym_name = "dot"}> ({
    ^bb0(%arg0: tensor<8x16xf32>, %arg1: tensor<16x32xf32>):
      %a = "hl_seq.import"(%arg0) : (tensor<8x16xf32>) -> !hl_seq.resource<external, 512>
      %b = "hl_seq.import"(%arg1) : (tensor<16x32xf32>) -> !hl_seq.resource<external, 2048>
      %zeros = "flow.splat"() <{value = dense<0.0> : tensor<f32>}> : () -> !hl_seq.resource<transient, 1024>
      %sum = "flow.dispatch"(%a, %b, %zeros) <{entry = @accumulate::@accumulate, workload = array<i64: 256, 1, 1>}> : (!hl_seq.resource<external, 512>, !hl_seq.resource<external, 2048>, !hl_seq.resource<transient, 1024>) -> !hl_seq.resource<external, 1024>
      %result = "hl_seq.export"(%sum) : (!hl_seq.resource<external, 1024>) -> tensor<8x32xf32>
      "func.return"(%result) : (tensor<8x32xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "flow.executable"() <{sym_name = "accumulate"}> ({
      "func.func"() <{function_type = (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>, sym_name = "accumulate"}> ({
      ^bb0(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %old: tensor<8x32xf32>):
        %product = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %sum = "stablehlo.add"(%old, %product) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
        "func.return"(%sum) : (tensor<8x32xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>, sym_name = "dot"}> ({
    ^bb0(%arg0: tensor<8x16xf32>, %arg1: tensor<16x32xf32>):
      %a = "hl_seq.import"(%arg0) : (tensor<8x16xf32>) -> !hl_seq.resource<external, 512>
      %b = "hl_seq.import"(%arg1) : (tensor<16x32xf32>) -> !hl_seq.resource<external, 2048>
      %zeros = "flow.splat"() <{value = dense<0.0> : tensor<f32>}> : () -> !hl_seq.resource<transient, 1024>
      %sum = "flow.dispatch"(%a, %b, %zeros) <{entry = @accumulate::@accumulate, workload = array<i64: 256, 1, 1>}> : (!hl_seq.resource<external, 512>, !hl_seq.resource<external, 2048>, !hl_seq.resource<transient, 1024>) -> !hl_seq.resource<external, 1024>
      %result = "hl_seq.export"(%sum) : (!hl_seq.resource<external, 1024>) -> tensor<8x32xf32>
      "func.return"(%result) : (tensor<8x32xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
  "hl_seq.program"() <{sym_name = "opencl"}> ({
    "flow.executable"() <{sym_name = "accumulate"}> ({
      "func.func"() <{function_type = (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>, sym_name = "accumulate"}> ({
      ^bb0(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %old: tensor<8x32xf32>):
        %product = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %sum = "stablehlo.add"(%old, %product) : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
        "func.return"(%sum) : (tensor<8x32xf32>) -> ()
      }) : () -> ()
    }) : () -> ()
    "func.func"() <{function_type = (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>, sym_name = "dot"}> ({
    ^bb0(%arg0: tensor<8x16xf32>, %arg1: tensor<16x32xf32>):
      %a = "hl_seq.import"(%arg0) : (tensor<8x16xf32>) -> !hl_seq.resource<external, 512>
      %b = "hl_seq.import"(%arg1) : (tensor<16x32xf32>) -> !hl_seq.resource<external, 2048>
      %zeros = "flow.splat"() <{value = dense<0.0> : tensor<f32>}> : () -> !hl_seq.resource<transient, 1024>
      %sum = "flow.dispatch"(%a, %b, %zeros) <{entry = @accumulate::@accumulate, workload = array<i64: 256, 1, 1>}> : (!hl_seq.resource<external, 512>, !hl_seq.resource<external, 2048>, !hl_seq.resource<transient, 1024>) -> !hl_seq.resource<external, 1024>
      %result = "hl_seq.export"(%sum) : (!hl_seq.resource<external, 1024>) -> tensor<8x32xf32>
      "func.return"(%result) : (tensor<8x32xf32>) -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
