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
    %2 = "stablehlo.convert"(%0) : (tensor<4xui16>) -> tensor<4xui32>
    %3 = "stablehlo.constant"() <{value = dense<16> : tensor<4xui32>}> : () -> tensor<4xui32>
    %4 = "stablehlo.shift_left"(%2, %3) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %5 = "stablehlo.bitcast_convert"(%4) : (tensor<4xui32>) -> tensor<4xf32>
    %6 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %8 = "stablehlo.add"(%5, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = "stablehlo.bitcast_convert"(%8) : (tensor<4xf32>) -> tensor<4xui32>
    %10 = "stablehlo.constant"() <{value = dense<16> : tensor<4xui32>}> : () -> tensor<4xui32>
    %11 = "stablehlo.shift_right_logical"(%9, %10) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %12 = "stablehlo.constant"() <{value = dense<1> : tensor<4xui32>}> : () -> tensor<4xui32>
    %13 = "stablehlo.and"(%11, %12) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %14 = "stablehlo.constant"() <{value = dense<32767> : tensor<4xui32>}> : () -> tensor<4xui32>
    %15 = "stablehlo.add"(%9, %14) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %16 = "stablehlo.add"(%15, %13) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %17 = "stablehlo.constant"() <{value = dense<4294901760> : tensor<4xui32>}> : () -> tensor<4xui32>
    %18 = "stablehlo.and"(%16, %17) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %19 = "stablehlo.compare"(%8, %8) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %20 = "stablehlo.constant"() <{value = dense<2143289344> : tensor<4xui32>}> : () -> tensor<4xui32>
    %21 = "stablehlo.select"(%19, %20, %18) : (tensor<4xi1>, tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %22 = "stablehlo.bitcast_convert"(%21) : (tensor<4xui32>) -> tensor<4xf32>
    %23 = "stablehlo.negate"(%22) : (tensor<4xf32>) -> tensor<4xf32>
    %24 = "stablehlo.bitcast_convert"(%23) : (tensor<4xf32>) -> tensor<4xui32>
    %25 = "stablehlo.constant"() <{value = dense<16> : tensor<4xui32>}> : () -> tensor<4xui32>
    %26 = "stablehlo.shift_right_logical"(%24, %25) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %27 = "stablehlo.convert"(%26) : (tensor<4xui32>) -> tensor<4xui16>
    %28 = "stablehlo.reduce"(%5, %6) <{dimensions = array<i64: 0>}> ({
    ^bb0(%49: tensor<f32>, %50: tensor<f32>):
      %51 = "stablehlo.add"(%49, %50) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%51) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %29 = "stablehlo.bitcast_convert"(%28) : (tensor<f32>) -> tensor<ui32>
    %30 = "stablehlo.constant"() <{value = dense<16> : tensor<ui32>}> : () -> tensor<ui32>
    %31 = "stablehlo.shift_right_logical"(%29, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %32 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
    %33 = "stablehlo.and"(%31, %32) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %34 = "stablehlo.constant"() <{value = dense<32767> : tensor<ui32>}> : () -> tensor<ui32>
    %35 = "stablehlo.add"(%29, %34) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %36 = "stablehlo.add"(%35, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %37 = "stablehlo.constant"() <{value = dense<4294901760> : tensor<ui32>}> : () -> tensor<ui32>
    %38 = "stablehlo.and"(%36, %37) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %39 = "stablehlo.compare"(%28, %28) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %40 = "stablehlo.constant"() <{value = dense<2143289344> : tensor<ui32>}> : () -> tensor<ui32>
    %41 = "stablehlo.select"(%39, %40, %38) : (tensor<i1>, tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %42 = "stablehlo.constant"() <{value = dense<16> : tensor<ui32>}> : () -> tensor<ui32>
    %43 = "stablehlo.shift_right_logical"(%41, %42) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %44 = "stablehlo.convert"(%43) : (tensor<ui32>) -> tensor<ui16>
    %45 = "stablehlo.add"(%1, %1) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %46 = "stablehlo.constant"() <{value = dense<4> : tensor<4xi8>}> : () -> tensor<4xi8>
    %47 = "stablehlo.shift_left"(%45, %46) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %48 = "stablehlo.shift_right_arithmetic"(%47, %46) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    "func.return"(%27, %44, %48) : (tensor<4xui16>, tensor<ui16>, tensor<4xi8>) -> ()
  }) : () -> ()
}) : () -> ()
