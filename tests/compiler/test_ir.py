"""The graph: use lists, editing, cloning, declarations, dominance, rewriting that ends and keeps locations."""

from collections.abc import Iterator

import pytest

from orchestrion.compiler.errors import CompileError, InternalError
from orchestrion.compiler.ir.attributes import DenseArray, IntegerAttr, StringAttr, SymbolRef, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Trait, UnregisteredOp
from orchestrion.compiler.ir.cse import structure
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, result, results, successor
from orchestrion.compiler.ir.dialect import DIALECTS, Dialect, dialect, op_class
from orchestrion.compiler.ir.dims import symbol
from orchestrion.compiler.ir.locations import UNKNOWN, CallSiteLoc, FileLoc, FusedLoc, NameLoc, fused, source_text
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.rewriter import Rewriter, rewrite
from orchestrion.compiler.ir.types import F32, I32, ScalarType, TensorType, tensor
from orchestrion.compiler.ir.verifier import check_own, verify


class Leaf(Operation):
    """A value."""

    name = "test.leaf"
    out = result(ScalarType)
    number = optional(IntegerAttr)
    traits = frozenset({Trait.PURE})


class Groups(Operation):
    """Two variadic groups around a single one."""

    name = "test.groups"
    first = operands(ScalarType)
    middle = operand(ScalarType)
    last = operands(ScalarType)
    outs = results()
    key = attr(StringAttr)

    def check(self) -> Iterator[str]:
        if len(self.first) > 2:
            yield "too many"


class Jump(Operation):
    """Ends a block."""

    name = "test.jump"
    to = successor()
    traits = frozenset({Trait.TERMINATOR})


class Box(Operation):
    """Has a region."""

    name = "test.box"
    body = region()
    traits = frozenset({Trait.PURE, Trait.NO_TERMINATOR})


def leaf(builder: Builder, number: int | None = None) -> Leaf:
    return builder.build(Leaf, out=I32, number=number) if number is not None else builder.build(Leaf, out=I32)


def test_use_lists_follow_every_edit() -> None:
    module = Module.empty()
    b = Builder(module.block)
    x, y = leaf(b).out, leaf(b).out
    op = b.build(Groups, first=[x, x], middle=y, last=[], key="k")
    assert list(x.uses) == [(op, 0), (op, 1)] and x.users() == [op]
    op.set_operand(1, y)
    assert list(x.uses) == [(op, 0)] and list(y.uses) == [(op, 2), (op, 1)]
    x.replace_by(y)
    assert not x.uses and op.operands == [y, y, y]
    with pytest.raises(ValueError, match="test.leaf erased while test.groups still uses result 0"):
        y.owner.erase()
    op.erase()
    assert not y.uses and [inner.name for inner in module.block] == ["test.leaf", "test.leaf"]


def test_blocks_are_lists_that_may_be_edited_while_walked() -> None:
    module = Module.empty()
    b = Builder(module.block)
    ops = [leaf(b, i) for i in range(4)]
    for op in module.block:
        if op in ops[1:3]:
            op.erase()
    assert module.block.ops == [ops[0], ops[3]] and module.block.last is ops[3]
    ops[3].detach()
    module.block.insert_before(ops[3], ops[0])
    assert list(reversed(module.block)) == [ops[0], ops[3]] and module.block.first is ops[3]
    with pytest.raises(ValueError, match="is in a block already"):
        module.block.append(ops[3])


def boxed(number: int, later: int = 1, crossed: bool = False, split: bool = False) -> Operation:
    """A box of two blocks: two leaves of those numbers, and an op that reads them, in the second block if `split`."""
    blocks = Block([I32]), Block([I32])
    b = Builder(blocks[0])
    x, y = leaf(b, number).out, leaf(b, later).out
    reader = Groups.build(first=[y if crossed else x], middle=blocks[0].arguments[0], last=[y], key="k")
    blocks[split].append(reader)
    return Box.build(body=Region(blocks), loc=FileLoc("a.py", number, 1))


