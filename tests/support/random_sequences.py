"""Random programs as hl_seq text, from a seed: values that want to share memory, under control flow of every shape.

`generate(seed, size)` gives the text. All tensors are i32 (and i1 predicates), so results are exact. Executables are
those of `BODIES`; most dispatches name true candidates for `in_place`. Values are given to branches swapped, twice or
unchanged, results are returned twice, arguments are returned and donated, variables loaded and stored anywhere.
Imports nothing under test.
"""

import random
from dataclasses import dataclass, field
from typing import Final

TENSORS: Final = {
    "V": "tensor<8xi32>",
    "W": "tensor<96xi32>",
    "U": "tensor<2xi32>",
    "S": "tensor<i32>",
    "P": "tensor<i1>",
    "Z": "tensor<0xi32>",
}
BYTES: Final = {"V": 32, "W": 384, "U": 8, "S": 4, "P": 1, "Z": 0}
ELEMENTS: Final = {"V": 8, "W": 96, "U": 2, "S": 1, "P": 1, "Z": 0}


@dataclass(frozen=True)
class Executable:
    """`takes`, `gives`: kinds. `body` in the ops of `line`; `like`: arguments that outputs may take the place of."""

    takes: str
    gives: str
    body: tuple[str, ...]
    returns: str
    tied: tuple[int, ...] = ()
    like: tuple[int, ...] = ()


def _executables() -> dict[str, Executable]:
    found = {
        "inc": Executable("S", "S", ("c = constant S 1", "r = add S a c"), "r", like=(0,)),
        "adds": Executable("SS", "S", ("r = add S a b",), "r", like=(0, 1)),
        "below": Executable("SS", "P", ("c = constant S 3", "m = and S b c", "r = less a m"), "r"),
        "odd": Executable("S", "P", ("c = constant S 1", "m = and S a c", "r = less m c"), "r"),
        "some": Executable("S", "S", ("c = constant S 3", "r = and S a c"), "r", like=(0,)),
        "addu": Executable("UU", "U", ("r = add U a b",), "r", like=(0, 1)),
    }
    for k in "VW":
        low = k.lower()
        found |= {
            f"add_{low}": Executable(k + k, k, (f"r = add {k} a b",), "r", like=(0, 1)),
            f"mix_{low}": Executable(k * 3, k, (f"s = subtract {k} a b", f"r = xor {k} s c"), "r", like=(0, 1, 2)),
            f"neg_{low}": Executable(k, k, (f"c = constant {k} 3", f"r = subtract {k} c a"), "r", like=(0,)),
            f"two_{low}": Executable(k + k, k + k, (f"r = add {k} a b", f"s = xor {k} a b"), "rs", like=(0, 1)),
            f"three_{low}": Executable(
                k + k, k * 3, (f"r = subtract {k} a b", f"s = add {k} a a", f"t = xor {k} a b"), "rst", like=(0, 1)
            ),
            f"reverse_{low}": Executable(k, k, (f"r = reverse {k} a",), "r"),
            f"spread_{low}": Executable("S", k, (f"r = spread {k} a",), "r"),
            f"plus_{low}": Executable(k + "S", k, (f"b2 = spread {k} b", f"r = add {k} a b2"), "r", like=(0,)),
            f"first_{low}": Executable(k, "S", (f"f = first {k} a", "r = scalar f"), "r"),
            f"part_{low}": Executable(k, "U", (f"r = part {k} a",), "r"),
            f"update_{low}": Executable(k + "US", k, (f"r = update {k} a b c",), "r", tied=(0,)),
        }
    return found


BODIES: Final = _executables()


