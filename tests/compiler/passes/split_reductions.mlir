// passes: split-reductions
// A long sum is two: 64 invocations side by side in each of 31 parts, filled up with zeros; then what came out.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%3: tensor<f32>, %4: tensor<f32>):
      %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) : (tensor<130000xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%2) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reshape"(%0) : (tensor<130000xf32>) -> tensor<1x130000x1xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<1x130000x1xf32>) -> tensor<1x125x65x16x1xf32>
    %4 = "stablehlo.reduce"(%3, %1) <{dimensions = array<i64: 2>}> ({
    ^bb0(%7: tensor<f32>, %8: tensor<f32>):
      %9 = "stablehlo.add"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) : (tensor<1x125x65x16x1xf32>, tensor<f32>) -> tensor<1x125x16x1xf32>
    %5 = "stablehlo.reduce"(%4, %1) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%7: tensor<f32>, %8: tensor<f32>):
      %9 = "stablehlo.add"(%7, %8) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) : (tensor<1x125x16x1xf32>, tensor<f32>) -> tensor<1x1xf32>
    %6 = "stablehlo.reshape"(%5) : (tensor<1x1xf32>) -> tensor<f32>
    "func.return"(%6) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-reductions
// An initial value that changes something is applied once: the reduction stays whole. So do rows of a softmax.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>, tensor<16x4096xf32>) -> (tensor<f32>, tensor<16xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>, %1: tensor<16x4096xf32>):
    %2 = "stablehlo.constant"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<130000xf32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce"(%1, %3) <{dimensions = array<i64: 1>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<16x4096xf32>, tensor<f32>) -> tensor<16xf32>
    "func.return"(%4, %5) : (tensor<f32>, tensor<16xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<130000xf32>, tensor<16x4096xf32>) -> (tensor<f32>, tensor<16xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<130000xf32>, %1: tensor<16x4096xf32>):
    %2 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<130000xf32>, tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce"(%1, %3) <{dimensions = array<i64: 1>}> ({
    ^bb0(%6: tensor<f32>, %7: tensor<f32>):
      %8 = "stablehlo.add"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) : (tensor<16x4096xf32>, tensor<f32>) -> tensor<16xf32>
    "func.return"(%4, %5) : (tensor<f32>, tensor<16xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-reductions
// A dot of long vectors becomes a sum of products. A dot with two results stays.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x100xf32>, tensor<100x64xf32>, tensor<2x6400xf32>, tensor<6400xf32>) -> (tensor<f32>, tensor<2xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x100xf32>, %1: tensor<100x64xf32>, %2: tensor<2x6400xf32>, %3: tensor<6400xf32>):
    %4 = "stablehlo.dot_general"(%0, %1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [1, 0]>}> : (tensor<64x100xf32>, tensor<100x64xf32>) -> tensor<f32>
    %5 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x6400xf32>, tensor<6400xf32>) -> tensor<2xf32>
    "func.return"(%4, %5) : (tensor<f32>, tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<64x100xf32>, tensor<100x64xf32>, tensor<2x6400xf32>, tensor<6400xf32>) -> (tensor<f32>, tensor<2xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<64x100xf32>, %1: tensor<100x64xf32>, %2: tensor<2x6400xf32>, %3: tensor<6400xf32>):
    %4 = "stablehlo.transpose"(%1) <{permutation = array<i64: 1, 0>}> : (tensor<100x64xf32>) -> tensor<64x100xf32>
    %5 = "stablehlo.multiply"(%0, %4) : (tensor<64x100xf32>, tensor<64x100xf32>) -> tensor<64x100xf32>
    %6 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.reshape"(%5) : (tensor<64x100xf32>) -> tensor<1x6400x1xf32>
    %8 = "stablehlo.reshape"(%7) : (tensor<1x6400x1xf32>) -> tensor<1x2x100x32x1xf32>
    %9 = "stablehlo.reduce"(%8, %6) <{dimensions = array<i64: 2>}> ({
    ^bb0(%13: tensor<f32>, %14: tensor<f32>):
      %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%15) : (tensor<f32>) -> ()
    }) : (tensor<1x2x100x32x1xf32>, tensor<f32>) -> tensor<1x2x32x1xf32>
    %10 = "stablehlo.reduce"(%9, %6) <{dimensions = array<i64: 1, 2>}> ({
    ^bb0(%13: tensor<f32>, %14: tensor<f32>):
      %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%15) : (tensor<f32>) -> ()
    }) : (tensor<1x2x32x1xf32>, tensor<f32>) -> tensor<1x1xf32>
    %11 = "stablehlo.reshape"(%10) : (tensor<1x1xf32>) -> tensor<f32>
    %12 = "stablehlo.dot_general"(%2, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<2x6400xf32>, tensor<6400xf32>) -> tensor<2xf32>
    "func.return"(%11, %12) : (tensor<f32>, tensor<2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-reductions, canonicalize, dce
// Rows times rows, of which the second has its axes in another order; and an outer product per row.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<5x7xf32>, tensor<7x5xf32>, tensor<5x3xf32>) -> (tensor<5xf32>, tensor<5x7x3xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<5x7xf32>, %y: tensor<7x5xf32>, %z: tensor<5x3xf32>):
    %0 = "stablehlo.dot_general"(%x, %y) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<5x7xf32>, tensor<7x5xf32>) -> tensor<5xf32>
    %1 = "stablehlo.dot_general"(%x, %z) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0]>}> : (tensor<5x7xf32>, tensor<5x3xf32>) -> tensor<5x7x3xf32>
    "func.return"(%0, %1) : (tensor<5xf32>, tensor<5x7x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<5x7xf32>, tensor<7x5xf32>, tensor<5x3xf32>) -> (tensor<5xf32>, tensor<5x7x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<5x7xf32>, %1: tensor<7x5xf32>, %2: tensor<5x3xf32>):
    %3 = "stablehlo.transpose"(%1) <{permutation = array<i64: 1, 0>}> : (tensor<7x5xf32>) -> tensor<5x7xf32>
    %4 = "stablehlo.multiply"(%0, %3) : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.reduce"(%4, %5) <{dimensions = array<i64: 1>}> ({
    ^bb0(%10: tensor<f32>, %11: tensor<f32>):
      %12 = "stablehlo.add"(%10, %11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%12) : (tensor<f32>) -> ()
    }) : (tensor<5x7xf32>, tensor<f32>) -> tensor<5xf32>
    %7 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x7xf32>) -> tensor<5x7x3xf32>
    %8 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<5x3xf32>) -> tensor<5x7x3xf32>
    %9 = "stablehlo.multiply"(%7, %8) : (tensor<5x7x3xf32>, tensor<5x7x3xf32>) -> tensor<5x7x3xf32>
    "func.return"(%6, %9) : (tensor<5xf32>, tensor<5x7x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: split-reductions, canonicalize, dce
// Columns of booleans are reduced as words.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<50x70xi1>) -> tensor<70xi1>, sym_name = "main"}> ({
  ^bb0(%x: tensor<50x70xi1>):
    %1 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %2 = "stablehlo.reduce"(%x, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %m = "stablehlo.and"(%a, %b) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%m) : (tensor<i1>) -> ()
    }) : (tensor<50x70xi1>, tensor<i1>) -> tensor<70xi1>
    "func.return"(%2) : (tensor<70xi1>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<50x70xi1>) -> tensor<70xi1>, sym_name = "main"}> ({
  ^bb0(%0: tensor<50x70xi1>):
    %1 = "stablehlo.constant"() <{value = dense<-1> : tensor<50x70xi32>}> : () -> tensor<50x70xi32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<50x70xi32>}> : () -> tensor<50x70xi32>
    %3 = "stablehlo.select"(%0, %1, %2) : (tensor<50x70xi1>, tensor<50x70xi32>, tensor<50x70xi32>) -> tensor<50x70xi32>
    %4 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %5 = "stablehlo.reduce"(%3, %4) <{dimensions = array<i64: 0>}> ({
    ^bb0(%8: tensor<i32>, %9: tensor<i32>):
      %10 = "stablehlo.and"(%8, %9) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%10) : (tensor<i32>) -> ()
    }) : (tensor<50x70xi32>, tensor<i32>) -> tensor<70xi32>
    %6 = "stablehlo.constant"() <{value = dense<0> : tensor<70xi32>}> : () -> tensor<70xi32>
    %7 = "stablehlo.compare"(%5, %6) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<70xi32>, tensor<70xi32>) -> tensor<70xi1>
    "func.return"(%7) : (tensor<70xi1>) -> ()
  }) : () -> ()
}) : () -> ()
