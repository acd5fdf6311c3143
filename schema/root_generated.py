"""Written by `schema/root_generator.py` from `module.fbs`: see there; do not edit."""

from functools import partial
from struct import Struct, unpack_from

from .dtypes import BY_CODE
from .module import Module
from .rows import (
    Argument,
    Attribute,
    Binding,
    Constant,
    Entry,
    Executable,
    Exported,
    Function,
    Global,
    Header,
    Imported,
    Initializer,
    Program,
    Result,
    Segment,
    Variant,
    WorkgroupSize,
)

_u32, _i32, _sizes = Struct("<I").unpack_from, Struct("<i").unpack_from, Struct("<HH").unpack_from
_header = Struct("<QHHI").unpack_from
_imports, _imports_row = Struct("<III").iter_unpack, partial(tuple.__new__, Imported)
_exports, _exports_row = Struct("<IIIIIIII").iter_unpack, partial(tuple.__new__, Exported)
_arguments, _arguments_row = Struct("<IIII").iter_unpack, partial(tuple.__new__, Argument)
_results, _results_row = Struct("<IIIII").iter_unpack, partial(tuple.__new__, Result)
_programs, _programs_row = Struct("<QIIIIIIIIIIIIIIIIIHH").iter_unpack, partial(tuple.__new__, Program)
_functions, _functions_row = Struct("<IIIIIIIHHHHH2x").iter_unpack, partial(tuple.__new__, Function)
_globals, _globals_row = Struct("<QIII4x").iter_unpack, partial(tuple.__new__, Global)
_initializers, _initializers_row = Struct("<II").iter_unpack, partial(tuple.__new__, Initializer)
_executables, _executables_row = Struct("<IIIII").iter_unpack, partial(tuple.__new__, Executable)
_variants, _variants_row = Struct("<QIIIIII").iter_unpack, partial(tuple.__new__, Variant)
_workgroup_sizes, _workgroup_sizes_row = Struct("<III").iter_unpack, partial(tuple.__new__, WorkgroupSize)
_executable_entries, _executable_entries_row = Struct("<IIII").iter_unpack, partial(tuple.__new__, Entry)
_bindings, _bindings_row = Struct("<QI4x").iter_unpack, partial(tuple.__new__, Binding)
_constants, _constants_row = Struct("<IIIII").iter_unpack, partial(tuple.__new__, Constant)
_segments, _segments_row = Struct("<Q32sIIII").iter_unpack, partial(tuple.__new__, Segment)
_attributes, _attributes_row = Struct("<IIII").iter_unpack, partial(tuple.__new__, Attribute)
_export_attributes, _export_attributes_row = Struct("<IIII").iter_unpack, partial(tuple.__new__, Attribute)
_program_attributes, _program_attributes_row = Struct("<IIII").iter_unpack, partial(tuple.__new__, Attribute)


def decode(root: memoryview) -> Module | None:
    """The module of a sound root (size prefix included), None for any other; `container` is not set."""
    try:
        return _decode(root)
    except (IndexError, UnicodeDecodeError):
        return None


