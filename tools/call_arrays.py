"""The arrays of a call on the command line: assigns each flag to an argument or result.

    --input=4xf32=1,2,3,4          the next argument that no flag names
    --input=x=@x.npy               the argument x
    --input=scale=2                with its declared type and shape; one number fills it
    --input=params.w=@w.npy        the argument params['w']
    --input=params=@params.npz     the arguments params[...]: from members named w, or arr_0, arr_1, ... in order
    --input=@all.npz               arguments by the names of members, or in order

A name is written as `--list-functions` shows it, or with dots or slashes: params['layer']['w'], params.layer.w,
params/layer/w. If two arguments have the same dotted form, each needs its exact name. Results follow the same rules,
with or without a leading `result`. A text with the form of a type and values is an array, whatever the arguments' names
are.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from .array_files import Array, as_wanted, load, save_array, save_arrays
from .arrays import is_typed, parse_array, shown
from .cli import InputError

if TYPE_CHECKING:
    from orchestrion.vm.exports import Export, Value
    from orchestrion.vm.program import Program

_KEY = re.compile(r"""\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\]]*))\]""")
#: NumPy's names of unnamed arrays in an archive
_IN_ORDER = "arr_{}"
#: prefix of the names of results
_RESULT = "result"


class NamedValues:
    """The arguments or results of a function, by name. `kind` is "argument" or "result"."""

    def __init__(self, kind: str, values: "Sequence[Value]", columns: Sequence[str]) -> None:
        """`columns`: the names of the values in vm-batch."""
        self.kind = kind
        self.values = values
        self.names = [value.name or column for value, column in zip(values, columns, strict=True)]
        self._exact = {name: place for names in (columns, self.names) for place, name in enumerate(names)}
        self._dotted: dict[str, list[int]] = {}
        for place, name in enumerate(self.names):
            for dotted in {path := _dotted(name), *_without_result(path, kind)}:
                self._dotted.setdefault(dotted, []).append(place)

    def find(self, name: str) -> int | None:
        """The position of the value of that name; None without one, or if the name is ambiguous."""
        if name in self._exact:
            return self._exact[name]
        found = self._dotted.get(_dotted(name), [])
        return found[0] if len(found) == 1 else None

    def below(self, name: str) -> list[int]:
        """The positions of the arrays of a tree; all positions for an empty name."""
        if not name:
            return list(range(len(self.names)))
        start = _dotted(name) + "."
        return sorted(
            {place for dotted, places in self._dotted.items() if dotted.startswith(start) for place in places}
        )

    def split(self, text: str) -> tuple[str, str] | None:
        """The name and the array of `NAME=ARRAY`; None if the text does not begin with a name. Raises InputError for an
        unknown name.
        """
        if text.startswith("@") or is_typed(text):
            return None
        at = text.find("=")
        while at >= 0:
            name = text[:at]
            if name and (self.find(name) is not None or self.below(name)):
                return name, text[at + 1 :]
            at = text.find("=", at + 1)
        name, equals, _ = text.partition("=")
        if equals and not name[:1].isdigit():
            raise InputError(f"{shown(text)}: {shown(name)} is neither {self.a_kind} nor a type: {self.known()}")
        return None

    @property
    def a_kind(self) -> str:
        """The kind with its indefinite article."""
        return f"a{'n' if self.kind == 'argument' else ''} {self.kind}"

    def known(self) -> str:
        """The existing names, for messages."""
        return f"there are {', '.join(self.names)}" if self.names else f"there are no {self.kind}s"


def _dotted(name: str) -> str:
    """`params['layer'][0]` as `params.layer.0`."""
    return _KEY.sub(lambda match: "." + next(one for one in match.groups() if one is not None), name).replace("/", ".")


def _without_result(dotted: str, kind: str) -> list[str]:
    is_below = kind == "result" and dotted.startswith(f"{_RESULT}.")
    return [dotted.removeprefix(f"{_RESULT}.")] if is_below else []


class _GivenArray(NamedTuple):
    """An array of the command line: its text or the name of an archive's member, and the content of a file."""

    text: str
    array: Array | None = None

    def typed(self, value: "Value") -> Array:
        """The array; `value` determines its type where the text or file does not."""
        if self.array is not None:
            return as_wanted(self.array, value.dtype, self.text)
        return parse_array(self.text, value.dtype)


def arguments_of(program: "Program", name: str, texts: Sequence[str]) -> list[Array]:
    """The flat arguments of a function for the values of `--input`. Raises InputError."""
    from orchestrion.vm.batch_axis import column_names

    export = _export(program, name)
    places = NamedValues("argument", export.arguments, column_names(export).arguments)
    found, rest = _placed(places, texts)
    if len(found) < len(places.names) or rest:
        missing = next((f"; {one} is missing" for place, one in enumerate(places.names) if place not in found), "")
        count = len(found) + len(rest)
        raise InputError(f"{name!r} takes {len(places.names)} arguments, got {count}{missing}")
    return [found[place] for place in range(len(places.names))]


