"""A trust policy: which keys' signatures count, for what, and until when. Read from a keys file in TOML.

    [policy]
    mode = "require"                        # or "warn", "off"
    [[key]]
    name = "publisher 2026"                 # for messages
    public = '''-----BEGIN PUBLIC KEY-----  # or file = "publisher.pub.pem", relative to the keys file
    ...'''
    scopes = ["code", "weights", "native"]  # default: code and weights
    not-before = 2026-01-01                 # optional: a date or a time, UTC unless it says another zone
    not-after = 2027-01-01                  # optional: a date counts to its end
    revoked = true                          # optional
    models = ["mobilenet"]                  # optional: model names that it may sign, all unless given
    [minimum-version]                       # optional: no rollback below this `model.version`
    mobilenet = 7

Unknown names are refused, because a misspelt `revoked` must not be ignored. `signers.py` decides.
"""

import os
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from orchestrion.schema.errors import KeysError, Untrusted
from orchestrion.schema.files import identity, read_whole

from .keys import PublicKey, read_public
from .signers import CachedTrust, Subject, Trust, examine

#: handling of a module with insufficient signatures: refused, loaded with a warning, signatures ignored
MODES = ("require", "warn", "off")
#: scope that a key may sign -> the contents of a module in it
SCOPES = {
    "code": "the root, bytecode and device code that verification confines",
    "weights": "constants and parameters",
    "native": "native code, which can do whatever the process can",
}
DEFAULT_SCOPES = frozenset(("code", "weights"))
#: the most bytes of a keys file
MAX_BYTES = 1 << 20
_DAY = 86400.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A key, and what it may sign. `not_before` is the first valid moment, `not_after` the first invalid one after that
    (Unix time). `models` None: any model.
    """

    name: str
    key: PublicKey
    scopes: frozenset[str] = DEFAULT_SCOPES
    not_before: float | None = None
    not_after: float | None = None
    revoked: bool = False
    models: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TrustPolicy:
    """A policy, for any number of loads in any thread. `keys` have different ids."""

    keys: tuple[TrustedKey, ...]
    mode: str = "require"
    minimum_versions: Mapping[str, int] = field(default_factory=dict)
    by_id: Mapping[bytes, TrustedKey] = field(init=False, repr=False)
    #: cached results of `signers.examine`: they depend only on the file and on this policy, which is immutable
    remembered: dict[Hashable, "CachedTrust"] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise KeysError(f"mode {self.mode!r}; there are {', '.join(MODES)}")
        found: dict[bytes, TrustedKey] = {}
        for row in self.keys:
            if row.key.id in found:
                raise KeysError(f"keys {found[row.key.id].name!r} and {row.name!r} are the same key")
            if not row.scopes or not row.scopes <= SCOPES.keys():
                raise KeysError(f"key {row.name!r}: scopes {sorted(row.scopes)}; there are {', '.join(SCOPES)}")
            found[row.key.id] = row
        object.__setattr__(self, "by_id", MappingProxyType(found))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "TrustPolicy":
        """Reads a keys file, and the key files that it names. Unchanged files are not read again, and equal content is
        not parsed again.

        Raises OSError if a file cannot be read, KeysError if its content is invalid.
        """
        name = os.fspath(path)
        times = identity(os.stat(name))
        known = None if times is None else _read.get(name)
        if known is not None and known[0] == times:
            return known[1]
        data = _bounded(name)
        try:
            files = _files(data)
            if not files:
                return _remembered(name, times, _policy(data, ()))
            folder = os.path.dirname(name)
            return _policy(data, tuple([_bounded(os.path.join(folder, file)) for file in files]))
        except KeysError as error:
            raise KeysError(f"{name}: {error}") from None

    def check(self, subject: Subject, sets: Sequence[bytes | memoryview], now: float | None = None) -> Trust:
        """Determines who signed the subject, and which scopes they cover together. `sets`: encoded signature sets.
        `now`: Unix time.

        If that does not suffice, `Trust.refusal` says why; with mode `require`, raises Untrusted.
        """
        trust = examine(self, subject, sets, now)
        if trust.refusal and self.mode == "require":
            raise Untrusted(trust.refusal)
        return trust


#: path -> identity of the file when it was read, and its policy; only keys files that name no other files
_read: dict[str, tuple[tuple[int, ...] | None, TrustPolicy]] = {}
_MAX_READ = 16


def _remembered(name: str, times: tuple[int, ...] | None, policy: TrustPolicy) -> TrustPolicy:
    if len(_read) >= _MAX_READ:
        _read.clear()
    _read[name] = times, policy
    return policy


def parse(data: bytes, files: Sequence[bytes] = ()) -> TrustPolicy:
    """The policy of a keys file. `files`: the contents of the files that it names (`named_files`)."""
    return _policy(data, tuple(files))


def named_files(data: bytes) -> tuple[str, ...]:
    """The public key files that a keys file names."""
    return _files(data)


def _bounded(path: str) -> bytes:
    data = read_whole(path)
    if len(data) > MAX_BYTES:
        raise KeysError(f"{path}: {len(data)} bytes, the limit of a keys file is {MAX_BYTES}")
    return data


@lru_cache(16)
def _files(data: bytes) -> tuple[str, ...]:
    rows = _tables(_parsed(data), "key")
    return tuple([_text(row["file"], "file") for row in rows if "file" in row])


@lru_cache(16)
def _policy(data: bytes, files: tuple[bytes, ...]) -> TrustPolicy:
    found = _parsed(data)
    _known(found, ("policy", "key", "minimum-version"), "")
    settings = _table(found, "policy")
    _known(settings, ("mode",), " in [policy]")
    pems = iter(files)
    keys = []
    for number, row in enumerate(_tables(found, "key")):
        try:
            keys.append(_key(row, pems))
        except KeysError as error:
            raise KeysError(f"key[{number}]: {error}") from None
    if len({row.name for row in keys}) != len(keys):
        raise KeysError("two keys have the same name")
    versions = _table(found, "minimum-version")
    least = {name: _version(name, value) for name, value in versions.items()}
    return TrustPolicy(tuple(keys), _text(settings.get("mode", "require"), "mode"), MappingProxyType(least))


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise KeysError(f"not TOML: {error}") from None


def _key(row: dict[str, Any], pems: Any) -> TrustedKey:
    """Parses one key. `pems` yields the contents of the named files in order."""
    _known(row, (*_FIELDS, "name", "public", "file"), "")
    if ("public" in row) == ("file" in row):
        raise KeysError('a key has either public = "..." or file = "..."')
    name = _text(row.get("name"), "name")
    pem = next(pems) if "file" in row else _text(row["public"], "public", lines=True).encode()
    try:
        key = read_public(pem)
    except KeysError as error:
        raise KeysError(f"{name!r}: {error}") from None
    given = {field: read(row[field], field) for field, read in _FIELDS.items() if field in row}
    return TrustedKey(name, key, **{field.replace("-", "_"): value for field, value in given.items()})


def _known(table: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    unknown = [name for name in table if name not in names]
    if unknown:
        raise KeysError(f"unknown {unknown[0]!r}{where}; there are {', '.join(names)}")


def _table(found: dict[str, Any], name: str) -> dict[str, Any]:
    table = found.get(name, {})
    if not isinstance(table, dict):
        raise KeysError(f"{name} is not a table: [{name}]")
    return table


def _tables(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = found.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise KeysError(f"{name} is not a list of tables: [[{name}]]")
    return rows


def _text(value: Any, name: str, lines: bool = False) -> str:
    if not isinstance(value, str) or not value or not (lines or value.isprintable()):
        raise KeysError(f"{name} is not a text of one line")
    return value


def _texts(value: Any, name: str) -> frozenset[str]:
    if not isinstance(value, list) or not value:
        raise KeysError(f"{name} is not a list of texts")
    return frozenset([_text(one, name) for one in value])


def _scopes(value: Any, name: str) -> frozenset[str]:
    found = _texts(value, name)
    unknown = sorted(found - SCOPES.keys())
    if unknown:
        raise KeysError(f"unknown scope {unknown[0]!r}; there are {', '.join(SCOPES)}")
    return found


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise KeysError(f"{name} is neither true nor false")
    return value


def _start(value: Any, name: str) -> float:
    """The Unix time of a moment; for a date, its first moment."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)
    else:
        raise KeysError(f"{name} is neither a date nor a date with a time")
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH).total_seconds()


def _end(value: Any, name: str) -> float:
    """The Unix time of a moment; for a date, the moment after its last one."""
    return _start(value, name) + (0.0 if isinstance(value, datetime) else _DAY)


def _version(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_VERSION:
        raise KeysError(f"minimum-version of {name!r} is not a whole number of 0 to {_MAX_VERSION}")
    return value


#: optional fields of a key, named as in `TrustedKey` -> their readers
_FIELDS: dict[str, Callable[[Any, str], Any]] = {
    "scopes": _scopes,
    "not-before": _start,
    "not-after": _end,
    "revoked": _flag,
    "models": _texts,
}
