; The native half of the driver `cpu`: replays recorded commands, and hands workgroups out to helper threads.
;
; `orchestrion.tools.native_images` compiles this text into `worker.x86-64.img` and `worker.aarch64.img`. In front of it
; stand definitions that depend on the architecture: @pause, and functions that return the numbers of system calls. The
; code has no external symbols; the addresses of functions of the C library are in the pool. `layout.py` has the same
; structures.
;
; Threads. A *caller* runs @replay, a *helper* lives in @helper. All share one pool. A caller that holds `owner` publishes
; a job (`code` to `chunks`), then a ticket:
;
;     bits 63..32 epoch   31..22 number of chunks   21..11 chunks taken by helpers   10..0 chunks taken by the caller
;
; The caller takes chunks from the front, helpers take them from the back: a thread that runs a dispatch again, or one
; that reads its results, then mostly finds its data in the caches of its core. Whoever adds to a ticket whose chunks are
; not all taken owns a chunk: the caller that of its number, a helper that of its number from the end. A helper counts the
; chunk in `done` after its run. The caller returns once `done` is the number of chunks that helpers took. Helpers do not
; announce themselves: one that sleeps, or is late, takes no chunk and nobody waits for it. The job cannot change while a
; chunk is under way, so it is read after the chunk is taken. A caller that finds the pool taken runs its job alone.
;
; Sleep. A helper that found nothing for `spin` nanoseconds sleeps on the epoch. It counts itself in `sleepers` before it
; sleeps, and a caller reads `sleepers` after the ticket is published; both are sequentially consistent, so no wake is
; lost. Likewise `waiting`, when a caller sleeps on `done`.
;
; Cores. Helpers are bound to a core each, a caller is not. One that runs on the core of a helper would take turns with
; it, since the system lets it be for milliseconds. It moves to another core before it shares a long dispatch.
;
; Notes. Short dispatches are not shared: that takes longer than their work. The note of a dispatch is 0 if its time is
; not known. Then it starts in the caller's thread, with a look at the clock after each chunk, and is shared once it has
; taken 3 us. Bit 31 notes that it took so long, bit 30 that it is long enough to wake helpers that sleep at once: it took
; 40 us. The other bits count the runs until the note is 0 again.
;
; Time. @replay returns 1 when 50 ms have passed, between two chunks; called again, it continues there. The clock is read
; when `credit` is used up: after every chunk that is long, and after every 64th short one.
;
; Stacks. Entries keep arrays on the stack. @replay returns 3, and runs nothing, if the stack of the caller's thread has
; less room than they need.

%Command = type { i32, i32, ptr, ptr, i64 }
; operation, target of a jump or note about a dispatch, code or memory, arguments, workgroups
%Patch = type { ptr, i64, i64 }
; address of the pointer, slot of the buffer, offset in the buffer
%State = type { ptr, ptr, ptr, i64, ptr, i64, i64, i64, i64, i32, i32, i32, i32, i64, i64, i64 }
; a recording: 0 pool, 1 commands, 2 patches, 3 number of patches, 4 addresses of the buffers by slot; how far it is:
; 5 command, 6 next workgroup, 7 start of the slice, 8 last look at the clock, 9 bound, 10 threads, 11 interval, 12 credit;
; 13 lowest address of the thread's stack, 14 bytes of it that entries need; 15 end of the workgroups that are left, 0 for
; the last one
%Pool = type { i64, [56 x i8], i32, i32, [56 x i8], i32, i32, i32, i32, i32, i32, i32, i32, [32 x i8],
               ptr, ptr, i64, i64, i64, i32, i32, [16 x i8], ptr, ptr, ptr, ptr, [16 x i64] }
; 0 ticket, 2 done, 3 waiting, 5 owner, 6 stop, 7 sleepers, 8 halt, 9 helpers, 10 callers, 11 spin,
; 14 code, 15 arguments, 16 first, 17 end, 18 chunks, 19 threads, 22 syscall, 23 clock_gettime, 24 memmove, 25 sched_getcpu,
; 26 home: set of the cores that no helper is bound to

; ---- services of the system ----

define internal i64 @now(ptr %pool, i64 %clock) {
  %time = alloca { i64, i64 }
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 23
  %function = load ptr, ptr %place
  %code = call i32 %function(i64 %clock, ptr %time)
  %seconds = load i64, ptr %time
  %rest_place = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %rest = load i64, ptr %rest_place
  %scaled = mul i64 %seconds, 1000000000
  %sum = add i64 %scaled, %rest
  ret i64 %sum
}

define internal void @sleep(ptr %pool, ptr %word, i32 %value) {
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 22
  %function = load ptr, ptr %place
  %number = call i64 @futex_number()
  %wide = zext i32 %value to i64
  %code = call i64 (i64, ...) %function(i64 %number, ptr %word, i64 128, i64 %wide, i64 0, i64 0, i64 0)
  ret void
}

