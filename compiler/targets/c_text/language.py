"""How scalar ops are written in languages of the C family: a row per primitive and kind of operand, and the types.

In an expression, `{x}`, `{y}`, `{z}` are the operands, and `{R}` is the type of the result. `{S}` and `{U}` are the
signed and the unsigned type of the width of the operands. `{W}` is an unsigned type at least as wide as the operands
and as `ui32`: in C, signed overflow and shifts into the sign are undefined, and narrow types would be promoted to
`int`. Rows of kind `U` are those of `u` for 32 bits and more, without casts. `{t}` and `{r}` are the element types of
the last operand and of the result, by their names in the IR.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrion.compiler.scalars.primitives import KINDS
from orchestrion.schema.dtypes import BOOL, FLOAT, SIGNED, UNSIGNED, DType

#: rows (primitive, kinds of its last operand, expression) that all languages share
Rows = tuple[tuple[str, str, str], ...]
_ROWS: Rows = (
    ("not", "b", "!{x}"),
    ("not", "su", "({R})~{x}"),
    ("not", "U", "~{x}"),
    ("and", "bsu", "{x} & {y}"),
    ("or", "bsu", "{x} | {y}"),
    ("xor", "bsu", "{x} ^ {y}"),
    ("add", "su", "({R})(({W}){x} + ({W}){y})"),
    ("add", "fU", "{x} + {y}"),
    ("subtract", "su", "({R})(({W}){x} - ({W}){y})"),
    ("subtract", "fU", "{x} - {y}"),
    ("multiply", "su", "({R})(({W}){x} * ({W}){y})"),
    ("multiply", "fU", "{x} * {y}"),
    ("negate", "su", "({R})-({W}){x}"),
    ("negate", "fU", "-{x}"),
    ("divide", "f", "{x} / {y}"),
    ("compare_eq", "suf", "{x} == {y}"),
    ("compare_ne", "suf", "{x} != {y}"),
    ("compare_lt", "suf", "{x} < {y}"),
    ("compare_le", "suf", "{x} <= {y}"),
    ("compare_gt", "suf", "{x} > {y}"),
    ("compare_ge", "suf", "{x} >= {y}"),
    ("select", "bsuf", "{x} ? {y} : {z}"),
    ("convert", "suf", "({R}){x}"),
    ("unchecked_divide", "su", "({R})({x} / {y})"),
    ("unchecked_divide", "U", "{x} / {y}"),
    ("unchecked_remainder", "u", "({R})({x} % {y})"),
    ("unchecked_remainder", "U", "{x} % {y}"),
    ("unchecked_shift_left", "su", "({R})(({W}){x} << {y})"),
    ("unchecked_shift_left", "U", "{x} << {y}"),
    ("unchecked_shift_right_logical", "su", "({R})(({U}){x} >> {y})"),
    ("unchecked_shift_right_logical", "U", "{x} >> {y}"),
    ("unchecked_shift_right_arithmetic", "su", "({R})(({S}){x} >> {y})"),
    ("unchecked_convert", "f", "({R}){x}"),
)


@dataclass(frozen=True)
class Language:
    """A language. `types`: element type -> type of a value; `memory`: those that differ in memory; `rows`: expressions
    beside the common ones; `suffix`: of literals of 64 bits; `not_finite`: a float by its bits, written `{bits}`;
    `vector`: the type of a vector of `{lanes}` elements; `wide_literals`: a compiler may read literals of f32 as f64;
    `function`: what stands before the type of a shared function.
    """

    types: Mapping[str, str]
    memory: Mapping[str, str]
    rows: Rows
    suffix: str
    not_finite: str
    vector: str
    wide_literals: bool = False
    function: str = "static"
    #: (primitive, kind of its last operand) -> expression
    expressions: Mapping[tuple[str, str], str] = field(init=False)
    #: primitives that are calls of functions: their text needs no parentheses
    called: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        rows = _ROWS + self.rows
        found = {(name, kind): text for name, kinds, text in rows for kind in kinds}
        called = frozenset(name for name, _, text in rows if re.fullmatch(r"[a-z_]+({[Rrt]}|_)*\({x}\)", text))
        object.__setattr__(self, "expressions", found)
        object.__setattr__(self, "called", called)

    def memory_type(self, dtype: str) -> str:
        """The type of an element in memory."""
        return self.memory.get(dtype, self.types[dtype])

    def vector_type(self, lanes: int, dtype: DType) -> str:
        """The type of a vector."""
        return self.vector.format(R=self.memory_type(dtype.name), t=dtype.name, lanes=lanes)

    def expression(self, name: str, operands: Sequence[str], types: Sequence[DType], result: DType) -> str:
        """A primitive applied to names or literals."""
        subject = types[-1]
        width = subject.bits if subject.kind not in (BOOL, FLOAT) else 32
        names = {
            "R": self.types[result.name],
            "S": self.types[f"i{width}"],
            "U": self.types[f"ui{width}"],
            "W": self.types[f"ui{max(width, 32)}"],
            "t": subject.name,
            "r": result.name,
        }
        text = self.expressions[name, KINDS[subject.kind]]
        if subject.kind == UNSIGNED and subject.bits >= 32:
            text = self.expressions.get((name, "U"), text)
        return text.format(**dict(zip("xyz", operands, strict=False)), **names)

    def literal(self, pattern: int, dtype: DType) -> str:
        """A constant by its bits, exactly: floats in digits that read back to the same bits, NaNs by their bits."""
        if dtype.kind == BOOL:
            return "true" if pattern else "false"
        if dtype.kind == FLOAT:
            return self._float_literal(pattern, dtype)
        suffix = self.suffix if dtype.bits == 64 else ""
        if dtype.kind != SIGNED:
            text = f"{pattern}u{suffix}"
        else:
            value = pattern - (1 << dtype.bits) if pattern >> (dtype.bits - 1) else pattern
            least = value == -(1 << (dtype.bits - 1)) and dtype.bits >= 32
            text = f"({value + 1}{suffix} - 1)" if least else f"{value}{suffix}"
            text = f"({text})" if value < 0 and not least else text
        return text if dtype.bits >= 32 else f"({self.types[dtype.name]}){text}"

    def _float_literal(self, pattern: int, dtype: DType) -> str:
        """NumPy prints the fewest digits that read back to the same bits."""
        value = np.array(pattern, f"<u{dtype.itemsize}").view(dtype.numpy)[()]
        wide = dtype.bits == 64
        if not np.isfinite(value):
            bits = f"0x{pattern:0{2 * dtype.itemsize}X}u{self.suffix if wide else ''}"
            return self.not_finite.format(R=self.types[dtype.name], t=dtype.name, bits=bits)
        digits = str(float(abs(value)) if self.wide_literals else abs(value))
        text = digits + ("" if wide else "f")
        return f"(-{text})" if np.signbit(value) else text
