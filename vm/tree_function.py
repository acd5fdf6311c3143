"""An export whose arguments or results are trees: dicts, lists and tuples of arrays. It wraps the flat function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrion.schema.trees import Trees, decode, leaves

from .errors import CallerTypeError, no_pickle, shorten
from .exports import Export
from .function import Function
from .on_device import Donated, DonatedPlaces
from .scalars import ScalarFunction
from .trees import builder, flatten, flattener, tree_text

if TYPE_CHECKING:
    import inspect

#: the most characters of a function's `repr`
_MAX_SHOWN = 2000


class TreeFunction:
    """`function(params, x)`, with parameters by place or by name.

    A call with exactly as many arrays as the flat function has arguments, and no containers, is a call of the flat
    function and returns flat results, unless each parameter is one array.
    """

    def __init__(self, flat: Function) -> None:
        #: the flat function, with an argument or result for each leaf of the trees
        self.flat = flat
        self.name = flat.name

    @property
    def export(self) -> Export:
        """The signature of the flat function."""
        return self.flat.export

    @cached_property
    def trees(self) -> Trees:
        """The trees of the arguments and of the result. `ModuleError` if they are malformed in the file."""
        export = self.export
        return decode(export.trees, len(export.arguments), len(export.results))

    @cached_property
    def __signature__(self) -> inspect.Signature:
        import inspect  # few programs ask for it

        parameters = self.trees.parameters
        first = len(parameters) - self.trees.keywords
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [
                inspect.Parameter(name if name.isidentifier() else f"arg{place}", kinds[place >= first])
                for place, (name, _) in enumerate(parameters)
            ]
        )

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        """Call the function. Returns the tree of its results.

        `out`: arrays or device arrays for the flat results. Raises `CallerError`, with the path of a wrong value in a
        tree, and what the flat function raises.
        """
        if self._is_flat(arguments, named):
            return self.flat(*arguments, out=out)
        found = self.flat(*self._arrays(self._bound(arguments, named)), out=out)
        return self._result(found)

    def on_device(self, *arguments: Any, donate: Donated = (), **named: Any) -> Any:
        """Call the function and leave its results on the device. Returns the tree of the results, with `DeviceArray`s.

        `donate`: numbers or names of parameters, all of whose arrays are donated; in a flat call those of arrays. See
        `Function.on_device`.
        """
        if self._is_flat(arguments, named):
            return self.flat.on_device(*arguments, donate=donate)
        given = self._bound(arguments, named)
        places = tuple([place for one in self._places.find(donate) for place in self._ranges[one]])
        return self._result(self.flat.on_device(*self._arrays(given), donate=places))

    @cached_property
    def _flattener(self) -> Callable[[Sequence[Any]], list[Any] | None]:
        return flattener([node for _, node in self.trees.parameters])

    @cached_property
    def _builder(self) -> Callable[[Sequence[Any]], Any]:
        return builder(self.trees.result)

    @cached_property
    def _places(self) -> DonatedPlaces:
        return DonatedPlaces([name for name, _ in self.trees.parameters], repr(self.name))

    @cached_property
    def _ranges(self) -> list[range]:
        """The numbers of the flat arguments of each parameter."""
        found, start = [], 0
        for _, node in self.trees.parameters:
            count = len(list(leaves(node)))
            found.append(range(start, start + count))
            start += count
        return found

    def _arrays(self, given: list[Any]) -> list[Any]:
        """The flat arguments for a value of each parameter."""
        found = self._flattener(given)
        if found is not None:
            return found
        arrays: list[Any] = []
        for (name, node), value in zip(self.trees.parameters, given, strict=True):
            flatten(node, value, name, arrays)
        return arrays

    def _result(self, found: Any) -> Any:
        """The tree of the flat function's results."""
        return self._builder(found if len(self.export.results) != 1 else (found,))

    def submit(self, *arguments: Any, **named: Any) -> Any:
        """Raise `CallerError`: submitted calls take flat arrays, `function.flat.submit(...)`."""
        raise CallerTypeError(
            f"submitted calls of {self.name!r} take flat arrays: use program.{self.name}.flat.submit(...)"
        )

    def _is_flat(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        if named or self.trees.takes_arrays or len(arguments) != len(self.export.arguments):
            return False
        return all(hasattr(one, "shape") and hasattr(one, "dtype") for one in arguments)

    def _bound(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """A value for each parameter, in order. `CallerError` if one is missing, given twice or unknown."""
        parameters = self.trees.parameters
        first = len(parameters) - self.trees.keywords
        if len(arguments) > first:
            many = f"{first} argument{'s' * (first != 1)} by place"
            raise CallerTypeError(f"{self.name!r} takes {many}, got {len(arguments)}")
        rest = dict(named)
        found = list(arguments)
        for place, (name, _) in enumerate(parameters[len(arguments) :], len(arguments)):
            if name not in rest:
                raise CallerTypeError(f"{self.name!r}: argument {name!r} is missing")
            found.insert(place, rest.pop(name))
        if rest:
            name = next(iter(rest))
            is_known = any(name == one for one, _ in parameters)
            raise CallerTypeError(f"{self.name!r}: argument {name!r} is " + ("given twice" if is_known else "unknown"))
        return found

    def __repr__(self) -> str:
        trees, arguments = self.trees, self.export.arguments
        shown = [f"{name}: {tree_text(node, arguments)}" for name, node in trees.parameters]
        if trees.keywords:
            shown.insert(len(shown) - trees.keywords, "*")
        result = tree_text(trees.result, self.export.results)
        return shorten(f"<TreeFunction {self.name}({', '.join(shown)}) -> {result}", _MAX_SHOWN) + ">"

    def __reduce__(self) -> tuple[Any, ...]:
        raise no_pickle(self.name)


#: a function of a program: over arrays, over trees of arrays, or over numbers
AnyFunction = Function | TreeFunction | ScalarFunction
