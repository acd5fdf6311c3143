"""The imported functions of `hal` and the other instructions with effects, as calls of the HAL's public interface.

`VALUES` renders what gives a value, `STATEMENTS` everything else. A function of `hal` that stands in neither is refused
by name (`OTHERS` says why).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from orchestrion.schema.dtypes import BY_CODE, DType

from .body import PARAMETERS, Body, Calls
from .ssa import Constant, Op, Parameter, Result, Value
from .text import Group, Node, identifier, plain, quoted, sequence

#: results of a setup that get no name each
_MANY: Final = 4
#: bytes of the patterns that a recording fills with
_FILL_SIZES: Final = (1, 2, 4, 8)


def _number(body: Body, value: Value) -> int:
    """A number that the bytecode states as a constant."""
    if not isinstance(value, Constant) or value.number is None:
        raise body.refusal("computes a number that HAL code needs as a constant")
    return value.number


def dtype_name(dtype: DType) -> str:
    """The name of an element type in generated code."""
    return identifier(dtype.name).upper()


def _source(body: Body, buffer: Value, slot: Value) -> str:
    """A buffer, or a slot where the buffer is null."""
    return body.text(slot if isinstance(buffer, Constant) else buffer)


def _type(body: Body, op: Op) -> tuple[str, str]:
    """Element type and shape of a view, behind the view in the arguments."""
    _, code, *dims = op.arguments()
    dtype = BY_CODE.get(_number(body, code))
    if dtype is None:
        raise body.refusal(f"{_number(body, code):#x} is not an element type code")
    texts = ["None" if isinstance(dim, Constant) and dim.number == -1 else body.text(dim) for dim in dims]
    return dtype_name(dtype), str(sequence(texts))


def _place(body: Body, view: Value) -> tuple[str, str]:
    """The name of a parameter, and what messages call it."""
    if body.export is None or not isinstance(view, Parameter):
        raise body.refusal("checks a view that is no argument")
    count = len(body.export.arguments)
    tensor = [*body.export.arguments, *body.export.results][view.place]
    kind = "argument " if view.place < count else "" if tensor.source.startswith("result") else "result "
    return tensor.name, quoted(f"{body.export.name}: {kind}{plain(tensor.source, 100)}")


def _check(body: Body, op: Op) -> None:
    name, label = _place(body, op.arguments()[0])
    is_used = op.results[0] in body.function.uses
    made = f"{body.name(op.results[0], f'{name}_buffer')} = " if is_used else ""
    body.helpers.add("storage")
    body.emit(made, Group("storage", [label, name, *_type(body, op)]))


def _destination(body: Body, op: Op) -> None:
    name, label = _place(body, op.arguments()[0])
    body.named[op.results[0]] = name
    body.helpers.add("destination")
    body.emit(f"{name} = ", Group("destination", ["self.device", label, name, *_type(body, op)]))


def _make(text: Callable[[Body, Op], Node], hint: Callable[[Body, Op], str]) -> Callable[[Body, Op], None]:
    """Renders an op that makes an object: an attribute, or a temporary of an initializer or a setup."""

    def render(body: Body, op: Op) -> None:
        (result,) = op.results
        attribute = body.attribute(result) if body.export is None else None
        if attribute is not None:
            body.named[result] = f"self.{attribute}"
            body.emit(f"self.{attribute} = ", Group("self._own", [text(body, op)]))
            return
        name = body.name(result, hint(body, op))
        body.emit(f"{name} = ", text(body, op))
        if body.function in body.code.initializers:
            body.temporaries.append(name)

    return render


def _executable(body: Body, op: Op) -> Node:
    return f"self._executable({quoted(_chosen(body, op, body.code.executable_names))})"


def _constant(body: Body, op: Op) -> Node:
    _, offset, length = op.arguments()
    items = [quoted(_constant_name(body, op)), body.text(offset), body.text(length)]
    return Group("self._constant", items)


def _constant_name(body: Body, op: Op) -> str:
    return _chosen(body, op, body.code.constant_names)


def _chosen(body: Body, op: Op, names: list[str]) -> str:
    """The name of what the first argument counts."""
    ordinal = _number(body, op.arguments()[0])
    if not 0 <= ordinal < len(names):
        raise body.refusal(f"{op.name} of {ordinal}, there are {len(names)}")
    return names[ordinal]


def _create_recording(head: str) -> Callable[[Body, Op], None]:
    def render(body: Body, op: Op) -> None:
        (result,) = op.results
        names = body.code.slot_names.get(op, [])
        attribute = body.attribute(result)
        body.blank()
        if any(names):
            slots = ", ".join(f"{slot} {name}" for slot, name in enumerate(names) if name)
            body.comment(f"slots: {slots}")
        name = body.name(result, "recording" if attribute is None else attribute.strip("_"))
        body.emit(f"{name} = ", Group(head, [body.text(op.arguments()[0])]))
        if attribute is None and body.function in body.code.initializers:
            body.temporaries.append(name)

    return render


def _parameters(body: Body, op: Op) -> None:
    recording, *words = op.arguments()
    body.words[recording] = words


def _words(body: Body, words: list[Value]) -> Node:
    """The bytes of 32-bit words."""
    body.helpers.add("words")
    wrapped = [
        word.op.operands[0] if isinstance(word, Result) and word.op.row.name == "i32.wrap_i64" else word
        for word in words
    ]
    return Group("words", [body.text(word) for word in wrapped])


def _dispatch(body: Body, op: Op) -> None:
    recording, executable, entry, x, y, z, *bindings = op.arguments()
    ranges = [
        sequence((_source(body, buffer, slot), body.text(offset), body.text(length)))
        for buffer, slot, offset, length in zip(*[iter(bindings)] * 4, strict=True)
    ]
    body.comment(_origin(body, op, executable, entry))
    items: list[Node] = [body.text(executable), body.text(entry), sequence(map(body.text, (x, y, z)))]
    items.append(sequence(ranges, "[]"))
    words = body.words.pop(recording, None)
    if words is not None:
        items.append(_words(body, [*words]))
    body.emit("", Group(f"{body.text(recording)}.dispatch", items))


def _origin(body: Body, op: Op, executable: Value, entry: Value) -> str:
    """The source ops of a dispatch and their place."""
    ordinal, code = body.code.executable_of(executable), body.code
    number = entry.number if isinstance(entry, Constant) else 0
    ops = () if ordinal is None or number is None else code.module.source_ops(code.ordinal, ordinal, number)
    names = ", ".join(name.removeprefix("stablehlo.") for name in ops)
    return ": ".join(filter(None, (names, body.origin(op))))


def _copy(body: Body, op: Op) -> None:
    recording, source, source_slot, source_offset, target, target_slot, target_offset, length = op.arguments()
    items = [_source(body, source, source_slot), body.text(source_offset), _source(body, target, target_slot)]
    items += [body.text(target_offset), body.text(length)]
    body.emit("", Group(f"{body.text(recording)}.copy", items))


def _fill(body: Body, op: Op) -> None:
    recording, target, slot, offset, length, pattern, size = op.arguments()
    width = _number(body, size)
    if width not in _FILL_SIZES:
        raise body.refusal(f"fills with a pattern of {width} bytes, expected one of {_FILL_SIZES}")
    number = _number(body, pattern) & (1 << 8 * width) - 1
    data = f'({number}).to_bytes({width}, "little")' if number else f"bytes({width})"
    items = [_source(body, target, slot), body.text(offset), body.text(length), data]
    body.emit("", Group(f"{body.text(recording)}.fill", items))


def _begin_loop(body: Body, op: Op) -> None:
    recording, buffer, slot, offset = op.arguments()
    body.comment("while this byte is not 0:")
    body.emit("", Group(f"{body.text(recording)}.begin_loop", [_source(body, buffer, slot), body.text(offset)]))


def _begin_branch(body: Body, op: Op) -> None:
    recording, buffer, slot, offset, size, arms = op.arguments()
    items = [_source(body, buffer, slot), body.text(offset), f"arms={body.text(arms)}"]
    items += ["indexed=True"] if _number(body, size) == 4 else []
    body.emit("", Group(f"{body.text(recording)}.begin_branch", items))


def _plain(method: str) -> Callable[[Body, Op], None]:
    """Renders a call of a recording's method without arguments."""
    return lambda body, op: body.emit(f"{body.text(op.arguments()[0])}.{method}()")


