// passes: canonicalize
// Neutral operands of floats: 1 in a product, -0 in a sum, but not +0, of which -0 + 0 makes +0.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>):
    %one = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    %nz = "stablehlo.constant"() <{value = dense<-0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    %z = "stablehlo.constant"() <{value = dense<0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
    %ninf = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<4xf32>}> : () -> tensor<4xf32>
    %0 = "stablehlo.multiply"(%x, %one) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.multiply"(%one, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.divide"(%1, %one) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = "stablehlo.add"(%2, %nz) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.subtract"(%3, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.maximum"(%ninf, %4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %6 = "stablehlo.add"(%5, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%6) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// Neutral operands of integers and booleans; something divided by itself or multiplied by 0 is left alone.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi32>, tensor<4xi1>) -> (tensor<4xi32>, tensor<4xi1>), sym_name = "main"}> ({
  ^bb0(%x: tensor<4xi32>, %p: tensor<4xi1>):
    %one = "stablehlo.constant"() <{value = dense<1> : tensor<4xi32>}> : () -> tensor<4xi32>
    %z = "stablehlo.constant"() <{value = dense<0> : tensor<4xi32>}> : () -> tensor<4xi32>
    %m = "stablehlo.constant"() <{value = dense<-1> : tensor<4xi32>}> : () -> tensor<4xi32>
    %t = "stablehlo.constant"() <{value = dense<true> : tensor<4xi1>}> : () -> tensor<4xi1>
    %f = "stablehlo.constant"() <{value = dense<false> : tensor<4xi1>}> : () -> tensor<4xi1>
    %0 = "stablehlo.multiply"(%x, %one) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %1 = "stablehlo.add"(%z, %0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %2 = "stablehlo.and"(%1, %m) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %3 = "stablehlo.or"(%2, %z) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.xor"(%z, %3) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %5 = "stablehlo.shift_left"(%4, %z) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %6 = "stablehlo.multiply"(%5, %z) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %7 = "stablehlo.and"(%p, %t) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %8 = "stablehlo.or"(%f, %7) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %9 = "stablehlo.xor"(%8, %t) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    "func.return"(%6, %9) : (tensor<4xi32>, tensor<4xi1>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi32>, tensor<4xi1>) -> (tensor<4xi32>, tensor<4xi1>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xi32>, %1: tensor<4xi1>):
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<4xi32>}> : () -> tensor<4xi32>
    %3 = "stablehlo.constant"() <{value = dense<true> : tensor<4xi1>}> : () -> tensor<4xi1>
    %4 = "stablehlo.multiply"(%0, %2) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %5 = "stablehlo.xor"(%1, %3) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    "func.return"(%4, %5) : (tensor<4xi32>, tensor<4xi1>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// A selection that is decided.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<4xi1>):
    %f = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %0 = "stablehlo.select"(%f, %x, %y) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.select"(%p, %x, %x) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.convert"(%1) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xi1>):
    "func.return"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// Movements that move nothing.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<2x3x4xf32>):
    %0 = "stablehlo.reshape"(%x) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 0, 1, 2>}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %3 = "stablehlo.slice"(%2) <{limit_indices = array<i64: 2, 3, 4>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %4 = "stablehlo.reverse"(%3) <{dimensions = array<i64>}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %5 = "stablehlo.concatenate"(%4) <{dimension = 1 : i64}> : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %6 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.pad"(%5, %6) <{edge_padding_high = array<i64: 0, 0, 0>, edge_padding_low = array<i64: 0, 0, 0>, interior_padding = array<i64: 0, 0, 0>}> : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    "func.return"(%7) : (tensor<2x3x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    "func.return"(%0) : (tensor<2x3x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// Movements of movements become one.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> tensor<2x5x3xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<2x3x4xf32>):
    %0 = "stablehlo.transpose"(%x) <{permutation = array<i64: 1, 2, 0>}> : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0, 2>}> : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
    %2 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0, 1>}> : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
    %3 = "stablehlo.reverse"(%2) <{dimensions = array<i64: 1, 2>}> : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
    %4 = "stablehlo.reshape"(%3) : (tensor<4x3x2xf32>) -> tensor<12x2xf32>
    %5 = "stablehlo.reshape"(%4) : (tensor<12x2xf32>) -> tensor<24xf32>
    %6 = "stablehlo.slice"(%5) <{limit_indices = array<i64: 23>, start_indices = array<i64: 2>, strides = array<i64: 3>}> : (tensor<24xf32>) -> tensor<7xf32>
    %7 = "stablehlo.slice"(%6) <{limit_indices = array<i64: 6>, start_indices = array<i64: 1>, strides = array<i64: 2>}> : (tensor<7xf32>) -> tensor<3xf32>
    %8 = "stablehlo.broadcast_in_dim"(%7) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<2x3xf32>
    %9 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<2x3xf32>) -> tensor<2x5x3xf32>
    "func.return"(%9) : (tensor<2x5x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3x4xf32>) -> tensor<2x5x3xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<2x3x4xf32>):
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 2, 1, 0>}> : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
    %2 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0, 2>}> : (tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
    %3 = "stablehlo.reshape"(%2) : (tensor<4x3x2xf32>) -> tensor<24xf32>
    %4 = "stablehlo.slice"(%3) <{limit_indices = array<i64: 18>, start_indices = array<i64: 5>, strides = array<i64: 6>}> : (tensor<24xf32>) -> tensor<3xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) <{broadcast_dimensions = array<i64: 2>}> : (tensor<3xf32>) -> tensor<2x5x3xf32>
    "func.return"(%5) : (tensor<2x5x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// What moves only axes of size 1 is a reshape, and a broadcast swallows it. Operands without elements go.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<1x4x1x3xf32>, tensor<0x3xf32>, tensor<2x3xf32>) -> (tensor<5x4xf32>, tensor<1x4x3x1xf32>, tensor<2x3xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %y: tensor<1x4x1x3xf32>, %e: tensor<0x3xf32>, %z: tensor<2x3xf32>):
    %0 = "stablehlo.broadcast_in_dim"(%x) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x4xf32>) -> tensor<5x4xf32>
    %2 = "stablehlo.transpose"(%y) <{permutation = array<i64: 2, 1, 3, 0>}> : (tensor<1x4x1x3xf32>) -> tensor<1x4x3x1xf32>
    %3 = "stablehlo.concatenate"(%e, %z, %e) <{dimension = 0 : i64}> : (tensor<0x3xf32>, tensor<2x3xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
    "func.return"(%1, %2, %3) : (tensor<5x4xf32>, tensor<1x4x3x1xf32>, tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<1x4x1x3xf32>, tensor<0x3xf32>, tensor<2x3xf32>) -> (tensor<5x4xf32>, tensor<1x4x3x1xf32>, tensor<2x3xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<1x4x1x3xf32>, %2: tensor<0x3xf32>, %3: tensor<2x3xf32>):
    %4 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<5x4xf32>
    %5 = "stablehlo.reshape"(%1) : (tensor<1x4x1x3xf32>) -> tensor<1x4x3x1xf32>
    "func.return"(%4, %5, %3) : (tensor<5x4xf32>, tensor<1x4x3x1xf32>, tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// Constants: splats stay splats of any size, small results are computed, large ones are not.
"builtin.module"() ({
  "func.func"() <{function_type = () -> (tensor<1000x1000xf32>, tensor<8xi32>, tensor<1000xi32>, tensor<4xi1>, tensor<10xi32>, tensor<9x5xi32>), sym_name = "main"}> ({
  ^bb0():
    %0 = "stablehlo.constant"() <{value = dense<2.0> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1000x1000xf32>
    %2 = "stablehlo.multiply"(%1, %1) : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
    %3 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %4 = "stablehlo.reverse"(%3) <{dimensions = array<i64: 0>}> : (tensor<4xi32>) -> tensor<4xi32>
    %5 = "stablehlo.concatenate"(%3, %4) <{dimension = 0 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<8xi32>
    %6 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<1000xi32>
    %7 = "stablehlo.compare"(%3, %4) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %8 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.pad"(%4, %8) <{edge_padding_high = array<i64: 1>, edge_padding_low = array<i64: -1>, interior_padding = array<i64: 2>}> : (tensor<4xi32>, tensor<i32>) -> tensor<10xi32>
    %10 = "stablehlo.constant"() <{value = dense<[1, 2, 3, 4, 5]> : tensor<5xi32>}> : () -> tensor<5xi32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64: 1>}> : (tensor<5xi32>) -> tensor<9x5xi32>
    "func.return"(%2, %5, %6, %7, %9, %11) : (tensor<1000x1000xf32>, tensor<8xi32>, tensor<1000xi32>, tensor<4xi1>, tensor<10xi32>, tensor<9x5xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = () -> (tensor<1000x1000xf32>, tensor<8xi32>, tensor<1000xi32>, tensor<4xi1>, tensor<10xi32>, tensor<9x5xi32>), sym_name = "main"}> ({
    %0 = "stablehlo.constant"() <{value = dense<4.000000e+00> : tensor<1000x1000xf32>}> : () -> tensor<1000x1000xf32>
    %1 = "stablehlo.constant"() <{value = dense<[0, 1, 2, 3, 3, 2, 1, 0]> : tensor<8xi32>}> : () -> tensor<8xi32>
    %2 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<1000xi32>
    %3 = "stablehlo.constant"() <{value = dense<[true, true, false, false]> : tensor<4xi1>}> : () -> tensor<4xi1>
    %4 = "stablehlo.constant"() <{value = dense<[-1, -1, 2, -1, -1, 1, -1, -1, 0, -1]> : tensor<10xi32>}> : () -> tensor<10xi32>
    %5 = "stablehlo.constant"() <{value = dense<[1, 2, 3, 4, 5]> : tensor<5xi32>}> : () -> tensor<5xi32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64: 1>}> : (tensor<5xi32>) -> tensor<9x5xi32>
    "func.return"(%0, %1, %2, %3, %4, %6) : (tensor<1000x1000xf32>, tensor<8xi32>, tensor<1000xi32>, tensor<4xi1>, tensor<10xi32>, tensor<9x5xi32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// A start that is known is clamped, and the slice is an ordinary one; an update of everything or of nothing is none.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<2x2xf32>, tensor<0x6xf32>, tensor<i8>) -> (tensor<2x3xf32>, tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<4x6xf32>, %u: tensor<2x2xf32>, %e: tensor<0x6xf32>, %i: tensor<i8>):
    %low = "stablehlo.constant"() <{value = dense<-7> : tensor<i8>}> : () -> tensor<i8>
    %high = "stablehlo.constant"() <{value = dense<100> : tensor<i8>}> : () -> tensor<i8>
    %0 = "stablehlo.dynamic_slice"(%x, %high, %low) <{slice_sizes = array<i64: 2, 3>}> : (tensor<4x6xf32>, tensor<i8>, tensor<i8>) -> tensor<2x3xf32>
    %1 = "stablehlo.dynamic_slice"(%x, %i, %high) <{slice_sizes = array<i64: 4, 2>}> : (tensor<4x6xf32>, tensor<i8>, tensor<i8>) -> tensor<4x2xf32>
    %2 = "stablehlo.dynamic_update_slice"(%x, %e, %i, %i) : (tensor<4x6xf32>, tensor<0x6xf32>, tensor<i8>, tensor<i8>) -> tensor<4x6xf32>
    %3 = "stablehlo.dynamic_update_slice"(%2, %x, %i, %i) : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<i8>, tensor<i8>) -> tensor<4x6xf32>
    %4 = "stablehlo.dynamic_update_slice"(%3, %u, %high, %low) : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<i8>, tensor<i8>) -> tensor<4x6xf32>
    "func.return"(%0, %1, %2, %3, %4) : (tensor<2x3xf32>, tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<2x2xf32>, tensor<0x6xf32>, tensor<i8>) -> (tensor<2x3xf32>, tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4x6xf32>, %1: tensor<2x2xf32>, %2: tensor<0x6xf32>, %3: tensor<i8>):
    %4 = "stablehlo.constant"() <{value = dense<-7> : tensor<i8>}> : () -> tensor<i8>
    %5 = "stablehlo.constant"() <{value = dense<100> : tensor<i8>}> : () -> tensor<i8>
    %6 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 4, 3>, start_indices = array<i64: 2, 0>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<2x3xf32>
    %7 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 4, 6>, start_indices = array<i64: 0, 4>, strides = array<i64: 1, 1>}> : (tensor<4x6xf32>) -> tensor<4x2xf32>
    %8 = "stablehlo.dynamic_update_slice"(%0, %1, %5, %4) : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<i8>, tensor<i8>) -> tensor<4x6xf32>
    "func.return"(%6, %7, %0, %0, %8) : (tensor<2x3xf32>, tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// What a constant decides is decided; a `case` of one branch is that; an index without a branch is the last.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %2 = "stablehlo.constant"() <{value = dense<-1> : tensor<i32>}> : () -> tensor<i32>
    %3 = "stablehlo.if"(%1) ({
      %5 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
    }, {
      %5 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    %4 = "stablehlo.case"(%2) ({
      %5 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
    }, {
      %5 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%5) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    "func.return"(%3, %4) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1, %2) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// `lax.cond` makes a `case` of a predicate: an `if` again. Of an index only 0 is the first branch.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>, %2: tensor<i32>):
    %3 = "stablehlo.not"(%1) : (tensor<i1>) -> tensor<i1>
    %4 = "stablehlo.convert"(%3) : (tensor<i1>) -> tensor<i32>
    %5 = "stablehlo.case"(%4) ({
      %7 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%7) : (tensor<4xf32>) -> ()
    }, {
      %7 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%7) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    %6 = "stablehlo.case"(%2) ({
      %7 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%7) : (tensor<4xf32>) -> ()
    }, {
      %7 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%7) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    "func.return"(%5, %6) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<i1>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>, %1: tensor<i1>, %2: tensor<i32>):
    %3 = "stablehlo.not"(%1) : (tensor<i1>) -> tensor<i1>
    %4 = "stablehlo.if"(%3) ({
      %8 = "stablehlo.cosine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8) : (tensor<4xf32>) -> ()
    }, {
      %8 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    %5 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %6 = "stablehlo.compare"(%2, %5) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = "stablehlo.if"(%6) ({
      %8 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8) : (tensor<4xf32>) -> ()
    }, {
      %8 = "stablehlo.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%8) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    "func.return"(%4, %7) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// The counter of a loop of known length ends at a known number; the values it carries for nobody go, and so does the loop.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<i32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %2:2 = "stablehlo.while"(%1, %0) ({
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>):
      %5 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.compare"(%3, %5) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%6) : (tensor<i1>) -> ()
    }, {
    ^bb0(%3: tensor<i32>, %4: tensor<4xf32>):
      %5 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.add"(%3, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %7 = "stablehlo.exponential"(%4) : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%6, %7) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    "func.return"(%2#0) : (tensor<i32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<i32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<11> : tensor<i32>}> : () -> tensor<i32>
    "func.return"(%1) : (tensor<i32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// A gather of one slice from a known place is a slice, starts clamped; of several, or from the end of a size of a call, not.
"builtin.module"() ({
  "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}], function_type = (tensor<?x7xf32, #util.dims<b>>) -> (tensor<?xf32, #util.dims<b>>, tensor<1x1xf32>, tensor<2x7xf32>, tensor<7xf32>), sym_name = "main"}> ({
  ^bb0(%x: tensor<?x7xf32, #util.dims<b>>):
    %i = "stablehlo.constant"() <{value = dense<9> : tensor<1xi32>}> : () -> tensor<1xi32>
    %ij = "stablehlo.constant"() <{value = dense<0> : tensor<1x2xi32>}> : () -> tensor<1x2xi32>
    %two = "stablehlo.constant"() <{value = dense<0> : tensor<2x1xi32>}> : () -> tensor<2x1xi32>
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = #util.dims<b, 1>}> : (tensor<?x7xf32, #util.dims<b>>, tensor<1xi32>) -> tensor<?xf32, #util.dims<b>>
    %1 = "stablehlo.gather"(%x, %ij) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<?x7xf32, #util.dims<b>>, tensor<1x2xi32>) -> tensor<1x1xf32>
    %2 = "stablehlo.gather"(%x, %two) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 7>}> : (tensor<?x7xf32, #util.dims<b>>, tensor<2x1xi32>) -> tensor<2x7xf32>
    %3 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 7>}> : (tensor<?x7xf32, #util.dims<b>>, tensor<1xi32>) -> tensor<7xf32>
    "func.return"(%0, %1, %2, %3) : (tensor<?xf32, #util.dims<b>>, tensor<1x1xf32>, tensor<2x7xf32>, tensor<7xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}], function_type = (tensor<?x7xf32, #util.dims<b>>) -> (tensor<?xf32, #util.dims<b>>, tensor<1x1xf32>, tensor<2x7xf32>, tensor<7xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<?x7xf32, #util.dims<b>>):
    %1 = "stablehlo.constant"() <{value = dense<9> : tensor<1xi32>}> : () -> tensor<1xi32>
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<2x1xi32>}> : () -> tensor<2x1xi32>
    %3 = "stablehlo.slice"(%0) <{limit_indices = #util.dims<b, 7>, start_indices = array<i64: 0, 6>, strides = array<i64: 1, 1>}> : (tensor<?x7xf32, #util.dims<b>>) -> tensor<?x1xf32, #util.dims<b>>
    %4 = "stablehlo.reshape"(%3) : (tensor<?x1xf32, #util.dims<b>>) -> tensor<?xf32, #util.dims<b>>
    %5 = "stablehlo.slice"(%0) <{limit_indices = array<i64: 1, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<?x7xf32, #util.dims<b>>) -> tensor<1x1xf32>
    %6 = "stablehlo.gather"(%0, %2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 7>}> : (tensor<?x7xf32, #util.dims<b>>, tensor<2x1xi32>) -> tensor<2x7xf32>
    %7 = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 7>}> : (tensor<?x7xf32, #util.dims<b>>, tensor<1xi32>) -> tensor<7xf32>
    "func.return"(%4, %5, %6, %7) : (tensor<?xf32, #util.dims<b>>, tensor<1x1xf32>, tensor<2x7xf32>, tensor<7xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// A scalar that is repeated is so in any shape.
"builtin.module"() ({
  "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}], function_type = (tensor<?x7xf32, #util.dims<b>>, tensor<f32>) -> tensor<?xf32, #util.dims<7 * b>>, sym_name = "main"}> ({
  ^bb0(%x: tensor<?x7xf32, #util.dims<b>>, %s: tensor<f32>):
    %0 = "stablehlo.broadcast_in_dim"(%s) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<?x7xf32, #util.dims<b>>
    %1 = "stablehlo.reshape"(%0) : (tensor<?x7xf32, #util.dims<b>>) -> tensor<?xf32, #util.dims<7 * b>>
    "func.return"(%1) : (tensor<?xf32, #util.dims<7 * b>>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{dims = [{least = 1 : i64, name = "b", value = #util.dims<arg0_0>}], function_type = (tensor<?x7xf32, #util.dims<b>>, tensor<f32>) -> tensor<?xf32, #util.dims<7 * b>>, sym_name = "main"}> ({
  ^bb0(%0: tensor<?x7xf32, #util.dims<b>>, %1: tensor<f32>):
    %2 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<?xf32, #util.dims<7 * b>>
    "func.return"(%2) : (tensor<?xf32, #util.dims<7 * b>>) -> ()
  }) : () -> ()
}) : () -> ()
// -----
// passes: canonicalize
// A reduction of axes of one element is the initial value with that element; of a longer one it stays.
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x1xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4x1xf32>, tensor<1x1xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<1x4x1xf32>, %1: tensor<f32>):
    %2 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %3 = "stablehlo.reduce"(%0, %2) <{dimensions = array<i64: 0, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<1x4x1xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.subtract"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<1x4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %5 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<1x4x1xf32>, tensor<f32>) -> tensor<1x1xf32>
    "func.return"(%3, %4, %5) : (tensor<4xf32>, tensor<4x1xf32>, tensor<1x1xf32>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x4x1xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4x1xf32>, tensor<1x1xf32>), sym_name = "main"}> ({
  ^bb0(%0: tensor<1x4x1xf32>, %1: tensor<f32>):
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %3 = "stablehlo.reshape"(%0) : (tensor<1x4x1xf32>) -> tensor<4xf32>
    %4 = "stablehlo.add"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x1xf32>
    %6 = "stablehlo.reshape"(%0) : (tensor<1x4x1xf32>) -> tensor<4x1xf32>
    %7 = "stablehlo.subtract"(%5, %6) : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %8 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%9: tensor<f32>, %10: tensor<f32>):
      %11 = "stablehlo.maximum"(%9, %10) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) : (tensor<1x4x1xf32>, tensor<f32>) -> tensor<1x1xf32>
    "func.return"(%4, %7, %8) : (tensor<4xf32>, tensor<4x1xf32>, tensor<1x1xf32>) -> ()
  }) : () -> ()
}) : () -> ()
