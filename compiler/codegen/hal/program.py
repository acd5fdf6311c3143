"""The class of a program: what it requires, how it sets itself up, and a method for each export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.profiles import known_profile
from orchestrion.schema.dtypes import BY_CODE, DType
from orchestrion.schema.profiles import feature_names
from orchestrion.schema.rows import ACCESSES, Constant, Executable, Variant

from .body import Body, type_of
from .calls import CALLS, dtype_name
from .code import Code, Export
from .payloads import Payloads
from .ssa import Function
from .text import Group, Node, docstring, indented, layout, plain, quoted, sequence

#: results whose types are not listed one by one
_MANY: Final = 4
_ACCESS: Final[dict[int, str]] = {code: name for name, code in ACCESSES.items()}


class ProgramText:
    """The text of a program. `body`: the methods that devices do not decide; equal for programs with equal code.

    `dtypes`, `helpers`: what the text uses.
    """

    def __init__(self, code: Code, payloads: Payloads) -> None:
        self._code, self._payloads = code, payloads
        self.helpers: set[str] = set()
        self.dtypes: set[DType] = {
            tensor.dtype for export in code.exports for tensor in (*export.arguments, *export.results)
        }
        self._refuse_other_modules()
        initializers = [self._initializer(function) for function in code.initializers]
        setups = [self._setup(function) for function in code.setups]
        bodies = [self._body(export, function) for export, function in zip(code.exports, code.entries, strict=True)]
        self.body = "\n\n".join([self._set_up(), *initializers, *setups, *bodies])

    def whole(self, name: str, base: str, same: str | None, complete: bool) -> str:
        """The class. `same`: the class of a program with equal code. `complete`: it has the public methods too."""
        code = self._code
        doc = f"Program {plain(code.name, 60)}, for devices that run {known_profile(self._profile()).format}."
        if same is not None:
            doc += f" Its code calls what that of {same} calls."
        lines = [f"class {name}({same or base}):", *indented([*docstring([doc], 4), "", *self._facts()])]
        text = "\n".join(lines)
        methods = [self.method(export, several) for export in code.exports for several in (False, True)]
        parts = [text, *(methods if complete else []), *([] if same else [self.body])]
        return "\n\n".join(parts)

    def interface(self, name: str) -> str:
        """The class that the programs of a module have in common: the public methods."""
        doc = docstring(["The exports of the module. `create` chooses the program for a device."], 4)
        parts = ["\n".join([f"class {name}(Program):", *indented(doc)])]
        for export in self._code.exports:
            parts += [self.method(export, False), self.method(export, True), self._abstract(export)]
        return "\n\n".join(parts)

    def _profile(self) -> str:
        return self._code.module.strings[self._code.row.profile]

    def _refuse_other_modules(self) -> None:
        code = self._code
        for function in (*code.initializers, *code.setups, *code.entries):
            for op in function.ops():
                if op.callee and not op.callee.startswith("hal."):
                    raise CompileError(
                        f"program {code.name}, function {function.name}: calls {op.callee}, "
                        "a function of another module, which HAL code cannot"
                    )

    # what it requires

    def _facts(self) -> list[str]:
        code = self._code
        profile = known_profile(self._profile())
        features = {*feature_names(code.row.features), *profile.features}
        lines = [f"NAME = {quoted(code.name)}", f"FORMAT = {quoted(profile.format)}"]
        lines += layout("FEATURES = ", _set(features), room=4)
        lines += ["EXECUTABLES = {" if code.executables else "EXECUTABLES = {}"]
        for row, name in zip(code.executables, code.executable_names, strict=True):
            lines += indented(layout(f"{quoted(name)}: ", self._executable(row), ",", 8))
        lines += ["}"] if code.executables else []
        rows = [*zip(code.constants, code.constant_names, strict=True)]
        files = {name: self._payloads.constant(row.segment, name) for row, name in rows if not code.is_parameter(row)}
        lines += _dictionary("CONSTANTS", {name: [quoted(file), str(size)] for name, (file, size) in files.items()})
        if self.takes_parameters:
            types = {name: self._parameter(row) for row, name in rows if code.is_parameter(row)}
            lines += _dictionary("PARAMETERS", types)
        return lines

    @property
    def takes_parameters(self) -> bool:
        return any(map(self._code.is_parameter, self._code.constants))

    def _parameter(self, row: Constant) -> list[str]:
        """The element type and the shape of a parameter."""
        dtype = BY_CODE[row.dtype]
        self.dtypes.add(dtype)
        self.helpers.add("described")
        return [dtype_name(dtype), str(sequence(map(str, self._code.module.dims[row.dims_start : row.dims_end])))]

    def _executable(self, row: Executable) -> Node:
        variants = self._code.module.variants[row.variants_start : row.variants_end]
        return sequence([self._variant(row, variant) for variant in variants])

    def _variant(self, row: Executable, variant: Variant) -> Node:
        module = self._code.module
        name, format = module.strings[row.name], module.strings[variant.format]
        file, digest = self._payloads.code(variant.payload, name, format)
        sizes = module.workgroup_sizes[variant.workgroup_sizes_start : variant.workgroup_sizes_end]
        entries = [self._entry(row.entries_start + at, (size.x, size.y, size.z)) for at, size in enumerate(sizes)]
        items: list[Node] = [quoted(format), quoted(file), quoted(digest), sequence(entries)]
        features, shared = feature_names(variant.features), variant.shared_memory_bytes
        items += [_set(features, "features=")] if features else []
        items += [f"shared_memory_bytes={shared}"] if shared else []
        return Group("Variant", items)

    def _entry(self, ordinal: int, workgroup: tuple[int, int, int]) -> Node:
        module = self._code.module
        row = module.executable_entries[ordinal]
        bindings = [
            str(sequence([quoted(_ACCESS[at.access]), str(at.length)]))
            for at in module.bindings[row.bindings_start : row.bindings_end]
        ]
        items: list[Node] = [quoted(module.strings[row.name]), sequence(bindings)]
        return Group("Entry", [*items, str(row.parameter_words), str(sequence(map(str, workgroup)))])

    # how it sets itself up

    def _set_up(self) -> str:
        code = self._code
        lines = ["def _set_up(self) -> None:"]
        body = [f"self.{name} = {value}" for name, value in code.number_globals.items()]
        for function in code.setups:
            self.helpers.add("Recent")
            made = f"Recent[{self._made(function)}]"
            body += layout(f"self.{code.caches[function.ordinal]}: {made} = ", Group("self._own", ["Recent()"]), room=8)
        body += [f"self.{code.methods[function.ordinal]}()" for function in code.initializers]
        return "\n".join(indented([*lines, *indented(body or ["pass"])]))

    def _initializer(self, function: Function) -> str:
        writer = self._writer(function, None)
        lines = writer.render()
        if writer.uses_call:
            lines = ["call = Call(self.device)", *lines, "call.run()"]
        for name in reversed(writer.temporaries):
            lines.append(f"{name}.release()")
        return self._function(Group(f"def {self._code.methods[function.ordinal]}", ["self"]), "None", [], lines)

    def _made(self, function: Function) -> str:
        """The type of what a setup returns."""
        types = [type_of(function.results[place]) for place in self._code.kept(function)]
        return types[0] if len(types) == 1 else f"tuple[{', '.join(types) or '()'}]"

    def _setup(self, function: Function) -> str:
        writer = self._writer(function, None)
        names = [
            writer.name(value, hint) for value, hint in zip(function.parameters, self._sizes(function), strict=True)
        ]
        lines = writer.render()
        parameters = [f"{name}: {type_of(type)}" for name, type in zip(names, function.types, strict=True)]
        doc = ["Record for these sizes."]
        head = Group(f"def {self._code.methods[function.ordinal]}", ["self", *parameters])
        return self._function(head, self._made(function), doc, lines)

    def _sizes(self, setup: Function) -> list[str]:
        """Names for the parameters of a setup: those of the values that the first call passes."""
        for export, entry in zip(self._code.exports, self._code.entries, strict=True):
            for op in entry.ops():
                if op.name == "call.cached" and op.operands[0] == setup.ordinal:
                    writer = Body(self._code, entry, CALLS, export)
                    return list(map(writer.size_name, op.arguments()))
        return ["size" for _ in setup.parameters]

    def _body(self, export: Export, function: Function) -> str:
        writer = self._writer(function, export)
        tensors = [*export.arguments, *export.results]
        if len(tensors) != len(function.parameters):
            raise CompileError(
                f"program {self._code.name}, function {function.name}: takes {len(function.parameters)} values, "
                f"export {export.source} has {len(tensors)} arguments and results"
            )
        for value, tensor in zip(function.parameters, tensors, strict=True):
            writer.named[value] = writer.names.unique(tensor.name)
        lines = writer.render()
        return self._function(self._body_head(export), _returned(export), [], lines)

    def _body_head(self, export: Export) -> Group:
        return Group(f"def _add_{export.name}", ["self", "call: Call", *_parameters(export, False)])

    def _abstract(self, export: Export) -> str:
        return self._function(self._body_head(export), _returned(export), [], ["raise NotImplementedError"])

    def _writer(self, function: Function, export: Export | None) -> Body:
        writer = Body(self._code, function, CALLS, export)
        writer.helpers = self.helpers
        return writer

    def _function(self, head: Group, returned: str, doc: list[str], lines: list[str]) -> str:
        text = layout("", head, f" -> {returned}:", 4)
        body = [*(docstring(doc, 8) if doc else []), *(lines or ["pass"])]
        return "\n".join(indented([*text, *indented(body)]))

    # its methods

    def method(self, export: Export, submitted: bool) -> str:
        """The public method of an export: blocking, or one that submits."""
        parameters = _parameters(export, True)
        if submitted:
            parameters += ["*", "wait: Fence | None = None", "signal: Fence | None = None"]
        name = f"submit_{export.name}" if submitted else export.name
        given = ["call", *[tensor.name for tensor in (*export.arguments, *export.results)]]
        result = "made" if len(export.results) != 1 else export.results[0].name
        assign = f"{result} = " if export.results else ""
        lines = ["with self._lock:", f"    call = Call(self.device{', wait' * submitted})"]
        lines += indented(layout(assign, Group(f"self._add_{export.name}", given), room=12))
        lines += ["    call.submit(signal)" if submitted else "    call.run()"]
        lines += [f"return {result}"] if export.results else []
        doc = _submit_doc(export) if submitted else _doc(export)
        return self._function(Group(f"def {name}", ["self", *parameters]), _returned(export), doc, lines)


def _parameters(export: Export, optional: bool) -> list[str]:
    default = " = None" if optional else ""
    arguments = [f"{tensor.name}: BufferView" for tensor in export.arguments]
    return arguments + [f"{tensor.name}: BufferView | None{default}" for tensor in export.results]


def _returned(export: Export) -> str:
    if len(export.results) > _MANY:
        return "tuple[BufferView, ...]"
    types = ["BufferView"] * len(export.results)
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]" if types else "None"


def _signature(export: Export) -> str:
    arguments = ", ".join(f"{tensor.name}: {tensor}" for tensor in export.arguments)
    results = ", ".join(f"{tensor.name}: {tensor}" for tensor in export.results)
    return plain(f"({arguments}) -> ({results})", 2000)


def _doc(export: Export) -> list[str]:
    found = [f"Run `{plain(export.source, 100)}` and wait for it."]
    if export.doc:
        found.append(plain(export.doc, 2000))
    found.append(_signature(export))
    found.append(
        "Arguments are views on the device, at the start of their buffers. A result goes to the view given for it, or "
        "to a new one."
    )
    for tensor, alias in zip(export.results, export.aliases, strict=True):
        if alias is not None:
            found.append(f"`{tensor.name}` may be the view of `{alias.name}`, which is then computed in place.")
    found.append(
        "Raises InvalidArgument, before anything runs, for a view of another type, and HalError if work fails."
    )
    return found


def _submit_doc(export: Export) -> list[str]:
    return [
        f"As `{export.name}`, without waiting: begins when `wait` is reached, and `signal` is reached at its end.",
        "Where the host reads numbers to choose what runs next, this waits for these numbers.",
    ]


def _dictionary(name: str, rows: dict[str, list[str]]) -> list[str]:
    """The lines of an attribute with a tuple for each name."""
    if not rows:
        return [f"{name} = {{}}"]
    lines = [line for key, items in rows.items() for line in layout(f"{quoted(key)}: ", sequence(items), ",", 8)]
    return [f"{name} = {{", *indented(lines), "}"]


def _set(names: Iterable[str], prefix: str = "") -> Node:
    texts = [quoted(name) for name in sorted(names)]
    return Group(f"{prefix}frozenset", [sequence(texts, "{}")]) if texts else f"{prefix}frozenset()"
