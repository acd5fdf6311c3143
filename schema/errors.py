"""The errors that external bytes may raise while a module is opened, decoded, verified or trusted.

At fault: `ModuleError` the module, `KeysError` a key or a keys file, `PluginError` another package. Mistakes of the
caller, failures of the device and internal errors have their own types (`orchestrion.hal.errors`,
`orchestrion.vm.errors`, `orchestrion.compiler.errors`).
"""

from .printable import printable_text


class ModuleError(Exception):
    """A module file is truncated, damaged, of another version, or violates a rule of the format.

    `offset` is the byte in the file (or in the named part) at which the error was found, or None.
    """

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(printable_text(message if offset is None else f"{message} (at byte {offset})"))
        self.offset = offset


class Untrusted(ModuleError):
    """A trust policy refuses a module or another signed file; the message is one line with every reason."""


class KeysError(Exception):
    """A key, password or keys file is invalid, or the package that reads keys is missing. The message contains no
    secrets.
    """


class PluginError(Exception):
    """A declaration of another package cannot be used; that package is at fault. The message names both."""
