"""The IR core: SSA values, operations, blocks, regions; MLIR's generic syntax in and out; verifier; rewriter.

`types`, `attributes`, `locations` are values; `core` is the graph; `declare` and `dialect` say how an op is declared;
`builtin` has `Module`; `builder` inserts; `parser`, `printer`, `verifier`, `rewriter` do what they say.

    from orchestrion.compiler.ir.attributes import SymbolRef
    from orchestrion.compiler.ir.builder import Builder
    from orchestrion.compiler.ir.builtin import Module
    from orchestrion.compiler.ir.core import Block, Operation, Region, Trait
    from orchestrion.compiler.ir.declare import attr, operands, results
    from orchestrion.compiler.ir.types import TensorType, tensor

    class Dispatch(Operation):
        \"\"\"Runs an executable on tensors.\"\"\"
        name = "flow.dispatch"
        executable = attr(SymbolRef)
        arguments = operands(TensorType)
        outputs = results(TensorType)
        traits = frozenset({Trait.PURE})

    DIALECT = Dialect("flow", [Dispatch])      # last in the file; add a row to DIALECTS in dialect.py

    module = Module.empty()
    b = Builder(module.block)
    op = b.build(Dispatch, executable=SymbolRef("mul"), arguments=[], outputs=[tensor((4,), "f32")], loc=somewhere)
    op.outputs[0].replace_by(other); op.erase()
    print(module)                              # parse it again: parser.parse(text, filename)

Attribute fields take Python values too: int -> i64, str -> string, list -> array, dict -> dictionary; sizes for a
`DenseArray`.
"""
