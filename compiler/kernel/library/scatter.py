"""The schedule of `flow.scatter`: who updates what, so that updates of one element come in their order.

Where no row is updated twice, an invocation makes one element of one update. Otherwise the rows are divided among
owners: an invocation owns some rows, in one column, goes through all updates, and makes those that are for its rows. So
nothing is written by two, there are no atomics, no sort and no memory between, and float sums are the same every time;
that every owner reads all row numbers costs little beside writing to memory.
"""

from collections.abc import Mapping, Sequence

from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Dim, bounds, ceildiv, dim_max, typical
from orchestrion.compiler.kernel.builder import KernelBuilder
from orchestrion.compiler.kernel.elemental import Elemental
from orchestrion.compiler.kernel.index import Index, delinearize, invocation_index
from orchestrion.compiler.kernel.reduction_limits import max_loop_iterations, max_updates
from orchestrion.compiler.kernel.reductions import instance
from orchestrion.compiler.kernel.rules import element_of, shape_of

#: invocations of a workgroup
WORKGROUP_SIZE = 64
#: invocations beyond which no more owners are made, and row numbers that all of them read together
MAX_INVOCATIONS, MAX_READS = 1 << 11, 1 << 22
#: updates that an iteration of an owner's loop looks at, at least
UNROLLED = 4


def owners(op: Scatter) -> int:
    """How many invocations share the rows of one column of one group, or its updates where no two are for one row.

    Each owner has at least one row: whoever had none would take numbers behind the last row for its own. Where there
    are no rows there is no owner.
    """
    (groups, rows, row), (_, updates, _) = shape_of(op.inputs[0]), shape_of(op.updates[0])
    if op.is_unique:
        return updates
    columns = typical(groups * row)
    most = max(1, min(MAX_INVOCATIONS // columns, MAX_READS // (columns * typical(updates))))
    return ceildiv(rows, dim_max(ceildiv(rows, most), 1))


def invocations(op: Scatter) -> int:
    groups, _, row = shape_of(op.inputs[0])
    return groups * owners(op) * row


def emit(elemental: Elemental, op: Scatter, bindings: Mapping[Value, Value]) -> None:
    """The code of an invocation. `bindings`: where each result is, and the operand that it changes."""
    b, (groups, rows, row) = elemental.builder, shape_of(op.inputs[0])
    position = invocation_index(b, WORKGROUP_SIZE)
    count = owners(op)
    branch = b.begin_if(b.op("compare_lt", position, b.index(invocations(op))))
    group, owner, column = delinearize(b, position, (groups, count, row))
    writer = _Writer(elemental, op, [bindings[result] for result in op.results], group, column)
    if op.is_unique:
        number = writer.number(owner)
        writer.update_if(b.op("compare_lt", number, _number(b, rows, b.dtype(number))), owner, number)
    else:
        _own(writer, owner, ceildiv(rows, dim_max(count, 1)))
    b.end_if(branch)


class _Writer:
    """Makes elements of updates in one column of one group."""

    def __init__(
        self, elemental: Elemental, op: Scatter, bindings: Sequence[Value], group: Value, column: Value
    ) -> None:
        self.elemental = elemental
        self.op = op
        self.bindings = bindings
        self.group = group
        self.column = column

    @property
    def builder(self) -> KernelBuilder:
        return self.elemental.builder

    def number(self, update: Value) -> Value:
        """The row that an update is for, unsigned, so that below zero is beyond all rows."""
        b, indices = self.builder, self.op.indices
        signed = self.elemental.element(indices, Index(b, shape_of(indices), (self.group, update)))
        return b.op("bitcast", signed, to=f"u{element_of(indices)}")

    def update_if(self, condition: Value, update: Value, number: Value) -> None:
        b, op = self.builder, self.op
        branch = b.begin_if(condition)
        shape, row = shape_of(op.inputs[0]), b.op("convert", number, to=b.index_type)
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
        b.end_if(branch)


def _own(writer: _Writer, owner: Value, share: int) -> None:
    """Goes through all updates; the rows of an owner are `share` neighbours, of the last one fewer."""
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
        loop = b.begin_loop(b.index(lower), b.index(upper), b.index(stride), ())
        for offset in range(stride):
            update = b.op("add", loop.index, b.index(offset))
            number = writer.number(update)
            inside = b.op("compare_lt", b.op("subtract", number, first), limit)
            writer.update_if(inside, update, number)
        b.end_loop(loop, ())


def _number(b: KernelBuilder, size: int, type: str) -> Value:
    """A size of an integer type that is as wide as an index, or wider."""
    return b.op("convert", b.index(size), to=type) if isinstance(size, Dim) else b.const(size, type)
