"""The constants of a program: one block of bytes in which each value has an offset.

As an array, the block is a struct with an array of unsigned integers per value, so that it is right for both byte
orders. As a file, it is in little-endian order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.parameters import name_of, value_of
from orchestrion.compiler.sequencer import ll_seq

#: bytes to which the values of the block, and of the memory of a context, are aligned
ALIGNMENT = 64


@dataclass(slots=True)
class Weights:
    """The block. `values`: (offset, value), ascending; `size` in bytes."""

    alignment: int = ALIGNMENT
    values: list[tuple[int, DenseElements]] = field(default_factory=list)
    size: int = 0

    def add(self, op: ll_seq.Constant) -> int:
        """Adds a constant buffer, and returns its offset.

        Raises CompileError for a parameter whose value is not in the program.
        """
        start = self.size
        if op.parameter is not None:
            value = value_of(op.parameter)
            if value is None:
                message = f"parameter {name_of(op.parameter)} has no value in the program, which C code needs"
                raise CompileError([Diagnostic(message, op.loc, op.name)])
            self.values.append((start, value))
        for item, offset in zip(op.values, op.offsets.ints, strict=True):
            assert isinstance(item, DenseElements)
            self.values.append((start + offset, item))
        self.size += -(-op.size.value // self.alignment) * self.alignment
        return start

    def add_bytes(self, value: DenseElements) -> int:
        """Adds a value, and returns its offset."""
        start = self.size
        self.values.append((start, value))
        self.size += -(-value.nbytes // self.alignment) * self.alignment
        return start

    def data(self) -> bytes:
        """The bytes of the block, little endian."""
        made = bytearray(self.size)
        for offset, value in self.values:
            given = _bytes(value)
            made[offset : offset + len(given)] = given
        return bytes(made)

    def struct(self, name: str) -> str:
        """The definition of a constant of this name."""
        fields, inits = [], []
        for number, (width, count, values) in enumerate(self._parts()):
            fields.append(f"  uint{8 * width}_t v{number}[{count}];")
            inits.append("  {" + _lines(values) + "}")
        return (
            f"static const struct {{\n{chr(10).join(fields)}\n}} {name} SECTION ALIGNED = {{\n"
            + ",\n".join(inits)
            + "\n};\n"
        )

    def _parts(self) -> Iterator[tuple[int, int, list[str]]]:
        """Width in bytes, number and literals of the elements, including those that fill gaps."""
        end = 0
        for offset, value in self.values:
            if offset > end:
                yield 1, offset - end, ["0"]
            data, width = _bytes(value), value.itemsize
            texts = [
                str(int.from_bytes(data[at : at + width], "little")) + {4: "u", 8: "ull"}.get(width, "")
                for at in range(0, len(data), width)
            ]
            yield width, len(texts), texts
            end = offset + len(data)
        if end < self.size:
            yield 1, self.size - end, ["0"]


def _bytes(value: DenseElements) -> bytes:
    """All bytes of a value; a splat is expanded."""
    data = bytes(value.data)
    return data if len(data) == value.nbytes else data * value.type.num_elements


def _lines(texts: list[str]) -> str:
    """Literals with commas, in lines of at most 116 characters."""
    lines, line = [], ""
    for text in texts:
        if line and len(line) + len(text) > 112:
            lines.append(line)
            line = ""
        line += f"{text}, "
    return "\n   ".join([*lines, line]).rstrip(", ")
