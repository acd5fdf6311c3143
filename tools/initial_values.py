"""The values of constant expressions, computed before code is generated, for machines that keep constants in flash.

Takes IR of phase `flow`. An initializer without branches, which stores to immutable globals only, becomes the program
`main`. It is compiled for the reference device and runs there. Its globals get the results as values. Other
initializers stay and run in NAME_init.
"""

from collections.abc import Iterator

import numpy as np

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.flow.dialect import Executable
from orchestrion.compiler.ir.attributes import DenseElements, SymbolRef
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.types import FunctionType, TensorType
from orchestrion.compiler.ir.util import Global, GlobalStore, Initializer
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.writer import write


def with_values(text: str) -> str:
    """IR in which the globals of initializers have their values. Raises CompileError."""
    module = parse(text, "flow")
    for initializer in module.body.block.of(Initializer):
        stores = _stores(module, initializer)
        if not stores:
            continue
        globals_ = {op.sym_name.value: op for op in module.body.block if isinstance(op, Global)}
        for store, value in zip(stores, _values(text, module, initializer), strict=True):
            globals_[store.ref.root].value = value
        initializer.erase()
        _drop_unused(module)
        text = print_module(module)
    return text


def _stores(module: Module, initializer: Initializer) -> list[GlobalStore]:
    """The stores of an initializer that can be computed; empty if it cannot."""
    blocks = initializer.body.blocks
    stores = list(initializer.walk(GlobalStore))
    names = {op.sym_name.value for op in module.body.block if isinstance(op, Global) and op.mutable is None}
    plain = len(blocks) == 1 and all(store.ref.root in names for store in stores)
    return stores if plain and all(_is_static(store) for store in stores) else []


def _is_static(store: GlobalStore) -> bool:
    type = store.value.type
    return isinstance(type, TensorType) and type.is_static and not type.encoding


def _values(text: str, module: Module, initializer: Initializer) -> list[DenseElements]:
    """What an initializer stores, in order."""
    from orchestrion import vm

    made = parse(text, "flow")
    number = module.body.block.of(Initializer).index(initializer)
    chosen = made.body.block.of(Initializer)[number]
    for op in made.body.block.ops:
        if isinstance(op, Func | Initializer) and op is not chosen:
            op.erase()
    block, stores = chosen.body.block, chosen.body.block.of(GlobalStore)
    results, types = [store.value for store in stores], tuple(store.value.type for store in stores)
    for op in (*stores, block.end):
        op.erase()
    block.append(Return.build(values=results))
    function = FunctionType((), types)
    made.body.block.append(Func.build(sym_name="main", function_type=function, body=chosen.body.clone()))
    chosen.erase()
    _drop_unused(made)
    rows = Compilation(targets=("reference",), start="flow").rows(print_module(made).encode())
    with vm.load(write(rows), device="reference") as program:
        found = program.main()
    arrays = [np.asarray(array) for array in (found if isinstance(found, tuple | list) else [found])]
    return [_elements(type, array) for type, array in zip(types, arrays, strict=True)]


def _elements(type: object, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> DenseElements:
    """An array as the value of a global of this type."""
    assert isinstance(type, TensorType)
    wanted = BY_NAME[str(type.element)].numpy
    return DenseElements(type, np.ascontiguousarray(array, wanted).tobytes())


def _drop_unused(module: Module) -> None:
    """Drops the globals and executables that only initializers used."""
    used = set(_references(module))
    for op in module.body.block.ops:
        if isinstance(op, Global | Executable) and op.sym_name.value not in used:
            op.erase()


def _references(module: Module) -> Iterator[str]:
    """The names of the module that ops refer to."""
    for op in module.walk():
        yield from (value.root for value in op.properties.values() if isinstance(value, SymbolRef))
