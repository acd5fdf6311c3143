"""The header of a program: its types, functions and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.types import TensorType, Type
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.func import names_for_callers, result_aliases, types_for_callers
from orchestrion.schema.dtypes import BY_NAME

from .language import LANGUAGE, comment, identifier, literal
from .weights import ALIGNMENT

#: errors of every program: name, text
ERRORS = (
    ("OK", "no error"),
    ("ERROR_CONTEXT", "the context is not initialised"),
    ("ERROR_MEMORY", "the memory is absent, not aligned or too small"),
    ("ERROR_WEIGHTS", "the weights are absent or not aligned"),
    ("ERROR_DATA", "an input or output has no data, or data that is not aligned to its elements"),
    ("ERROR_SIZE", "a size of an input or output is not that of its type"),
    ("ERROR_OVERLAP", "an output overlaps an input or another output"),
)


@dataclass(frozen=True, slots=True)
class Field:
    """An argument or result: its name in C, its type on devices, and `seen`, its type for those who do not know that
    devices store f16 as ui16, and complex numbers as pairs.
    """

    name: str
    type: TensorType
    seen: TensorType

    @property
    def is_dynamic(self) -> bool:
        """Whether a size depends on the call."""
        return is_dynamic(*self.type.shape)

    @property
    def element(self) -> str:
        """The C type of its elements."""
        return "uint8_t" if str(self.type.element) == "i1" else LANGUAGE.types[str(self.type.element)]

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return BY_NAME[str(self.type.element)].itemsize

    def declaration(self, const: str) -> str:
        """The member of the struct of arguments or results."""
        shape = ", ".join(map(str, self.seen.shape))
        size = "" if self.is_dynamic else f", {prod(self.type.shape)} elements"
        bits = f", as {self.element}" if self.seen.element != self.type.element else ""
        note = f"  /* {self.seen.element}[{shape}]{bits}{size} */\n"
        if not self.is_dynamic:
            return f"{note}  struct {{\n    {const}{self.element} *data;\n  }} {self.name};\n"
        sizes = f"    int64_t sizes[{len(self.type.shape)}];\n"
        return f"{note}  struct {{\n    {const}{self.element} *data;\n{sizes}  }} {self.name};\n"


@dataclass(frozen=True, slots=True)
class Export:
    """An exported function. `suffix` ends the names of its types and functions."""

    suffix: str
    name: str
    doc: str
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    aliases: dict[int, int]

    @property
    def kinds(self) -> dict[str, tuple[Field, ...]]:
        """The parameters behind the context: `inputs` and `outputs`, if there are any -> their members."""
        return {kind: rows for kind, rows in (("inputs", self.inputs), ("outputs", self.outputs)) if rows}

    @property
    def fields(self) -> list[tuple[str, Field]]:
        """The inputs, then the outputs, each with the name of its parameter."""
        return [(kind, row) for kind, rows in self.kinds.items() for row in rows]

    @property
    def is_dynamic(self) -> bool:
        """Whether a size depends on the call."""
        return any(row.is_dynamic for _, row in self.fields)


def export_of(function: ll_seq.Function, suffix: str) -> Export:
    inputs = _fields(function.signature.inputs, function.arg_attrs, "arg")
    outputs = _fields(function.signature.results, function.res_attrs, "result")
    doc = function.get_as("orchestrion.doc", StringAttr)
    aliases = result_aliases(function.arg_attrs)
    return Export(suffix, function.sym_name.value, "" if doc is None else doc.value, inputs, outputs, aliases)


def _fields(types: Sequence[Type], attrs: ArrayAttr | None, otherwise: str) -> tuple[Field, ...]:
    found: list[Field] = []
    names = names_for_callers(len(types), attrs, otherwise)
    for name, type, told in zip(names, types, types_for_callers(types, attrs), strict=True):
        assert isinstance(type, TensorType) and isinstance(told, TensorType)
        found.append(Field(identifier(name, [field.name for field in found]), type, told))
    return tuple(found)


@dataclass(slots=True)
class Interface:
    """The public names of a program, which all begin with `name`. `errors`: the rows of its style; `memory_parameters`:
    where the function that computes sizes stores the bytes of memory of a call.
    """

    name: str
    errors: Sequence[tuple[str, str]] = ERRORS
    memory_parameters: str = "size_t *memory_bytes"
    exports: list[Export] = field(default_factory=list)
    messages: dict[str, str] = field(default_factory=dict)

    def error_of(self, message: str) -> str:
        """The code of an error with this text."""
        known = {text: name for name, text in self.rows()}
        if message not in known:
            self.messages[message] = known[message] = f"ERROR_{len(self.errors) + len(self.messages)}"
        return f"{self.name}_{known[message]}"

    def rows(self) -> list[tuple[str, str]]:
        """Names and texts of all errors."""
        return [*self.errors, *((key, text) for text, key in self.messages.items())]

    def error_codes(self) -> str:
        """The codes of errors, and the function that has their texts."""
        n = self.name
        codes = ",\n".join(f"  {n}_{key} = {number}" for number, (key, _) in enumerate(self.rows()))
        return f"""/* What functions return: 0, or the code of an error. */
enum {{
{codes}
}};

