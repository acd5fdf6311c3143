// passes: expand-narrow, canonicalize
// what is computed stays in f32 between two ops, rounded after each; a reduction rounds once
"func.func"() <{sym_name = "main", function_type = (tensor<4xbf16>, tensor<4xi4>) -> (tensor<4xbf16>, tensor<bf16>, tensor<4xi4>)}> ({
^bb0(%x: tensor<4xbf16>, %i: tensor<4xi4>):
  %one = "stablehlo.constant"() <{value = dense<1.5> : tensor<bf16>}> : () -> tensor<bf16>
  %all = "stablehlo.broadcast_in_dim"(%one) <{broadcast_dimensions = array<i64>}> : (tensor<bf16>) -> tensor<4xbf16>
  %a = "stablehlo.add"(%x, %all) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  %b = "stablehlo.negate"(%a) : (tensor<4xbf16>) -> tensor<4xbf16>
  %r = "stablehlo.reduce"(%x, %one) <{dimensions = array<i64: 0>}> ({
  ^bb0(%p: tensor<bf16>, %q: tensor<bf16>):
    %s = "stablehlo.add"(%p, %q) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
    "stablehlo.return"(%s) : (tensor<bf16>) -> ()
  }) : (tensor<4xbf16>, tensor<bf16>) -> tensor<bf16>
  %j = "stablehlo.add"(%i, %i) : (tensor<4xi4>, tensor<4xi4>) -> tensor<4xi4>
  "func.return"(%b, %r, %j) : (tensor<4xbf16>, tensor<bf16>, tensor<4xi4>) -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{orchestrion.type = tensor<4xbf16>}, {orchestrion.type = tensor<4xi4>}], function_type = (tensor<4xui16>, tensor<4xi8>) -> (tensor<4xui16>, tensor<ui16>, tensor<4xi8>), res_attrs = [{orchestrion.type = tensor<4xbf16>}, {orchestrion.type = tensor<bf16>}, {orchestrion.type = tensor<4xi4>}], sym_name = "main"}> ({
  ^bb0(%0: tensor<4xui16>, %1: tensor<4xi8>):
    %2 = "flow.decode_bf16"(%0) : (tensor<4xui16>) -> tensor<4xf32>
    %3 = "stablehlo.constant"() <{value = dense<4> : tensor<4xi8>}> : () -> tensor<4xi8>
    %4 = "stablehlo.shift_left"(%1, %3) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %5 = "stablehlo.shift_right_arithmetic"(%4, %3) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %6 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %8 = "stablehlo.add"(%2, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = "flow.round_to_bf16"(%8) : (tensor<4xf32>) -> tensor<4xf32>
    %10 = "stablehlo.negate"(%9) : (tensor<4xf32>) -> tensor<4xf32>
    %11 = "flow.encode_bf16"(%10) : (tensor<4xf32>) -> tensor<4xui16>
    %12 = "stablehlo.reduce"(%2, %6) <{dimensions = array<i64: 0>}> ({
    ^bb0(%21: tensor<f32>, %22: tensor<f32>):
      %23 = "stablehlo.add"(%21, %22) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%23) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %13 = "flow.round_to_bf16"(%12) : (tensor<f32>) -> tensor<f32>
    %14 = "flow.encode_bf16"(%13) : (tensor<f32>) -> tensor<ui16>
    %15 = "stablehlo.add"(%5, %5) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %16 = "stablehlo.constant"() <{value = dense<4> : tensor<4xi8>}> : () -> tensor<4xi8>
    %17 = "stablehlo.shift_left"(%15, %16) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %18 = "stablehlo.shift_right_arithmetic"(%17, %16) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %19 = "stablehlo.constant"() <{value = dense<15> : tensor<4xi8>}> : () -> tensor<4xi8>
    %20 = "stablehlo.and"(%18, %19) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    "func.return"(%11, %14, %20) : (tensor<4xui16>, tensor<ui16>, tensor<4xi8>) -> ()
  }) : () -> ()
}) : () -> ()
