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
    %6 = "stablehlo.constant"() <{value = dense<4> : tensor<4xi8>}> : () -> tensor<4xi8>
    %7 = "stablehlo.shift_left"(%1, %6) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %8 = "stablehlo.shift_right_arithmetic"(%7, %6) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %9 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<f32>}> : () -> tensor<f32>
    %10 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %11 = "stablehlo.add"(%5, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.bitcast_convert"(%11) : (tensor<4xf32>) -> tensor<4xui32>
    %13 = "stablehlo.constant"() <{value = dense<16> : tensor<4xui32>}> : () -> tensor<4xui32>
    %14 = "stablehlo.shift_right_logical"(%12, %13) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %15 = "stablehlo.constant"() <{value = dense<1> : tensor<4xui32>}> : () -> tensor<4xui32>
    %16 = "stablehlo.and"(%14, %15) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %17 = "stablehlo.constant"() <{value = dense<32767> : tensor<4xui32>}> : () -> tensor<4xui32>
    %18 = "stablehlo.add"(%12, %17) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %19 = "stablehlo.add"(%18, %16) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %20 = "stablehlo.constant"() <{value = dense<4294901760> : tensor<4xui32>}> : () -> tensor<4xui32>
    %21 = "stablehlo.and"(%19, %20) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %22 = "stablehlo.compare"(%11, %11) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %23 = "stablehlo.constant"() <{value = dense<2143289344> : tensor<4xui32>}> : () -> tensor<4xui32>
    %24 = "stablehlo.select"(%22, %23, %21) : (tensor<4xi1>, tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %25 = "stablehlo.bitcast_convert"(%24) : (tensor<4xui32>) -> tensor<4xf32>
    %26 = "stablehlo.negate"(%25) : (tensor<4xf32>) -> tensor<4xf32>
    %27 = "stablehlo.bitcast_convert"(%26) : (tensor<4xf32>) -> tensor<4xui32>
    %28 = "stablehlo.constant"() <{value = dense<16> : tensor<4xui32>}> : () -> tensor<4xui32>
    %29 = "stablehlo.shift_right_logical"(%27, %28) : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xui32>
    %30 = "stablehlo.convert"(%29) : (tensor<4xui32>) -> tensor<4xui16>
    %31 = "stablehlo.reduce"(%5, %9) <{dimensions = array<i64: 0>}> ({
    ^bb0(%54: tensor<f32>, %55: tensor<f32>):
      %56 = "stablehlo.add"(%54, %55) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%56) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %32 = "stablehlo.bitcast_convert"(%31) : (tensor<f32>) -> tensor<ui32>
    %33 = "stablehlo.constant"() <{value = dense<16> : tensor<ui32>}> : () -> tensor<ui32>
    %34 = "stablehlo.shift_right_logical"(%32, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %35 = "stablehlo.constant"() <{value = dense<1> : tensor<ui32>}> : () -> tensor<ui32>
    %36 = "stablehlo.and"(%34, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %37 = "stablehlo.constant"() <{value = dense<32767> : tensor<ui32>}> : () -> tensor<ui32>
    %38 = "stablehlo.add"(%32, %37) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %39 = "stablehlo.add"(%38, %36) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %40 = "stablehlo.constant"() <{value = dense<4294901760> : tensor<ui32>}> : () -> tensor<ui32>
    %41 = "stablehlo.and"(%39, %40) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %42 = "stablehlo.compare"(%31, %31) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %43 = "stablehlo.constant"() <{value = dense<2143289344> : tensor<ui32>}> : () -> tensor<ui32>
    %44 = "stablehlo.select"(%42, %43, %41) : (tensor<i1>, tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %45 = "stablehlo.constant"() <{value = dense<16> : tensor<ui32>}> : () -> tensor<ui32>
    %46 = "stablehlo.shift_right_logical"(%44, %45) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %47 = "stablehlo.convert"(%46) : (tensor<ui32>) -> tensor<ui16>
    %48 = "stablehlo.add"(%8, %8) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %49 = "stablehlo.constant"() <{value = dense<4> : tensor<4xi8>}> : () -> tensor<4xi8>
    %50 = "stablehlo.shift_left"(%48, %49) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %51 = "stablehlo.shift_right_arithmetic"(%50, %49) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    %52 = "stablehlo.constant"() <{value = dense<15> : tensor<4xi8>}> : () -> tensor<4xi8>
    %53 = "stablehlo.and"(%51, %52) : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
    "func.return"(%30, %47, %53) : (tensor<4xui16>, tensor<ui16>, tensor<4xi8>) -> ()
  }) : () -> ()
}) : () -> ()
