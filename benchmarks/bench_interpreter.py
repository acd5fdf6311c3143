"""The interpreter's time per instruction on an integer loop of a million turns, beside IREE's VM (written in C).

Expected before measuring: about 100 ns per instruction here and 1 ns there. A sequencer runs some ten instructions
per call, so this figure is reported, not chased.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import arguments, measure, need, save, table, unit, versions

TURNS = 1_000_000

OURS = """
producer "benchmark"
program "p" profile "reference" {
  func @loop(%i0: i32) -> (i32) {
  ^body:
  }
}
"""

IREE = """
vm.module @m {
  vm.export @loop
  vm.func @loop(%n: i32) -> i32 {
    %zero = vm.const.i32.zero
    %one = vm.const.i32 1
    vm.br ^body(%zero, %zero : i32, i32)
  ^body(%i: i32, %sum: i32):
    %added = vm.add.i32 %sum, %i : i32
    %mixed = vm.xor.i32 %added, %n : i32
    %next = vm.add.i32 %i, %one : i32
    %more = vm.cmp.lt.i32.s %next, %n : i32
    vm.cond_br %more, ^body(%next, %mixed : i32, i32), ^exit(%mixed : i32)
  ^exit(%result: i32):
    vm.return %result : i32
  }
}
"""
