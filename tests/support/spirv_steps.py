"""The steps of an interpreted shader: each takes the run, the values by id, and the step's own tuple."""

from typing import Any

Values = dict[int, Any]
Step = tuple[Any, ...]


def apply_one(run: Any, values: Values, step: Step) -> None:
    _, function, result, operand, kind = step
    value = function(values[operand])
    values[result] = run.adversary.value(kind, result, values[operand]) if value is None else value


def apply_two(run: Any, values: Values, step: Step) -> None:
    _, function, result, first, second, kind = step
    a, b = values[first], values[second]
    value = function(a, b)
    values[result] = run.adversary.value(kind, result, a, b) if value is None else value


def apply(run: Any, values: Values, step: Step) -> None:
    _, function, result, operands, kind = step
    found = [values[operand] for operand in operands]
    value = function(*found)
    values[result] = run.adversary.value(kind, result, *found) if value is None else value


def access(run: Any, values: Values, step: Step) -> None:
    """An access chain: the object and the index, which is signed."""
    _, result, variable, index, half, full = step
    number = values[index]
    values[result] = (run.memories[variable], number - full if number >= half else number)


def load(run: Any, values: Values, step: Step) -> None:
    """Each load of what nobody wrote may give something else."""
    _, result, pointer, kind = step
    memory, index = values[pointer]
    value = memory.load(index)
    if value is None:
        run.loads += 1
        if kind.lanes > 1:
            value = tuple(run.adversary.value(kind.element, result, run.loads, lane) for lane in range(kind.lanes))
        else:
            value = run.adversary.value(kind.name, result, run.loads)
    values[result] = value


def store(run: Any, values: Values, step: Step) -> None:
    _, pointer, value = step
    memory, index = values[pointer]
    memory.store(index, values[value])


def atomic(run: Any, values: Values, step: Step) -> None:
    """A load and a store of one place."""
    _, function, result, pointer, operand, kind = step
    load(run, values, (load, result, pointer, kind))
    memory, index = values[pointer]
    value = function(values[result], values[operand])
    memory.store(index, run.adversary.value(kind.name, result, run.loads, 1) if value is None else value)


def array_length(run: Any, values: Values, step: Step) -> None:
    _, result, variable = step
    values[result] = run.memories[variable].length
