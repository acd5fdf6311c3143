"""Helpers that build badly, for tests of `orchestrion.hal.vulkan.trial_build`: in place of `build_process.answer`."""

import os
import signal
import time
from typing import NoReturn

from orchestrion.hal.vulkan import build_process
from orchestrion.schema.child_process import Message

#: what a driver that keeps pipelines leaves in its cache, as far as this project looks at it
PIPELINES = bytes(range(256))


def _build(request: Message) -> bool:
    return request.fields["kind"] == "build"


def crash(request: Message) -> Message:
    if _build(request):
        os.kill(os.getpid(), signal.SIGSEGV)
    return build_process.answer(request)


def crash_at_once(request: Message) -> Message:
    os.kill(os.getpid(), signal.SIGABRT)
    return Message({})


def spin(request: Message) -> Message:
    if _build(request):
        _spin()
    return build_process.answer(request)


def _spin() -> NoReturn:
    while True:
        time.sleep(0)


def fail(request: Message) -> Message:
    if _build(request):
        raise MemoryError
    return build_process.answer(request)


def keep(request: Message) -> Message:
    answer = build_process.answer(request)
    return Message({}, PIPELINES) if _build(request) else answer


def blind(request: Message) -> Message:
    """Started where the device is not to be seen."""
    return Message({"missing": True})