def _line(text: str, kinds: dict[str, str]) -> str:
    """One op of a body, in generic text."""
    result, _, rest = text.partition(" = ")
    op, *words = rest.split()
    if op == "constant":
        out, names, attrs, op = words[0], [], f"value = dense<{words[1]}> : {TENSORS[words[0]]}", "constant"
    elif op == "less":
        out, names, attrs, op = "P", words, "comparison_direction = #stablehlo<comparison_direction LT>", "compare"
    elif op == "spread":
        out, names, attrs, op = words[0], words[1:], "broadcast_dimensions = array<i64>", "broadcast_in_dim"
    elif op in ("first", "part"):
        n = 1 if op == "first" else 2
        attrs = f"limit_indices = array<i64: {n}>, start_indices = array<i64: 0>, strides = array<i64: 1>"
        out, names, op = ("F" if op == "first" else "U"), words[1:], "slice"
    elif op == "scalar":
        out, names, attrs, op = "S", words, "", "reshape"
    elif op == "reverse":
        out, names, attrs = words[0], words[1:], "dimensions = array<i64: 0>"
    elif op == "update":
        out, names, attrs, op = words[0], words[1:], "", "dynamic_update_slice"
    else:
        out, names, attrs = words[0], words[1:], ""
    kinds[result] = out
    types = {**TENSORS, "F": "tensor<1xi32>"}
    given = ", ".join(f"%{name}" for name in names)
    return (
        f'%{result} = "stablehlo.{op}"({given}) {f"<{{{attrs}}}>" if attrs else ""} : '
        f"({', '.join(types[kinds[name]] for name in names)}) -> {types[out]}"
    )


def executable_text(name: str) -> str:
    made = BODIES[name]
    kinds = dict(zip("abcd", made.takes, strict=False))
    lines = [_line(text, kinds) for text in made.body]
    ins, outs = (", ".join(TENSORS[k] for k in ks) for ks in (made.takes, made.gives))
    taken = ", ".join(f"%{n}: {TENSORS[k]}" for n, k in zip("abcd", made.takes, strict=False))
    returned = ", ".join(f"%{n}" for n in made.returns)
    return (
        f'"flow.executable"() <{{sym_name = "{name}"}}> ({{\n'
        f'"func.func"() <{{function_type = ({ins}) -> ({outs}), sym_name = "{name}"}}> ({{\n^bb0({taken}):\n'
        + "\n".join(lines)
        + f'\n"func.return"({returned}) : ({outs}) -> ()\n}}) : () -> ()\n}}) : () -> ()\n'
    )


@dataclass
class Op:
    name: str
    operands: list[str]
    results: list[str]
    attrs: str = ""
    targets: tuple[str, ...] = ()


@dataclass
class Block:
    label: str
    arguments: list[str] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


