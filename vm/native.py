"""Native modules: Python classes whose functions bytecode can import, and the resolution of imports.

A package declares its native modules by entry points of the group `orchestrion.natives`. A module can import from those
that its caller names (`natives=["clock"]`, `vm-run --native=clock`), and from no others: native modules can do anything
that the process can do.

    class Clock(NativeModule):
        name = "clock"
        types = {"clock.stamp": Stamp}

        @native("now", "() -> clock.stamp")
        def now(self, call): ...

- The first parameter is the running `Call`. Then follows a Python value per argument: an int, a float, or the object of
  a ref.
- Each argument has the type of the signature. Null is a trap unless `nullable` has the number of the argument. In a
  repeated group, the numbers are those of its first repetition.
- A function without results returns None, with one result its value, with several a tuple. It raises `VmError`, or
  errors that the module documents.
- A function that may wait for the device names a method in `begin`, for submitted calls. The method starts the same
  work and returns the fence to wait for, or None if there is nothing to wait for.
- `alone` is False for a function that leaves state in the `Call` for later functions. `pure` is True for a function
  that changes nothing, so that it may be called twice.
- `inline` gives the common case of a short function as Python text: from the texts of the arguments, a condition and
  the value if it holds. `jit.py` uses it instead of a call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from orchestrion.schema.errors import PluginError
from orchestrion.schema.signature import Signature, parse_signature

from .errors import CallerTypeError, CallerValueError, UnresolvedImport, shorten
from .refs import TYPES

GROUP = "orchestrion.natives"

_F = TypeVar("_F", bound=Callable[..., Any])
#: texts of the arguments -> texts of the condition and the value, in which `call` is the running call
Inline = Callable[..., tuple[str, str]]
#: the attribute of a method that holds its declaration
_MARK = "_orchestrion_native"
#: problems that a message lists: many imports of a module may have the same long name
_MAX_LISTED = 100


class NativeFunction:
    """A native function that can be called: `function(call, *arguments)`. Immutable."""

    __slots__ = ("alone", "begin", "function", "inline", "name", "nullable", "pure", "signature")

    def __init__(
        self,
        name: str,
        signature: Signature,
        function: Callable[..., Any],
        nullable: frozenset[int],
        begin: Callable[..., Any] | None = None,
        inline: Inline | None = None,
        alone: bool = True,
        pure: bool = False,
    ) -> None:
        self.name = name
        self.signature = signature
        self.function = function
        self.nullable = nullable
        self.begin = begin
        self.inline = inline
        self.alone = alone
        self.pure = pure

    def at(self, function: int, pc: int) -> "NativeFunction":
        """The function to call from an instruction: another one if the module's `placed` is True."""
        return self

    def may_be_null(self, position: int) -> bool:
        """Whether the argument of that number may be null."""
        fixed, group = len(self.signature.arguments), len(self.signature.repeated)
        return (position if position < fixed or not group else fixed + (position - fixed) % group) in self.nullable


@dataclass(frozen=True, slots=True)
class _Declaration:
    name: str
    signature: Signature
    nullable: frozenset[int]
    begin: str
    inline: Inline | None
    alone: bool
    pure: bool


def native(
    name: str,
    signature: str,
    nullable: Sequence[int] = (),
    begin: str = "",
    inline: Inline | None = None,
    alone: bool = True,
    pure: bool = False,
) -> Callable[[_F], _F]:
    """Declare a method as the native function `<module>.<name>`. A function with `begin` must not have results.

    The other arguments are explained at the top of this file.
    """
    declaration = _Declaration(name, parse_signature(signature), frozenset(nullable), begin, inline, alone, pure)

    def mark(function: _F) -> _F:
        setattr(function, _MARK, declaration)
        return function

    return mark


class NativeModule:
    """Base of native modules. An instance serves one loaded program."""

    name: ClassVar[str]
    types: ClassVar[dict[str, type]] = {}
    #: whether its functions depend on the instruction that calls them (`NativeFunction.at`)
    placed: ClassVar[bool] = False
    _declared: ClassVar[dict[str, tuple[str, _Declaration]]] = {}

    def __init_subclass__(cls) -> None:
        marked = [(name, getattr(value, _MARK)) for name, value in vars(cls).items() if hasattr(value, _MARK)]
        cls._declared = {f"{cls.name}.{row.name}": (attribute, row) for attribute, row in marked}
        for name, type_ in cls.types.items():
            if TYPES.setdefault(name, type_) is not type_:
                raise TypeError(f"native module {cls.name}: type {name} is {TYPES[name].__qualname__} already")

    def find(self, name: str) -> NativeFunction | None:
        """The function of that full name; None if there is none."""
        found = self._declared.get(name)
        if found is None:
            return None
        attribute, row = found
        begin = getattr(self, row.begin) if row.begin else None
        function = getattr(self, attribute)
        return NativeFunction(name, row.signature, function, row.nullable, begin, row.inline, row.alone, row.pure)


