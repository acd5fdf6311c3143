"""Native modules: Python classes whose functions bytecode may import, and the resolution of imports.

A package declares its native modules by entry points of the group `orchestrion.natives`; a module gets those that its
caller names (`natives=["clock"]`, `vm-run --native=clock`), and no others: they can do whatever the process can.

    class Clock(NativeModule):
        name = "clock"
        types = {"clock.stamp": Stamp}

        @native("now", "() -> clock.stamp")
        def now(self, call): ...

- The first parameter is the running `Call`; then one Python value per argument: int, float, or the object a ref holds.
- Every argument has the type its signature says when the function is called. Null is refused unless `nullable` names
  the argument's place; for a repeated group places go on counting through its first repetition.
- No result: return None; one: the value; several: a tuple. Errors: `VmError`, or what the module documents.
- A function that waits for the device names a method that `begin`s the same and gives the fence, or None when there is
  nothing to wait for: for submitted calls.
- A function that leaves something for later calls of the same VM call to find is not `alone`; one that changes nothing,
  so that it may as well be called twice, is `pure`.
- A short one may say its common case as Python text (`inline`): from the texts of the arguments a condition, and the
  value where that holds. `jit.py` puts it in place of a call.
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
#: texts of the arguments -> condition, value; the running call is `call`
Inline = Callable[..., tuple[str, str]]
_MARK = "_orchestrion_native"
#: problems that a message lists: rows of a module may share long strings
_LISTED = 100


class NativeFunction:
    """A function ready to be called: `function(call, *arguments)`. Never changed once made."""

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
        """The one to call from an instruction. `NativeModule.placed` says whether any cares."""
        return self

    def may_be_null(self, position: int) -> bool:
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
    """Declare a method as the native function `<module>.<name>`; it has no results if it can `begin`."""
    declaration = _Declaration(name, parse_signature(signature), frozenset(nullable), begin, inline, alone, pure)

    def mark(function: _F) -> _F:
        setattr(function, _MARK, declaration)
        return function

    return mark


class NativeModule:
    """Base of native modules. An instance serves one loaded program."""

    name: ClassVar[str]
    types: ClassVar[dict[str, type]] = {}
    #: whether its functions want to know which instruction calls them
    placed: ClassVar[bool] = False
    _declared: ClassVar[dict[str, tuple[str, _Declaration]]] = {}

    def __init_subclass__(cls) -> None:
        marked = [(name, getattr(value, _MARK)) for name, value in vars(cls).items() if hasattr(value, _MARK)]
        cls._declared = {f"{cls.name}.{row.name}": (attribute, row) for attribute, row in marked}
        for name, type_ in cls.types.items():
            if TYPES.setdefault(name, type_) is not type_:
                raise TypeError(f"native module {cls.name}: type {name} is {TYPES[name].__qualname__} already")

    def find(self, name: str) -> NativeFunction | None:
        """The function of that full name."""
        found = self._declared.get(name)
        if found is None:
            return None
        attribute, row = found
        begin = getattr(self, row.begin) if row.begin else None
        function = getattr(self, attribute)
        return NativeFunction(name, row.signature, function, row.nullable, begin, row.inline, row.alone, row.pure)


def native_modules(given: Sequence[NativeModule | str]) -> list[NativeModule]:
    """The modules that a caller gives, those by name made anew: entry points of the group `orchestrion.natives`.

    `CallerError`: no package declares one of that name, or it cannot be used.
    """
    return [_declared_module(one) if isinstance(one, str) else one for one in given]


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
    """Where imports are found: a native module, or a loaded program in the place of one."""

    @property
    def name(self) -> str:
        """What the names of its functions begin with."""

    def find(self, name: str) -> NativeFunction | None:
        """The function of that full name."""


class ImportRow(NamedTuple):
    """An import as the module declares it."""

    name: str
    signature: Signature
    optional: bool


def resolve(imports: Sequence[ImportRow | None], modules: Sequence[Functions]) -> list[NativeFunction | None]:
    """The function behind each import; None where there is none to resolve, or an optional one is absent.

    `UnresolvedImport` lists what is missing or has another signature: all of it, unless that is very much.
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
        listed = "; ".join(starmap(_problem, problems[:_LISTED]))
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        hint = f"functions of other modules: modules=, --module=NAME=FILE{_installed(problems)}"
        raise UnresolvedImport(f"unresolved imports: {listed}{more} (native modules: {names}; {hint})")
    return found


def _installed(problems: Sequence[tuple[ImportRow, NativeFunction | None]]) -> str:
    """How to give the module those native modules that installed packages declare."""
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
    """The class of a ref type's values; None for `any` and for types that no loaded native module has."""
    return TYPES.get(type_name)
