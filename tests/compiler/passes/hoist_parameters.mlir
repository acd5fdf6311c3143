// passes: hoist-parameters
// Functions share a parameter; each block loads what it uses. One that nobody uses is none any more.
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{orchestrion.name = "x"}, {}, {orchestrion.name = "w", orchestrion.parameter = {name = "w", type = tensor<4xbf16>}, orchestrion.type = tensor<4xbf16>}, {orchestrion.parameter = {name = "unused", type = tensor<4xf32>}}], function_type = (tensor<4xui16>, tensor<i1>, tensor<4xui16>, tensor<4xf32>) -> tensor<4xui16>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xui16>, %1: tensor<i1>, %2: tensor<4xui16>, %3: tensor<4xf32>):
    %4 = "stablehlo.add"(%0, %2) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
    "util.cond_branch"(%1)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb1:
    %5 = "stablehlo.multiply"(%4, %2) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
    "util.branch"(%5)[^bb3] : (tensor<4xui16>) -> ()
  ^bb2:
    "util.branch"(%2)[^bb3] : (tensor<4xui16>) -> ()
  ^bb3(%6: tensor<4xui16>):
    "func.return"(%6) : (tensor<4xui16>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{orchestrion.parameter = {name = "w", type = tensor<4xbf16>}}], function_type = (tensor<4xui16>) -> tensor<4xui16>, sym_name = "other"}> ({
  ^bb0(%0: tensor<4xui16>):
    "func.return"(%0) : (tensor<4xui16>) -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "util.global"() <{parameter = {name = "w", type = tensor<4xbf16>}, sym_name = "parameter_0", type = tensor<4xui16>}> : () -> ()
  "func.func"() <{arg_attrs = [{orchestrion.name = "x"}, {}], function_type = (tensor<4xui16>, tensor<i1>) -> tensor<4xui16>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xui16>, %1: tensor<i1>):
    %2 = "util.global_load"() <{ref = @parameter_0}> : () -> tensor<4xui16>
    %3 = "stablehlo.add"(%0, %2) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
    "util.cond_branch"(%1)[^bb1, ^bb2] <{counts = array<i64: 0, 0>}> : (tensor<i1>) -> ()
  ^bb1:
    %4 = "util.global_load"() <{ref = @parameter_0}> : () -> tensor<4xui16>
    %5 = "stablehlo.multiply"(%3, %4) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
    "util.branch"(%5)[^bb3] : (tensor<4xui16>) -> ()
  ^bb2:
    %6 = "util.global_load"() <{ref = @parameter_0}> : () -> tensor<4xui16>
    "util.branch"(%6)[^bb3] : (tensor<4xui16>) -> ()
  ^bb3(%7: tensor<4xui16>):
    "func.return"(%7) : (tensor<4xui16>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = () -> tensor<4xui16>, sym_name = "other"}> ({
    %0 = "util.global_load"() <{ref = @parameter_0}> : () -> tensor<4xui16>
    "func.return"(%0) : (tensor<4xui16>) -> ()
  }) : () -> ()
}) : () -> ()