def expected_of(program: "Program", name: str, texts: Sequence[str]) -> dict[int, Array]:
    """The expected results by position, for the values of `--expected-output`. Raises InputError."""
    places = _results(program, name)
    found, rest = _placed(places, texts)
    if rest:
        raise InputError(f"{rest[0].text}: the function has {len(places.names)} results")
    return found


def save_results(program: "Program", name: str, texts: Sequence[str], results: Sequence[Array]) -> set[int]:
    """Writes results to the files of `--output`. Returns the positions of the written results.

    Raises InputError if a result does not exist, OSError if a file cannot be written.
    """
    from orchestrion.vm.batch_axis import column_names

    places, saved, files = _results(program, name), set[int](), dict[str, list[int]]()
    for text in texts:
        split = places.split(text)
        path = (text if split is None else split[1]).removeprefix("@")
        if split is not None:
            place = places.find(split[0])
            found = places.below(split[0]) if place is None else [place]
        elif path.endswith(".npz"):
            found = places.below("")
        else:
            found = [place for place in places.below("") if place not in saved][:1]
        if not found or (len(found) > 1 and not path.endswith(".npz")):
            raise InputError(f"--output={text}: {len(found)} results for one file; {places.known()}")
        saved.update(found)
        files[path] = found
    columns = column_names(_export(program, name)).results
    for path, found in files.items():
        if path.endswith(".npz"):
            save_arrays(path, {columns[place]: results[place] for place in found})
        else:
            save_array(path, results[found[0]])
    return saved


def result_titles(program: "Program", name: str, count: int) -> list[str]:
    """The titles of `count` printed results: `result[0]`, in a tree `result['y']`."""
    export = _export(program, name)
    if export.trees:
        return _results(program, name).names
    return [f"{_RESULT}[{place}]" for place in range(count)]  # results that are numbers are not listed by the export


def _export(program: "Program", name: str) -> "Export":
    """The export of that name. Raises CallerError if it does not exist."""
    _ = program[name]
    return next(export for export in program.exports if export.name == name)


def _results(program: "Program", name: str) -> NamedValues:
    from orchestrion.vm.batch_axis import column_names

    export = _export(program, name)
    return NamedValues("result", export.results, column_names(export).results)


def _placed(places: NamedValues, texts: Sequence[str]) -> tuple[dict[int, Array], list[_GivenArray]]:
    """Assigns arrays to positions. Unnamed ones take the free positions in order; superfluous ones are returned
    separately.
    """
    named: dict[int, _GivenArray] = {}
    rest: list[_GivenArray] = []
    for text in texts:
        name, array = places.split(text) or ("", text)
        place = places.find(name) if name else None
        if place is not None:
            found = {place: _GivenArray(_complete(array, places.values[place]))}
        elif array.startswith("@"):
            found = _in_file(array[1:], places, name, rest)
        elif name:
            _refuse_tree(places, name)
        else:
            found = {}
            rest.append(_GivenArray(array))
        twice = next((place for place in found if place in named), None)
        if twice is not None:
            raise InputError(f"{places.kind} {places.names[twice]} is given twice")
        named |= found
    left = [place for place in range(len(places.names)) if place not in named]
    named |= dict(zip(left, rest, strict=False))
    return {place: one.typed(places.values[place]) for place, one in named.items()}, rest[len(left) :]


def _complete(text: str, value: "Value") -> str:
    """The text of an array, with the type and shape of the value added if it only has numbers."""
    if text.startswith("@") or "=" in text:
        return text
    if -1 in value.shape:
        raise InputError(f"array {shown(text)}: sizes of {value.name}, {value}, are dynamic: write DIMSxTYPE=VALUES")
    return f"{'x'.join([*map(str, value.shape), value.dtype.name])}={text}"


def _refuse_tree(places: NamedValues, name: str) -> NoReturn:
    names = ", ".join(places.names[place] for place in places.below(name))
    raise InputError(f"{name} is a tree of arrays ({names}): give an .npz file, or one of them by its name")


def _in_file(path: str, places: NamedValues, name: str, rest: list[_GivenArray]) -> dict[int, _GivenArray]:
    """The arrays of an archive by position. Unnamed arrays of a whole call are appended to `rest`."""
    loaded = load(path)
    if not isinstance(loaded, dict):
        if name:
            _refuse_tree(places, name)
        rest.append(_GivenArray(path, loaded))
        return {}
    given = {member: _GivenArray(f"{path}: {member}", array) for member, array in loaded.items()}
    found: dict[int, _GivenArray] = {}
    for member, one in given.items():
        place = places.find(member if not name else f"{_dotted(name)}.{_dotted(member).lstrip('.')}")
        if place is None:
            break
        if place in found:
            raise InputError(f"{path}: {places.kind} {places.names[place]} is there twice")
        found[place] = one
    else:
        return found
    if list(given) != [_IN_ORDER.format(number) for number in range(len(given))]:
        raise InputError(
            f"{path}: {shown(member)} is no {places.kind}{f' of {name}' if name else ''}; {places.known()}"
        )
    below = places.below(name)
    if not name:
        rest += given.values()
        return {}
    if len(below) != len(given):
        raise InputError(f"{path}: {len(given)} arrays, {name} has {len(below)}")
    return dict(zip(below, given.values(), strict=True))
