"""Headless Chromium for tests of pages, driven by chromedriver over the WebDriver protocol, which is HTTP and JSON.

https://www.w3.org/TR/webdriver2/ has the commands. Debian's packages chromium and chromium-driver have both programs.
"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import Request, urlopen

#: without a window, without the sandbox that root has not, and without calls home
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
).split()
#: keys of https://www.w3.org/TR/webdriver2/#keyboard-actions
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "End": "\ue010", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013"}
KEYS |= {"Right": "\ue014", "Down": "\ue015"}
PATIENCE = 30.0
#: seconds in which a browser starts on a busy machine, and how often that is tried
START_PATIENCE, ATTEMPTS = 120.0, 3


def missing() -> str:
    """Why there is no browser; empty if there is one."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not found: apt-get install chromium chromium-driver" if absent else ""


class Browser:
    """A browser with one window. `profile` is an empty folder for what it keeps. `OSError` if none starts."""

    def __init__(self, profile: Path) -> None:
        for attempt in range(ATTEMPTS):
            self._profile = profile / str(attempt)
            self._start_driver()
            try:
                self._start_browser()
                return
            except OSError:  # of a busy machine: chromedriver gives up on a browser after a minute
                self._end()
                if attempt == ATTEMPTS - 1:
                    raise
            except BaseException:
                self._end()
                raise

    def _start_driver(self) -> None:
        """Start chromedriver, which will start the browser."""
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._driver.stdout is not None
        port = None
        while port is None and (line := self._driver.stdout.readline()):
            port = re.search(r"successfully on port (\d+)", line)
        if port is None:
            self._end()
            raise AssertionError("chromedriver says no port")
        self._url = f"http://127.0.0.1:{port[1]}/session"

    def _start_browser(self) -> None:
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": [*FLAGS, f"--user-data-dir={self._profile}"]},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._send("", {"capabilities": {"alwaysMatch": capabilities}}, "POST", START_PATIENCE)
        self._url += f"/{made['sessionId']}"

    def _end(self) -> None:
        """End chromedriver and what is left of the browser. That takes no answer of either."""
        self._driver.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._driver.wait(10)
        self._driver.kill()
        self._driver.wait()
        flag = f"--user-data-dir={self._profile}".encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it may have ended meanwhile
                if flag in path.read_bytes().split(b"\0"):
                    os.kill(int(path.parent.name), signal.SIGKILL)
        assert self._driver.stdout is not None
        self._driver.stdout.close()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # a browser that does not answer is ended all the same
            self._send("", None, "DELETE")
        self._end()

    def open(self, path: Path, width: int = 1300, height: int = 900, dark: bool = False) -> None:
        """A page from a file, once its script says that it is ready."""
        self._post("/window/rect", {"width": width, "height": height})
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._post("/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})
        self._post("/url", {"url": "about:blank"})
        self.log(), self.requests()
        self._post("/url", {"url": path.as_uri()})
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of an expression of JavaScript."""
        return self._post("/execute/sync", {"script": f"return ({script});", "args": arguments})

    def wait(self, condition: str) -> None:
        """Until an expression is true, for at most half a minute."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"not so after {PATIENCE} s: {condition}\n{self.log()}"
            time.sleep(0.01)

    def press(self, *keys: str) -> None:
        """Keys one after the other: names of `KEYS`, or characters."""
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})
        self.settle()

    def settle(self) -> None:
        """Until the page has drawn two frames."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        self._post("/execute/async", {"script": script, "args": []})

    def log(self) -> list[str]:
        """What the page and the browser wrote to the console since the last time."""
        return [row["message"] for row in self._post("/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last time, without those that the page's policy refused."""
        rows = [json.loads(row["message"])["message"] for row in self._post("/se/log", {"type": "performance"})]
        failed = [row["params"] for row in rows if row["method"] == "Network.loadingFailed"]
        refused = {params["requestId"] for params in failed if params.get("blockedReason") == "csp"}
        sent = [row["params"] for row in rows if row["method"] == "Network.requestWillBeSent"]
        return [params["request"]["url"] for params in sent if params["requestId"] not in refused]

    def screenshot(self) -> bytes:
        """The window, as PNG."""
        return base64.b64decode(self._send("/screenshot", None, "GET"))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send(path, body, "POST")

    def _send(self, path: str, body: dict[str, Any] | None, method: str, patience: float = PATIENCE) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        with urlopen(request, timeout=patience) as answer:
            return json.load(answer)["value"]
