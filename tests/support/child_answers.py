"""What children of `test_child_process` answer, one way to end or to go on per kind."""

import os
import signal
import subprocess
import sys
import time

from orchestrion.schema.child_process import Message


def answer(request: Message) -> Message:
    fields = request.fields
    match fields["kind"]:
        case "echo":
            print("lost")
            return Message({"pid": os.getpid(), "path": sys.path, "said": fields.get("said")}, request.data[::-1])
        case "sleep":
            time.sleep(fields["seconds"])
        case "spin":
            while True:
                pass
        case "signal":
            os.kill(os.getpid(), fields["signal"])
        case "exit":
            os._exit(fields["status"])
        case "raise":
            raise KeyError(fields["text"])
        case "take":
            return Message({"bytes": len(bytearray(fields["bytes"]))})
        case "limits":
            import resource

            memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
            limits = {"core": resource.getrlimit(resource.RLIMIT_CORE)[0], "memory": resource.getrlimit(memory)[0]}
            process = {"pid": os.getpid(), "session": os.getsid(0)}
            variables = [name for name in os.environ if name.startswith("ORCHESTRION_CHILD")]
            interrupt = signal.Handlers(signal.getsignal(signal.SIGINT)).name  # type: ignore[arg-type]
            return Message(limits | process | {"variables": variables, "interrupt": interrupt})
        case "interrupted":
            signal.raise_signal(signal.SIGINT)
        case "start":  # a process of its own, that holds all it can
            program = ["sleep", "600"]  # not `sys.executable`: of a frozen application that is the application again
            with open(fields["path"], "w") as file:
                file.write(str(subprocess.Popen(program).pid))
            time.sleep(600)
        case "nothing":
            return Message([])  # type: ignore[arg-type]
    return Message({})