def test_equal_ops_differ_in_locations_only() -> None:
    whole = structure(boxed(0))
    assert whole == structure(boxed(0)) == structure(boxed(0).clone())
    elsewhere = boxed(0)
    elsewhere.loc = UNKNOWN
    assert whole == structure(elsewhere)
    others = [boxed(2), boxed(0, later=2), boxed(0, crossed=True), boxed(0, split=True), Box.build(body=Region())]
    assert whole not in map(structure, others)


def test_one_property_may_differ() -> None:
    one, other = (leaf(Builder(Block()), number) for number in (0, 1))
    assert structure(one) != structure(other) and structure(one, "number") == structure(other, "number")


def test_walks_go_into_regions_and_survive_erasure() -> None:
    top = Box.build(body=Region([Block()]))
    inner = boxed(0)
    top.body.block.append(inner)
    after = leaf(Builder(top.body.block), 5)
    names = [op.name for op in top.walk()]
    assert names == ["test.box", "test.box", "test.leaf", "test.leaf", "test.groups", "test.leaf"]
    for op in top.walk():
        if isinstance(op, Groups):
            op.erase()
    assert [op.name for op in top.walk()] == [name for name in names if name != "test.groups"]
    assert list(top.walk())[-1] is after


def test_fields_give_what_was_built() -> None:
    b = Builder(Module.empty().block)
    x = leaf(b, 7)
    op = b.build(Groups, first=[x.out], middle=x.out, last=[x.out, x.out], key="k", outs=[F32, I32])
    assert (len(op.first), op.middle, len(op.last)) == (1, x.out, 2)
    assert [value.type for value in op.outs] == [F32, I32] and op.key == StringAttr("k")
    assert op.properties["operandSegmentSizes"] == DenseArray((1, 1, 2), I32)
    assert x.number == IntegerAttr(7) and leaf(b).number is None
    with pytest.raises(TypeError, match="field key is missing"):
        Groups.build(first=[], middle=x.out, last=[])
    with pytest.raises(TypeError, match="has no field wrong"):
        Leaf.build(out=I32, wrong=1)


def test_a_field_cannot_take_the_name_of_a_slot() -> None:
    with pytest.raises(TypeError, match="a field cannot be called loc"):
        type("Bad", (Operation,), {"name": "test.bad", "loc": operand()})


def test_declarations_are_verified() -> None:
    b = Builder(Module.empty().block)
    x = leaf(b)
    y = b.insert(UnregisteredOp("some.op", result_types=[tensor((4,), "f32")])).results[0]
    wrong = b.insert(Groups([x.out, y, x.out], properties={"operandSegmentSizes": DenseArray((0, 2, 1), I32)}))
    found = [d.message for d in verify(wrong)]
    assert found[0] == "operandSegmentSizes [0, 2, 1] do not fit 3 operands"
    assert "property key is missing" in found
    wrong.properties["operandSegmentSizes"] = DenseArray((0, 1, 2), I32)
    assert verify(wrong)[0].message == "operand last is of type tensor<4xf32>, must be: A scalar type: " + (
        "`f32`, `i1`, `ui8`, `complex<f32>`, `index`, `none`."
    )
    many = b.build(Groups, first=[x.out] * 3, middle=x.out, last=[], key="k")
    assert [d.message for d in verify(many)] == ["too many"]


def test_clones_are_deep_and_keep_what_is_outside() -> None:
    text = """
"builtin.module"() ({
  %0 = "some.outside"() : () -> i32
  %1 = "some.region"(%0) ({
  ^bb0(%2: i32):
    "some.branch"()[^bb2] : () -> ()
  ^bb1:
    "some.use"(%3, %2, %0) : (i32, i32, i32) -> ()
    "some.end"() : () -> ()
  ^bb2:
    %3 = "some.value"() : () -> i32
    "some.branch"()[^bb1] : () -> ()
  }) : (i32) -> i32
}) : () -> ()
"""
    module = parse(text)
    inner = module.block.ops[1]
    copy = inner.clone()
    module.block.append(copy)
    assert not verify(module)
    inner.erase()
    assert not verify(module)
    assert print_module(module, locations=False) == print_module(parse(text), locations=False)