define internal void @wake(ptr %pool, ptr %word, i64 %most) {
  %place = getelementptr %Pool, ptr %pool, i64 0, i32 22
  %function = load ptr, ptr %place
  %number = call i64 @futex_number()
  %code = call i64 (i64, ...) %function(i64 %number, ptr %word, i64 129, i64 %most, i64 0, i64 0, i64 0)
  ret void
}

; Whether a thread that has found nothing in %turn looks since the time %start looks again: the time of its first look, or
; -1 once it has waited for `spin` nanoseconds. The clock is read in every 16th look.
define internal i64 @patience(ptr %pool, i32 %turn, i64 %start) {
  %part = and i32 %turn, 15
  %due = icmp eq i32 %part, 0
  br i1 %due, label %clock, label %go_on
clock:
  %now = call i64 @now(ptr %pool, i64 1)
  %first = icmp eq i32 %turn, 0
  %since = select i1 %first, i64 %now, i64 %start
  %spent = sub i64 %now, %since
  %spin_place = getelementptr %Pool, ptr %pool, i64 0, i32 11
  %spin = load i32, ptr %spin_place
  %most = zext i32 %spin to i64
  %tired = icmp sge i64 %spent, %most
  %answer = select i1 %tired, i64 -1, i64 %since
  ret i64 %answer
go_on:
  ret i64 %start
}

; Move this thread away from the cores of helpers, if it may run elsewhere. Afterwards it may run where it could before.
define internal void @move(ptr %pool) {
  %old = alloca [16 x i64]
  %new = alloca [16 x i64]
  %function_place = getelementptr %Pool, ptr %pool, i64 0, i32 25
  %function = load ptr, ptr %function_place
  %core = call i32 %function()
  %known = icmp ult i32 %core, 1024
  br i1 %known, label %look, label %finished
look:
  %word = lshr i32 %core, 6
  %bit = and i32 %core, 63
  %home_place = getelementptr %Pool, ptr %pool, i64 0, i32 26, i32 %word
  %home = load i64, ptr %home_place
  %bit_wide = zext i32 %bit to i64
  %moved = lshr i64 %home, %bit_wide
  %at_home = trunc i64 %moved to i1
  br i1 %at_home, label %finished, label %ask
ask:
  %call_place = getelementptr %Pool, ptr %pool, i64 0, i32 22
  %call = load ptr, ptr %call_place
  %get = call i64 @getaffinity_number()
  %size = call i64 (i64, ...) %call(i64 %get, i64 0, i64 128, ptr %old)
  %answered = icmp sgt i64 %size, 0
  br i1 %answered, label %loop, label %finished
loop:
  %at = phi i64 [ 0, %ask ], [ %at_next, %loop ]
  %some = phi i64 [ 0, %ask ], [ %some_next, %loop ]
  %old_place = getelementptr i64, ptr %old, i64 %at
  %old_word = load i64, ptr %old_place
  %mask_place = getelementptr %Pool, ptr %pool, i64 0, i32 26, i64 %at
  %mask = load i64, ptr %mask_place
  %new_word = and i64 %old_word, %mask
  %new_place = getelementptr i64, ptr %new, i64 %at
  store i64 %new_word, ptr %new_place
  %some_next = or i64 %some, %new_word
  %at_next = add i64 %at, 1
  %bytes = shl i64 %at_next, 3
  %more = icmp ult i64 %bytes, %size
  br i1 %more, label %loop, label %masked
masked:
  %none = icmp eq i64 %some_next, 0
  br i1 %none, label %finished, label %set
set:
  %set_number = call i64 @setaffinity_number()
  %there = call i64 (i64, ...) %call(i64 %set_number, i64 0, i64 %size, ptr %new)
  %back = call i64 (i64, ...) %call(i64 %set_number, i64 0, i64 %size, ptr %old)
  br label %finished
finished:
  ret void
}

; ---- the time slice ----

; Whether to return now. Every chunk and every command costs one credit.
define internal i1 @over(ptr %state) {
  %credit_place = getelementptr %State, ptr %state, i64 0, i32 12
  %credit = load i32, ptr %credit_place
  %left = sub i32 %credit, 1
  store i32 %left, ptr %credit_place
  %more = icmp sgt i32 %left, 0
  br i1 %more, label %no, label %look
look:
  %pool = load ptr, ptr %state
  %now = call i64 @now(ptr %pool, i64 6)
  %last_place = getelementptr %State, ptr %state, i64 0, i32 8
  %last = load i64, ptr %last_place
  store i64 %now, ptr %last_place
  %same = icmp eq i64 %now, %last
  %interval_place = getelementptr %State, ptr %state, i64 0, i32 11
  %interval = load i32, ptr %interval_place
  %double = shl i32 %interval, 1
  %large = icmp ugt i32 %double, 64
  %bounded = select i1 %large, i32 64, i32 %double
  %new = select i1 %same, i32 %bounded, i32 1
  store i32 %new, ptr %interval_place
  store i32 %new, ptr %credit_place
  %halt_place = getelementptr %Pool, ptr %pool, i64 0, i32 8
  %halt = load atomic i32, ptr %halt_place monotonic, align 4
  %halted = icmp ne i32 %halt, 0
  %start_place = getelementptr %State, ptr %state, i64 0, i32 7
  %start = load i64, ptr %start_place
  %elapsed = sub i64 %now, %start
  %long = icmp sgt i64 %elapsed, 50000000
  %out = or i1 %halted, %long
  ret i1 %out
no:
  ret i1 false
}

