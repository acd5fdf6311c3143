"""Tensor bytecode as text for reading: `vm-dump --disassemble`. It cannot be parsed; only the IR text round-trips.

entry[0]: bindings (read 16, read 16, write 16)
  %0 = load_input binding=0 : tensor<4xf32>
  %1 = load_input binding=1 : tensor<4xf32>
  %2 = multiply %0 %1 : tensor<4xf32>
  store_output %2 binding=2
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from .library_call import Value
from .tensor_bytecode import Body, Code, EntryCode, Instruction
from .tensor_encoding import decode
from .tensor_shapes import TensorType
from .tensor_template import Template, decode_template, expression_text, is_template

#: the most elements of a constant that are shown; larger constants are shown by their size
SHOWN_ELEMENTS = 8


def disassemble(payload: bytes | memoryview) -> str:
    """A payload as text. For a template, the code is that for the least sizes; comments show what depends on
    parameters.

    Raises ModuleError if it is malformed.
    """
    lines: list[str] = []
    if is_template(payload):
        template = decode_template(payload)
        payload = template.payload
        lines += _parameters(template)
    for ordinal, entry in enumerate(decode(payload).entries):
        lines.append(f"entry[{ordinal}]: bindings ({_bindings(entry)})")
        lines += _code(entry, "  ")
    return "".join(f"{line}\n" for line in lines)


def _parameters(template: Template) -> Iterator[str]:
    """A line per entry: how many of its numbers depend on the parameters p0, p1 ..., and their expressions."""
    for ordinal, (_, patches) in enumerate(template.entries):
        if patches:
            texts = ", ".join(sorted({expression_text(patch.code) for patch in patches}))
            numbers = f"{len(patches)} number{'s' * (len(patches) != 1)}"
            yield f"// entry[{ordinal}], shown for the least sizes: {numbers} by the parameters, {texts}"


def _bindings(entry: EntryCode) -> str:
    return ", ".join(f"{access} {length}" for access, length in entry.accesses)


def _code(code: Code, indent: str) -> Iterator[str]:
    for instruction in code.instructions:
        results = range(instruction.first, instruction.first + len(instruction.types))
        left = f"{', '.join(f'%{value}' for value in results)} = " if results else ""
        right = f" : {', '.join(map(str, instruction.types))}" if results else ""
        words = [instruction.row.name, *(f"%{value}" for value in instruction.operands)]
        words += _attributes(instruction)
        yield f"{indent}{left}{' '.join(words)}{right}"
        for attribute in instruction.attributes:
            if isinstance(attribute, Body):
                yield from _body(attribute, indent + "  ")


def _body(body: Body, indent: str) -> Iterator[str]:
    parameters = ", ".join(f"%{value}: {type}" for value, type in enumerate(body.parameters))
    yield f"{indent}body ({parameters})"
    yield from _code(body, indent + "  ")
    yield f"{indent}  yield {' '.join(f'%{value}' for value in body.results)}"


def _attributes(instruction: Instruction) -> Iterator[str]:
    for (name, kind), value in zip(instruction.row.attributes, instruction.attributes, strict=True):
        if kind == "data":
            yield _elements(instruction.types[0], value)
        elif kind == "named":
            yield "{" + ", ".join(f"{key} = {_value(item)}" for key, item in value) + "}"
        elif kind not in ("type", "types", "dtype", "body"):
            yield f"{name}={list(value) if kind == 'ints' else value}"


def _value(value: Value) -> str:
    """A value of a library call's attribute, in JSON."""
    return json.dumps(value)


def _elements(type: TensorType, data: Any) -> str:
    if type.elements > SHOWN_ELEMENTS:
        return f"({len(data)} bytes)"
    return str(np.frombuffer(data, type.dtype.numpy).reshape(type.shape).tolist())
