"""Converts a profile to JSON data in the trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing
open.

The trace has two processes. The host has a thread for initializers and a thread for each context that was called. The
device has a thread for the launches of initializers and a thread for the launches of calls. Slices are complete events
(`X`); a flow (`s`, `f`) leads from each call to each of its launches. Times are microseconds since the first event. The
format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .profile import Command, Launch, Profile, ProfiledCall

Event = dict[str, Any]

HOST, DEVICE = 1, 2
#: threads: of initializers, and of calls on the device. On the host, the thread of a context is its number, from 1 on
INITIALIZERS, CALLS = 0, 1


def trace(profile: Profile) -> dict[str, Any]:
    """The trace of a profile, for `json.dump`."""
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "program": profile.program,
            "device": profile.device,
            "device_name": profile.device_name,
            "module": profile.module,
            "ordinal": profile.ordinal,
        },
        "traceEvents": [*_metadata(profile), *_events(profile)],
    }


def _metadata(profile: Profile) -> Iterator[Event]:
    """The names of processes and threads, and the order in which they are shown."""
    tracks = {(HOST, _host_thread(call)): _host_name(call) for call in profile.calls}
    for call in profile.calls:
        if call.launches:
            tracks[DEVICE, _device_thread(call)] = "initializers" if call.kind == "initializer" else "calls"
    processes = {HOST: f"host: {profile.program}", DEVICE: f"device: {profile.device} ({profile.device_name})"}
    for process, name in processes.items():
        if any(pid == process for pid, _ in tracks):
            yield _named("process_name", process, 0, {"name": name})
            yield _named("process_sort_index", process, 0, {"sort_index": process})
    for (process, thread), name in sorted(tracks.items()):
        yield _named("thread_name", process, thread, {"name": name})
        yield _named("thread_sort_index", process, thread, {"sort_index": thread})


def _named(name: str, process: int, thread: int, arguments: Event) -> Event:
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": arguments}


def _host_thread(call: ProfiledCall) -> int:
    return INITIALIZERS if call.kind == "initializer" else call.context


def _host_name(call: ProfiledCall) -> str:
    return "initializers" if call.kind == "initializer" else f"context {call.context}"


def _device_thread(call: ProfiledCall) -> int:
    return INITIALIZERS if call.kind == "initializer" else CALLS


def _events(profile: Profile) -> Iterator[Event]:
    origin = min((call.start for call in profile.calls), default=0)

    def micros(time: int) -> float:
        return (time - origin) / 1000

    flow = 0
    for number, call in enumerate(profile.calls):
        host = {"pid": HOST, "tid": _host_thread(call)}
        device = {"pid": DEVICE, "tid": _device_thread(call)}
        arguments: Event = {"submissions": len(call.submissions), "launches": len(call.launches), "call": number}
        name = f"{call.name} initializer" if call.kind == "initializer" else call.name
        yield _slice(name, call.kind, micros(call.start), micros(call.end), arguments, host)
        for submission in call.submissions:
            for launch in submission.launches:
                flow += 1
                link = {"cat": "launch", "name": "launch", "id": flow}
                yield {"ph": "s", "ts": micros(submission.submitted), **link, **host}
                yield _launch(launch, micros(launch.start), micros(launch.end), {"call": number}, device)
                yield {"ph": "f", "bp": "e", "ts": micros(launch.start), **link, **device}


def _launch(launch: Launch, start: float, end: float, arguments: Event, device: Event) -> Event:
    command = launch.command
    return _slice(command.label, command.kind, start, end, command_data(command) | arguments, device)


def _slice(name: str, category: str, start: float, end: float, arguments: Event, track: Event) -> Event:
    duration = {"ts": start, "dur": round(end - start, 3)}
    return {"ph": "X", "name": name, "cat": category, **duration, **track, "args": arguments}


def command_data(command: Command) -> Event:
    """A command as JSON data, without keys that have no value."""
    found: Event = {
        "entry": command.entry,
        "source_op": command.source_op,
        "fused": list(command.fused),
        "location": command.location,
        "workload": None if command.workload is None else list(command.workload),
        "place": None if command.place is None else list(command.place),
    }
    return {key: value for key, value in found.items() if value} | {"kind": command.kind, "bytes": command.bytes}
