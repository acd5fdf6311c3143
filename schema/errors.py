"""The errors that bytes from outside may raise while a module is opened, decoded, verified or trusted.

Whose fault: `ModuleError` the module's, `KeysError` that of a key or a keys file, `PluginError` another package's. The
caller's mistakes, the device's failures and our own have types of their own (`orchestrion.hal.errors`,
`orchestrion.vm.errors`, `orchestrion.compiler.errors`).
"""


class ModuleError(Exception):
    """A module file is truncated, damaged, of another version, or breaks a rule of the format.

    `offset` is the byte in the file (or in the named part) where it shows, when one byte can be named.
    """

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"{message} (at byte {offset})")
        self.offset = offset


class Untrusted(ModuleError):
    """A trust policy refuses a module or another signed file; the message is one line with every reason."""


class KeysError(Exception):
    """A key, a password or a keys file is bad, or what reads keys is not installed. It never holds what is secret."""


class PluginError(Exception):
    """Something that another package declares cannot be used: the package's fault. The message names both."""