def _decode(root: memoryview) -> Module | None:
    root_size = len(root)
    if root_size < 20:
        return None
    table = 4 + _u32(root, 4)[0]
    if table & 3 or not 12 <= table <= root_size - 4:
        return None
    vtable = table - _i32(root, table)[0]
    if vtable & 1 or not 12 <= vtable <= root_size - 4:
        return None
    vtable_size, table_size = _sizes(root, vtable)
    if vtable_size & 1 or not 4 <= vtable_size <= root_size - vtable:
        return None
    if not 4 <= table_size <= root_size - table:
        return None
    fields = unpack_from(f"<{(vtable_size - 4) // 2}H", root, vtable + 4) + (0,) * 29
    offsets = unpack_from(f"<{table_size // 4}I", root, table)
    module = Module()
    place = fields[0]
    if not place or place + 16 > table_size or (table + place) & 7:
        return None
    module.header = header = Header._make(_header(root, table + place))
    if header.major != 1 or header.minor > 0 or header.features & ~0x0:
        return None
    place = fields[1]
    if not place:
        return None
    if place & 3:
        return None
    start = table + place + offsets[place // 4] + 4
    if start & 3 or start > root_size:
        return None
    strings_count = _u32(root, start - 4)[0]
    end = start + strings_count
    if end > root_size:
        return None
    strings = str(root[start:end], "utf-8").split("\0")
    strings_count = len(strings)
    module.strings = strings
    place = fields[2]
    imports, imports_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        imports_count = _u32(root, start - 4)[0]
        end = start + imports_count * 12
        if end > root_size:
            return None
        imports = list(map(_imports_row, _imports(root[start:end])))
    module.imports = imports
    place = fields[3]
    exports, exports_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        exports_count = _u32(root, start - 4)[0]
        end = start + exports_count * 32
        if end > root_size:
            return None
        exports = list(map(_exports_row, _exports(root[start:end])))
    module.exports = exports
    place = fields[4]
    arguments, arguments_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        arguments_count = _u32(root, start - 4)[0]
        end = start + arguments_count * 16
        if end > root_size:
            return None
        arguments = list(map(_arguments_row, _arguments(root[start:end])))
    module.arguments = arguments
    place = fields[5]
    results, results_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        results_count = _u32(root, start - 4)[0]
        end = start + results_count * 20
        if end > root_size:
            return None
        results = list(map(_results_row, _results(root[start:end])))
    module.results = results
    place = fields[6]
    dims, dims_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        dims_count = _u32(root, start - 4)[0]
        end = start + dims_count * 8
        if end > root_size:
            return None
        dims = unpack_from(f"<{dims_count}q", root, start)
    module.dims = dims
    place = fields[7]
    programs, programs_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        programs_count = _u32(root, start - 4)[0]
        end = start + programs_count * 80
        if end > root_size:
            return None
        programs = list(map(_programs_row, _programs(root[start:end])))
    module.programs = programs
    place = fields[8]
    entries, entries_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        entries_count = _u32(root, start - 4)[0]
        end = start + entries_count * 4
        if end > root_size:
            return None
        entries = unpack_from(f"<{entries_count}I", root, start)
    module.entries = entries
    place = fields[9]
    functions, functions_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        functions_count = _u32(root, start - 4)[0]
        end = start + functions_count * 40
        if end > root_size:
            return None
        functions = list(map(_functions_row, _functions(root[start:end])))
    module.functions = functions
    place = fields[10]
    types, types_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        types_count = _u32(root, start - 4)[0]
        end = start + types_count * 4
        if end > root_size:
            return None
        types = unpack_from(f"<{types_count}I", root, start)
    module.types = types
    place = fields[11]
    value_types, value_types_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        value_types_count = _u32(root, start - 4)[0]
        end = start + value_types_count * 4
        if end > root_size:
            return None
        value_types = unpack_from(f"<{value_types_count}I", root, start)
    module.value_types = value_types
    place = fields[12]
    bytecode, bytecode_count = root[:0], 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        bytecode_count = _u32(root, start - 4)[0]
        end = start + bytecode_count
        if end > root_size:
            return None
        bytecode = root[start:end]
    module.bytecode = bytecode
    place = fields[13]
    globals, globals_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        globals_count = _u32(root, start - 4)[0]
        end = start + globals_count * 24
        if end > root_size:
            return None
        globals = list(map(_globals_row, _globals(root[start:end])))
    module.globals = globals
    place = fields[14]
    initializers, initializers_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        initializers_count = _u32(root, start - 4)[0]
        end = start + initializers_count * 8
        if end > root_size:
            return None
        initializers = list(map(_initializers_row, _initializers(root[start:end])))
    module.initializers = initializers
    place = fields[15]
    executables, executables_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        executables_count = _u32(root, start - 4)[0]
        end = start + executables_count * 20
        if end > root_size:
            return None
        executables = list(map(_executables_row, _executables(root[start:end])))
    module.executables = executables
    place = fields[16]
    variants, variants_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        variants_count = _u32(root, start - 4)[0]
        end = start + variants_count * 32
        if end > root_size:
            return None
        variants = list(map(_variants_row, _variants(root[start:end])))
    module.variants = variants
    place = fields[17]
    workgroup_sizes, workgroup_sizes_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        workgroup_sizes_count = _u32(root, start - 4)[0]
        end = start + workgroup_sizes_count * 12
        if end > root_size:
            return None
        workgroup_sizes = list(map(_workgroup_sizes_row, _workgroup_sizes(root[start:end])))
    module.workgroup_sizes = workgroup_sizes
    place = fields[18]
    executable_entries, executable_entries_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        executable_entries_count = _u32(root, start - 4)[0]
        end = start + executable_entries_count * 16
        if end > root_size:
            return None
        executable_entries = list(map(_executable_entries_row, _executable_entries(root[start:end])))
    module.executable_entries = executable_entries
    place = fields[19]
    bindings, bindings_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        bindings_count = _u32(root, start - 4)[0]
        end = start + bindings_count * 16
        if end > root_size:
            return None
        bindings = list(map(_bindings_row, _bindings(root[start:end])))
    module.bindings = bindings
    place = fields[20]
    constants, constants_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        constants_count = _u32(root, start - 4)[0]
        end = start + constants_count * 20
        if end > root_size:
            return None
        constants = list(map(_constants_row, _constants(root[start:end])))
    module.constants = constants
    place = fields[21]
    segments, segments_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        segments_count = _u32(root, start - 4)[0]
        end = start + segments_count * 56
        if end > root_size:
            return None
        segments = list(map(_segments_row, _segments(root[start:end])))
    module.segments = segments
    place = fields[22]
    attributes, attributes_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        attributes_count = _u32(root, start - 4)[0]
        end = start + attributes_count * 16
        if end > root_size:
            return None
        attributes = list(map(_attributes_row, _attributes(root[start:end])))
    module.attributes = attributes
    place = fields[23]
    expressions, expressions_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        expressions_count = _u32(root, start - 4)[0]
        end = start + expressions_count * 4
        if end > root_size:
            return None
        expressions = unpack_from(f"<{expressions_count}I", root, start)
    module.expressions = expressions
    place = fields[24]
    export_attributes, export_attributes_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        export_attributes_count = _u32(root, start - 4)[0]
        end = start + export_attributes_count * 16
        if end > root_size:
            return None
        export_attributes = list(map(_export_attributes_row, _export_attributes(root[start:end])))
    module.export_attributes = export_attributes
    place = fields[25]
    program_attributes, program_attributes_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        program_attributes_count = _u32(root, start - 4)[0]
        end = start + program_attributes_count * 16
        if end > root_size:
            return None
        program_attributes = list(map(_program_attributes_row, _program_attributes(root[start:end])))
    module.program_attributes = program_attributes
    place = fields[26]
    attribute_values, attribute_values_count = root[:0], 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        attribute_values_count = _u32(root, start - 4)[0]
        end = start + attribute_values_count
        if end > root_size:
            return None
        attribute_values = root[start:end]
    module.attribute_values = attribute_values
    place = fields[27]
    chunks, chunks_count = root[:0], 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 7 or start > root_size:
            return None
        chunks_count = _u32(root, start - 4)[0]
        end = start + chunks_count * 32
        if end > root_size:
            return None
        chunks = root[start:end]
    module.chunks = chunks
    place = fields[28]
    feature_names, feature_names_count = (), 0
    if place:
        if place & 3:
            return None
        start = table + place + offsets[place // 4] + 4
        if start & 3 or start > root_size:
            return None
        feature_names_count = _u32(root, start - 4)[0]
        end = start + feature_names_count * 4
        if end > root_size:
            return None
        feature_names = unpack_from(f"<{feature_names_count}I", root, start)
    module.feature_names = feature_names
    if header.producer >= strings_count:
        return None
    arguments_free = results_free = export_attributes_free = dims_free = functions_free = globals_free = initializers_free = executables_free = constants_free = entries_free = program_attributes_free = value_types_free = variants_free = executable_entries_free = workgroup_sizes_free = bindings_free = chunks_free = attribute_values_free = 0
    for name, signature, flags in imports:
        if name >= strings_count:
            return None
        if signature >= strings_count:
            return None
        if flags > 1:
            return None
    for name, doc, arguments_start, arguments_end, results_start, results_end, attributes_start, attributes_end in exports:
        if name >= strings_count:
            return None
        if doc >= strings_count:
            return None
        if arguments_start != arguments_free or arguments_end < arguments_start:
            return None
        arguments_free = arguments_end
        if results_start != results_free or results_end < results_start:
            return None
        results_free = results_end
        if attributes_start != export_attributes_free or attributes_end < attributes_start:
            return None
        export_attributes_free = attributes_end
        for row in results[results_start:results_end]:
            if row.alias >= arguments_end - arguments_start and row.alias != 0xffffffff:
                return None
    for name, dtype, dims_start, dims_end in arguments:
        if name >= strings_count:
            return None
        if dtype not in BY_CODE:
            return None
        if dims_start != dims_free or dims_end < dims_start:
            return None
        dims_free = dims_end
    for name, dtype, dims_start, dims_end, alias in results:
        if name >= strings_count:
            return None
        if dtype not in BY_CODE:
            return None
        if dims_start != dims_free or dims_end < dims_start:
            return None
        dims_free = dims_end
    for features, name, profile, functions_start, functions_end, globals_start, globals_end, initializers_start, initializers_end, executables_start, executables_end, constants_start, constants_end, entries_start, entries_end, attributes_start, attributes_end, source_map, devices, bytecode_minor in programs:
        if name >= strings_count:
            return None
        if profile >= strings_count:
            return None
        if source_map >= segments_count and source_map != 0xffffffff:
            return None
        if source_map != 0xffffffff and segments[source_map].kind != 2:
            return None
        if functions_start != functions_free or functions_end < functions_start:
            return None
        functions_free = functions_end
        if globals_start != globals_free or globals_end < globals_start:
            return None
        globals_free = globals_end
        if initializers_start != initializers_free or initializers_end < initializers_start:
            return None
        initializers_free = initializers_end
        if executables_start != executables_free or executables_end < executables_start:
            return None
        executables_free = executables_end
        if constants_start != constants_free or constants_end < constants_start:
            return None
        constants_free = constants_end
        if entries_start != entries_free or entries_end < entries_start:
            return None
        entries_free = entries_end
        if attributes_start != program_attributes_free or attributes_end < attributes_start:
            return None
        program_attributes_free = attributes_end
        for row in entries[entries_start:entries_end]:
            if row >= functions_end - functions_start:
                return None
        for row in initializers[initializers_start:initializers_end]:
            if row.function >= functions_end - functions_start:
                return None
    for name, arguments_start, arguments_end, results_start, results_end, bytecode_start, bytecode_end, i32, i64, f32, f64, ref in functions:
        if name >= strings_count:
            return None
        if not bytecode_start <= bytecode_end <= bytecode_count:
            return None
        if arguments_start != value_types_free or arguments_end < arguments_start:
            return None
        value_types_free = arguments_end
        if results_start != value_types_free or results_end < results_start:
            return None
        value_types_free = results_end
    if types and max(types) >= strings_count:
        return None
    if value_types and max(value_types) >= types_count:
        return None
    for value, name, type, flags in globals:
        if name >= strings_count:
            return None
        if type >= types_count:
            return None
        if flags > 1:
            return None
    for function, kind in initializers:
        if kind > 1:
            return None
    for name, variants_start, variants_end, entries_start, entries_end in executables:
        if name >= strings_count:
            return None
        if variants_start != variants_free or variants_end < variants_start:
            return None
        variants_free = variants_end
        if entries_start != executable_entries_free or entries_end < entries_start:
            return None
        executable_entries_free = entries_end
    for features, format, payload, workgroup_sizes_start, workgroup_sizes_end, shared_memory_bytes, format_minor in variants:
        if format >= strings_count:
            return None
        if payload >= segments_count:
            return None
        if segments[payload].kind != 1:
            return None
        if workgroup_sizes_start != workgroup_sizes_free or workgroup_sizes_end < workgroup_sizes_start:
            return None
        workgroup_sizes_free = workgroup_sizes_end
    for name, bindings_start, bindings_end, parameter_words in executable_entries:
        if name >= strings_count:
            return None
        if bindings_start != bindings_free or bindings_end < bindings_start:
            return None
        bindings_free = bindings_end
    for length, access in bindings:
        if access > 2:
            return None
    for name, segment, dtype, dims_start, dims_end in constants:
        if name >= strings_count:
            return None
        if segment >= segments_count:
            return None
        if segments[segment].kind not in (0, 4):
            return None
        if dtype not in BY_CODE:
            return None
        if dims_start != dims_free or dims_end < dims_start:
            return None
        dims_free = dims_end
    for size, digest, chunks_start, chunks_end, kind, name in segments:
        if name >= strings_count and name != 0xffffffff:
            return None
        if chunks_start != chunks_free or chunks_end < chunks_start:
            return None
        chunks_free = chunks_end
    for key, value_start, value_end, kind in attributes:
        if key >= strings_count:
            return None
        if value_start != attribute_values_free or value_end < value_start:
            return None
        attribute_values_free = value_end
    if expressions and max(expressions) >= strings_count:
        return None
    for key, value_start, value_end, kind in export_attributes:
        if key >= strings_count:
            return None
        if value_start != attribute_values_free or value_end < value_start:
            return None
        attribute_values_free = value_end
    for key, value_start, value_end, kind in program_attributes:
        if key >= strings_count:
            return None
        if value_start != attribute_values_free or value_end < value_start:
            return None
        attribute_values_free = value_end
    if feature_names and max(feature_names) >= strings_count:
        return None
    if arguments_free != arguments_count:
        return None
    if results_free != results_count:
        return None
    if export_attributes_free != export_attributes_count:
        return None
    if dims_free != dims_count:
        return None
    if functions_free != functions_count:
        return None
    if globals_free != globals_count:
        return None
    if initializers_free != initializers_count:
        return None
    if executables_free != executables_count:
        return None
    if constants_free != constants_count:
        return None
    if entries_free != entries_count:
        return None
    if program_attributes_free != program_attributes_count:
        return None
    if value_types_free != value_types_count:
        return None
    if variants_free != variants_count:
        return None
    if executable_entries_free != executable_entries_count:
        return None
    if workgroup_sizes_free != workgroup_sizes_count:
        return None
    if bindings_free != bindings_count:
        return None
    if chunks_free != chunks_count:
        return None
    if attribute_values_free != attribute_values_count:
        return None
    return module