class Body:
    """One function or initializer while it is made. `kind`, `life` of each value; `fixed`: it must stay transient."""

    def __init__(self, rng: random.Random, prefix: str, globals_: dict[str, tuple[str, str]]) -> None:
        self.rng, self.prefix, self.globals = rng, prefix, globals_
        self.kind: dict[str, str] = {}
        self.life: dict[str, str] = {}
        self.maker: dict[str, Op] = {}
        self.fixed: set[str] = set()
        self.blocks: list[Block] = []
        self.used: set[str] = set()
        self.count = 0
        self.exported: set[str] = set()

    # --- emission

    def fresh(self, kind: str, life: str = "transient") -> str:
        self.count += 1
        name = f"%{self.prefix}{self.count}"
        self.kind[name], self.life[name] = kind, life
        return name

    def block(self, kinds: str = "") -> Block:
        made = Block(f"^{self.prefix}b{len(self.blocks)}x{self.rng.randrange(10**9)}", [self.fresh(k) for k in kinds])
        return made

    def start(self, block: Block) -> None:
        self.blocks.append(block)

    def emit(self, name: str, operands: list[str], gives: str, attrs: str = "", life: str = "transient") -> list[str]:
        op = Op(name, operands, [self.fresh(k, life) for k in gives], attrs)
        self.blocks[-1].ops.append(op)
        for value in op.results:
            self.maker[value] = op
        return op.results

    def leave(self, name: str, operands: list[str], targets: list[Block], counts: list[int] | None = None) -> None:
        attrs = f"counts = array<i64: {', '.join(map(str, counts))}>" if counts is not None else ""
        self.blocks[-1].ops.append(Op(name, operands, [], attrs, tuple(t.label for t in targets)))

    def dispatch(self, name: str, arguments: list[str]) -> list[str]:
        self.used.add(name)
        made = BODIES[name]
        attrs = f"entry = @{name}::@{name}"
        if made.like and len(made.gives) == 1 and self.rng.random() < 0.8:
            indices = self.rng.sample(made.like, self.rng.randrange(1, len(made.like) + 1))
            attrs += f", in_place = array<i64: {', '.join(map(str, indices))}>"
        if made.tied:
            attrs += f", tied = array<i64: {', '.join(map(str, made.tied))}>"
        work = 2 if made.tied else ELEMENTS[made.gives[0]]
        return self.emit("flow.dispatch", arguments, made.gives, f"{attrs}, workload = array<i64: {work}, 1, 1>")

    # --- values

    def pick(self, kind: str, scope: list[str]) -> str:
        found = [value for value in scope if self.kind[value] == kind]
        if found and self.rng.random() < 0.95:
            return self.rng.choice(found[-4:] if self.rng.random() < 0.6 else found)
        made = self.make(kind, scope)
        scope.append(made)
        return made

    def make(self, kind: str, scope: list[str]) -> str:
        if kind == "Z" and self.rng.random() < 0.5:
            return self.emit("flow.empty", [], "Z")[0]
        if kind == "P":
            value = self.rng.choice(("true", "false"))
            return self.emit("flow.splat", [], "P", f"value = dense<{value}> : tensor<i1>")[0]
        return self.emit("flow.splat", [], kind, f"value = dense<{self.rng.randrange(-4, 9)}> : tensor<i32>")[0]

    def give(self, value: str) -> str:
        """As a branch gives it."""
        if self.life[value] != "transient":
            value = self.emit("hl_seq.clone", [value], self.kind[value])[0]
        self.fixed.add(value)
        return value

    # --- statements

    def statement(self, scope: list[str]) -> None:
        what = self.rng.choices(("dispatch", "clone", "splat", "load", "store"), (12, 2, 2, 2, 1))[0]
        if what == "dispatch":
            name = self.rng.choice(list(BODIES))
            scope += self.dispatch(name, [self.pick(kind, scope) for kind in BODIES[name].takes])
        elif what == "clone" and scope:
            source = self.rng.choice(scope)
            scope += self.emit("hl_seq.clone", [source], self.kind[source])
        elif what == "load":
            self.load(scope)
        elif what == "store":
            variables = [name for name, (_, life) in self.globals.items() if life == "variable"]
            if variables:
                name = self.rng.choice(variables)
                self.emit("util.global_store", [self.pick(self.globals[name][0], scope)], "", f"ref = @{name}")
        else:
            scope.append(self.make(self.rng.choice("VVWUSZ"), scope))

    def load(self, scope: list[str]) -> None:
        if self.globals:
            name = self.rng.choice(list(self.globals))
            kind, life = self.globals[name]
            scope += self.emit("util.global_load", [], kind, f"ref = @{name}", life)

    def kinds(self) -> str:
        if self.rng.random() < 0.4:
            return self.rng.choice("VW") * self.rng.randrange(1, 4)
        return "".join(self.rng.choice("VVVWSUZ" if self.rng.random() < 0.2 else "VVWS") for _ in range(3))

    def given(self, kinds: str, scope: list[str]) -> list[str]:
        return [self.give(self.pick(kind, scope)) for kind in kinds]

    def code(self, scope: list[str], size: int, depth: int) -> bool:
        """Statements; False when the function returned on the way."""
        for _ in range(size):
            if depth and self.rng.random() < 0.3:
                ways = (self.choice, self.switch, self.loop, self.do_while, self.counted)
                self.rng.choices(ways, (4, 1, 4, 2, 2))[0](scope, size // 2 + 1, depth - 1)
            else:
                self.statement(scope)
        return True

    def arm(self, block: Block, scope: list[str], size: int, depth: int, merge: Block, kinds: str) -> None:
        self.start(block)
        inner = [*scope, *block.arguments]
        self.code(inner, self.rng.randrange(size + 1), depth)
        self.leave("util.branch", self.given(kinds, inner), [merge])

    def choice(self, scope: list[str], size: int, depth: int) -> None:
        condition = self.pick("P", scope)
        kinds = self.kinds()
        merge = self.block(kinds)
        taken = [self.kinds() if self.rng.random() < 0.2 else "" for _ in range(2)]
        direct = [self.rng.random() < 0.15, self.rng.random() < 0.15]
        taken = [kinds if d else t for d, t in zip(direct, taken, strict=True)]
        arms = [merge if d else self.block(t) for d, t in zip(direct, taken, strict=True)]
        values = [self.given(t, scope) for t in taken]
        self.leave("util.cond_branch", [condition, *values[0], *values[1]], arms, [len(v) for v in values])
        for block in arms:
            if block is not merge:
                if not self.loops and self.rng.random() < 0.06:
                    self.start(block)
                    inner = [*scope, *block.arguments]
                    self.code(inner, size, depth)
                    self.finish(inner)
                else:
                    self.arm(block, scope, size, depth, merge, kinds)
        if not any(merge.label in op.targets for b in self.blocks for op in b.ops):
            raise Unusable
        self.start(merge)
        scope += merge.arguments

    def switch(self, scope: list[str], size: int, depth: int) -> None:
        index = self.dispatch("some", [self.pick("S", scope)])[0] if self.rng.random() < 0.7 else self.pick("S", scope)
        kinds = self.kinds()
        merge = self.block(kinds)
        arms = [self.block() for _ in range(self.rng.randrange(1, 4))]
        self.leave("util.switch", [index], arms, [0] * len(arms))
        for block in arms:
            self.arm(block, scope, size, depth, merge, kinds)
        self.start(merge)
        scope += merge.arguments

    def following(self, header: Block, kinds: str, scope: list[str], outer: list[str]) -> list[str]:
        """What a loop gives for its next turn."""
        found = []
        for argument, kind in zip(header.arguments[len(header.arguments) - len(kinds) :], kinds, strict=True):
            same = [a for a in header.arguments if self.kind[a] == kind]
            way = self.rng.random()
            if way < 0.1:
                found.append(argument)
            elif way < 0.3 and same:
                found.append(self.rng.choice(same))
            elif way < 0.4:
                found.append(self.give(self.pick(kind, outer or scope)))
            elif way < 0.75 and kind in "VWS":
                name = {"V": "neg_v", "W": "neg_w", "S": "inc"}[kind]
                if self.rng.random() < 0.5:
                    name = {"V": "reverse_v", "W": "reverse_w", "S": "inc"}[kind]
                found.append(self.give(self.dispatch(name, [self.rng.choice(same)])[0]))
            else:
                found.append(self.give(self.pick(kind, scope)))
        return found

    def loop(self, scope: list[str], size: int, depth: int) -> None:
        kinds = self.kinds()
        bound = self.pick("S", scope)
        zero = self.emit("flow.splat", [], "S", "value = dense<0> : tensor<i32>")[0]
        header = self.block("S" + kinds)
        init = [self.give(zero), *self.given(kinds, scope)]
        self.leave("util.branch", init, [header])
        self.start(header)
        self.loops += 1
        outer = list(scope)
        scope += header.arguments
        if self.rng.random() < 0.4:
            self.code(scope, 1, 0)
        condition = self.dispatch("below", [header.arguments[0], bound])[0]
        body = self.block()
        leaving = self.kinds() if self.rng.random() < 0.2 else ""
        left = self.block(leaving)
        out = self.given(leaving, scope)
        self.leave("util.cond_branch", [condition, *out], [body, left], [0, len(out)])
        self.start(body)
        inner = list(scope)
        self.code(inner, self.rng.randrange(size + 1), depth)
        turn = self.give(self.dispatch("inc", [header.arguments[0]])[0])
        way = self.rng.random()
        if way < 0.15:  # another way back
            first = [turn, *self.following(header, kinds, inner, outer if self.rng.random() < 0.5 else [])]
            rest = self.block()
            self.leave("util.cond_branch", [self.pick("P", inner), *first], [header, rest], [len(first), 0])
            self.start(rest)
            self.code(inner, 2, 0)
        elif way < 0.25:  # another way out
            out = self.given(leaving, inner)
            rest = self.block()
            self.leave("util.cond_branch", [self.pick("P", inner), *out], [left, rest], [len(out), 0])
            self.start(rest)
        self.leave("util.branch", [turn, *self.following(header, kinds, inner, list(outer))], [header])
        self.loops -= 1
        self.start(left)
        scope += left.arguments

    def do_while(self, scope: list[str], size: int, depth: int) -> None:
        kinds = self.kinds()
        bound = self.pick("S", scope)
        zero = self.emit("flow.splat", [], "S", "value = dense<0> : tensor<i32>")[0]
        header = self.block("S" + kinds)
        self.leave("util.branch", [self.give(zero), *self.given(kinds, scope)], [header])
        self.start(header)
        self.loops += 1
        outer = list(scope)
        scope += header.arguments
        self.code(scope, self.rng.randrange(size + 1), depth)
        turn = self.give(self.dispatch("inc", [header.arguments[0]])[0])
        condition = self.dispatch("below", [turn, bound])[0]
        leaving = self.kinds() if self.rng.random() < 0.5 else ""
        left = self.block(leaving)
        back = [turn, *self.following(header, kinds, scope, outer)]
        out = self.given(leaving, scope)
        self.leave("util.cond_branch", [condition, *back, *out], [header, left], [len(back), len(out)])
        self.loops -= 1
        self.start(left)
        scope += left.arguments

    def number(self, value: int) -> str:
        return self.emit("util.constant", [], "#", f"value = {value} : i32")[0]

    def counted(self, scope: list[str], size: int, depth: int) -> None:
        kinds = self.kinds()
        init = self.given(kinds, scope)
        zero, one, trips = self.number(0), self.number(1), self.number(self.rng.randrange(4))
        header = self.block(kinds + "#")
        self.leave("util.branch", [*init, zero], [header])
        self.start(header)
        self.loops += 1
        outer = list(scope)
        scope += header.arguments[:-1]
        turn = header.arguments[-1]
        more = self.emit("util.compare_lt", [turn, trips], "#")[0]
        body, left = self.block(), self.block()
        self.leave("util.cond_branch", [more], [body, left], [0, 0])
        self.start(body)
        inner = list(scope)
        self.code(inner, self.rng.randrange(size + 1), depth)
        only = Block(header.label, header.arguments[:-1])
        after = self.following(only, kinds, inner, outer)
        following = self.emit("util.add", [turn, one], "#")[0]
        self.leave("util.branch", [*after, following], [header])
        self.loops -= 1
        self.start(left)

    # --- ends

    def finish(self, scope: list[str]) -> None:
        values = []
        for kind in self.results:
            value = self.pick(kind, scope)
            maker = self.maker.get(value)
            own = maker is not None and maker.name.startswith("hl_seq.") and maker.name != "hl_seq.import"
            if not own or value in self.fixed or value in self.exported or self.rng.random() < 0.3:
                value = self.emit("hl_seq.clone", [value], kind)[0]
            self.exported.add(value)
            self.life[value] = "external"
            values.append(self.emit("hl_seq.export", [value], kind, life="tensor")[0])
        self.leave("func.return", values, [])

    results: str = ""
    loops: int = 0

    def type(self, value: str) -> str:
        kind, life = self.kind[value], self.life[value]
        if kind == "#":
            return "i32"
        return TENSORS[kind] if life == "tensor" else f"!hl_seq.resource<{life}, {BYTES[kind]}>"

    def text(self) -> str:
        lines = []
        for block in self.blocks:
            taken = ", ".join(f"{a}: {self.type(a)}" for a in block.arguments)
            lines.append(f"{block.label}({taken}):" if taken else f"{block.label}:")
            for op in block.ops:
                results = f"{', '.join(op.results)} = " if op.results else ""
                targets = f"[{', '.join(op.targets)}]" if op.targets else ""
                attrs = f" <{{{op.attrs}}}>" if op.attrs else ""
                ins = ", ".join(map(self.type, op.operands))
                outs = ", ".join(map(self.type, op.results))
                lines.append(f'{results}"{op.name}"({", ".join(op.operands)}){targets}{attrs} : ({ins}) -> ({outs})')
        return "\n".join(lines)


class Unusable(Exception):
    """What was drawn makes no program."""


def _function(
    rng: random.Random, name: str, globals_: dict[str, tuple[str, str]], size: int, depth: int
) -> tuple[str, set[str]]:
    body = Body(rng, f"{name}_", globals_)
    takes = "VWSP" + "".join(rng.choice("VVWSPUZ") for _ in range(rng.randrange(4)))
    body.results = "".join(rng.choice("VVWSUZ") for _ in range(rng.randrange(1, 5)))
    entry = body.block(takes)
    for value in entry.arguments:
        body.life[value] = "tensor"
    body.start(entry)
    scope = [body.emit("hl_seq.import", [value], body.kind[value], life="external")[0] for value in entry.arguments]
    for _ in range(2):
        body.load(scope)
    body.code(scope, size, depth)
    body.finish(scope)
    donated: dict[int, int] = {}
    for result, kind in enumerate(body.results):
        free = [i for i, k in enumerate(takes) if k == kind and i not in donated]
        if free and rng.random() < 0.6:
            donated[rng.choice(free)] = result
    attrs = [f"{{tf.aliasing_output = {donated[i]} : i32}}" if i in donated else "{}" for i in range(len(takes))]
    signature = f"({', '.join(TENSORS[k] for k in takes)}) -> ({', '.join(TENSORS[k] for k in body.results)})"
    head = f'arg_attrs = [{", ".join(attrs)}], function_type = {signature}, sym_name = "{name}"'
    text = f'"func.func"() <{{{head}, sym_visibility = "public"}}> ({{\n{body.text()}\n}}) : () -> ()\n'
    return text, body.used


def _global(name: str, kind: str, life: str, value: str | None) -> str:
    mutable = "mutable, " if life == "variable" else ""
    given = f", value = dense<{value}> : {TENSORS[kind]}" if value is not None else ""
    kindly = f"type = !hl_seq.resource<{life}, {BYTES[kind]}>{given}"
    return f'"util.global"() <{{{mutable}sym_name = "{name}", {kindly}}}> : () -> ()\n'


def _initializer(rng: random.Random, known: dict[str, tuple[str, str]], made: dict[str, str]) -> tuple[str, set[str]]:
    """Computes globals."""
    body = Body(rng, f"i{min(made)}_", known)
    body.start(body.block())
    scope: list[str] = []
    for _ in range(rng.randrange(4)):
        body.load(scope)
    for _ in range(rng.randrange(6)):
        body.statement(scope)
    for name, kind in made.items():
        body.emit("util.global_store", [body.pick(kind, scope)], "", f"ref = @{name}")
    body.leave("util.return", [], [])
    return f'"util.initializer"() <{{kind = "program"}}> ({{\n{body.text()}\n}}) : () -> ()\n', body.used


def generate(seed: int, size: int = 6, depth: int = 2, target: str = "reference") -> str:
    """A program of target `target`."""
    attempt = 0
    while True:
        try:
            return _program(random.Random(f"{seed}/{attempt}"), size, depth, target)
        except Unusable:
            attempt += 1


def _program(rng: random.Random, size: int, depth: int, target: str) -> str:
    numbers = [str(rng.randrange(-99, 99)) for _ in range(8)]
    values = {"c0": ("V", f"[{', '.join(numbers)}]"), "c1": ("W", "5"), "c2": ("S", "2"), "c3": ("P", "true")}
    values = {name: row for name, row in values.items() if rng.random() < 0.6}
    constants = {name: (kind, "constant") for name, (kind, _) in values.items()}
    text = "".join(_global(name, kind, "constant", value) for name, (kind, value) in values.items())
    used: set[str] = set()
    initializers = ""
    for number in range(rng.choice((0, 0, 1, 2))):
        made = {f"k{number}{i}": rng.choice("VWSP") for i in range(rng.randrange(1, 4))}
        made = {name: "V" if kind == "P" else kind for name, kind in made.items()}
        text += "".join(_global(name, kind, "constant", None) for name, kind in made.items())
        found, needed = _initializer(rng, dict(constants), made)
        initializers += found
        used |= needed
        constants |= {name: (kind, "constant") for name, kind in made.items()}
    variables = {f"m{i}": rng.choice("VWSPZ") for i in range(rng.choice((0, 1, 2)))}
    for name, kind in variables.items():
        value = rng.choice((None, "true" if kind == "P" else "7" if kind != "Z" else None))
        text += _global(name, kind, "variable", value)
    known = constants | {name: (kind, "variable") for name, kind in variables.items()}
    functions = ""
    for name in rng.choice((("main",), ("main",), ("main", "other"))):
        found, needed = _function(rng, name, known, rng.randrange(1, size + 1), depth)
        functions += found
        used |= needed
    bodies = "".join(executable_text(name) for name in BODIES if name in used)
    inside = bodies + text + initializers + functions
    program = f'"hl_seq.program"() <{{sym_name = "{target}"}}> ({{\n{inside}}}) : () -> ()\n'
    return f'"builtin.module"() ({{\n{program}}}) : () -> ()\n'
