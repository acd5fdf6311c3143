"""The limits of the machine, measured: multiply-adds per second, and bytes per second from and to memory.

Both are loops of machine code, made by LLVM for the best level of this processor, and run in one thread per core that
the process may use. The peak is that of independent fused multiply-adds on registers, two operations each. Bandwidth is
that of `a = b + s * c` over arrays that exceed all caches, 12 bytes per element: what stores load first is not
counted, so kernels with other mixes of loads and stores may exceed it.
"""

import ctypes
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: vectors that are accumulated at once: the latency of a multiply-add times the number of units, and more
CHAINS = 12
#: elements of each array of the bandwidth
ELEMENTS = 1 << 26
ROUNDS = 7


@dataclass(frozen=True)
class Limits:
    """Operations per second in f32, and bytes per second."""

    flops: float
    bandwidth: float

    def seconds(self, flops: float, bytes: float) -> float:
        """The least time of so many operations and so many bytes."""
        return max(flops / self.flops, bytes / self.bandwidth)


def measured(level: str) -> Limits:
    """The limits with a thread on each core that this process may use."""
    from orchestrion.compiler.targets.cpu.levels import LEVELS

    lanes = LEVELS[level].lanes
    peak, triad = _functions(level, lanes)
    threads = len(os.sched_getaffinity(0))
    turns = 4_000_000
    flops = 2 * lanes * CHAINS * turns * threads
    arrays = [[np.ones(ELEMENTS // threads, np.float32) for _ in range(3)] for _ in range(threads)]
    scratch = [np.zeros(64, np.float32) for _ in range(threads)]
    seconds = _least(threads, lambda number: peak(scratch[number].ctypes.data, turns))
    moved = _least(threads, lambda number: triad(*(a.ctypes.data for a in arrays[number]), ELEMENTS // threads))
    return Limits(flops / seconds, 12 * (ELEMENTS // threads) * threads / moved)


def _functions(level: str, lanes: int) -> tuple[Callable[..., None], Callable[..., None]]:
    """The two loops as functions of addresses and a number."""
    from orchestrion.compiler.targets.cpu.levels import LEVELS
    from orchestrion.compiler.targets.cpu.linker import link
    from orchestrion.compiler.targets.cpu.llvm_child import object_file
    from orchestrion.hal.cpu.code_memory import CodeMemory

    row = LEVELS[level]
    made = object_file(_text(lanes), row, "the limits of the machine")
    linked = link(row.architecture, [made.data], ["peak", "triad"])
    memory = CodeMemory(linked.code)  # never released: it lives as long as the process
    peak_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
    triad_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    places = [memory.address + linked.functions[name][0] for name in ("peak", "triad")]
    return peak_type(places[0]), triad_type(places[1])


def _text(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    some = f"{vector} splat (float 0.5)"
    phis = [f"  %a{n} = phi {vector} [ zeroinitializer, %0 ], [ %b{n}, %turn ]" for n in range(CHAINS)]
    steps = [
        f"  %b{n} = call {vector} @llvm.fma({vector} %a{n}, {some}, {vector} splat (float {n + 1}.0))"
        for n in range(CHAINS)
    ]
    sums = [f"  %s{n + 1} = fadd {vector} %{f's{n}' if n else 'b0'}, %b{n + 1}" for n in range(CHAINS - 1)]
    newline = "\n"
    return f"""
declare {vector} @llvm.fma({vector}, {vector}, {vector})
define void @peak(ptr %out, i64 %turns) {{
  br label %turn
turn:
  %i = phi i64 [ 0, %0 ], [ %j, %turn ]
{newline.join(phis)}
{newline.join(steps)}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %turns
  br i1 %more, label %turn, label %finished
finished:
{newline.join(sums)}
  store {vector} %s{CHAINS - 1}, ptr %out, align 4
  ret void
}}
define void @triad(ptr %a, ptr %b, ptr %c, i64 %count) {{
  br label %turn
turn:
  %i = phi i64 [ 0, %0 ], [ %j, %turn ]
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %vb = load {vector}, ptr %pb, align 4
  %vc = load {vector}, ptr %pc, align 4
  %va = call {vector} @llvm.fma({vector} %vc, {some}, {vector} %vb)
  store {vector} %va, ptr %pa, align 4
  %j = add i64 %i, {lanes}
  %more = icmp ult i64 %j, %count
  br i1 %more, label %turn, label %finished
finished:
  ret void
}}
"""


def _least(threads: int, work: Callable[[int], None]) -> float:
    """The least seconds in which all threads do the work once."""
    found = []
    for _ in range(ROUNDS):
        started = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        start = time.perf_counter()
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        found.append(time.perf_counter() - start)
    return min(found)