; Look at the clock after the next chunk: the coming chunks may be longer than the commands before.
define internal void @look_soon(ptr %state) {
  %interval_place = getelementptr %State, ptr %state, i64 0, i32 11
  store i32 1, ptr %interval_place
  %credit_place = getelementptr %State, ptr %state, i64 0, i32 12
  store i32 1, ptr %credit_place
  ret void
}

; ---- dispatches ----

; Run the workgroups from `next` of the state to %total in this thread. Returns false if the slice ended first.
define internal i1 @alone(ptr %state, ptr %code, ptr %arguments, i64 %total) {
  %next_place = getelementptr %State, ptr %state, i64 0, i32 6
  %raised = add i64 %total, 63
  %width = lshr i64 %raised, 6
  br label %loop
loop:
  %next = load i64, ptr %next_place
  %wanted = add i64 %next, %width
  %end = call i64 @llvm.umin.i64(i64 %wanted, i64 %total)
  call void %code(ptr %arguments, i64 %next, i64 %end)
  store i64 %end, ptr %next_place
  %finished = icmp uge i64 %end, %total
  br i1 %finished, label %yes, label %time
time:
  %out = call i1 @over(ptr %state)
  br i1 %out, label %no, label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

; The first workgroup of a chunk of the job with the workgroups from %first to %end. Chunks differ by one workgroup at
; most, so that threads which take as many of them have equal work.
define internal i64 @bound(i64 %first, i64 %end, i64 %chunks, i64 %number) {
  %count = sub i64 %end, %first
  %least = udiv i64 %count, %chunks
  %larger = urem i64 %count, %chunks ; the first of these chunks have one workgroup more
  %before = call i64 @llvm.umin.i64(i64 %number, i64 %larger)
  %offset = mul i64 %least, %number
  %sum = add i64 %offset, %before
  %bound = add i64 %first, %sum
  ret i64 %bound
}

; Run one chunk of the job.
define internal void @chunk(ptr %pool, i64 %number) {
  %code_place = getelementptr %Pool, ptr %pool, i64 0, i32 14
  %code = load ptr, ptr %code_place
  %arguments_place = getelementptr %Pool, ptr %pool, i64 0, i32 15
  %arguments = load ptr, ptr %arguments_place
  %first_place = getelementptr %Pool, ptr %pool, i64 0, i32 16
  %first = load i64, ptr %first_place
  %end_place = getelementptr %Pool, ptr %pool, i64 0, i32 17
  %end = load i64, ptr %end_place
  %chunks_place = getelementptr %Pool, ptr %pool, i64 0, i32 18
  %chunks = load i64, ptr %chunks_place
  %following = add i64 %number, 1
  %from = call i64 @bound(i64 %first, i64 %end, i64 %chunks, i64 %number)
  %to = call i64 @bound(i64 %first, i64 %end, i64 %chunks, i64 %following)
  call void %code(ptr %arguments, i64 %from, i64 %to)
  ret void
}

; Wait until helpers have finished %count chunks of the job.
define internal void @join(ptr %pool, i32 %count) {
  %done_place = getelementptr %Pool, ptr %pool, i64 0, i32 2
  %waiting_place = getelementptr %Pool, ptr %pool, i64 0, i32 3
  br label %look
look:
  %turn = phi i32 [ 0, %0 ], [ %turned, %again ]
  %start = phi i64 [ 0, %0 ], [ %since, %again ]
  %done = load atomic i32, ptr %done_place acquire, align 4
  %reached = icmp eq i32 %done, %count
  br i1 %reached, label %finished, label %spinning
spinning:
  %since = call i64 @patience(ptr %pool, i32 %turn, i64 %start)
  %tired = icmp slt i64 %since, 0
  br i1 %tired, label %announce, label %again
again:
  call void @pause()
  %turned = add i32 %turn, 1
  br label %look
announce:
  store atomic i32 1, ptr %waiting_place seq_cst, align 4
  br label %check
check:
  %seen = load atomic i32, ptr %done_place seq_cst, align 4
  %there = icmp eq i32 %seen, %count
  br i1 %there, label %awake, label %asleep
asleep:
  call void @sleep(ptr %pool, ptr %done_place, i32 %seen)
  br label %check
awake:
  store atomic i32 0, ptr %waiting_place seq_cst, align 4
  br label %finished
finished:
  ret void
}

; Run the workgroups from `next` of the state to %total with the helpers; the caller holds `owner`. Returns false if the
; slice ended first.
define internal i1 @together(ptr %state, ptr %command, ptr %code, ptr %arguments, i64 %total) {
  %pool = load ptr, ptr %state
  %next_place = getelementptr %State, ptr %state, i64 0, i32 6
  %first = load i64, ptr %next_place
  %threads_place = getelementptr %State, ptr %state, i64 0, i32 10
  %threads = load i32, ptr %threads_place
  %note_place = getelementptr %Command, ptr %command, i64 0, i32 1
  ; twelve chunks a thread, at most 512
  %count = sub i64 %total, %first
  %wide = zext i32 %threads to i64
  %wanted = mul i64 %wide, 12
  %bounded = call i64 @llvm.umin.i64(i64 %wanted, i64 512)
  %chunks = call i64 @llvm.umin.i64(i64 %count, i64 %bounded)
  %note_before = load i32, ptr %note_place
  %move_bit = and i32 %note_before, 1073741824
  %far = icmp ne i32 %move_bit, 0
  br i1 %far, label %moving, label %publish
moving:
  call void @move(ptr %pool)
  br label %publish
publish:
  ; the job
  %job_code = getelementptr %Pool, ptr %pool, i64 0, i32 14
  store ptr %code, ptr %job_code
  %job_arguments = getelementptr %Pool, ptr %pool, i64 0, i32 15
  store ptr %arguments, ptr %job_arguments
  %job_first = getelementptr %Pool, ptr %pool, i64 0, i32 16
  store i64 %first, ptr %job_first
  %job_end = getelementptr %Pool, ptr %pool, i64 0, i32 17
  store i64 %total, ptr %job_end
  %job_chunks = getelementptr %Pool, ptr %pool, i64 0, i32 18
  store i64 %chunks, ptr %job_chunks
  %job_threads = getelementptr %Pool, ptr %pool, i64 0, i32 19
  store atomic i32 %threads, ptr %job_threads monotonic, align 4
  %done_place = getelementptr %Pool, ptr %pool, i64 0, i32 2
  store atomic i32 0, ptr %done_place monotonic, align 4
  ; the ticket
  %before = load atomic i64, ptr %pool monotonic, align 8
  %epoch = lshr i64 %before, 32
  %epoch_next = add i64 %epoch, 1
  %epoch_bits = shl i64 %epoch_next, 32
  %chunk_bits = shl i64 %chunks, 22
  %ticket = or i64 %epoch_bits, %chunk_bits
  store atomic i64 %ticket, ptr %pool seq_cst, align 8
  ; helpers that sleep are woken at once for a long dispatch, otherwise when it has taken 15 us
  %epoch_place = getelementptr i8, ptr %pool, i64 4
  %sleepers_place = getelementptr %Pool, ptr %pool, i64 0, i32 7
  %sleepers = load atomic i32, ptr %sleepers_place seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %measured, label %take
measured:
  %start = call i64 @now(ptr %pool, i64 1)
  %note = load i32, ptr %note_place
  %long_bit = and i32 %note, 1073741824
  %is_long = icmp ne i32 %long_bit, 0
  br i1 %is_long, label %wake_now, label %take
wake_now:
  %others = sub i64 %chunks, 1
  call void @wake(ptr %pool, ptr %epoch_place, i64 %others)
  br label %take
take:
  %started = phi i64 [ 0, %publish ], [ %start, %measured ], [ %start, %wake_now ], [ %started, %go_on ], [ %started, %unhurried ], [ %started, %wake_late ]
  %pending = phi i1 [ false, %publish ], [ true, %measured ], [ false, %wake_now ], [ false, %go_on ], [ true, %unhurried ], [ false, %wake_late ]
  %own = phi i32 [ 0, %publish ], [ 0, %measured ], [ 0, %wake_now ], [ %owned, %go_on ], [ %owned, %unhurried ], [ %owned, %wake_late ]
  %taken = atomicrmw add ptr %pool, i64 1 acquire, align 8
  %number = zext i32 %own to i64
  %back_bits = lshr i64 %taken, 11
  %back = and i64 %back_bits, 2047
  %gone = add i64 %number, %back
  %left = icmp ult i64 %gone, %chunks
  br i1 %left, label %run, label %close
run:
  call void @chunk(ptr %pool, i64 %number)
  %owned = add i32 %own, 1
  %out = call i1 @over(ptr %state)
  br i1 %out, label %close, label %go_on
go_on:
  br i1 %pending, label %hurry, label %take
hurry:
  %now = call i64 @now(ptr %pool, i64 1)
  %elapsed = sub i64 %now, %started
  %late = icmp sgt i64 %elapsed, 15000
  br i1 %late, label %wake_late, label %unhurried
unhurried:
  br label %take
wake_late:
  %rest = sub i64 %chunks, 1
  call void @wake(ptr %pool, ptr %epoch_place, i64 %rest)
  br label %take
close:
  %mine = phi i32 [ %own, %take ], [ %owned, %run ]
  %last = atomicrmw xchg ptr %pool, i64 %epoch_bits seq_cst, align 8
  %given_bits = lshr i64 %last, 11
  %given = and i64 %given_bits, 2047
  %mine_wide = zext i32 %mine to i64
  %others_most = sub i64 %chunks, %mine_wide
  %theirs = call i64 @llvm.umin.i64(i64 %given, i64 %others_most)
  %theirs_narrow = trunc i64 %theirs to i32
  call void @join(ptr %pool, i32 %theirs_narrow)
  ; what is left is between the chunks of the caller and those of the helpers
  %reached = call i64 @bound(i64 %first, i64 %total, i64 %chunks, i64 %mine_wide)
  store i64 %reached, ptr %next_place
  %front_chunks = sub i64 %chunks, %theirs
  %rest_end = call i64 @bound(i64 %first, i64 %total, i64 %chunks, i64 %front_chunks)
  %end_place = getelementptr %State, ptr %state, i64 0, i32 15
  store i64 %rest_end, ptr %end_place
  br i1 %asleep, label %learn, label %leave
learn:
  %end = call i64 @now(ptr %pool, i64 1)
  %took = sub i64 %end, %started
  %was_long = icmp sgt i64 %took, 40000
  %old = load i32, ptr %note_place
  %without = and i32 %old, -1073741825
  %with = or i32 %old, 1073741824
  %chosen = select i1 %was_long, i32 %with, i32 %without
  ; a note that ended with this run stays 0, so that the next one measures
  %ended = icmp eq i32 %old, 0
  %new = select i1 %ended, i32 0, i32 %chosen
  store i32 %new, ptr %note_place
  br label %leave
leave:
  %finished = icmp uge i64 %reached, %rest_end
  ret i1 %finished
}

; Run a dispatch whose time is not known in this thread, until it is known. Returns 0 if it is over, 1 if the slice ended
; first, 2 if it is to be shared from here on.
define internal i32 @measure(ptr %state, ptr %command, ptr %code, ptr %arguments, i64 %total) {
  %pool = load ptr, ptr %state
  %next_place = getelementptr %State, ptr %state, i64 0, i32 6
  %note_place = getelementptr %Command, ptr %command, i64 0, i32 1
  %first = load i64, ptr %next_place
  %raised = add i64 %total, 63
  %least = lshr i64 %raised, 6
  %start = call i64 @now(ptr %pool, i64 1)
  br label %loop
loop:
  %next = phi i64 [ %first, %0 ], [ %end, %time ]
  %width = phi i64 [ %least, %0 ], [ %double, %time ]
  %wanted = add i64 %next, %width
  %end = call i64 @llvm.umin.i64(i64 %wanted, i64 %total)
  call void %code(ptr %arguments, i64 %next, i64 %end)
  store i64 %end, ptr %next_place
  %now = call i64 @now(ptr %pool, i64 1)
  %elapsed = sub i64 %now, %start
  %long = icmp sgt i64 %elapsed, 3000
  %finished = icmp uge i64 %end, %total
  %known = or i1 %long, %finished
  br i1 %known, label %learn, label %time
time:
  %double = shl i64 %width, 1
  %out = call i1 @over(ptr %state)
  br i1 %out, label %no, label %loop
learn:
  %note = select i1 %long, i32 2147483712, i32 64
  store i32 %note, ptr %note_place
  %result = select i1 %finished, i32 0, i32 2
  ret i32 %result
no:
  ret i32 1
}

; Run the rest of a dispatch. Returns false if the slice ended first.
define internal i1 @dispatch(ptr %state, ptr %command) {
  %code_place = getelementptr %Command, ptr %command, i64 0, i32 2
  %code = load ptr, ptr %code_place
  %arguments_place = getelementptr %Command, ptr %command, i64 0, i32 3
  %arguments = load ptr, ptr %arguments_place
  %total_place = getelementptr %Command, ptr %command, i64 0, i32 4
  %every = load i64, ptr %total_place
  %end_place = getelementptr %State, ptr %state, i64 0, i32 15
  %end = load i64, ptr %end_place
  %whole = icmp eq i64 %end, 0
  %total = select i1 %whole, i64 %every, i64 %end
  %next_place = getelementptr %State, ptr %state, i64 0, i32 6
  %next = load i64, ptr %next_place
  %rest = sub i64 %total, %next
  switch i64 %rest, label %many [ i64 0, label %finished
                                  i64 1, label %once ]
once:
  call void %code(ptr %arguments, i64 %next, i64 %total)
  br label %finished
many:
  %note_place = getelementptr %Command, ptr %command, i64 0, i32 1
  %note = load i32, ptr %note_place
  %unknown = icmp eq i32 %note, 0
  br i1 %unknown, label %measured, label %known
known:
  %fewer = sub i32 %note, 1
  %count = and i32 %fewer, 1073741823
  %expired = icmp eq i32 %count, 0
  %noted = select i1 %expired, i32 0, i32 %fewer
  store i32 %noted, ptr %note_place
  %long = icmp slt i32 %note, 0
  br i1 %long, label %hurry, label %once
hurry:
  call void @look_soon(ptr %state)
  br label %shared
measured:
  call void @look_soon(ptr %state)
  %result = call i32 @measure(ptr %state, ptr %command, ptr %code, ptr %arguments, i64 %total)
  switch i32 %result, label %shared [ i32 0, label %finished
                                      i32 1, label %unfinished ]
shared:
  %threads_place = getelementptr %State, ptr %state, i64 0, i32 10
  %threads = load i32, ptr %threads_place
  %several = icmp ugt i32 %threads, 1
  br i1 %several, label %try, label %solo
try:
  %pool = load ptr, ptr %state
  %owner_place = getelementptr %Pool, ptr %pool, i64 0, i32 5
  %exchanged = cmpxchg ptr %owner_place, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %exchanged, 1
  br i1 %mine, label %taken, label %solo
taken:
  %shared_end = call i1 @together(ptr %state, ptr %command, ptr %code, ptr %arguments, i64 %total)
  store atomic i32 0, ptr %owner_place release, align 4
  br i1 %shared_end, label %finished, label %unfinished
solo:
  %solo_end = call i1 @alone(ptr %state, ptr %code, ptr %arguments, i64 %total)
  br i1 %solo_end, label %finished, label %unfinished
finished:
  store i64 0, ptr %next_place
  store i64 0, ptr %end_place
  ret i1 true
unfinished:
  ret i1 false
}

; ---- recordings ----

; Put the addresses of the buffers in the slots where the commands read them.
define internal void @bind(ptr %state) {
  %patches_place = getelementptr %State, ptr %state, i64 0, i32 2
  %patches = load ptr, ptr %patches_place
  %count_place = getelementptr %State, ptr %state, i64 0, i32 3
  %count = load i64, ptr %count_place
  %table_place = getelementptr %State, ptr %state, i64 0, i32 4
  %table = load ptr, ptr %table_place
  %none = icmp eq i64 %count, 0
  br i1 %none, label %finished, label %loop
loop:
  %index = phi i64 [ 0, %0 ], [ %following, %loop ]
  %patch = getelementptr %Patch, ptr %patches, i64 %index
  %place = load ptr, ptr %patch
  %slot_place = getelementptr %Patch, ptr %patch, i64 0, i32 1
  %slot = load i64, ptr %slot_place
  %offset_place = getelementptr %Patch, ptr %patch, i64 0, i32 2
  %offset = load i64, ptr %offset_place
  %base_place = getelementptr ptr, ptr %table, i64 %slot
  %base = load ptr, ptr %base_place
  %address = getelementptr i8, ptr %base, i64 %offset
  store ptr %address, ptr %place
  %following = add i64 %index, 1
  %last = icmp eq i64 %following, %count
  br i1 %last, label %finished, label %loop
finished:
  ret void
}

; Run a recording, or continue it. Returns 0 when it is over, and the state is as at the beginning; 1 when the time slice
; ended; 2 when the process ends; 3 if the stack is too small. An address outside of the stack that the state describes
; is on one that is not known here, and is let pass.
define i32 @replay(ptr %state) "no-jump-tables"="true" {
  %top = alloca i64
  %top_address = ptrtoint ptr %top to i64
  %lowest_place = getelementptr %State, ptr %state, i64 0, i32 13
  %lowest = load i64, ptr %lowest_place
  %room = sub i64 %top_address, %lowest
  %needed_place = getelementptr %State, ptr %state, i64 0, i32 14
  %needed = load i64, ptr %needed_place
  %small = icmp ult i64 %room, %needed
  br i1 %small, label %refuse, label %enter
refuse:
  ret i32 3
enter:
  %pool = load ptr, ptr %state
  %callers_place = getelementptr %Pool, ptr %pool, i64 0, i32 10
  %callers = atomicrmw add ptr %callers_place, i32 1 seq_cst, align 4
  %halt_place = getelementptr %Pool, ptr %pool, i64 0, i32 8
  %halt = load atomic i32, ptr %halt_place seq_cst, align 4
  %halted = icmp ne i32 %halt, 0
  br i1 %halted, label %interrupted, label %start
start:
  %began = call i64 @now(ptr %pool, i64 6)
  %start_place = getelementptr %State, ptr %state, i64 0, i32 7
  store i64 %began, ptr %start_place
  %look_place = getelementptr %State, ptr %state, i64 0, i32 8
  store i64 %began, ptr %look_place
  call void @look_soon(ptr %state)
  %at_place = getelementptr %State, ptr %state, i64 0, i32 5
  %bound_place = getelementptr %State, ptr %state, i64 0, i32 9
  %bound = load i32, ptr %bound_place
  %is_bound = icmp ne i32 %bound, 0
  br i1 %is_bound, label %commands, label %binding
binding:
  call void @bind(ptr %state)
  store i32 1, ptr %bound_place
  store i64 0, ptr %at_place
  br label %commands
commands:
  %list_place = getelementptr %State, ptr %state, i64 0, i32 1
  %list = load ptr, ptr %list_place
  %resumed = load i64, ptr %at_place
  br label %step
step:
  %at = phi i64 [ %resumed, %commands ], [ %after, %move ]
  %command = getelementptr %Command, ptr %list, i64 %at
  %operation = load i32, ptr %command
  %target_place = getelementptr %Command, ptr %command, i64 0, i32 1
  %memory_place = getelementptr %Command, ptr %command, i64 0, i32 2
  %extra_place = getelementptr %Command, ptr %command, i64 0, i32 4
  %following = add i64 %at, 1
  switch i32 %operation, label %end [ i32 1, label %dispatching
                                      i32 2, label %jump
                                      i32 3, label %jump_if_zero
                                      i32 4, label %select
                                      i32 5, label %stamp ]
end:
  store i32 0, ptr %bound_place
  br label %leave
dispatching:
  %finished = call i1 @dispatch(ptr %state, ptr %command)
  br i1 %finished, label %move, label %unfinished
jump:
  %target = load i32, ptr %target_place
  %target_wide = zext i32 %target to i64
  br label %move
jump_if_zero:
  %predicate_place = load ptr, ptr %memory_place
  %predicate = load i8, ptr %predicate_place
  %zero = icmp eq i8 %predicate, 0
  %other = load i32, ptr %target_place
  %other_wide = zext i32 %other to i64
  %chosen = select i1 %zero, i64 %other_wide, i64 %following
  br label %move
select:
  %selector_place = load ptr, ptr %memory_place
  %selector = load i32, ptr %selector_place, align 1
  %selector_wide = zext i32 %selector to i64
  %arms = load i64, ptr %extra_place
  %arms_less = sub i64 %arms, 1
  %arm = call i64 @llvm.umin.i64(i64 %selector_wide, i64 %arms_less)
  %selected = add i64 %following, %arm
  br label %move
stamp:
  %stamp_place = load ptr, ptr %memory_place
  %time = call i64 @now(ptr %pool, i64 1)
  store i64 %time, ptr %stamp_place
  br label %move
move:
  %after = phi i64 [ %following, %dispatching ], [ %target_wide, %jump ], [ %chosen, %jump_if_zero ], [ %selected, %select ], [ %following, %stamp ]
  %out = call i1 @over(ptr %state)
  br i1 %out, label %slice_over, label %step
slice_over:
  store i64 %after, ptr %at_place
  br label %interrupted
unfinished:
  store i64 %at, ptr %at_place
  br label %interrupted
interrupted:
  %halt_now = load atomic i32, ptr %halt_place seq_cst, align 4
  %halt_seen = icmp ne i32 %halt_now, 0
  %code = select i1 %halt_seen, i32 2, i32 1
  br label %leave
leave:
  %result = phi i32 [ %code, %interrupted ], [ 0, %end ]
  %left = atomicrmw sub ptr %callers_place, i32 1 seq_cst, align 4
  ret i32 %result
}

; ---- helpers ----

; The life of a helper. Returns when the pool stops. %index: 1 for the first helper, as the caller is thread 0.
define void @helper(ptr %pool, i32 %index) {
  %ticket_place = getelementptr %Pool, ptr %pool, i64 0, i32 0
  %epoch_place = getelementptr i8, ptr %pool, i64 4
  %done_place = getelementptr %Pool, ptr %pool, i64 0, i32 2
  %waiting_place = getelementptr %Pool, ptr %pool, i64 0, i32 3
  %stop_place = getelementptr %Pool, ptr %pool, i64 0, i32 6
  %sleepers_place = getelementptr %Pool, ptr %pool, i64 0, i32 7
  %helpers_place = getelementptr %Pool, ptr %pool, i64 0, i32 9
  %threads_place = getelementptr %Pool, ptr %pool, i64 0, i32 19
  %others = atomicrmw add ptr %helpers_place, i32 1 seq_cst, align 4
  br label %look
look:
  %turn = phi i32 [ 0, %0 ], [ 0, %awake ], [ 0, %worked ], [ %turned, %idle ]
  %start = phi i64 [ 0, %0 ], [ 0, %awake ], [ 0, %worked ], [ %since, %idle ]
  %ticket = load atomic i64, ptr %ticket_place acquire, align 8
  %stop = load atomic i32, ptr %stop_place acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %leave, label %search
search:
  %front = and i64 %ticket, 2047
  %back_bits = lshr i64 %ticket, 11
  %back = and i64 %back_bits, 2047
  %gone = add i64 %front, %back
  %chunk_bits = lshr i64 %ticket, 22
  %chunks = and i64 %chunk_bits, 1023
  %there = icmp ult i64 %gone, %chunks
  %threads = load atomic i32, ptr %threads_place monotonic, align 4
  %invited = icmp ult i32 %index, %threads
  %work = and i1 %there, %invited
  br i1 %work, label %take, label %nothing
take:
  %taken = atomicrmw add ptr %ticket_place, i64 2048 acquire, align 8
  %taken_front = and i64 %taken, 2047
  %taken_bits = lshr i64 %taken, 11
  %taken_back = and i64 %taken_bits, 2047
  %taken_gone = add i64 %taken_front, %taken_back
  %own_bits = lshr i64 %taken, 22
  %own_chunks = and i64 %own_bits, 1023
  %valid = icmp ult i64 %taken_gone, %own_chunks
  br i1 %valid, label %run, label %worked
run:
  %from_end = add i64 %taken_back, 1
  %own = sub i64 %own_chunks, %from_end
  call void @chunk(ptr %pool, i64 %own)
  %done = atomicrmw add ptr %done_place, i32 1 seq_cst, align 4
  %waiting = load atomic i32, ptr %waiting_place seq_cst, align 4
  %awaited = icmp ne i32 %waiting, 0
  br i1 %awaited, label %tell, label %worked
tell:
  call void @wake(ptr %pool, ptr %done_place, i64 1)
  br label %worked
worked:
  br label %look
nothing:
  %since = call i64 @patience(ptr %pool, i32 %turn, i64 %start)
  %tired = icmp slt i64 %since, 0
  br i1 %tired, label %asleep, label %idle
idle:
  call void @pause()
  %turned = add i32 %turn, 1
  br label %look
asleep:
  %more = atomicrmw add ptr %sleepers_place, i32 1 seq_cst, align 4
  %epoch = lshr i64 %ticket, 32
  %epoch_narrow = trunc i64 %epoch to i32
  call void @sleep(ptr %pool, ptr %epoch_place, i32 %epoch_narrow)
  br label %awake
awake:
  %less = atomicrmw sub ptr %sleepers_place, i32 1 seq_cst, align 4
  br label %look
leave:
  %fewer = atomicrmw sub ptr %helpers_place, i32 1 seq_cst, align 4
  ret void
}

; Have all helpers return.
define void @stop(ptr %pool) {
  %stop_place = getelementptr %Pool, ptr %pool, i64 0, i32 6
  store atomic i32 1, ptr %stop_place seq_cst, align 4
  %old = atomicrmw add ptr %pool, i64 4294967296 seq_cst, align 8
  %epoch_place = getelementptr i8, ptr %pool, i64 4
  call void @wake(ptr %pool, ptr %epoch_place, i64 1000000)
  ret void
}

; ---- entries for copies and fills: a workgroup is a block of 256 KiB ----

; arguments: target, source, bytes, memmove
define void @copy(ptr %arguments, i64 %begin, i64 %end) {
  %target = load ptr, ptr %arguments
  %source_place = getelementptr i64, ptr %arguments, i64 1
  %source = load ptr, ptr %source_place
  %size_place = getelementptr i64, ptr %arguments, i64 2
  %size = load i64, ptr %size_place
  %function_place = getelementptr i64, ptr %arguments, i64 3
  %function = load ptr, ptr %function_place
  %from = shl i64 %begin, 18
  %wanted = shl i64 %end, 18
  %to = call i64 @llvm.umin.i64(i64 %wanted, i64 %size)
  %bytes = sub i64 %to, %from
  %there = getelementptr i8, ptr %target, i64 %from
  %here = getelementptr i8, ptr %source, i64 %from
  %result = call ptr %function(ptr %there, ptr %here, i64 %bytes)
  ret void
}

; arguments: target, pattern of 8 bytes, bytes
define void @fill(ptr %arguments, i64 %begin, i64 %end) {
  %target = load ptr, ptr %arguments
  %pattern_place = getelementptr i64, ptr %arguments, i64 1
  %pattern = load i64, ptr %pattern_place
  %size_place = getelementptr i64, ptr %arguments, i64 2
  %size = load i64, ptr %size_place
  %from = shl i64 %begin, 18
  %wanted = shl i64 %end, 18
  %to = call i64 @llvm.umin.i64(i64 %wanted, i64 %size)
  %one = insertelement <4 x i64> poison, i64 %pattern, i64 0
  %four = shufflevector <4 x i64> %one, <4 x i64> poison, <4 x i32> zeroinitializer
  %most = sub i64 %to, 32
  br label %wide
wide:
  %at = phi i64 [ %from, %0 ], [ %at_next, %store ]
  %fits = icmp sle i64 %at, %most
  br i1 %fits, label %store, label %bytes
store:
  %place = getelementptr i8, ptr %target, i64 %at
  store <4 x i64> %four, ptr %place, align 1
  %at_next = add i64 %at, 32
  br label %wide
bytes:
  %byte_at = phi i64 [ %at, %wide ], [ %byte_next, %byte ]
  %rest = phi i64 [ %pattern, %wide ], [ %turned, %byte ]
  %more = icmp slt i64 %byte_at, %to
  br i1 %more, label %byte, label %finished
byte:
  %byte_place = getelementptr i8, ptr %target, i64 %byte_at
  %low = trunc i64 %rest to i8
  store i8 %low, ptr %byte_place
  %turned = call i64 @llvm.fshr.i64(i64 %rest, i64 %rest, i64 8)
  %byte_next = add i64 %byte_at, 1
  br label %bytes
finished:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.fshr.i64(i64, i64, i64)