/* The text of an error. */
const char *{n}_error_text(int error);
"""

    def error_texts(self) -> str:
        """The definition of that function."""
        rows = self.rows()
        texts = ",\n".join(f"    {literal(text)}" for _, text in rows)
        return f"""const char *{self.name}_error_text(int error)
{{
  static const char *const texts[] = {{
{texts}
  }};
  return error >= 0 && error < {len(rows)} ? texts[error] : "no error of this program";
}}
"""

    def header(
        self, head: str, memory: int, scratch: int, calls_need_memory: bool, weights: int, weights_file: str
    ) -> str:
        """The text of the header. `memory` and `weights` in bytes; `scratch`: bytes for each part of the work;
        `calls_need_memory`: whether calls need more, by their sizes; `weights_file`: the name of the file, if any.
        """
        n = self.name
        is_used = memory or scratch or calls_need_memory
        keeps = f"belongs to the context until {n}_fini" if is_used else "not used, may be NULL"
        what = self._weights(weights, weights_file)
        return f"""{head}
#ifndef {n}_H
#define {n}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{self._constants(memory, scratch, calls_need_memory, weights)}
{self.error_codes()}
/* Runs the parts begin to end - 1 of the work that data describes. */
typedef void {n}_task(void *data, size_t begin, size_t end);

/* A function of the app. It runs the parts 0 to count - 1 of a task, in any order, on any number of threads, and
 * returns when all of them are done. user: what the app gave to {n}_use_threads. */
typedef void {n}_parallel_for(void *user, size_t count, {n}_task *task, void *data);

/* The state of one user of the program. Its members belong to the functions below. */
typedef struct {n}_context {{
  unsigned char *memory, *scratch;
  const unsigned char *weights;
  size_t memory_bytes, call_bytes, parts;
  {n}_parallel_for *parallel_for;
  void *user;
  int is_ready;
}} {n}_context;

/* Initialises a context, and computes what does not depend on inputs.
 * memory: aligned, {keeps}.
 * weights: {what}. */
int {n}_init({n}_context *context, void *memory, size_t memory_bytes, const void *weights);

/* Divides the work of later calls into parts, which parallel_for runs. Calls of one context must not overlap.
 * parallel_for: NULL if the thread of the caller does all work. user: the app's pointer, which parallel_for receives.
 * parts: the number of parts, such as that of threads. The context needs memory for them. */
int {n}_use_threads({n}_context *context, {n}_parallel_for *parallel_for, void *user, size_t parts);
{"".join(self._export(export) for export in self.exports)}
/* Ends the use of memory and weights. */
void {n}_fini({n}_context *context);

#ifdef __cplusplus
}}
#endif

#endif
"""

    def _weights(self, size: int, file: str) -> str:
        """What the app gives as weights."""
        n = self.name
        if file:
            return f"the {n}_WEIGHTS_BYTES bytes of {file}, aligned to {n}_ALIGNMENT, unchanged until {n}_fini"
        if size:
            return (
                f"NULL for those in the program, or {n}_WEIGHTS_BYTES bytes in their layout, unchanged until {n}_fini"
            )
        return "NULL, as the program has none"

    def _constants(self, memory: int, scratch: int, calls_need_memory: bool, weights: int) -> str:
        """The macros for what a context needs."""
        n = self.name
        more = f", without what {n}_sizes adds for the sizes of a call" if calls_need_memory else ""
        return (
            f"/* Bytes of the memory of a context{more}. */\n#define {n}_MEMORY_BYTES {memory + scratch}u\n"
            f"/* Additional bytes of memory for each part of the work after the first one ({n}_use_threads). */\n"
            f"#define {n}_PART_BYTES {scratch}u\n"
            f"/* Bytes of the weights. */\n#define {n}_WEIGHTS_BYTES {weights}u\n"
            f"/* The alignment of memory and weights, in bytes. */\n#define {n}_ALIGNMENT {ALIGNMENT}u\n"
        )

    def parameters(self, export: Export) -> str:
        """The parameters of the function of an export."""
        n, suffix = self.name, export.suffix
        return ", ".join([f"{n}_context *context", *(f"const {n}_{kind}{suffix} *{kind}" for kind in export.kinds)])

    def sizes_head(self, export: Export) -> str:
        """The head of the function that computes sizes. It takes outputs only if some have sizes."""
        n, suffix = self.name, export.suffix
        given = [f"const {n}_inputs{suffix} *inputs"]
        if any(field.is_dynamic for field in export.outputs):
            given.append(f"{n}_outputs{suffix} *outputs")
        return f"int {n}_sizes{suffix}({', '.join([*given, self.memory_parameters])})"

    def _export(self, export: Export) -> str:
        return self.types(export) + (
            "/* Runs the function. Elements are in row-major order. Outputs must not overlap inputs."
            f"{self.may_alias(export)} */\n"
            f"int {self.name}_run{export.suffix}({self.parameters(export)});\n"
        )

    def types(self, export: Export) -> str:
        """The types of inputs and outputs, and the function that computes sizes."""
        n, suffix = self.name, export.suffix
        text = f"\n/* {comment(export.doc or f'The function {export.name}.')} */\n"
        for kind, fields in export.kinds.items():
            body = "".join(field.declaration("const " if kind == "inputs" else "") for field in fields)
            text += f"typedef struct {n}_{kind}{suffix} {{\n{body}}} {n}_{kind}{suffix};\n\n"
        if export.is_dynamic:
            text += (
                "/* From the sizes of the inputs, computes those of the outputs and the bytes of memory of a call. */\n"
                f"{self.sizes_head(export)};\n\n"
            )
        return text

    @staticmethod
    def may_alias(export: Export) -> str:
        """The sentence about outputs that replace an input."""
        alias = [
            f"outputs->{export.outputs[o].name}: that of inputs->{export.inputs[i].name}"
            for o, i in export.aliases.items()
        ]
        return f" May have the data of an input: {', '.join(alias)}." if alias else ""