def _of_call(method: str, body: Body, op: Op) -> Node:
    """A call of a method of `Call`."""
    if body.function in body.code.setups:
        raise body.refusal(f"calls {op.name}, which HAL code does not do while it records")
    body.uses_call = True
    return Group(f"call.{method}", list(map(body.text, op.arguments())))


def _add(body: Body, op: Op) -> None:
    body.emit("", _of_call("add", body, op))


def _dim(body: Body, op: Op) -> Node:
    _, axis = body.dimension(op)
    return f"{body.text(op.arguments()[0])}.shape[{axis}]"


def _cached(body: Body, op: Op) -> None:
    callee = body.code.function(op.operands[0])
    arguments, kept = op.arguments(), body.code.kept(callee)
    returned = next(([*made.values()] for made in callee.ops() if made.name == "return"), None)
    if returned is None:
        raise body.refusal(f"calls {callee.name}, which never returns")
    for place, result in enumerate(op.results):
        value = returned[place]
        if place not in kept and isinstance(value, Parameter):
            body.named[result] = body.text(arguments[value.place])
    names = [body.name(op.results[place], _result_name(callee.results[place])) for place in kept]
    if len(names) > _MANY:
        name = body.names.unique("setup")
        body.named |= {op.results[place]: f"{name}[{at}]" for at, place in enumerate(kept)}
        names = [name]
    body.helpers.add("Recent")
    cache = body.code.caches[op.operands[0]]
    sizes = sequence([body.text(value) for value in arguments])
    items: list[Node] = [sizes, f"self.{body.code.methods[op.operands[0]]}"]
    body.emit(f"{', '.join(names)} = " if names else "", Group(f"self.{cache}.get", items))