def test_names_never_hide_each_other() -> None:
    """A region may use a value that is defined behind it in the text: numbers are unique across nesting."""
    module = parse("""
"some.graph"() ({
  "some.branch"()[^bb2] : () -> ()
^bb1:
  "some.region"() ({
    %a = "some.value"() : () -> i32
    "some.use"(%a, %later) : (i32, i32) -> ()
  }) : () -> ()
  "some.end"() : () -> ()
^bb2:
  %later = "some.value"() : () -> i32
  "some.branch"()[^bb1] : () -> ()
}) : () -> ()
""")
    assert not verify(module)
    text = print_module(module, locations=False)
    assert print_module(parse(text), locations=False) == text


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('"t.use"(%x) : (i32) -> ()\n %x = "t.x"() : () -> i32', "operand 0 is used before its definition"),
        ('%x = "t.x"(%x) : (i32) -> i32', "operand 0 is used before its definition"),
        ('%x = "t.x"() ({ "t.use"(%x) : (i32) -> () }) : () -> i32', "operand 0 is used before its definition"),
        (
            '"t.r"() ({ "t.br"()[^a, ^b] : () -> ()\n ^a: %x = "t.x"() : () -> i32\n "t.br"()[^b] : () -> ()\n'
            ' ^b: "t.use"(%x) : (i32) -> () }) : () -> ()',
            "operand 0 is defined in a block that does not dominate its use",
        ),
        (
            '"t.r"() ({ "t.br"()[^a] : () -> ()\n ^a: "t.br"()[^b, ^c] : () -> ()\n ^b: %x = "t.x"() : () -> i32\n'
            ' "t.br"()[^a] : () -> ()\n ^c: "t.use"(%x) : (i32) -> () }) : () -> ()',
            "operand 0 is defined in a block that does not dominate its use",
        ),
    ],
)
def test_dominance(body: str, problem: str) -> None:
    assert problem in [d.message for d in verify(parse(body))]


def test_what_dominates_may_be_used() -> None:
    body = """
"t.r"() ({
  %x = "t.x"() : () -> i32
  "t.br"()[^a, ^b] : () -> ()
^a:
  "t.use"(%x) : (i32) -> ()
  "t.br"()[^c] : () -> ()
^b:
  "t.br"()[^c] : () -> ()
^c:
  "t.q"() ({ "t.use"(%x) : (i32) -> () }) : () -> ()
  "t.br"()[^a] : () -> ()
^unreachable:
  "t.use"(%y) : (i32) -> ()
  %y = "t.x"() : () -> i32
}) : () -> ()
"""
    assert [d.message for d in verify(parse(body))] == ["operand 0 is used before its definition"]


def test_isolation_is_verified() -> None:
    b = Builder(Module.empty().block)
    x = leaf(b)
    inner = Module.empty()
    b.insert(inner)
    use = Builder(inner.block).insert(UnregisteredOp("some.use", [x.out]))
    top = inner.parent_op
    assert top is not None
    assert [(d.op, d.message) for d in verify(top)] == [
        ("some.use", "operand 0 is defined outside of builtin.module, which is isolated")
    ]
    assert use.is_inside(inner) and not x.is_inside(inner)


def test_our_own_faults_are_told_apart() -> None:
    module = Module.empty()
    Builder(module.block).insert(Leaf())
    with pytest.raises(InternalError, match=r"(?s)a fault of the compiler.*test.leaf: needs 1 results, has 0"):
        check_own(module, "a pass")


def seven_to_two_leaves(op: Operation, rewriter: Rewriter) -> bool:
    if not isinstance(op, Leaf) or op.number != IntegerAttr(7):
        return False
    rewriter.build(Leaf, out=I32, number=1)
    made = rewriter.build(Leaf, out=I32, number=2)
    rewriter.replace(op, made.results)
    return True


