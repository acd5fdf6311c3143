"""Bugs put into the verifier, the front of the HAL and the tensor checker, one at a time: the tests find each.

A bug is a context manager. `MODULE_BUGS` are found by running modules, `TENSOR_BUGS` by running tensor code.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from orchestrion.hal.backend import Binding
from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.errors import InvalidArgument
from orchestrion.hal.reference import executable as reference
from orchestrion.hal.reference import kernels, program
from orchestrion.schema import tensor_shapes
from orchestrion.schema.encoding import decode
from orchestrion.schema.isa import BANKS, INSTRUCTIONS, MOVE_BIT
from orchestrion.schema.tensor_bytecode import BY_NAME, EntryCode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.vm import code, verifier
from orchestrion.vm.errors import Trap
from orchestrion.vm.jit import _Translator
from orchestrion.vm.ops import OPS
from orchestrion.vm.ops import imports as imports_module
from orchestrion.vm.refs import HostBuffer

Bug = Callable[[], AbstractContextManager[Any]]
_Body: Any = verifier._Body
_Verifier: Any = verifier._Verifier


def _bounds(change: Callable[[Any], Any], further: int = 0) -> Bug:
    """Of registers, as `_Body` knows them."""

    @contextmanager
    def bug() -> Iterator[None]:
        real = _Body.__init__

        def init(self: Any, *arguments: Any) -> None:
            real(self, *arguments)
            self.bounds = change(self.bounds)
            self.total += further
            self.banks = [bank for bank, (low, high) in enumerate(self.bounds) for _ in range(low, high)]

        with patch.object(_Body, "__init__", init):
            yield

    return bug


def _method(owner: Any, name: str, fake: Any) -> Bug:
    return lambda: patch.object(owner, name, fake)


def _check(name: str, fake: Any) -> Bug:
    """In place of one of the verifier's checks by kind of operand."""
    return lambda: patch.dict(verifier._CHECKS, {name: fake})


def _nothing(*arguments: Any, **named: Any) -> None:
    return None


def _plans(change: Callable[[str, Any], Any]) -> Bug:
    """Of each row, what the verifier looks at."""

    @contextmanager
    def bug() -> Iterator[None]:
        plans = {row.opcode: change(row.name, verifier._PLANS[row.opcode]) for row in INSTRUCTIONS}
        with patch.object(verifier, "_PLANS", plans):
            yield

    return bug


def _without_moves(decoded: Any) -> Any:
    """Moves are forgotten where they are not looked for: the bit stays in the register's number."""
    return decoded.operands, []


def _unchecked_end(self: Any, ordinal: int, row: Any) -> Any:
    arguments, results = self.signatures[ordinal]
    found = decode(self.module.bytecode[row.bytecode_start : row.bytecode_end], "")
    counts = row[-5:]
    parameters = verifier._parameters("", counts, arguments, len(found) * 1000)
    if found:
        _Body(self, ordinal, counts, arguments, results, parameters, found).check()
    name = self.module.strings[row.name]
    return verifier.VerifiedFunction(ordinal, name, counts, arguments, results, parameters, found, False)


def _buffer_check(self: Any, offset: int, length: int, rights: int) -> Any:
    """The end is not compared."""
    if offset < 0 or length < 0:
        raise InvalidArgument("outside")
    return self.device_state


def _slot_unchecked(self: Any, slot: int, offset: int, length: int, rights: int) -> Any:
    """A slot's least length is not remembered."""
    if not 0 <= slot < len(self._slots) or offset < 0 or length < 0:
        raise InvalidArgument(f"slot {slot}")
    return Binding(slot, offset, length)


def _short_binding(self: Any, row: Any, bindings: Any) -> Any:
    """A binding may be shorter than the code needs."""
    if len(bindings) != len(row.bindings):
        raise self._bad_binding(row, 0, 0, 0)
    return [self._resolve(source, offset, length, 0) for source, offset, length in bindings]