def _result_name(type: str) -> str:
    return "size" if type in ("i32", "i64") else type.rpartition(".")[2]


def _demand(body: Body, op: Op) -> None:
    """`check`: the program's own error unless a condition holds."""
    condition, message = op.operands
    body.helpers.add("ProgramFailed")
    body.emit(f"if {body.condition(condition, 0)}:")
    body.emit("    ", Group("raise ProgramFailed", [quoted(message)]))


#: what gives a value without an effect, or where it is used
VALUES: Final[dict[str, Callable[[Body, Op], Node]]] = {
    "hal.view.buffer": lambda body, op: f"{body.text(op.arguments()[0])}.buffer",
    "hal.view.dim": _dim,
    "hal.read": partial(_of_call, "read"),
}

STATEMENTS: Final[dict[str, Callable[[Body, Op], None]]] = {
    "call.cached": _cached,
    "check": _demand,
    "require": Body.require,
    "hal.view.check": _check,
    "hal.view.destination": _destination,
    "hal.executable.create": _make(
        _executable, lambda body, op: f"{_chosen(body, op, body.code.executable_names)}_executable"
    ),
    "hal.constant": _make(_constant, _constant_name),
    "hal.allocate": _make(
        lambda body, op: Group("self.device.allocator.allocate", [body.text(op.arguments()[0])]),
        lambda body, op: "arena",
    ),
    "hal.recording.create": _create_recording("self.device.create_command_buffer"),
    "hal.recording.create_control_flow": _create_recording("self._control_flow"),
    PARAMETERS: _parameters,
    "hal.recording.dispatch": _dispatch,
    "hal.recording.copy": _copy,
    "hal.recording.fill": _fill,
    "hal.recording.barrier": _plain("barrier"),
    "hal.recording.begin_loop": _begin_loop,
    "hal.recording.begin_branch": _begin_branch,
    "hal.recording.next_arm": _plain("next_arm"),
    "hal.recording.end": _plain("end"),
    "hal.recording.finish": _plain("finish"),
    "hal.execute": _add,
    "hal.enqueue": _add,
}

#: functions of `hal` that generated code does without, or refuses -> why
OTHERS: Final[dict[str, str]] = {
    "hal.cache.load": "constants that a device computes are computed at each `create`",
    "hal.cache.save": "constants that a device computes are computed at each `create`",
    "hal.view.create": "only calls of other modules take views of buffers, and these are refused",
    "hal.fence.create": "compiled programs leave fences to their callers",
    "hal.submit": "compiled programs leave submissions without a wait to their callers",
}

CALLS: Final = Calls(VALUES, STATEMENTS)
