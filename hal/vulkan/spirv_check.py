"""Verifies SPIR-V before a driver gets it: only the subset of `orchestrion.schema.spirv` is accepted, in one pass.

Drivers compile SPIR-V without checking it, so an invalid module can crash the process. An accepted module is well typed
and structured, and uses only bindings and parameters that its entries have. Every access to workgroup memory ends with
a clamp, and `spirv_harden` bounds buffers and clears workgroup memory where the device does not. So it can access only
the memory of its bindings and its own variables. It may still not terminate.

This file parses instructions by their layout, and checks the order of the module. The rules are in `spirv_types`
(declarations), `spirv_rules` (values), `spirv_flow` (blocks) and `spirv_uniform` (barriers). Time and memory are linear
in the payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.spirv import (
    ADDRESSING_LOGICAL,
    CAPABILITIES,
    CAPABILITY_BY_CODE,
    DECORATIONS,
    EXT_INST_SET,
    MAGIC,
    MEMORY_GLSL450,
    MODE_LOCAL_SIZE,
    MODEL_GLCOMPUTE,
    OPS,
    SECTIONS,
    VERSION,
    Op,
)

from .spirv_flow import Flow
from .spirv_rules import ACTION_RULES, VALUE_RULES
from .spirv_types import (
    GLOBAL_RULES,
    INPUT,
    PUSH_CONSTANT,
    STORAGE_BUFFER,
    TYPE_RULES,
    WORKGROUP,
    EntryPoint,
    Scope,
)
from .spirv_uniform import check_barriers

HEADER_WORDS = 5

_DECORATION_BY_CODE = {code: (name, count, target) for name, (code, count, target) in DECORATIONS.items()}
_EXTENSIONS = {row.extension for row in CAPABILITIES if row.extension}


@dataclass(frozen=True, slots=True)
class Summary:
    """What a verified module needs, and what running it must know.

    `features`: features of the HAL. `shared_bytes`: bytes of workgroup memory per entry; variables that no entry uses
    count for every entry, so that all are limited. `element_bytes`: per entry and binding, the bytes of the largest
    element that is read or written; 0 without an access.
    """

    features: frozenset[str]
    shared_bytes: dict[str, int]
    element_bytes: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Form:
    """The layout of an instruction: has a type, has a result, single operands, repeated operands."""

    op: Op
    section: int
    typed: bool
    result: bool
    single: str
    repeated: str

    @classmethod
    def of(cls, op: Op) -> Form:
        single, repeated = op.layout, ""
        if single.endswith(")*"):
            single, _, repeated = single[:-2].partition("(")
        elif single.endswith("*"):
            single, repeated = single[:-2], single[-2]
        letters = single.replace(" ", "")
        typed, result = "T" in letters, "R" in letters
        return cls(op, SECTIONS.index(op.section), typed, result, letters[typed + result :], repeated.replace(" ", ""))


_FORMS = {op.code: Form.of(op) for op in OPS}
_FUNCTION_SECTION = SECTIONS.index("function")


def verify(payload: memoryview, entries: tuple[Entry, ...]) -> Summary:
    """Raises ModuleError unless the words belong to the subset, and have exactly these entries. Returns the summary."""
    words = _words(payload)
    checker = _Checker(words, entries)
    checker.walk()
    return checker.summary()


def _words(payload: memoryview) -> list[int]:
    if payload.nbytes % 4 or payload.nbytes < 4 * HEADER_WORDS:
        raise ModuleError(f"SPIR-V of {payload.nbytes} bytes is not {HEADER_WORDS} words or more")
    array = np.frombuffer(payload, np.uint8).view("<u4")
    magic, version, _, bound, reserved = (int(word) for word in array[:HEADER_WORDS])
    if (magic, version, reserved) != (MAGIC, VERSION, 0):
        raise ModuleError(f"SPIR-V magic {magic:#x}, version {version:#x}, expected {MAGIC:#x}, {VERSION:#x}", 0)
    if not 0 < bound <= array.size:
        raise ModuleError(f"SPIR-V id bound {bound} in {array.size} words", 12)
    return array.tolist()  # type: ignore[no-any-return]


class _Checker:
    """Checks the instructions of one module in order."""

    def __init__(self, words: list[int], entries: tuple[Entry, ...]) -> None:
        self._words = words
        self._scope = Scope(words[3], entries)
        self._flow: Flow | None = None
        self._section = 0
        self._decorated: list[tuple[int, int, str]] = []  # word, id, decoration
        self._functions: set[int] = set()
        self._made: set[int] = set()  # results of instructions that produce a value
        self._uses: list[tuple[int, list[int]]] = []  # (result, operands) of instructions of this function
        self._divergent: list[int] = []  # results that may differ between invocations of a workgroup
        self._rules = {
            "capability": self._capability,
            "extension": self._extension,
            "ext_inst_import": self._ext_inst_import,
            "memory_model": self._memory_model,
            "entry_point": self._entry_point,
            "execution_mode": self._execution_mode,
            "decorate": self._decorate,
            "member_decorate": self._member_decorate,
            "function": self._function,
            "function_end": self._function_end,
            "label": self._label,
            "phi": self._phi,
            "loop_merge": self._loop_merge,
            "selection_merge": self._selection_merge,
            "branch": self._branch,
            "branch_conditional": self._branch_conditional,
            "return": self._leave,
        }

    def walk(self) -> None:
        words, scope, at = self._words, self._scope, HEADER_WORDS
        while at < len(words):
            scope.at = at
            code, count = words[at] & 0xFFFF, words[at] >> 16
            form = _FORMS.get(code)
            scope.op = form.op.name if form is not None else f"opcode {code}"
            if form is None:
                scope.refuse("outside of the subset that runs here")
            if not count or at + count > len(words):
                scope.refuse(f"{count} words, {len(words) - at} are left")
            self._place(form)
            self._instruction(form, at + 1, at + count)
            at += count
        self._finish()

    def summary(self) -> Summary:
        rows = [row for row in CAPABILITIES if row.name in self._scope.capabilities]
        variables = self._scope.variables
        shared, elements = {}, {}
        points = self._scope.entry_points.values()
        unused = variables.keys() - {id for point in points for id in point.used}
        hidden = sum(variables[id].content.bytes for id in unused if variables[id].storage == WORKGROUP)
        for point in points:
            used = [variables[id] for id in point.used]
            shared[point.name] = hidden + sum(row.content.bytes for row in used if row.storage == WORKGROUP)
            largest = [0] * len(point.entry.bindings)
            for row in used:
                if row.storage == STORAGE_BUFFER:
                    largest[row.binding] = max(largest[row.binding], row.element.bytes)
            elements[point.name] = tuple(largest)
        return Summary(frozenset(row.feature for row in rows if row.feature), shared, elements)

    def _place(self, form: Form) -> None:
        """Check the order of sections."""
        section = form.section
        if section < self._section:
            self._scope.refuse(f"behind the {SECTIONS[self._section]} section")
        self._section = section
        inside = form.op.rule in ("function", "function_end")
        if section == _FUNCTION_SECTION and not inside and self._flow is None:
            self._scope.refuse("outside of a function")

    def _instruction(self, form: Form, at: int, end: int) -> None:
        scope, words = self._scope, self._words
        if end - at < form.typed + form.result + len(form.single):
            scope.refuse(f"{end - at} operands, expected {form.typed + form.result + len(form.single)} or more")
        kind = None
        if form.typed:
            kind = scope.types.get(words[at])
            if kind is None:
                scope.refuse(f"result type {words[at]} is not declared")
            at += 1
        result = 0
        if form.result:
            result = words[at]
            if not 0 < result < scope.bound or result in scope.defined:
                scope.refuse(f"result id {result} is not new or not below the bound {scope.bound}")
            scope.defined.add(result)
            at += 1
        operands = self._operands(form, at, end)
        self._judge(form.op, kind, result, operands)

    def _operands(self, form: Form, at: int, end: int) -> list[Any]:
        operands: list[Any] = []
        for letter in form.single:
            if at >= end:
                self._scope.refuse(f"too few operands, expected {form.op.layout}")
            if letter == "s":
                text, at = self._string(at, end)
                operands.append(text)
                continue
            operands.append(self._operand(letter, self._words[at]))
            at += 1
        repeated = form.repeated
        if (end - at) % (len(repeated) or end - at + 1):
            self._scope.refuse(f"{end - at} operands too many, expected {form.op.layout}")
        for position in range(end - at):
            letter = repeated[position % len(repeated)]
            operands.append(self._operand(letter, self._words[at + position]))
        return operands

    def _operand(self, letter: str, word: int) -> int:
        scope = self._scope
        if letter == "n":
            return word
        if letter == "v":
            if not self._visible(word):
                scope.refuse(f"id {word} is not a value that can be used here")
            root = scope.roots.get(word)
            if root is not None and scope.entry is not None and root not in scope.entry.used:
                self._use(scope.entry, root)
        elif letter == "t":
            if word not in scope.types:
                scope.refuse(f"type {word} is not declared")
        elif letter == "c":
            if word not in scope.values or word in scope.roots or self._flow is not None and self._flow.defines(word):
                scope.refuse(f"id {word} is not a constant")
        elif not 0 < word < scope.bound:
            scope.refuse(f"id {word}, the bound is {scope.bound}")
        return word

    def _visible(self, id: int) -> bool:
        if id not in self._scope.values:
            return False
        flow = self._flow
        return flow is None or not flow.defines(id) or flow.visible(id)

    def _string(self, at: int, end: int) -> tuple[str, int]:
        data = b"".join(word.to_bytes(4, "little") for word in self._words[at:end])
        text, found, _ = data.partition(b"\0")
        stop = at + len(text) // 4 + 1
        if not found or any(data[len(text) : 4 * (stop - at)]):
            self._scope.refuse("a string without its end")
        try:
            return text.decode(), stop
        except UnicodeDecodeError:
            self._scope.refuse("a string that is not UTF-8")

    def _judge(self, op: Op, kind: Any, result: int, operands: list[Any]) -> None:
        scope, flow = self._scope, self._flow
        own = self._rules.get(op.rule)
        if own is not None:
            own(kind, result, operands)
        elif op.rule in TYPE_RULES:
            TYPE_RULES[op.rule](scope, op, result, operands)
        elif op.rule in GLOBAL_RULES:
            GLOBAL_RULES[op.rule](scope, op, kind, result, operands)
            self._define(result, kind)
        elif flow is None or not flow.block:
            scope.refuse("outside of a block")
        elif flow.merging:
            scope.refuse("between a merge instruction and its branch")
        elif op.rule in VALUE_RULES:
            flow.phis_allowed = False
            if op.rule == "atomic":
                self._change(flow)
            VALUE_RULES[op.rule](scope, op, kind, result, operands)
            self._made.add(result)
            self._define(result, kind)
            self._depend(op, result, operands)
        else:
            self._act(flow, op, operands)

    def _act(self, flow: Flow, op: Op, operands: list[Any]) -> None:
        flow.phis_allowed = False
        self._change(flow)
        ACTION_RULES[op.rule](self._scope, op, operands)
        if op.rule == "control_barrier":
            flow.barrier()

    def _change(self, flow: Flow) -> None:
        """An instruction with an effect."""
        if flow.values_only:
            self._scope.refuse("in a loop's header or continue block")

    def _depend(self, op: Op, result: int, operands: list[Any]) -> None:
        """Record for `spirv_uniform` which values a result depends on."""
        if op.rule == "load":
            scope = self._scope
            if not scope.variables[scope.roots[operands[0]]].uniform:
                self._divergent.append(result)
        elif op.rule == "atomic":
            self._divergent.append(result)
        elif op.rule == "ext_inst":
            self._uses.append((result, operands[2:]))
        elif op.rule == "composite_extract":
            self._uses.append((result, operands[:1]))
        else:
            self._uses.append((result, operands))

    def _define(self, id: int, kind: Any) -> None:
        self._scope.values[id] = kind
        if self._flow is not None:
            self._flow.define(id)

    # the module

    def _capability(self, kind: Any, result: int, operands: list[Any]) -> None:
        row = CAPABILITY_BY_CODE.get(operands[0])
        if row is None:
            self._scope.refuse(f"capability {operands[0]} is outside of the subset that runs here")
        self._scope.capabilities.add(row.name)

    def _extension(self, kind: Any, result: int, operands: list[Any]) -> None:
        if operands[0] not in _EXTENSIONS:
            self._scope.refuse(f"extension {operands[0]!r} is outside of the subset that runs here")
        self._scope.extensions.add(operands[0])

    def _ext_inst_import(self, kind: Any, result: int, operands: list[Any]) -> None:
        if operands[0] != EXT_INST_SET:
            self._scope.refuse(f"instruction set {operands[0]!r}, expected {EXT_INST_SET}")
        self._scope.imports.add(result)

    def _memory_model(self, kind: Any, result: int, operands: list[Any]) -> None:
        if operands != [ADDRESSING_LOGICAL, MEMORY_GLSL450] or self._scope.has_memory_model:
            self._scope.refuse(f"model {operands}, expected one of {[ADDRESSING_LOGICAL, MEMORY_GLSL450]}")
        self._scope.has_memory_model = True

    def _entry_point(self, kind: Any, result: int, operands: list[Any]) -> None:
        scope = self._scope
        model, function, name, *interface = operands
        entry = scope.table.pop(name, None)
        if model != MODEL_GLCOMPUTE or entry is None or function in scope.entry_points:
            scope.refuse(f"{name!r} of execution model {model} is unknown, named twice or shares its function")
        if len(set(interface)) != len(interface):
            scope.refuse(f"{name!r} lists a variable twice")
        scope.entry_points[function] = EntryPoint(name, entry, function, frozenset(interface))

    def _execution_mode(self, kind: Any, result: int, operands: list[Any]) -> None:
        point = self._scope.entry_points.get(operands[0])
        if point is None or point.local_size is not None or operands[1] != MODE_LOCAL_SIZE:
            self._scope.refuse(f"mode {operands[1]} of function {operands[0]}, expected one LocalSize per entry")
        point.local_size = tuple(operands[2:])
        if point.local_size != point.entry.workgroup_size:
            self._scope.refuse(f"LocalSize {operands[2:]}, entry {point.name} has {point.entry.workgroup_size}")

    def _decorate(self, kind: Any, result: int, operands: list[Any]) -> None:
        id, *decoration = operands
        self._note(self._scope.decorations.setdefault(id, {}), id, decoration, "")

    def _member_decorate(self, kind: Any, result: int, operands: list[Any]) -> None:
        id, member, *decoration = operands
        members = self._scope.member_decorations.setdefault(id, {})
        self._note(members.setdefault(member, {}), id, decoration, "member")

    def _note(self, known: dict[int, int], id: int, decoration: list[int], of: str) -> None:
        code, *literals = decoration
        name, count, target = _DECORATION_BY_CODE.get(code, ("", 0, ""))
        if not name or len(literals) != count or (of == "member") != (target == "member") or code in known:
            self._scope.refuse(f"decoration {code} with {len(literals)} literals")
        known[code] = literals[0] if literals else 0
        self._decorated.append((self._scope.at, id, name))

    def _finish(self) -> None:
        scope = self._scope
        scope.at, scope.op = len(self._words), "module"
        if self._flow is not None:
            scope.refuse("ends inside a function")
        if not scope.has_memory_model or "Shader" not in scope.capabilities:
            scope.refuse("no memory model or no capability Shader")
        for row in CAPABILITIES:
            if row.name in scope.capabilities and row.extension and row.extension not in scope.extensions:
                scope.refuse(f"capability {row.name} without extension {row.extension}")
        if scope.table:
            scope.refuse(f"no entry point {', '.join(scope.table)}")
        for point in scope.entry_points.values():
            if point.local_size is None or point.function not in self._functions:
                scope.refuse(f"entry point {point.name} without LocalSize or function")
            self._check_interface(point)
        for at, id, name in self._decorated:
            scope.at, scope.op = at, "OpDecorate"
            if not self._may_decorate(id, name):
                scope.refuse(f"{name} on id {id}")

    def _check_interface(self, point: EntryPoint) -> None:
        for id in point.interface:
            variable = self._scope.variables.get(id)
            if variable is None or variable.storage != INPUT:
                self._scope.refuse(f"entry point {point.name} lists id {id}, which is not an input")

    def _may_decorate(self, id: int, name: str) -> bool:
        scope, target = self._scope, DECORATIONS[name][2]
        if target == "variable":
            storage = INPUT if name == "BuiltIn" else STORAGE_BUFFER
            return id in scope.variables and scope.variables[id].storage == storage
        if target == "value":
            return id in self._made
        type = scope.types.get(id)
        if target == "array" or type is None:
            return type is not None and type.base == "runtime array"
        return type.base == "struct" and max(scope.member_decorations.get(id, {0: {}})) < len(type.members)

    # functions

    def _function(self, kind: Any, result: int, operands: list[Any]) -> None:
        scope = self._scope
        control, type = operands
        point = scope.entry_points.get(result)
        if self._flow is not None or point is None:
            scope.refuse("inside another, or not of an entry point")
        if kind.base != "void" or control or scope.types[type].base != "function":
            scope.refuse(f"returns {kind}, control {control}, type {scope.types[type]}")
        self._functions.add(result)
        self._flow = Flow(scope)
        self._uses, self._divergent = [], []
        scope.entry = point

    def _function_end(self, kind: Any, result: int, operands: list[Any]) -> None:
        if self._flow is None:
            self._scope.refuse("outside of a function")
        self._flow.finish()
        check_barriers(self._scope, self._flow, self._uses, self._divergent)
        for id in self._flow.values:
            del self._scope.values[id]
        self._flow = self._scope.entry = None

    def _use(self, point: EntryPoint, id: int) -> None:
        """The first use of a variable in an entry: the entry must have it."""
        scope = self._scope
        point.used.add(id)
        variable = scope.variables[id]
        if variable.storage == STORAGE_BUFFER and variable.binding >= len(point.entry.bindings):
            scope.refuse(f"binding {variable.binding}, entry {point.name} has {len(point.entry.bindings)}")
        if variable.storage == INPUT and id not in point.interface:
            scope.refuse(f"input {id} is not listed by entry point {point.name}")
        if variable.storage != PUSH_CONSTANT:
            return
        if any(scope.variables[other].storage == PUSH_CONSTANT for other in point.used if other != id):
            scope.refuse(f"entry point {point.name} uses two parameter blocks")
        if len(variable.content.members) > point.entry.parameter_words:
            count = len(variable.content.members)
            scope.refuse(f"{count} parameters, entry {point.name} has {point.entry.parameter_words}")

    def _in_function(self) -> Flow:
        flow = self._flow
        assert flow is not None, "the section is only reached in a function"
        return flow

    def _in_block(self) -> Flow:
        flow = self._in_function()
        if not flow.block:
            self._scope.refuse("outside of a block")
        return flow

    def _label(self, kind: Any, result: int, operands: list[Any]) -> None:
        self._in_function().label(result)

    def _phi(self, kind: Any, result: int, operands: list[Any]) -> None:
        if kind.lanes != 1:
            self._scope.refuse(f"of {kind}")
        first, before, second, after = operands
        self._in_block().phi(result, kind, ((first, before), (second, after)))
        self._define(result, kind)

    def _loop_merge(self, kind: Any, result: int, operands: list[Any]) -> None:
        self._control(operands[2])
        self._in_block().loop_merge(operands[0], operands[1])

    def _selection_merge(self, kind: Any, result: int, operands: list[Any]) -> None:
        self._control(operands[1])
        self._in_block().selection_merge(operands[0])

    def _control(self, mask: int) -> None:
        if mask:
            self._scope.refuse(f"control mask {mask:#x}, expected 0")

    def _branch(self, kind: Any, result: int, operands: list[Any]) -> None:
        self._in_block().branch(operands[0])

    def _branch_conditional(self, kind: Any, result: int, operands: list[Any]) -> None:
        condition = self._scope.values[operands[0]]
        if (condition.base, condition.lanes) != ("bool", 1):
            self._scope.refuse(f"on a {condition}")
        self._in_block().branch_conditional(*operands)

    def _leave(self, kind: Any, result: int, operands: list[Any]) -> None:
        self._in_block().leave()
