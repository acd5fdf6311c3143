"""Python functions as sources: traces them with JAX for example arguments, and keeps all arguments.

A function is traced and lowered with one flat argument per array, used or not, so that the module takes the same
arguments as the function. The trees of arguments and results, and names such as `params['w']`, accompany the program as
an `Interface`. Non-array arguments, such as a function inside an equinox module, are fixed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrion.compiler.errors import ArgumentTypeError, ArgumentValueError, CompileError
from orchestrion.schema.hints import JAX, pip
from orchestrion.schema.trees import Items, Keyed, Leaf, Node, Nothing, Record, Static, Trees

from .interface import Interface
from .platforms import PLATFORM


class _Mark:
    """Stands for a leaf of a tree: the index of an array, or None for a fixed leaf."""

    def __init__(self, place: int | None) -> None:
        self.place = place


def trace_and_lower(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, Interface]:
    """Traces a function for example arguments; returns an MLIR module, or a `jax.export.Exported` if sizes are
    symbolic.

    `function` may be a `jax.stages.Traced`, which takes no examples. Examples are arrays, numbers,
    `jax.ShapeDtypeStruct`s, and trees of them. Arguments that a `jax.jit` declares static are fixed; donated arguments
    may give their memory to results. Raises CompileError if JAX is missing or cannot lower the function,
    ArgumentTypeError or ArgumentValueError if it cannot trace the function; the error of JAX or of the function is the
    cause.
    """
    try:
        import jax
        from jax.extend.core import jaxpr_as_fun
    except ImportError as error:
        raise CompileError(f"a function is traced by JAX, which cannot be imported ({error}): {pip(JAX)}") from error
    name = getattr(function, "__name__", getattr(function, "fun_name", type(function).__name__))
    try:
        found = _traced(jax, function, args, kwargs)
    except Exception as error:  # raised by the user's function, or by JAX for it
        kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentValueError
        raise kind(f"{name} cannot be traced: {type(error).__name__}: {error}") from error
    traced = found.traced
    if not traced.jaxpr.in_avals and not traced.jaxpr.out_avals:
        raise ArgumentValueError(f"{name} takes no arrays and gives none, so there is nothing to compile")
    flat = jaxpr_as_fun(traced.jaxpr)
    flat = _renamed(flat, name)
    infos = jax.tree.leaves(traced.args_info)
    donated = tuple(place for place, info in enumerate(infos) if info.donated)
    jitted = jax.jit(flat, keep_unused=True, donate_argnums=donated)
    avals = traced.jaxpr.in_avals
    is_symbolic = any(not isinstance(size, int) for aval in avals for size in aval.shape)
    struct: Any = jax.ShapeDtypeStruct
    try:
        specs = [struct(aval.shape, aval.dtype) for aval in avals]
        if is_symbolic:
            made = jax.export.export(jitted, platforms=(PLATFORM,))(*specs)
        else:  # lower for the platform whose code modules may contain, even if JAX runs on another one
            made = jitted.trace(*specs).lower(lowering_platforms=(PLATFORM,)).compiler_ir("stablehlo")
    except Exception as error:
        raise CompileError(f"{name} cannot be lowered: {type(error).__name__}: {error}") from error
    return made, found.interface(jax)


def interface_of(stage: Any) -> Interface | None:
    """The trees of a `jax.stages.Lowered` or `jax.export.Exported`; None if it does not expose them.

    Arguments that JAX dropped because nothing uses them may have any value.
    """
    kept = getattr(stage, "module_kept_var_idx", None)
    if kept is None:
        lowering = getattr(getattr(stage, "_lowering", None), "compile_args", {})
        kept = lowering.get("kept_var_idx")
    taken, given = getattr(stage, "in_tree", None), getattr(stage, "out_tree", None)
    if kept is None or taken is None or given is None:
        return None
    import jax

    places = {number: _Mark(place) for place, number in enumerate(sorted(kept))}
    args, kwargs = jax.tree.unflatten(taken, [places.get(number, _Mark(None)) for number in range(taken.num_leaves)])
    result = jax.tree.unflatten(given, _marks(given.num_leaves))
    parameters = [*((f"arg{number}", one) for number, one in enumerate(args)), *sorted(kwargs.items())]
    nodes = tuple([(name, node_of(jax, one)) for name, one in parameters])
    return Interface(Trees(nodes, len(kwargs), node_of(jax, result)), is_named=False)


def _renamed(flat: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*arrays: Any) -> Any:
        return flat(*arrays)

    call.__name__ = call.__qualname__ = name if name.isidentifier() else "main"
    return call


@dataclass(frozen=True)
class _Traced:
    """A traced function. `arguments` are (positional, by keyword) and `result` the result, all with marks for leaves.
    `names` are those of the positional parameters; empty if JAX has to tell them.
    """

    traced: Any
    arguments: tuple[Sequence[Any], Mapping[str, Any]]
    result: Any
    names: tuple[str, ...]

    def interface(self, jax: Any) -> Interface:
        args, kwargs = self.arguments
        names = self._parameter_names(len(args))
        parameters = [*zip(names, args, strict=True), *sorted(kwargs.items())]
        nodes = tuple([(name, node_of(jax, one)) for name, one in parameters])
        return Interface(Trees(nodes, len(kwargs), node_of(jax, self.result)))

    def _parameter_names(self, count: int) -> list[str]:
        """Names of the positional parameters, as the function declares them if known, else `argN`."""
        if self.names:
            return list(self.names)
        named: dict[int, str] = {}
        args, _ = self.arguments
        info = getattr(self.traced.jaxpr.jaxpr, "debug_info", None)
        known = getattr(info, "arg_names", None) or ()
        for number, one in enumerate(args):
            found = _first_mark(one)
            if found is not None and found[1] < len(known) and known[found[1]]:
                path, place = found
                name = str(known[place]).removesuffix(path)  # `args[0]` belongs to a variadic parameter
                if name.isidentifier():
                    named[number] = name
        chosen = [named.get(number, f"arg{number}") for number in range(count)]
        return chosen if len(set(chosen)) == count else [f"arg{number}" for number in range(count)]


def _first_mark(tree: Any) -> tuple[str, int] | None:
    """The path and the index of the first array in a tree; None without arrays."""
    import jax

    for path, mark in jax.tree_util.tree_leaves_with_path(tree):
        if isinstance(mark, _Mark) and mark.place is not None:
            return jax.tree_util.keystr(path), mark.place
    return None


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, bool | int | float | complex) or (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))


def _traced(jax: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Traced:
    is_traced = isinstance(function, jax.stages.Traced)
    if is_traced or hasattr(function, "trace"):  # a jax.jit knows its static and donated arguments
        traced: Any = function if is_traced else function.trace(*args, **kwargs)  # type: ignore[attr-defined]
        if isinstance(traced, jax.stages.Traced):
            taken, given = traced.in_tree, traced.out_tree
            arguments = jax.tree.unflatten(taken, _marks(taken.num_leaves))
            return _Traced(traced, arguments, jax.tree.unflatten(given, _marks(given.num_leaves)), ())
    return _traced_function(jax, function, args, kwargs)


def _traced_function(jax: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Traced:
    """Traces any other function: non-array leaves of arguments are fixed, non-array results are dropped."""
    leaves, tree = jax.tree.flatten((tuple(args), dict(kwargs)))
    dynamic = [leaf for leaf in leaves if _is_array(leaf)]
    result: list[Any] = []

    def call(*arrays: Any) -> list[Any]:
        rest = iter(arrays)
        given, named = jax.tree.unflatten(tree, [next(rest) if _is_array(leaf) else leaf for leaf in leaves])
        found, shape = jax.tree.flatten(function(*given, **named))
        result[:] = [jax.tree.unflatten(shape, _marks_of_leaves(found))]
        return [leaf for leaf in found if _is_array(leaf)]

    traced = jax.jit(call).trace(*dynamic)
    arguments = jax.tree.unflatten(tree, _marks_of_leaves(leaves))
    return _Traced(traced, arguments, result[0], _names(function, args))


def _names(function: Callable[..., Any], args: Sequence[Any]) -> tuple[str, ...]:
    """Names of the positional parameters; empty if the function has no signature, or takes any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple([one.name for one in parameters if one.kind in kinds][: len(args)])
    return names if len(names) == len(args) else ()


