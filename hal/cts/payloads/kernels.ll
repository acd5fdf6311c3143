; The kernels of the conformance suite as machine code, in LLVM IR. The ABI: the addresses of the bindings, then the
; parameter words n and value; an entry runs the workgroups begin <= g < end. Entry i of the image is entry i of
; orchestrion.hal.cts.kernels. `orchestrion.tools.native_images` compiles this text into `kernels.<architecture>.img`.

; the first element behind the workgroups of 64 elements before %group, at most %n
define internal i64 @first(i64 %group, i64 %n) {
  %element = shl i64 %group, 6
  %bounded = call i64 @llvm.umin.i64(i64 %element, i64 %n)
  ret i64 %bounded
}

; c[i] = a[i] + b[i] + value for i < n
define void @add(ptr %arguments, i64 %begin, i64 %end) {
  %a = load ptr, ptr %arguments
  %b_place = getelementptr ptr, ptr %arguments, i64 1
  %b = load ptr, ptr %b_place
  %c_place = getelementptr ptr, ptr %arguments, i64 2
  %c = load ptr, ptr %c_place
  %n_place = getelementptr ptr, ptr %arguments, i64 3
  %n = load i32, ptr %n_place
  %value_place = getelementptr i32, ptr %n_place, i64 1
  %value = load i32, ptr %value_place
  %wide = zext i32 %n to i64
  %from = call i64 @first(i64 %begin, i64 %wide)
  %to = call i64 @first(i64 %end, i64 %wide)
  br label %look
look:
  %i = phi i64 [ %from, %0 ], [ %next, %element ]
  %more = icmp ult i64 %i, %to
  br i1 %more, label %element, label %finished
element:
  %left_place = getelementptr i32, ptr %a, i64 %i
  %left = load i32, ptr %left_place
  %right_place = getelementptr i32, ptr %b, i64 %i
  %right = load i32, ptr %right_place
  %sum = add i32 %left, %right
  %result = add i32 %sum, %value
  %result_place = getelementptr i32, ptr %c, i64 %i
  store i32 %result, ptr %result_place
  %next = add i64 %i, 1
  br label %look
finished:
  ret void
}

; out[i] = i + value for i < n
define void @iota(ptr %arguments, i64 %begin, i64 %end) {
  %out = load ptr, ptr %arguments
  %n_place = getelementptr ptr, ptr %arguments, i64 1
  %n = load i32, ptr %n_place
  %value_place = getelementptr i32, ptr %n_place, i64 1
  %value = load i32, ptr %value_place
  %wide = zext i32 %n to i64
  %to = call i64 @llvm.umin.i64(i64 %end, i64 %wide)
  br label %look
look:
  %i = phi i64 [ %begin, %0 ], [ %next, %element ]
  %more = icmp ult i64 %i, %to
  br i1 %more, label %element, label %finished
element:
  %narrow = trunc i64 %i to i32
  %result = add i32 %narrow, %value
  %result_place = getelementptr i32, ptr %out, i64 %i
  store i32 %result, ptr %result_place
  %next = add i64 %i, 1
  br label %look
finished:
  ret void
}

; data[i] = data[i] + value for i < n
define void @increment(ptr %arguments, i64 %begin, i64 %end) {
  %data = load ptr, ptr %arguments
  %n_place = getelementptr ptr, ptr %arguments, i64 1
  %n = load i32, ptr %n_place
  %value_place = getelementptr i32, ptr %n_place, i64 1
  %value = load i32, ptr %value_place
  %wide = zext i32 %n to i64
  %from = call i64 @first(i64 %begin, i64 %wide)
  %to = call i64 @first(i64 %end, i64 %wide)
  br label %look
look:
  %i = phi i64 [ %from, %0 ], [ %next, %element ]
  %more = icmp ult i64 %i, %to
  br i1 %more, label %element, label %finished
element:
  %place = getelementptr i32, ptr %data, i64 %i
  %old = load i32, ptr %place
  %new = add i32 %old, %value
  store i32 %new, ptr %place
  %next = add i64 %i, 1
  br label %look
finished:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
