"""The kernel of `flow.scatter`: assigns updates to invocations, so that updates of one element keep their order.

If no row is updated twice, an invocation computes one element of one update. Otherwise rows are divided among owners:
an invocation owns some rows in one column, visits all updates, and applies those for its rows. No element is written by
two invocations, and there are no atomics, no sort and no intermediate memory, so float sums are the same in every run.
Each owner reads all row numbers, which costs little compared with the writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, bounds, ceildiv, dim_max, is_dynamic, is_less, typical
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.elements.elemental import Elemental, ElementalCode
from orchestrion.compiler.kernel.elements.index import Index, delinearize, invocation_index
from orchestrion.compiler.kernel.elements.reductions import instance
from orchestrion.compiler.kernel.elements.rules import element_of, shape_of
from orchestrion.compiler.kernel.reduction_limits import max_loop_iterations, max_updates

#: invocations of a workgroup
WORKGROUP_SIZE = 64
#: most owners, and most row numbers that all owners read together
MAX_INVOCATIONS, MAX_READS = 1 << 11, 1 << 22
#: columns from which on lanes of vectors take neighbouring columns. With fewer, a processor predicts the branches of an
#: owner badly, so one owner takes all rows, and the other invocations end at once
FEW_COLUMNS = 16
#: least number of updates that an iteration of the loop of an owner looks at
UNROLLED = 4


def owners(op: Scatter) -> Size:
    """Number of invocations that share the rows of one column of one group, or its updates if no row is updated twice.

    Each owner has at least one row; otherwise it would take numbers behind the last row for its own. Without rows there
    are no owners.
    """
    (groups, rows, row), (_, updates, _) = shape_of(op.inputs[0]), shape_of(op.updates[0])
    if op.is_unique:
        return updates
    columns = typical(groups * row)
    most = max(1, min(MAX_INVOCATIONS // columns, MAX_READS // (columns * typical(updates))))
    return ceildiv(rows, dim_max(ceildiv(rows, most), 1))


def invocations(op: Scatter) -> Size:
    """Number of invocations of a dispatch."""
    groups, _, row = shape_of(op.inputs[0])
    return groups * owners(op) * row


def emit(elemental: Elemental, op: Scatter, bindings: Mapping[Value, Value]) -> None:
    """Appends the code of an invocation. `bindings`: result -> the binding of the operand that it changes."""
    b, (groups, rows, row) = elemental.builder, shape_of(op.inputs[0])
    position = invocation_index(b, WORKGROUP_SIZE)
    count, used = owners(op), invocations(op)
    alone = bool(b.machine.lanes) and not op.is_unique and groups == 1 and is_less(row, FEW_COLUMNS)
    if alone:
        count, used = 1, row
    with b.when(b.op("compare_lt", position, b.index(used))):
        group, owner, column = delinearize(b, position, (groups, count, row))
        writer = _Writer(elemental, op, [bindings[result] for result in op.results], group, column)
        if op.is_unique:
            number = writer.number(owner)
            writer.update_if(b.op("compare_lt", number, _number(b, rows, b.dtype(number))), owner, number)
        else:
            _own(writer, owner, ceildiv(rows, dim_max(count, 1)))


@dataclass(slots=True)
class _Writer(ElementalCode):
    """Computes elements of updates in one column of one group."""

    op: Scatter
    bindings: Sequence[Value]
    group: Value
    column: Value

    def number(self, update: Value) -> Value:
        """The row of an update, unsigned, so that a negative number is out of range."""
        b, indices = self.builder, self.op.indices
        signed = self.elemental.element(indices, Index(b, shape_of(indices), (self.group, update)))
        return b.op("bitcast", signed, to=f"u{element_of(indices)}")

    def update_if(self, condition: Value, update: Value, number: Value) -> None:
        """Applies an update to a row if the condition is true."""
        b, op = self.builder, self.op
        with b.when(condition):
            shape, row = shape_of(op.inputs[0]), b.index(number)
            place = Index(b, shape, (self.group, row, self.column)).linear
            source = Index(b, shape_of(op.updates[0]), (self.group, update, self.column))
            count, arguments = len(op.inputs), op.body.block.arguments
            given: list[Value | None] = []
            for binding, value, argument in zip(self.bindings, op.inputs, arguments[:count], strict=True):
                given.append(b.load_again(binding, place, element_of(value)) if argument.uses else None)
            for value, argument in zip(op.updates, arguments[count:], strict=True):
                given.append(self.elemental.element(value, source) if argument.uses else None)
            for value, binding in zip(self.elemental.run(instance(b, op.body, given)), self.bindings, strict=True):
                b.store(value, binding, place)


def _own(writer: _Writer, owner: Value, share: Size) -> None:
    """Visits all updates. The rows of an owner are `share` neighbouring ones, fewer for the last owner."""
    b, op = writer.builder, writer.op
    rows, updates = shape_of(op.inputs[0])[1], shape_of(op.updates[0])[1]
    type = f"u{element_of(op.indices)}"
    first = b.op("convert", b.op("multiply", owner, b.index(share)), to=type)
    limit = b.op("minimum", _number(b, share, type), b.op("subtract", _number(b, rows, type), first))
    step, most = UNROLLED, min(bounds(updates)[1], max_updates(b.machine))
    while most // step > max_loop_iterations(b.machine):
        step *= 2
    for lower, upper, stride in ((0, updates - updates % step, step), (updates - updates % step, updates, 1)):
        if lower == upper:
            continue
        with b.indices(upper, lower, stride) as at:
            for offset in range(stride):
                update = b.op("add", at, b.index(offset))
                number = writer.number(update)
                inside = b.op("compare_lt", b.op("subtract", number, first), limit)
                writer.update_if(inside, update, number)


def _number(b: KernelBuilder, size: Size, type: str) -> Value:
    """A size in an integer type that is at least as wide as an index."""
    return b.op("convert", b.index(size), to=type) if is_dynamic(size) else b.const(size, type)