def _marks(count: int) -> list[_Mark]:
    return [_Mark(place) for place in range(count)]


def _marks_of_leaves(leaves: Sequence[Any]) -> list[_Mark]:
    """A mark for each leaf: its index among the arrays, or None if it is no array."""
    places = iter(range(len(leaves)))
    return [_Mark(next(places) if _is_array(leaf) else None) for leaf in leaves]


def node_of(jax: Any, tree: Any) -> Node:
    """The node for a tree whose leaves are marks."""
    if isinstance(tree, _Mark):
        return Static() if tree.place is None else Leaf(tree.place)
    if tree is None:
        return Nothing()
    rows, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda one: one is not tree)
    children = tuple([node_of(jax, child) for _, child in rows])
    if type(tree) in (list, tuple):
        return Items(type(tree) is tuple, children)
    keys = [path[0] for path, _ in rows]
    if isinstance(tree, dict) and all(isinstance(key.key, str | int | float | bool) for key in keys):
        return Keyed(tuple([key.key for key in keys]), children)
    fields, accessors = zip(*map(_field, keys), strict=True) if keys else ((), ())
    return Record(type(tree).__name__, tuple(fields), tuple(accessors), children)


def _field(key: Any) -> tuple[str, str]:
    """The name of a child of an object, and the way to access it."""
    match type(key).__name__:
        case "GetAttrKey":
            return str(key.name), "attribute"
        case "DictKey" if isinstance(key.key, str):
            return key.key, "item"
    found = getattr(key, "name", getattr(key, "key", getattr(key, "idx", key)))
    return str(found), "place"
