"""OpenSSF Model Signing for the outputs of `vm-pack`: uses the package `model-signing`, with keys and without a
network.

The signature is a Sigstore bundle over the digests of a file, or of all files of a folder. It is for the tools of
publishers and mirrors of models. Apps that load a module check the signatures of `vm-pack sign` instead. The package
takes ECDSA keys on P-256, P-384 and P-521; `vm-pack keygen --type=p256` generates such keys.
"""

from pathlib import Path
from typing import Any

from orchestrion.schema.hints import install
from orchestrion.tools import cli

from .passwords import password

SUFFIX = ".model.sig"


def sign(path: str, key: str, password_source: str | None) -> str:
    """Writes PATH.model.sig and returns its path. Raises InputError for an unsupported key."""
    target = path.rstrip("/") + SUFFIX
    signing = _package("signing")
    secret = password(password_source)
    try:
        config = signing.Config().use_elliptic_key_signer(private_key=key, password=secret)
        config.sign(Path(path), Path(target))
    except OSError:
        raise
    except Exception as error:  # the package documents none: ValueError, TypeError, AttributeError were seen
        raise cli.InputError(f"{key}: model-signing cannot sign with it: {error}") from error
    return target


def verify(path: str, key: str, signature: str | None = None) -> None:
    """Raises InputError unless PATH.model.sig is a signature of this file or folder by this public key."""
    source = path.rstrip("/") + SUFFIX if signature is None else signature
    verifying = _package("verifying")
    try:
        verifying.Config().use_elliptic_key_verifier(public_key=key).verify(Path(path), Path(source))
    except OSError:
        raise
    except Exception as error:  # the package documents ValueError; KeyError and others come of damaged signatures
        raise cli.InputError(f"{source}: not a signature of {path} by {key}: {error}") from error


def _package(name: str) -> Any:
    """Imports a module of the package, which takes a second."""
    from importlib import import_module

    try:
        return import_module(f"model_signing.{name}")
    except ImportError as error:
        raise cli.InputError(
            f"OpenSSF Model Signing needs the package model-signing: {install('model-signing')} ({error})"
        ) from None