def test_rewriting_keeps_locations_and_cleans_up() -> None:
    module = Module.empty()
    place = FileLoc("f", 1, 2)
    b = Builder(module.block, loc=place)
    op = leaf(b, 7)
    b.insert(UnregisteredOp("some.use", [op.out]))
    assert rewrite(module, {"test.leaf": [seven_to_two_leaves]})
    left = module.block.ops
    assert [inner.name for inner in left] == ["test.leaf", "some.use"] and left[0].loc == place
    assert not rewrite(module, {"test.leaf": [seven_to_two_leaves]})


def test_rewriting_reaches_regions_and_users() -> None:
    region = '"t.r"() ({ %1 = "test.y"(%0) : (i32) -> i32\n"t.z"(%1) : (i32) -> () }) : () -> ()'
    module = parse('%0 = "test.x"() : () -> i32\n' + region)
    seen: list[str] = []

    def rename(op: Operation, rewriter: Rewriter) -> bool:
        seen.append(op.name)
        if op.name != "test.x":
            return False
        rewriter.replace(op, rewriter.insert(UnregisteredOp("test.new", result_types=[I32])).results)
        return True

    rewrite(module, {"": [rename]})
    assert seen.count("test.y") == 1
    assert [op.name for op in module.walk()] == ["builtin.module", "test.new", "t.r", "test.y", "t.z"]


def test_rewriting_without_end_is_our_fault() -> None:
    module = Module.empty()
    Builder(module.block).insert(UnregisteredOp("some.op"))

    def again(op: Operation, rewriter: Rewriter) -> bool:
        return True

    with pytest.raises(AssertionError, match="does not come to an end"):
        rewrite(module, {"": [again]})


def test_what_sizes_of_a_call_decide_is_refused_with_its_place() -> None:
    module = parse('"test.module"() ({ "test.leaf"() : () -> () loc("net.py":7:3) }) : () -> ()')

    def four_rows(op: Operation, rewriter: Rewriter) -> bool:
        return symbol("b") < 4

    with pytest.raises(CompileError) as refused:
        rewrite(module, {"test.leaf": [four_rows]})
    message = "net.py:7:3: test.leaf: whether b < 4 depends on the sizes of a call, which is not supported"
    assert str(refused.value) == message


def test_fused_locations_are_flat_and_distinct() -> None:
    a, b, c = FileLoc("a", 1, 1), FileLoc("b", 1, 1), NameLoc("c")
    assert fused(a, UNKNOWN, a) == a and fused() == UNKNOWN
    assert fused(fused(a, b), c, b) == FusedLoc((a, b, c))
    named = NameLoc("jit(f)/add", CallSiteLoc(NameLoc("f", FileLoc("x.py", 3, 4)), FileLoc("y.py", 1, 1)))
    assert source_text(named) == 'x.py:3:4 ("jit(f)/add")' and source_text(UNKNOWN) == ""


def test_every_dialect_loads_and_names_its_own() -> None:
    for name in DIALECTS:
        found = dialect(name)
        assert isinstance(found, Dialect) and found.name == name and found.ops
        for full, cls in found.ops.items():
            assert cls.name == full and op_class(full) is cls and cls.__doc__, full
    assert dialect("unheard") is None and op_class("func.unheard") is None
    with pytest.raises(ValueError, match="is not new in dialect test"):
        Dialect("test", [Leaf, Leaf])


def test_symbols_with_odd_names_are_quoted() -> None:
    assert str(SymbolRef("a", ("b c", "1"))) == '@a::@"b c"::@"1"'
    assert str(dense_ints()) == "array<i64>"


def test_regions_and_blocks_say_when_there_is_not_one() -> None:
    box = Box.build(body=Region([Block(), Block([I32])]))
    with pytest.raises(ValueError, match="region has 2 blocks, not one"):
        _ = box.body.block
    with pytest.raises(ValueError, match="has 0 results, not one"):
        _ = box.result


def test_types_print_and_compare_by_value() -> None:
    assert TensorType((4, -1), F32) == tensor((4, -1), "f32") and str(tensor((4, -1), "f32")) == "tensor<4x?xf32>"
    with pytest.raises(ValueError, match="has no fixed number of elements"):
        _ = tensor((-1,), "f32").num_elements
