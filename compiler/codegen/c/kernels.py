"""Renders an entry as a C function that runs a range of workgroups.

The function takes a struct with the addresses of the bindings and the parameter words. In a workgroup each segment
(`targets/cpu/workgroup.py`) is a loop over the invocations, as on the device `cpu`. If only the number of the
invocation in the dispatch matters, one loop runs all invocations of all workgroups. Shared arrays and kept values are
on the stack if they are small, else in memory of the context.
"""

from __future__ import annotations

import re
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterable, MutableMapping, Sequence
from math import prod

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.signature import BindingUse, Signature
from orchestrion.compiler.targets.c_text.body import INDENT
from orchestrion.compiler.targets.cpu.workgroup import Segment, WorkgroupOps
from orchestrion.schema.dtypes import DType

from .body import CBody
from .lanes import LANE, Lanes
from .language import LANGUAGE, comment, memory_name
from .weights import ALIGNMENT

#: most bytes of the stack for the shared arrays and kept values of an entry
MOST_STACK = 4 << 10
#: most invocations in a group of neighbours
MOST_LANES = 16
_DEFINITION = re.compile(r"\s*const \w+ (\w+) = ")
#: the declaration of an array of lanes, or an assignment to its elements
_ARRAY = re.compile(rf"\s*(?:\w+ )?(v\d+)\[(?:\d+\]|{LANE}\] = .*);")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class KernelText(WorkgroupOps):
    """The text of one entry. `name`: of the function; `apart`: numbers of bindings that no other one overlaps if one of
    them is written. After `text`, `scratch`: bytes that a call needs beside the stack.
    """

    def __init__(
        self,
        name: str,
        block: Block,
        signature: Signature,
        callee: Callable[[k.Call], str],
        apart: Collection[int],
        note: str,
    ) -> None:
        super().__init__(block, prod(signature.workgroup_size), MOST_LANES, masks=True)
        self.name, self.signature, self.apart, self.note = name, signature, apart, note
        self.body = CBody(callee)
        self.body.names = self.names
        self.scratch = 0
        #: line that declares an array -> its name, element type, number of elements and bytes
        self._arrays: dict[str, tuple[str, str, int, int]] = {}

    def text(self) -> str:
        """The struct of its arguments, and the function."""
        self._name_constants()
        if self.place is not None:
            self._workgroup(self.block)
        else:
            with self.body.braces("for (size_t g = begin; g < end; ++g)"):
                self._workgroup(self.block)
        self._place_arrays()
        lines = used_lines([*self._arguments(), *self.body.lines])
        given = "void *data, unsigned char *scratch, size_t begin, size_t end"
        head = f"/* {comment(self.note)} */\nstatic void {self.name}({given})"
        return "\n".join([self._struct(), f"{head}\n{{", *lines, "}\n"])

    def _place_arrays(self) -> None:
        """Declares the arrays: on the stack, or one behind the other in the scratch memory."""
        if sum(bytes for *_, bytes in self._arrays.values()) <= MOST_STACK:
            declared = {line: f"{type} {name}[{count}];" for line, (name, type, count, _) in self._arrays.items()}
            self.body.line("(void)scratch;")
        else:
            declared = {}
            for line, (name, type, _, bytes) in self._arrays.items():
                declared[line] = f"{type} *RESTRICT const {name} = ({type} *)(scratch + {self.scratch});"
                self.scratch += -(-bytes // ALIGNMENT) * ALIGNMENT
        lines = self.body.lines
        self.body.lines = [
            line.replace(line.strip(), declared[line.strip()]) if line.strip() in declared else line for line in lines
        ]

    def _struct(self) -> str:
        fields = [
            f"{INDENT}{pointer_type(self.signature.bindings[ordinal])}b{ordinal};"
            for ordinal in range(len(self.signature.bindings))
        ]
        fields += [f"{INDENT}uint32_t p{ordinal};" for ordinal in range(self.signature.parameters)]
        return "\n".join(["typedef struct {", *fields, f"}} {self.name}_arguments;\n"])

    def _arguments(self) -> list[str]:
        """The statements that take the arguments out of the struct."""
        used = [f"b{n}" for n in range(len(self.signature.bindings))] + [
            f"p{n}" for n in range(self.signature.parameters)
        ]
        words = {word for line in self.body.lines for word in _WORD.findall(line)}
        lines = []
        for name in (name for name in used if name in words):
            number = int(name[1:])
            if name[0] == "b":
                type = pointer_type(self.signature.bindings[number]) + ("RESTRICT " if number in self.apart else "")
                lines.append(f"{INDENT}{type}const {name} = arguments->{name};")
            else:
                lines.append(f"{INDENT}const uint32_t {name} = arguments->{name};")
        type = f"const {self.name}_arguments *"
        head = f"{INDENT}{type}const arguments = ({type})data;"
        return [head, *lines] if lines else [f"{INDENT}(void)data;"]

    def _name_constants(self) -> None:
        for ordinal, binding in enumerate(self.block.arguments):
            self.names[binding] = f"b{ordinal}"
        for op in self.block.walk():
            if isinstance(op, k.Parameter):
                self.names[op.output] = f"p{op.ordinal.value}"
            elif isinstance(op, k.Constant):
                self.names[op.output] = LANGUAGE.literal(op.bits, k.dtype_of(op.output))
            elif isinstance(op, k.ByteOffset):
                self.names[op.output] = "0u"  # C adds nothing to bytes
            elif isinstance(op, k.HasPairProducts | k.PrefersPanels):
                self.names[op.output] = LANGUAGE.literal(0, k.dtype_of(op.output))
            elif isinstance(op, k.WorkgroupId):
                self.names[op.output] = f"({LANGUAGE.types[str(op.output.type)]})g"

    # a workgroup

    def _common(self, op: Operation) -> None:
        self.body.ops([op])

    def _reserve_shared(self, op: k.Shared) -> None:
        self.names[op.output] = self._array(k.length_of(op.output), k.dtype_of(op.output), 1)

    def _reserve(self, value: Value) -> str:
        return self._array(self.size, k.dtype_of(value), k.length_of(value))

    def _array(self, count: int, dtype: DType, lanes: int) -> str:
        """A new array of scalars or vectors."""
        name = self.body.new_name("s")
        type = memory_name(dtype) if lanes == 1 else LANGUAGE.vector_type(lanes, dtype)
        self._arrays[f"{name}[]"] = name, type, count, count * lanes * dtype.itemsize
        self.body.line(f"{name}[]")
        return name

    def _loop(self, op: k.For) -> None:
        index, *carried = op.body.block.arguments
        bounds = [self._one(bound) for bound in (op.lower, op.upper, op.step)]
        common = [self.analysis.is_common(value) for value in carried]
        for value, start, result, is_common in zip(carried, op.start, op.outputs, common, strict=True):
            if is_common:
                self.names[result] = self.body.variable(value, self._one(start))
            else:
                self.kept[result] = self.kept[value] = self._reserve(value)
        firsts = [(start, self.kept[v]) for v, start, c in zip(carried, op.start, common, strict=True) if not c]
        self._copy(firsts)
        name = self.names[index] = self.body.new_name()
        type = LANGUAGE.types[str(index.type)]
        lower, upper, step = bounds
        with self.body.braces(f"for ({type} {name} = {lower}; {name} < {upper}; {name} += {step})"):
            self._workgroup(op.body.block)
            self._yield(op.body.block, carried, [self.names.get(value, "") for value in carried])

    def _branch(self, op: k.If) -> None:
        flag = self._one(op.condition)
        for value in op.outputs:
            if self.analysis.is_common(value):
                self.body.variable(value)
            else:
                self.kept[value] = self._reserve(value)
        for head, arm in ((f"if ({flag})", op.yes.block), ("else", op.no.block)):
            if head != "else" or arm.first is not arm.last or op.outputs:
                with self.body.braces(head):
                    self._workgroup(arm)
                    self._yield(arm, op.outputs, [self.names.get(value, "") for value in op.outputs])

    def _yield(self, block: Block, targets: Sequence[Value], names: Sequence[str]) -> None:
        """Hands the values of a region on: to arrays, and to variables of `names`."""
        pairs = list(zip(targets, k.yielded(block), names, strict=True))
        self._copy([(new, self.kept[value]) for value, new, _ in pairs if not self.analysis.is_common(value)])
        common = [(name, new) for value, new, name in pairs if self.analysis.is_common(value)]
        for _, new in common:
            self.names[new] = self._one(new)
        self.body.assign([name for name, _ in common], [new for _, new in common])

    def _one(self, value: Value) -> str:
        """A value of which all invocations have the same, as that of the first one."""
        if value in self.names:
            return self.names[value]
        names: MutableMapping[Value, str] = ChainMap({}, self.names)
        with self.body.scope(names):
            self._name_place("0")
            self.body.ops(self._cheap_ops([value]))
            self._load_kept("0", [value])
        return names[value]

    def _load_kept(self, number: str, values: Iterable[Value]) -> None:
        for value in values:
            if value in self.kept and value not in self.body.names:
                self.body.names[value] = name = self.body.new_name()
                self.body.define_as(name, value, f"{self.kept[value]}[{number}]")

    def _run(self, segment: Segment, keeps: Sequence[tuple[Value, str]]) -> None:
        needed = self._needed(segment, [value for value, _ in keeps])
        cheap = self._cheap_ops(needed)
        wide = self.place is not None and str(self.place.type) == "ui64"
        lower, upper = self._range(segment, "ui64" if wide else "ui32")
        if upper == "0u":
            return
        number = self.body.new_name("i")
        type = "uint64_t" if wide else "uint32_t"
        self.body.line(f"{type} {number} = {lower};")
        self._run_lanes(segment, keeps, number, upper)
        with self.body.braces(f"for (; {number} < {upper}; ++{number})"):
            with self.body.scope(ChainMap({}, self.names)):
                self._name_place(number)
                self._load_kept(number, needed)
                self.body.ops(cheap)
                self.body.ops(segment.ops)
                for value, array in keeps:
                    self.body.line(f"{array}[{number}] = {self.body.names[value]};")

    def _run_lanes(self, segment: Segment, keeps: Sequence[tuple[Value, str]], number: str, upper: str) -> None:
        """Loops over groups of invocations, if that pays, where the processor has vectors."""
        needed = self._needed(segment, [value for value, _ in keeps])
        cheap = self._cheap_ops(needed)
        kept = [value for value in needed if value in self.kept]
        ways = [] if segment.first_only else self._ways([*cheap, *segment.ops], kept)
        if not ways:
            return
        self.body.line("#if VECTOR_BYTES")
        for forms in ways:
            width = f"{forms.width}u"
            head = f"for (; {number} < {upper} && {upper} - {number} >= {width}; {number} += {width})"
            with self.body.braces(head), self.body.scope(ChainMap({}, self.names)):
                self._name_place(number)
                arrays = {value: f"({self.kept[value]} + {number})[{LANE}]" for value in kept}
                lanes = Lanes(self.body, forms, arrays)
                lanes.ops([*cheap, *segment.ops])
                lanes.end_run([(f"({array} + {number})[{LANE}]", value) for value, array in keeps])
        self.body.line("#endif")

    def _range(self, segment: Segment, type: str) -> tuple[str, str]:
        """The first number of an invocation, and the last one and one."""
        c_type = LANGUAGE.types[type]
        if self.place is not None:
            lower, upper = (f"({c_type})({edge} * {self.size}u)" for edge in ("begin", "end"))
        else:
            lower, upper = "0", f"{self._most(segment)}u"
        for limit in segment.limits:
            if self.place is None and k.bits_of(limit) is not None:
                continue
            given = self._one(limit)
            given = given if str(limit.type) == type else f"({c_type})({given})"
            upper = f"smaller_{type}({upper}, {given})"
        for condition in segment.conditions:
            upper = f"({self._one(condition)}) ? {upper} : {lower}"
        if upper.isidentifier() or upper.rstrip("u").isdecimal():
            return lower, upper
        name = self.body.new_name("n")
        self.body.line(f"const {c_type} {name} = {upper};")
        return lower, name

    def _name_place(self, number: str) -> None:
        for value in [self.place] if self.place is not None else self.local_ids:
            self.body.names[value] = number


def pointer_type(binding: BindingUse) -> str:
    element = "unsigned char" if binding.dtype is None else memory_name(binding.dtype)
    return f"{'' if binding.writable else 'const '}{element} *"


def used_lines(lines: Sequence[str]) -> list[str]:
    """The lines without definitions of variables that nothing uses, and without arrays that nothing reads."""
    lines = list(lines)
    while True:
        counts = Counter(word for line in lines for word in _WORD.findall(line))
        sets = Counter(match[1] for line in lines if (match := _ARRAY.match(line)))
        unused = {name for name, number in sets.items() if counts[name] == number}
        unused |= {match[1] for line in lines if (match := _DEFINITION.match(line)) and counts[match[1]] == 1}
        rows = [(line, _DEFINITION.match(line) or _ARRAY.match(line)) for line in lines]
        kept = [line for line, match in rows if match is None or match[1] not in unused]
        if len(kept) == len(lines):
            return kept
        lines = kept