def _host_check(self: Any, offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset > self.size:
        raise Trap("outside")


def _by_one(function: Any) -> Any:
    """A call's results may be one fewer or more than the signature says."""

    def typed(self: Any, registers: Any, shape: Any, what: str, reads: bool) -> None:
        if what == "result" and len(registers) != len(shape.types):
            return
        function(self, registers, shape, what, reads)

    return typed


def _any_list(name: str, factory: Any) -> Any:
    """A list op that takes lists of another type."""

    def make(a: int, index: int, d: int) -> Any:
        def op(regs: Any) -> None:
            items = regs[a].items
            regs[d] = items[regs[index] % max(1, len(items))]

        return op

    return make


MODULE_BUGS: dict[str, Bug] = {
    "register bound off by one": _bounds(lambda bounds: (*bounds[:4], (bounds[4][0], bounds[4][1] + 1)), 1),
    "bank of i32 reaches into i64": _bounds(lambda bounds: ((bounds[0][0], bounds[0][1] + 1), *bounds[1:])),
    "bank of f64 reaches into refs": _bounds(lambda bounds: (*bounds[:3], (bounds[3][0], bounds[3][1] + 1), bounds[4])),
    "registers of results are not looked at": _plans(
        lambda name, plan: plan._replace(registers=plan.registers[:-1]) if plan.registers else plan
    ),
    "a move bit is taken for numbers": _plans(
        lambda name, plan: plan._replace(registers=tuple((p, bank, MOVE_BIT) for p, bank, _ in plan.registers))
    ),
    "any bank is taken by integers' arithmetic": _plans(
        lambda name, plan: plan._replace(registers=()) if name.startswith(("i32.", "i64.")) else plan
    ),
    "branch target not checked": _check("target", _nothing),
    "targets of a table not checked": _check("targets", _nothing),
    "ordinal of a function not checked": _check("function", _nothing),
    "call with other results": _method(_Body, "_typed", _by_one(_Body._typed)),
    "results of a return not checked": _check("results", _nothing),
    "ordinal of a global not checked": _check("global", _nothing),
    "ordinal of a constant not checked": _check("constant", _nothing),
    "control may run off the end": _method(_Verifier, "_function", _unchecked_end),
    "moves are forgotten": _method(code, "without_moves", _without_moves),
    "types of refs given to functions not checked": _method(imports_module.ArgumentCheck, "__call__", _nothing),
    "translator forgets that a register is written": _method(
        _Translator, "written", lambda self, register: f"r{register}"
    ),
    "a list op takes any list": lambda: patch.dict(OPS, {f"list.{bank}.get": _any_list(bank, None) for bank in BANKS}),
    "end of a buffer's range not compared": _method(Buffer, "check", _buffer_check),
    "least length of slots forgotten": _method(CommandBuffer, "_resolve_slot", _slot_unchecked),
    "bindings may be short": _method(CommandBuffer, "_bind", _short_binding),
    "end of a host buffer's range not compared": _method(HostBuffer, "check", _host_check),
}  # fmt: skip


def _rule(name: str, fake: Any) -> Bug:
    """In place of a row's rule for types."""

    @contextmanager
    def bug() -> Iterator[None]:
        row, real = BY_NAME[name], BY_NAME[name].rule
        object.__setattr__(row, "rule", fake)
        try:
            yield
        finally:
            object.__setattr__(row, "rule", real)

    return bug


def _rules(names: tuple[str, ...], fake: Any) -> Bug:
    @contextmanager
    def bug() -> Iterator[None]:
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(_rule(name, fake)())
            yield

    return bug


def _kernel(name: str, fake: Any) -> Bug:
    return lambda: patch.dict(kernels.KERNELS, {name: fake})


def _windows(operands: Any, axes: Any, sizes: Any, strides: Any, dilations: Any) -> Any:
    """One window too many."""
    (operand,) = operands
    found = tensor_shapes.windows(operands, axes, sizes, strides, dilations)[0]
    shape = list(found.shape)
    for axis in axes:
        shape[axis] += shape[axis] > 0
    return (TensorType(operand.dtype, tuple(shape)),)


def _slice(operands: Any, starts: Any, limits: Any, strides: Any) -> Any:
    """The end is not compared with the dimension."""
    shape = tuple(
        max(0, -(-(limit - start) // max(1, by))) for start, limit, by in zip(starts, limits, strides, strict=True)
    )
    return (TensorType(operands[0].dtype, shape),)


def _reshape(operands: Any, shape: Any) -> Any:
    return (tensor_shapes.tensor_type(operands[0].dtype, shape),)


def _broadcast(operands: Any, shape: Any, axes: Any) -> Any:
    if len(axes) != operands[0].rank or any(not 0 <= axis < len(shape) for axis in axes):
        raise tensor_shapes.ShapeError("axes")
    return (tensor_shapes.tensor_type(operands[0].dtype, shape),)


def _dynamic_update(operands: Any) -> Any:
    """The update may be larger than what it goes into."""
    if len(operands) != 2 + operands[0].rank or operands[1].rank != operands[0].rank:
        raise tensor_shapes.ShapeError("starts")
    return (operands[0],)


def _store_slice(operands: Any, _: int, whole: Any) -> Any:
    if len(operands) != 1 + len(whole) or operands[0].rank != len(whole):
        raise tensor_shapes.ShapeError("starts")
    tensor_shapes.tensor_type(operands[0].dtype, whole)
    return ()


def _constant(_: Any, result: TensorType, data: bytes) -> Any:
    return (result,)


def _accesses(real: Any) -> Bug:
    """A binding is said to be touched four bytes less than it is."""
    short = property(lambda self: tuple((access, max(0, length - 4)) for access, length in real.fget(self)))
    return lambda: patch.object(EntryCode, "accesses", short)


def _unclamped(operand: TensorType, sizes: Any) -> Any:
    def place(starts: Any) -> Any:
        return tuple([slice(int(start), int(start) + size) for start, size in zip(starts, sizes, strict=True)])

    return place


def _scattered(poll: Any, operands: Any, results: Any, body: Any) -> Any:
    """Rows are not compared with the number of rows from above."""
    count = len(results)

    def run(*arrays: Any) -> None:
        indices, outs = arrays[count], arrays[2 * count + 1 :]
        for x, out in zip(arrays[:count], outs, strict=True):
            out[...] = x
        for g, n in np.ndindex(indices.shape):
            if indices[g, n] >= 0:
                for out, update in zip(outs, arrays[count + 1 : 2 * count + 1], strict=True):
                    out[g, indices[g, n]] = update[g, n]

    return run


def _groups(poll: Any, operands: Any, results: Any, body: Any) -> Any:
    """Something for each group, though none may have an update."""
    real = kernels.scatter(poll, operands, results, body)

    def run(*arrays: Any) -> None:
        np.arange(results[0].shape[0])
        real(*arrays)

    return run


def _pad(poll: Any, operands: Any, results: Any, low: Any, high: Any, interior: Any) -> Any:
    """Only the operand is written: what lies between is what was there."""
    real = kernels.pad(poll, operands, results, low, high, interior)

    def run(x: Any, value: Any, out: Any) -> None:
        before = out.copy()
        real(x, value, out)
        out[out == value] = before[out == value]

    return run


@contextmanager
def _template_unchecked() -> Iterator[None]:
    """What parameters make of an entry is not held against the module."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(reference, "_match_bindings", _nothing))
        yield


def _elementwise(operands: Any, *attributes: Any) -> Any:
    return (operands[0],)


TENSOR_BUGS: dict[str, Bug] = {
    "one window too many": _rule("windows", _windows),
    "end of a slice not compared": _rule("slice", _slice),
    "reshape to any number of elements": _rule("reshape", _reshape),
    "broadcast of any dimension": _rule("broadcast_in_dim", _broadcast),
    "update larger than its operand": _rule("dynamic_update_slice", _dynamic_update),
    "slice stored beyond its binding": _rule("store_slice", _store_slice),
    "constant of another length": _rule("constant", _constant),
    "bindings touched further than said": _accesses(EntryCode.accesses),
    "starts not clamped": _method(kernels, "window_at", _unclamped),
    "indices of gather not clamped": _method(kernels, "_clamped", lambda starts, most: starts.astype(np.int64)),
    "rows of scatter not compared": _kernel("scatter", _scattered),
    "pad leaves what was in memory": _kernel("pad", _pad),
    "templates with other bindings": _template_unchecked,
    "operands of other shapes": _rules(
        ("add", "subtract", "multiply", "maximum", "compare_eq", "compare_lt", "or", "xor", "remainder"), _elementwise
    ),
    "sizes of windows not compared": _method(tensor_shapes, "_check_window", _nothing),
    "memory of intermediates not counted": _method(program, "peak_bytes", lambda *arguments: 0),
    "groups of a scatter counted by no limit": _kernel("scatter", _groups),
}

#: a seed in front of the first one that finds the bug, for bugs that take long: there the ordinary tests begin
NEAR: dict[str, int] = {
    "register bound off by one": 285,
    "bank of i32 reaches into i64": 780,
    "bank of f64 reaches into refs": 110,
    "branch target not checked": 475,
    "targets of a table not checked": 1910,
    "ordinal of a function not checked": 3240,
    "results of a return not checked": 825,
    "ordinal of a global not checked": 1160,
    "ordinal of a constant not checked": 7060,
    "a list op takes any list": 2350,
    "end of a buffer's range not compared": 425,
    "least length of slots forgotten": 1415,
    "bindings may be short": 4470,
    "end of a host buffer's range not compared": 290,
    "templates with other bindings": 160,
    "update larger than its operand": 150,
    "groups of a scatter counted by no limit": 165,
}
