"""The table of styles: what `vm-codegen --style` accepts.

A style is a function `generate(subject, name, options)` that returns the files by name. `name` is an identifier, the
prefix of all names in the files. The function raises CompileError, with a reason, for what it cannot render.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from orchestrion.compiler.profiles import MACHINES
from orchestrion.schema.profiles import PROFILES

from .subject import Subject

#: name of a file -> its content
Files = dict[str, str | bytes]
#: name of an option -> its value
Options = Mapping[str, str]
Generate = Callable[[Subject, str, Options], Files]


@dataclass(frozen=True, slots=True)
class Style:
    """A style. `targets`: profiles that a program given as text is compiled for. `options`: names of the options that
    it reads -> values, of which the first is the default. `path`: the module whose `generate` renders it.
    `renders_module`: whether it renders a module's bytecode, not its IR.
    """

    name: str
    doc: str
    path: str
    targets: tuple[str, ...]
    options: Mapping[str, Mapping[str, str]]
    renders_module: bool = False

    @property
    def defaults(self) -> Options:
        return {option: next(iter(values)) for option, values in self.options.items()}

    def generate(self, subject: Subject, name: str, options: Options) -> Files:
        """The files of a subject. Raises CompileError for what the style cannot render."""
        function: Generate = import_module(f"orchestrion.compiler.codegen.{self.path}").generate
        return function(subject, name, {**self.defaults, **options})


#: where the constants of a program in C are
WEIGHTS: Final = {
    "array": "as an array in NAME.c",
    "file": "in NAME.weights, which the app maps or reads, and passes to init",
}

#: the limits of devices for which a program that calls Vulkan is written
LIMITS: Final = {
    "usual": "as many buffers in a dispatch as the program has, at most 17",
    "least": "4 buffers of 128 MiB in a dispatch, which every device has",
}

#: the kinds of device that kernels of a program that calls Vulkan are shaped for
DEVICES: Final = {"best": "that of the first program", **MACHINES}

STYLES: Final[dict[str, Style]] = {
    row.name: row
    for row in (
        Style("c", "C99 without a runtime (NAME.h and NAME.c)", "c.generate", ("cpu",), {"weights": WEIGHTS}),
        Style(
            "vulkan",
            "C99 that calls Vulkan (NAME.h and NAME.c)",
            "vulkan.generate",
            ("spirv",),
            {"weights": WEIGHTS, "limits": LIMITS, "machine": DEVICES},
        ),
        Style(
            "hal", "Python that calls the HAL and no VM (NAME.py and files)", "hal.generate", tuple(PROFILES), {}, True
        ),
    )
}
