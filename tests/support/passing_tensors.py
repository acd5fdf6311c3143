"""Makes payloads of tensor bytecode that pass the checker, grown from its table of rows, with hostile sizes.

`RULES` has a rule for each row that is not elementwise; a row without one fails the totality test. Operands, shapes and
attributes fit each other, but for a part that is off by one: `Code.append`, the checker, says which of those pass.
A template is made of a payload in which some sizes become expressions of parameters, plus places anywhere.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrion.schema import tensor_encoding
from orchestrion.schema import tensor_template as template
from orchestrion.schema.dtypes import BOOL, COMPUTED, FLOAT, SIGNED, UNSIGNED, DType
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.tensor_bytecode import BY_NAME, ROWS, Body, EntryCode, TensorOp, body_parameters
from orchestrion.schema.tensor_shapes import Ints, ShapeError, TensorType, tensor_type

SMALL = (0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 17)
HUGE = (1 << 20, (1 << 31) - 1, 1 << 32, 1 << 40, 1 << 60, (1 << 63) - 1)
#: bytes of one binding or constant
MAX_BYTES = 1 << 14
#: sizes that a template turns into expressions: value -> expression, for parameters that are 11 and 13 at the least
SYMBOLS: dict[int, bytes] = {
    11: template.parameter(0),
    13: template.parameter(1),
    22: template.operation("add", template.parameter(0), template.parameter(0)),
    143: template.operation("multiply", template.parameter(0), template.parameter(1)),
    24: template.operation("add", template.parameter(0), template.parameter(1)),
    6: template.operation("floordiv", template.parameter(1), template.number(2)),
}
INTEGERS = tuple(dtype for dtype in COMPUTED if dtype.kind in (SIGNED, UNSIGNED))
SCALAR_ROWS = tuple(row for row in ROWS if row.scalar is not None)


@dataclass(frozen=True, slots=True)
class Made:
    """A payload. Per entry: access and bytes of each binding, and the number of parameters. `tried` and `taken`: rows
    put to the checker, rows that passed, by name.
    """

    payload: bytes
    entries: tuple[tuple[tuple[str, int], ...], ...]
    parameters: tuple[int, ...]
    codes: tuple[EntryCode, ...]
    tried: tuple[str, ...]
    taken: tuple[str, ...]

    @property
    def is_template(self) -> bool:
        return any(self.parameters)


class Maker:
    """One entry. `symbolic`: sizes come from `SYMBOLS`."""

    def __init__(self, choose: random.Random, symbolic: bool = False) -> None:
        self.choose = choose
        self.symbolic = symbolic
        self.code = EntryCode(choose.randrange(1, 7))
        self.tried: list[str] = []
        self.taken: list[str] = []

    def entry(self, length: int) -> EntryCode:
        for _ in range(length):
            self.instruction(self.choose.choice(NAMES))
        for binding in range(self.code.bindings):
            if binding not in self.code.writes and self.choose.random() < 0.6 and self.code.values:
                self.append(BY_NAME["store_output"], (self.value(small=True),), (binding,))
        return self.code

    def instruction(self, name: str) -> None:
        row = self.choose.choice(SCALAR_ROWS) if name == "scalar" else BY_NAME[name]
        try:
            found = self.scalar(row) if row.scalar is not None else RULES[row.name](self)
        except ShapeError:  # an operand of a type that there is not
            found = None
        if found is None:
            return
        operands, attributes = found
        if self.choose.random() < 0.2:
            operands, attributes = self.damaged(operands, attributes)
        self.append(row, operands, attributes)

    def append(self, row: TensorOp, operands: tuple[int, ...], attributes: tuple[Any, ...]) -> range | None:
        """Put an instruction to the checker."""
        numbers = [number for one in attributes if isinstance(one, tuple) for number in one if type(number) is int]
        if any(not -(1 << 63) <= number < 1 << 63 for number in numbers):  # no file can say so
            return None
        self.tried.append(row.name)
        count = len(self.code.instructions), len(self.code.values)
        try:
            made = self.code.append(row, operands, attributes)
        except ShapeError:
            del self.code.instructions[count[0] :], self.code.values[count[1] :]
            return None
        self.taken.append(row.name)
        return made

    def damaged(
        self, operands: tuple[int, ...], attributes: tuple[Any, ...]
    ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """One number is off by one, or another operand stands there."""
        choose, places = self.choose, [at for at, one in enumerate(attributes) if isinstance(one, tuple | int) and one]
        if operands and (not places or choose.random() < 0.3):
            at = choose.randrange(len(operands))
            other = choose.randrange(len(self.code.values) + 1)
            return (*operands[:at], other, *operands[at + 1 :]), attributes
        if not places:
            return operands, attributes
        at = choose.choice(places)
        fresh = list(attributes)
        fresh[at] = self._off(attributes[at])
        return operands, tuple(fresh)

    def _off(self, old: Any) -> Any:
        choose = self.choose
        if isinstance(old, int):
            return max(0, old + choose.choice((-1, 1)))
        if not all(isinstance(one, int) for one in old):
            return old
        if choose.random() < 0.2:
            return old[:-1] if choose.random() < 0.5 else (*old, choose.choice(SMALL))
        at = choose.randrange(len(old))
        by = choose.choice((-1, 1, 1, choose.choice(HUGE), -choose.choice(HUGE)))
        return (*old[:at], max(-(1 << 63), min((1 << 63) - 1, old[at] + by)), *old[at + 1 :])

    # What rules are made of.

    def size(self) -> int:
        if self.symbolic and self.choose.random() < 0.6:
            return self.choose.choice((11, 11, 13, 22, 24, 6))
        return self.choose.choice(SMALL)

    def shape(self, rank: int | None = None, huge: float = 0.04) -> Ints:
        rank = self.choose.choice((0, 1, 1, 2, 2, 3, 4)) if rank is None else rank
        return tuple(self.choose.choice(HUGE) if self.choose.random() < huge else self.size() for _ in range(rank))

    def dtype(self, *kinds: int) -> DType:
        return self.choose.choice([dtype for dtype in COMPUTED if not kinds or dtype.kind in kinds])

    def type(self, dtype: DType | None = None, shape: Ints | None = None) -> TensorType:
        """Of a size that a buffer may have: huge only where it is empty."""
        dtype = self.dtype() if dtype is None else dtype
        for _ in range(8):
            try:
                found = tensor_type(dtype, self.shape() if shape is None else shape)
            except ShapeError:
                continue
            if found.bytes <= MAX_BYTES:
                return found
        return TensorType(dtype, ())

    def value(self, fits: Callable[[TensorType], bool] = lambda _: True, small: bool = False) -> int:
        """A value like that; one is made where there is none, as far as `fits` is about types of `type`."""
        values = self.code.values
        found = [at for at, one in enumerate(values) if fits(one) and (not small or one.bytes <= MAX_BYTES)]
        if found and self.choose.random() < 0.85:
            return self.choose.choice(found[-12:])
        for _ in range(20):
            wanted = self.type()
            if fits(wanted):
                return self.fresh(wanted)
        return self.choose.choice(found) if found else self.fresh(self.type())

    def fresh(self, wanted: TensorType) -> int:
        """A value of a type: loaded, or constant."""
        free = [binding for binding in range(self.code.bindings) if binding not in self.code.writes]
        if free and self.choose.random() < 0.75:
            made = self.append(BY_NAME["load_input"], (), (self.choose.choice(free), wanted))
        else:
            made = self.append(BY_NAME["constant"], (), (wanted, self.data(wanted)))
        return made[0] if made else 0

    def of(self, dtype: DType, shape: Ints) -> int:
        wanted = tensor_type(dtype, shape)
        found = [at for at, one in enumerate(self.code.values) if one == wanted]
        if found and self.choose.random() < 0.7:
            return self.choose.choice(found)
        if wanted.bytes <= MAX_BYTES:
            return self.fresh(wanted)
        made = self.append(BY_NAME["broadcast_in_dim"], (self.of(dtype, ()),), (shape, ()))
        return made[0] if made else 0

    def data(self, wanted: TensorType) -> bytes:
        if wanted.dtype.kind == BOOL:
            return bytes(self.choose.choices((0, 1), k=wanted.bytes))
        if wanted.dtype.kind == FLOAT or self.choose.random() < 0.5:
            return self.choose.randbytes(wanted.bytes)
        small = [self.choose.randrange(6) for _ in range(wanted.elements)]
        return b"".join(one.to_bytes(wanted.dtype.itemsize, "little") for one in small)

    def starts(self, rank: int) -> tuple[int, ...]:
        dtype = self.choose.choice(INTEGERS)
        return tuple(self.of(dtype, ()) for _ in range(rank))

    def window(self, shape: Ints) -> Ints:
        return tuple(self.choose.choice((size, size, max(0, size - 1), min(size, 1), 0)) for size in shape)

    def axes(self, rank: int) -> Ints:
        return tuple(self.choose.sample(range(rank), self.choose.randrange(rank + 1)))

    def body(self, dtypes: list[DType]) -> Body:
        body = Body(body_parameters([TensorType(dtype, ()) for dtype in dtypes] * 2))
        for _ in range(self.choose.randrange(4)):
            self._body_instruction(body)
        results = []
        for dtype in dtypes:
            close = self.choose.random() < 0.1  # the checker looks at types here, too
            fits = [at for at, one in enumerate(body.values) if one.dtype is dtype or close]
            results.append(self.choose.choice(fits[-3:]))
        body.finish(tuple(results))
        return body

    def _body_instruction(self, body: Body) -> None:
        if self.choose.random() < 0.15:
            wanted = TensorType(self.dtype(), ())
            body.emit("constant", (), wanted, self.data(wanted))
            return
        row = self.choose.choice(SCALAR_ROWS)
        assert row.scalar is not None
        operands = tuple(self.choose.randrange(len(body.values)) for _ in range(row.scalar.arity))
        extra = (self.dtype(),) if row.attributes else ()
        try:
            body.append(row, operands, extra)
        except ShapeError:
            return

    def scalar(self, row: TensorOp) -> tuple[tuple[int, ...], tuple[Any, ...]] | None:
        """The rule of all elementwise rows."""
        assert row.scalar is not None
        kinds = tuple(row.scalar.kinds)
        last = self.value(lambda one: one.dtype.kind in kinds)
        of = self.code.values[last]
        operands = [
            self.of(DTYPES["i1"] if variable == "i1" else of.dtype, of.shape) for variable in row.scalar.operands[:-1]
        ]
        if of.bytes > 1 << 22:
            return None
        return (*operands, last), ((self.dtype(),) if row.attributes else ())


Rule = Callable[[Maker], "tuple[tuple[int, ...], tuple[Any, ...]] | None"]


def _load(m: Maker) -> Any:
    return (), (m.choose.randrange(m.code.bindings), m.type())


def _store(m: Maker) -> Any:
    return (m.value(small=True),), (m.choose.randrange(m.code.bindings),)


def _constant(m: Maker) -> Any:
    wanted = m.type()
    return (), (wanted, m.data(wanted))


def _iota(m: Maker) -> Any:
    wanted = m.type()
    return (), (wanted, m.choose.randrange(max(1, wanted.rank)))


def _number(m: Maker) -> Any:
    return (), (m.type(m.choose.choice(INTEGERS)), (m.choose.choice((0, 1, -1, 7, 1 << 40, -(1 << 63))),))


def _broadcast(m: Maker) -> Any:
    value = m.value(lambda one: one.rank <= 3)
    of = m.code.values[value]
    shape = list(m.shape(of.rank + m.choose.randrange(3)))
    axes = tuple(m.choose.sample(range(len(shape)), of.rank))
    for size, axis in zip(of.shape, axes, strict=True):
        shape[axis] = size if size != 1 or m.choose.random() < 0.3 else shape[axis]
    return (value,), (tuple(shape), axes)


def _reshape(m: Maker) -> Any:
    value = m.value()
    shape = list(m.code.values[value].shape)
    for _ in range(m.choose.randrange(4)):
        if len(shape) > 1 and m.choose.random() < 0.5:
            at = m.choose.randrange(len(shape) - 1)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        else:
            shape.insert(m.choose.randrange(len(shape) + 1), 1)
    if 0 in shape:
        shape = [m.choose.choice((size, m.choose.choice(HUGE))) if size else 0 for size in shape]
    return (value,), (tuple(shape),)


def _transpose(m: Maker) -> Any:
    value = m.value()
    rank = m.code.values[value].rank
    return (value,), (tuple(m.choose.sample(range(rank), rank)),)


def _slice(m: Maker) -> Any:
    value = m.value()
    rows = []
    for size in m.code.values[value].shape:
        limit = m.choose.choice((size, size, max(0, size - 1), size // 2))
        start = m.choose.choice((0, 0, min(limit, 1), limit))
        rows.append((start, limit, m.choose.choice((1, 1, 2, 3, size + 1, (1 << 63) - 1))))
    starts, limits, strides = zip(*rows, strict=True) if rows else ((), (), ())
    return (value,), (tuple(starts), tuple(limits), tuple(strides))


def _pad(m: Maker) -> Any:
    value = m.value(small=True)
    of = m.code.values[value]
    rows = []
    for size in of.shape:
        gap = m.choose.choice((0, 0, 1, 3, 1 << 62) if size < 3 else (0, 0, 1, 3))
        low = m.choose.choice((0, 0, 1, 2, -1, -size, -gap, -gap - 1))
        whole = size + max(0, size - 1) * gap
        high = m.choose.choice((0, 0, 1, -1, -(whole + low) + 1, -(whole + low) + 3))
        rows.append((low, high, gap))
    low, high, gaps = zip(*rows, strict=True) if rows else ((), (), ())
    return (value, m.of(of.dtype, ())), (tuple(low), tuple(high), tuple(gaps))


def _concatenate(m: Maker) -> Any:
    value = m.value(lambda one: one.rank > 0, small=True)
    of = m.code.values[value]
    if not of.rank:
        return None
    axis = m.choose.randrange(of.rank)
    others = []
    for _ in range(m.choose.randrange(3)):
        shape = (*of.shape[:axis], m.size(), *of.shape[axis + 1 :])
        others.append(m.of(of.dtype, shape))
    return (value, *others), (axis,)


def _reverse(m: Maker) -> Any:
    value = m.value()
    return (value,), (m.axes(m.code.values[value].rank),)


def _reduce(m: Maker) -> Any:
    first = m.value(small=True)
    of = m.code.values[first]
    inputs = [first]
    for _ in range(m.choose.choice((0, 0, 0, 1))):
        inputs.append(m.of(m.dtype(), of.shape))
    dtypes = [m.code.values[value].dtype for value in inputs]
    initial = [m.of(dtype, ()) for dtype in dtypes]
    return (*inputs, *initial), (m.axes(of.rank), m.body(dtypes))


def _dot(m: Maker) -> Any:
    left = m.value(small=True)
    of = m.code.values[left]
    order = m.choose.sample(range(of.rank), of.rank)
    batch, contract = order[: m.choose.randrange(2)], order[1 : 1 + m.choose.randrange(3)]
    batch = [axis for axis in batch if axis not in contract]
    shape = [of.shape[axis] for axis in (*batch, *contract)] + list(m.shape(m.choose.randrange(2)))
    places = m.choose.sample(range(len(shape)), len(shape))
    right = m.of(of.dtype, tuple(shape[places.index(at)] for at in range(len(shape))))
    theirs = tuple(places[: len(batch)]), tuple(places[len(batch) : len(batch) + len(contract)])
    return (left, right), (tuple(batch), theirs[0], tuple(contract), theirs[1], m.dtype(of.dtype.kind))


def _dynamic_slice(m: Maker) -> Any:
    value = m.value()
    of = m.code.values[value]
    sizes = m.window(of.shape)
    if TensorType(of.dtype, sizes).bytes > MAX_BYTES:
        sizes = tuple(min(size, 2) for size in sizes)
    return (value, *m.starts(of.rank)), (sizes,)


def _dynamic_update_slice(m: Maker) -> Any:
    value = m.value(small=True)
    of = m.code.values[value]
    return (value, m.of(of.dtype, m.window(of.shape)), *m.starts(of.rank)), ()


def _store_slice(m: Maker) -> Any:
    whole = m.type()
    return (
        (m.of(whole.dtype, m.window(whole.shape)), *m.starts(whole.rank)),
        (m.choose.randrange(m.code.bindings), whole.shape),
    )


def _gather(m: Maker) -> Any:
    """Indices [batching ..., free ..., vector]; some axes of the operand are batching, some collapsed."""
    value = m.value()
    of = m.code.values[value]
    order = m.choose.sample(range(of.rank), of.rank)
    batching = sorted(axis for axis in order[: m.choose.randrange(2)] if of.shape[axis] <= 64)
    mapped = [axis for axis in order if axis not in batching][: m.choose.randrange(4)]
    collapsed = sorted(axis for axis in mapped if m.choose.random() < 0.5 and of.shape[axis])
    sizes = list(m.window(of.shape))
    for axis, size in enumerate(of.shape):
        sizes[axis] = 1 if axis in (*batching, *collapsed) else min(size, 3, sizes[axis])
    batch = [of.shape[axis] for axis in batching] + list(m.shape(m.choose.randrange(2), huge=0.02))
    at = m.choose.randrange(len(batch), len(batch) + 1) if batch else 0
    shape = tuple(batch) if len(mapped) == 1 and m.choose.random() < 0.3 else (*batch, len(mapped))
    rank = len(batch) + of.rank - len(batching) - len(collapsed)
    offset = sorted(m.choose.sample(range(rank), of.rank - len(batching) - len(collapsed)))
    indices = m.of(m.choose.choice(INTEGERS), shape)
    ours = tuple(range(len(batching)))
    return (value, indices), (
        tuple(offset), tuple(collapsed), tuple(batching), ours, tuple(mapped), at, tuple(sizes),
    )  # fmt: skip


def _windows(m: Maker) -> Any:
    value = m.value()
    of = m.code.values[value]
    axes = m.axes(of.rank)[:2]
    rows = []
    for axis in axes:
        size = of.shape[axis]
        sizes = m.choose.choice((1, 2, 3, max(1, size), size + 1))
        most = max(1, (size - 1) // max(1, sizes - 1)) if sizes > 1 else 1 << 40
        rows.append((sizes, m.choose.choice((1, 2, 1 << 40)), m.choose.choice((1, 1, most, most + 1))))
    sizes, strides, dilations = zip(*rows, strict=True) if rows else ((), (), ())
    return (value,), (axes, tuple(sizes), tuple(strides), tuple(dilations))


def _scatter(m: Maker) -> Any:
    groups, rows, row, updates = (m.size() for _ in range(4))
    if not rows * row:
        groups = m.choose.choice((groups, *HUGE[:4]))
    dtypes = [m.dtype() for _ in range(m.choose.choice((1, 1, 1, 2)))]
    if groups > 1 << 10 and m.choose.random() < 0.7:
        updates = 0
    inputs = [m.of(dtype, (groups, rows, row)) for dtype in dtypes]
    given = [m.of(dtype, (groups, updates, row)) for dtype in dtypes]
    indices = m.of(DTYPES[m.choose.choice(("i32", "i64"))], (groups, updates))
    return (*inputs, indices, *given), (m.body(dtypes),)


def _library_call(m: Maker) -> Any:
    """BLAS where SciPy is there; the registry refuses what does not fit, or that there is none."""
    n = m.choose.choice((1, 2, 3, 5))
    dtype = DTYPES[m.choose.choice(("f32", "f64"))]
    left, right = m.of(dtype, (n, 3)), m.of(dtype, (3, m.choose.choice((2, 4))))
    columns = m.code.values[right].shape[-1] if m.code.values[right].rank else 1
    function = m.choose.choice(("blas.gemm", "blas.gemm", "blas.gemm", "no.such"))
    return (left, right), ((TensorType(dtype, (n, columns)),), function, (("alpha", m.choose.choice((1.0, 2.0))),))


RULES: dict[str, Rule] = {
    "load_input": _load,
    "store_output": _store,
    "constant": _constant,
    "iota": _iota,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "reverse": _reverse,
    "reduce": _reduce,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "store_slice": _store_slice,
    "gather": _gather,
    "windows": _windows,
    "scatter": _scatter,
    "number": _number,
    "library_call": _library_call,
}
#: what an instruction is chosen from: all structural rows, and elementwise ones as often as five of those
NAMES = (*(name for name in RULES if name != "library_call"), *["scalar"] * 5, *["load_input"] * 2)


def make(seed: int, libraries: bool = False) -> Made:
    """A payload of one or two entries, or, of each three, one template."""
    choose = random.Random(seed)
    symbolic = choose.random() < 0.3
    makers = [Maker(choose, symbolic) for _ in range(choose.choice((1, 1, 2)))]
    for maker in makers:
        maker.entry(choose.randrange(2, 14))
        if libraries and choose.random() < 0.1:
            maker.instruction("library_call")
    codes = [maker.code for maker in makers]
    tried = tuple(name for maker in makers for name in maker.tried)
    taken = tuple(name for maker in makers for name in maker.taken)
    entries = tuple(code.accesses for code in codes)
    if not symbolic:
        return Made(tensor_encoding.encode(codes), entries, (0,) * len(codes), tuple(codes), tried, taken)
    return Made(_template(choose, codes), entries, (2,) * len(codes), tuple(codes), tried, taken)


def _template(choose: random.Random, codes: list[EntryCode]) -> bytes:
    """The payload with every size of `SYMBOLS` as its expression, and now and then a place anywhere."""
    payload, marks = tensor_encoding.encode_marked([_marked(code) for code in codes])
    rows = []
    for places in marks:
        found = [(offset, number.code) for offset, number in places]  # type: ignore[attr-defined]
        if choose.random() < 0.15:
            found.append((choose.randrange(max(1, len(payload) - 7)), _any_expression(choose)))
        if choose.random() < 0.3:  # the bytes as they are, but for one that a parameter decides
            at = choose.choice((8, 12, 13, choose.randrange(max(1, len(payload) - 7))))
            (old,) = struct.unpack_from("<q", payload.ljust(at + 8, b"\0"), at)
            found.append((at, template.operation("add", template.number(old), _one_byte(choose))))
        rows.append(found)
    out = [struct.pack("<4sHHI", template.MAGIC, template.MAJOR, template.MINOR, len(rows))]
    for found in rows:
        out.append(struct.pack("<HI", 2, len(found)))
        out += [struct.pack("<QH", offset, len(code)) + code for offset, code in found]
    return b"".join((*out, payload))


def _one_byte(choose: random.Random) -> bytes:
    """A power of 256, for odd parameters."""
    odd = template.operation("mod", template.parameter(choose.randrange(2)), template.number(2))
    return template.operation("multiply", odd, template.number(256 ** choose.randrange(8)))


def _any_expression(choose: random.Random) -> bytes:
    code = template.parameter(choose.randrange(2))
    for _ in range(choose.randrange(3)):
        other = template.number(choose.choice((0, 1, -1, 1 << 40, -(1 << 63), (1 << 63) - 1)))
        code = template.operation(choose.choice([*template.CODES]), code, other)
    return code


def _marked(code: EntryCode) -> EntryCode:
    """The same with symbolic numbers; only what `encode_marked` reads."""
    fresh = EntryCode(code.bindings)
    fresh.values = list(code.values)
    for one in code.instructions:
        attributes = tuple(_symbolic(value) for value in one.attributes)
        fresh.instructions.append(type(one)(one.row, one.operands, attributes, one.first, one.types))
    return fresh


def _symbolic(value: Any) -> Any:
    if isinstance(value, TensorType):
        return TensorType(value.dtype, tuple(_symbol(size) for size in value.shape))
    if isinstance(value, tuple) and all(type(one) is int for one in value):
        return tuple(_symbol(one) for one in value)
    return value


def _symbol(number: int) -> int:
    code = SYMBOLS.get(number)
    return number if code is None else template.SymbolicNumber(number, code)
