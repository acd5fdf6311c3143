"""Converts `vm` IR to the rows of a module file. It makes no decisions: the IR states everything.

Functions, globals, constants and executables are numbered in text order per program, imports per module. Constants are
not copied, except that padded ones are joined.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseArray, DenseElements, DictAttr, IntegerAttr, StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.parameters import name_of, type_of, value_of
from orchestrion.compiler.ir.types import Attribute, TensorType
from orchestrion.schema import trees, writer
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.imported import PREFIX
from orchestrion.schema.rows import ACCESSES, InitializerKind

from . import vm
from .function import function_row
from .imports import tensors_of
from .payload import payload_bytes

_KINDS = {kind.name.lower(): kind for kind in InitializerKind}


def module_rows(module: Module) -> writer.Module:
    """The rows that `schema.writer.write` takes, from a module after the `bytecode` phase.

    Raises CompileError for a name that a module file cannot hold: it contains a NUL or is not UTF-8.
    """
    _refuse_names(module)
    imports = module.block.of(vm.Import)
    exports = module.block.of(vm.Export)
    ordinals = {op.sym_name.value: index for index, op in enumerate(imports)}
    return writer.Module(
        programs=[_program(op, exports, ordinals) for op in module.block.of(vm.Program)],
        exports=[_export(op) for op in exports],
        imports=[writer.Import(op.sym_name.value, op.signature.value) for op in imports],
        attributes={
            PREFIX + op.sym_name.value: str(tensors_of(op.function_type))
            for op in imports
            if op.function_type is not None
        },
    )


def _refuse_names(module: Module) -> None:
    wrong = [
        Diagnostic(f"{key} {value} contains a NUL or is not UTF-8", op.loc, op.name)
        for op in module.walk()
        for key, value in op.properties.items()
        if key != "payload" and not _is_writable(value)
    ]
    if wrong:
        raise CompileError(wrong)


def _is_writable(value: Attribute) -> bool:
    match value:
        case StringAttr():
            return "\0" not in value.value and all(not "\ud800" <= c <= "\udfff" for c in value.value)
        case ArrayAttr():
            return all(_is_writable(item) for item in value)
        case DictAttr():
            return all(_is_writable(item) for _, item in value.items)
        case _:
            return True


def _program(program: vm.Program, exports: list[vm.Export], imports: dict[str, int]) -> writer.Program:
    ops = program.body.block.ops
    functions = [op for op in ops if isinstance(op, vm.Func)]
    variables = [op for op in ops if isinstance(op, vm.Global)]
    constants = [op for op in ops if isinstance(op, vm.Constant)]
    names = {op.sym_name.value: index for index, op in enumerate(functions)}
    ordinals = {
        "import": imports,
        "function": names,
        "global": {op.sym_name.value: index for index, op in enumerate(variables)},
        "constant": {op.sym_name.value: index for index, op in enumerate(constants)},
    }
    return writer.Program(
        name=program.sym_name.value,
        profile=program.profile,
        functions=[function_row(op, ordinals) for op in functions],
        entries=[names[export.function.value] for export in exports],
        globals=[writer.Global(op.sym_name.value, vm.type_name(op.type), op.mutable is not None) for op in variables],
        initializers=[
            writer.Initializer(names[op.function.root], _KINDS[op.kind.value])
            for op in ops
            if isinstance(op, vm.Initializer)
        ],
        executables=[_executable(op) for op in ops if isinstance(op, vm.Executable)],
        constants=[_constant(op) for op in constants],
        features=frozenset(_strings(program.features)),
    )


def _export(export: vm.Export) -> writer.Export:
    doc = export.doc.value if export.doc is not None else ""
    arguments = [_value(item) for item in export.arguments]
    attributes = {} if export.trees is None else {trees.KEY: export.trees.value}
    return writer.Export(export.exported.value, arguments, [_value(item) for item in export.outputs], doc, attributes)


def _value(item: Attribute) -> writer.Value:
    assert isinstance(item, DictAttr)
    name, type, alias = item.get("name"), item.get("type"), item.get("alias")
    assert isinstance(name, StringAttr) and isinstance(type, TensorType)
    argument = alias.value if isinstance(alias, IntegerAttr) else None
    dims = tuple(-1 if is_dynamic(size) else size for size in type.shape)
    expressions = tuple(str(size) for size in type.shape if is_dynamic(size))
    return writer.Value(name.value, BY_NAME[str(type.element)], dims, argument, expressions)


def _executable(op: vm.Executable) -> writer.Executable:
    entries = [item for item in op.entries if isinstance(item, DictAttr)]
    sizes = [_workgroup_size(entry) for entry in entries]
    variants = [_variant(op, sizes, op.features, op.shared_memory, op.payload)]
    for row in op.variants or ():
        assert isinstance(row, DictAttr)
        features, shared, payload = row.get("features"), row.get("shared_memory"), row.get("payload")
        assert isinstance(features, ArrayAttr) and isinstance(shared, IntegerAttr) and payload is not None
        variants.append(_variant(op, sizes, features, shared, payload))
    return writer.Executable(op.sym_name.value, [_entry(entry) for entry in entries], variants)


def _variant(
    op: vm.Executable, sizes: list[tuple[int, int, int]], features: ArrayAttr, shared: IntegerAttr, payload: Attribute
) -> writer.Variant:
    return writer.Variant(
        format=op.format.value,
        payload=payload_bytes(payload),
        workgroup_sizes=sizes,
        features=frozenset(_strings(features)),
        shared_memory_bytes=shared.value,
    )


def _workgroup_size(entry: DictAttr) -> tuple[int, int, int]:
    size = entry.get("workgroup_size")
    assert isinstance(size, DenseArray)
    x, y, z = size.ints
    return x, y, z


def _entry(entry: DictAttr) -> writer.Entry:
    name, bindings = entry.get("name"), entry.get("bindings")
    ops, types = entry.get("source_ops"), entry.get("binding_types")
    assert isinstance(name, StringAttr) and isinstance(bindings, ArrayAttr)
    words = entry.get("parameters")
    return writer.Entry(
        name.value,
        [_binding(item) for item in bindings],
        words.value if isinstance(words, IntegerAttr) else 0,
        list(_strings(ops)) if isinstance(ops, ArrayAttr) else [],
        [one.value if isinstance(one, StringAttr) else str(one) for one in types]
        if isinstance(types, ArrayAttr)
        else [],
    )


def _binding(item: Attribute) -> writer.Binding:
    assert isinstance(item, DictAttr)
    access, length = item.get("access"), item.get("length")
    assert isinstance(access, StringAttr) and isinstance(length, IntegerAttr)
    return writer.Binding(ACCESSES[access.value], length.value)


def _constant(op: vm.Constant) -> writer.Constant | writer.Parameter:
    """A single constant keeps its type; several in one segment are bytes."""
    if op.parameter is not None:
        return _parameter(op.parameter)
    values = [value for value in op.values if isinstance(value, DenseElements)]
    name, size = op.sym_name.value, op.size.value
    if len(values) == 1 and values[0].nbytes == size:
        type = values[0].type
        return writer.Constant(name, _data(values[0]), BY_NAME[str(type.element)], type.static_shape)
    data = bytearray(size)
    for value, offset in zip(values, op.offsets.ints, strict=True):
        data[offset : offset + value.nbytes] = _data(value)
    return writer.Constant(name, data, BY_NAME["ui8"], (size,))


def _parameter(given: DictAttr) -> writer.Parameter:
    type, value = type_of(given), value_of(given)
    data = None if value is None else _data(value)
    return writer.Parameter(name_of(given), BY_NAME[str(type.element)], type.static_shape, data)


def _data(value: DenseElements) -> bytes | memoryview:
    """All bytes of a tensor; a splat is expanded."""
    return value.data if len(value.data) == value.nbytes else bytes(value.data) * value.type.num_elements


def _strings(items: ArrayAttr) -> Iterator[str]:
    return (item.value for item in items if isinstance(item, StringAttr))