def native_modules(given: Sequence[NativeModule | str]) -> list[NativeModule]:
    """The native modules for a caller's list. A name stands for a new instance of the class that an installed package
    declares by an entry point of the group `orchestrion.natives`.

    `CallerError` if no package declares that name, or the class cannot be used.
    """
    return [_declared_module(one) if isinstance(one, str) else _checked_module(one) for one in given]


def _checked_module(given: object) -> NativeModule:
    if not isinstance(given, NativeModule):
        raise CallerTypeError(f"natives={given!r}: a NativeModule or the name of one expected")
    return given


def _declared_module(name: str) -> NativeModule:
    from orchestrion.schema.plugins import contained, declared, find

    try:
        kind = find(GROUP, name, type)
        if kind is None:
            there = ", ".join(declared(GROUP)) or "none"
            raise CallerValueError(f"no installed package declares native module {name!r}; there are {there}")
        plugin = declared(GROUP)[name]
        if not issubclass(kind, NativeModule) or kind.name != name:
            raise CallerTypeError(f"{plugin}: {kind.__qualname__} is not a NativeModule of that name")
        with contained(f"{plugin} cannot be created"):
            made: NativeModule = kind()
    except PluginError as error:
        raise CallerValueError(str(error)) from error
    return made


class Functions(Protocol):
    """A module that resolves imports: a native module, or a loaded program (`imported_modules.py`)."""

    @property
    def name(self) -> str:
        """The name of the module, the first part of the full names of its functions."""

    def find(self, name: str) -> NativeFunction | None:
        """The function of that full name; None if there is none."""


class ImportRow(NamedTuple):
    """An import as the module declares it."""

    name: str
    signature: Signature
    optional: bool


def resolve(imports: Sequence[ImportRow | None], modules: Sequence[Functions]) -> list[NativeFunction | None]:
    """The function of each import. None for a row that is None, and for an optional import that is absent.

    `UnresolvedImport` lists the imports that are missing or have another signature, up to 100 of them.
    """
    there = {module.name: module for module in modules}
    found: list[NativeFunction | None] = []
    problems: list[tuple[ImportRow, NativeFunction | None]] = []
    for row in imports:
        if row is None:
            found.append(None)
            continue
        module = there.get(row.name.partition(".")[0])
        function = None if module is None else module.find(row.name)
        if function is None and not row.optional:
            problems.append((row, None))
        if function is not None and function.signature is not row.signature and function.signature != row.signature:
            problems.append((row, function))
        found.append(function)
    if problems:
        names = ", ".join(module.name for module in modules) or "none"
        listed = "; ".join(starmap(_problem, problems[:_MAX_LISTED]))
        more = f"; and {len(problems) - _MAX_LISTED} more" if len(problems) > _MAX_LISTED else ""
        hint = f"functions of other modules: modules=, --module=NAME=FILE{_installed(problems)}"
        raise UnresolvedImport(f"unresolved imports: {listed}{more} (native modules: {names}; {hint})")
    return found


def _installed(problems: Sequence[tuple[ImportRow, NativeFunction | None]]) -> str:
    """A hint that names the missing native modules that installed packages declare."""
    from orchestrion.schema.plugins import declared

    missing = dict.fromkeys(row.name.partition(".")[0] for row, function in problems if function is None)
    there = [name for name in missing if name in declared(GROUP)]
    if not there:
        return ""
    flags = " ".join(f"--native={name}" for name in there)
    return f"; of installed packages: natives={there}, {flags}"


def _problem(row: ImportRow, function: NativeFunction | None) -> str:
    name, wanted = shorten(row.name), shorten(str(row.signature))
    if function is None:
        return f"{name} {wanted} is not there"
    return f"{name} has signature {function.signature}, the module wants {wanted}"


def class_of(type_name: str) -> type | None:
    """The class of the values of a ref type. None for `any` and for types of native modules that are not imported."""
    return TYPES.get(type_name)
