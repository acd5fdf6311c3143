"""A function's signature is parsed or ModuleError; its text is parsed to the same signature."""

from fuzzing import check

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.signature import is_value_type, parse_signature

MAX_BYTES = 2048
POOL = (b"(", b")", b"->", b"*", b",", b"i32", b"any", b"list<any>", b"hal.view", b" ")


def seeds():
    return [row.signature.encode() for row in HAL_IMPORTS.values()] + [b"(i32, (any, i64)*) -> (i32, any)", b"() -> ()"]


def one_input(data: bytes) -> None:
    try:
        found = parse_signature(data.decode(errors="ignore"))
    except ModuleError:
        return
    check(parse_signature(str(found)) == found, f"{found} is parsed to something else")
    check(all(map(is_value_type, (*found.arguments, *found.repeated, *found.results))), f"{found} has other types")
    for count in range(6):
        shape = found.shape(count)
        check(shape is None or len(shape.types) == len(shape.banks) == count, f"{found} of {count} arguments")
