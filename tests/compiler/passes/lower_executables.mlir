// passes: lower-executables
// A workgroup computes a block of a dot's results: slices of both operands in shared memory, a barrier on either side.
"builtin.module"() ({
  "hl_seq.program"() <{machine = "gpu", sym_name = "spirv_gpu"}> ({
    "ll_seq.executable"() <{sym_name = "dot"}> ({
      "ll_seq.entry"() <{bindings = [{access = "read", length = 1024 : i64}, {access = "read", length = 960 : i64}, {access = "write", length = 960 : i64}], schedules = [#kernel.schedule<[tile(m, 2), tile(n, 1), bind(grid, workgroup), bind(m, local, 8), bind(n, local, 16), stage(lhs, shared, 16), stage(rhs, shared, 16), guard(n, clamp)]>], sym_name = "dot", workload = array<i64: 240, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "ll_seq.load_input"(%0) : (!ll_seq.binding) -> tensor<16x16xf32>
        %4 = "ll_seq.load_input"(%1) : (!ll_seq.binding) -> tensor<16x15xf32>
        %5 = "stablehlo.dot_general"(%3, %4) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<16x16xf32>, tensor<16x15xf32>) -> tensor<16x15xf32>
        "ll_seq.store_output"(%5, %2) : (tensor<16x15xf32>, !ll_seq.binding) -> ()
        "ll_seq.end"() : () -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
// =====
"builtin.module"() ({
  "hl_seq.program"() <{machine = "gpu", sym_name = "spirv_gpu"}> ({
    "ll_seq.executable"() <{sym_name = "dot"}> ({
      "ll_seq.entry"() <{binding_types = [tensor<16x16xf32>, tensor<16x15xf32>, tensor<16x15xf32>], bindings = [{access = "read", length = 1024 : i64}, {access = "read", length = 960 : i64}, {access = "write", length = 960 : i64}], schedules = [#kernel.schedule<[tile(m, 2), tile(n, 1), bind(grid, workgroup), bind(m, local, 8), bind(n, local, 16), stage(lhs, shared, 16), stage(rhs, shared, 16), guard(n, clamp)]>], source_ops = ["stablehlo.dot_general"], sym_name = "dot", workgroup_size = array<i64: 128, 1, 1>, workload = array<i64: 128, 1, 1>}> ({
      ^bb0(%0: !ll_seq.binding, %1: !ll_seq.binding, %2: !ll_seq.binding):
        %3 = "kernel.constant"() <{value = 0 : ui32}> : () -> ui32
        %4 = "kernel.constant"() <{value = 16 : ui32}> : () -> ui32
        %5 = "kernel.constant"() <{value = 8 : ui32}> : () -> ui32
        %6 = "kernel.constant"() <{value = 14 : ui32}> : () -> ui32
        %7 = "kernel.constant"() <{value = 18 : ui32}> : () -> ui32
        %8 = "kernel.constant"() <{value = 144 : ui32}> : () -> ui32
        %9 = "kernel.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
        %10 = "kernel.constant"() <{value = 1 : ui32}> : () -> ui32
        %11 = "kernel.constant"() <{value = 128 : ui32}> : () -> ui32
        %12 = "kernel.constant"() <{value = 15 : ui32}> : () -> ui32
        %13 = "kernel.constant"() <{value = 120 : ui32}> : () -> ui32
        %14 = "kernel.local_id"() : () -> ui32
        %15 = "kernel.unchecked_divide"(%14, %4) : (ui32, ui32) -> ui32
        %16 = "kernel.unchecked_remainder"(%14, %4) : (ui32, ui32) -> ui32
        %17 = "kernel.compare_lt"(%16, %6) : (ui32, ui32) -> i1
        %18 = "kernel.select"(%17, %16, %6) : (i1, ui32, ui32) -> ui32
        %19 = "kernel.shared"() : () -> !kernel.shared<288xf32>
        %20 = "kernel.shared"() : () -> !kernel.shared<288xf32>
        %21 = "kernel.multiply"(%16, %7) : (ui32, ui32) -> ui32
        %22 = "kernel.add"(%21, %15) : (ui32, ui32) -> ui32
        %23 = "kernel.add"(%22, %5) : (ui32, ui32) -> ui32
        %24 = "kernel.multiply"(%15, %7) : (ui32, ui32) -> ui32
        %25 = "kernel.add"(%24, %16) : (ui32, ui32) -> ui32
        %26 = "kernel.add"(%25, %8) : (ui32, ui32) -> ui32
        %27 = "kernel.multiply"(%15, %12) : (ui32, ui32) -> ui32
        %28 = "kernel.add"(%27, %18) : (ui32, ui32) -> ui32
        %29:2 = "kernel.for"(%3, %4, %4, %9, %9) ({
        ^bb0(%33: ui32, %34: f32, %35: f32):
          %36 = "kernel.add"(%14, %33) : (ui32, ui32) -> ui32
          %37 = "kernel.load"(%0, %36) : (!ll_seq.binding, ui32) -> f32
          %38 = "kernel.add"(%36, %11) : (ui32, ui32) -> ui32
          %39 = "kernel.load"(%0, %38) : (!ll_seq.binding, ui32) -> f32
          %40 = "kernel.multiply"(%33, %12) : (ui32, ui32) -> ui32
          %41 = "kernel.add"(%28, %40) : (ui32, ui32) -> ui32
          %42 = "kernel.load"(%1, %41) : (!ll_seq.binding, ui32) -> f32
          %43 = "kernel.add"(%41, %13) : (ui32, ui32) -> ui32
          %44 = "kernel.load"(%1, %43) : (!ll_seq.binding, ui32) -> f32
          "kernel.barrier"() : () -> ()
          "kernel.store_shared"(%37, %19, %22) : (f32, !kernel.shared<288xf32>, ui32) -> ()
          "kernel.store_shared"(%39, %19, %23) : (f32, !kernel.shared<288xf32>, ui32) -> ()
          "kernel.store_shared"(%42, %20, %25) : (f32, !kernel.shared<288xf32>, ui32) -> ()
          "kernel.store_shared"(%44, %20, %26) : (f32, !kernel.shared<288xf32>, ui32) -> ()
          "kernel.barrier"() : () -> ()
          %45:2 = "kernel.for"(%3, %4, %10, %34, %35) ({
          ^bb0(%46: ui32, %47: f32, %48: f32):
            %49 = "kernel.and"(%46, %12) : (ui32, ui32) -> ui32
            %50 = "kernel.multiply"(%49, %7) : (ui32, ui32) -> ui32
            %51 = "kernel.add"(%50, %15) : (ui32, ui32) -> ui32
            %52 = "kernel.load_shared"(%19, %51) : (!kernel.shared<288xf32>, ui32) -> f32
            %53 = "kernel.add"(%51, %5) : (ui32, ui32) -> ui32
            %54 = "kernel.load_shared"(%19, %53) : (!kernel.shared<288xf32>, ui32) -> f32
            %55 = "kernel.add"(%50, %16) : (ui32, ui32) -> ui32
            %56 = "kernel.load_shared"(%20, %55) : (!kernel.shared<288xf32>, ui32) -> f32
            %57 = "kernel.multiply_add"(%52, %56, %47) : (f32, f32, f32) -> f32
            %58 = "kernel.multiply_add"(%54, %56, %48) : (f32, f32, f32) -> f32
            "kernel.yield"(%57, %58) : (f32, f32) -> ()
          }) : (ui32, ui32, ui32, f32, f32) -> (f32, f32)
          "kernel.yield"(%45#0, %45#1) : (f32, f32) -> ()
        }) : (ui32, ui32, ui32, f32, f32) -> (f32, f32)
        %30 = "kernel.add"(%28, %13) : (ui32, ui32) -> ui32
        %31 = "kernel.workgroup_id"() : () -> ui32
        %32 = "kernel.compare_lt"(%31, %10) : (ui32, ui32) -> i1
        "kernel.if"(%32) ({
          %33 = "kernel.compare_lt"(%16, %12) : (ui32, ui32) -> i1
          "kernel.if"(%33) ({
            "kernel.store"(%29#0, %2, %28) : (f32, !ll_seq.binding, ui32) -> ()
            "kernel.store"(%29#1, %2, %30) : (f32, !ll_seq.binding, ui32) -> ()
            "kernel.yield"() : () -> ()
          }, {
            "kernel.yield"() : () -> ()
          }) : (i1) -> ()
          "kernel.yield"() : () -> ()
        }, {
          "kernel.yield"() : () -> ()
        }) : (i1) -> ()
        "kernel.return"() : () -> ()
      }) : () -> ()
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
