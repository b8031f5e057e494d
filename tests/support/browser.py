"""A headless browser, controlled through its debugging pipe without a driver or package."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
"""The browser on this machine, or None."""
_PATIENCE: Final = 60
# The browser reads from file descriptor 3 and writes to 4, which Python may already use for other files.
_LAUNCHER: Final = """
import fcntl, os, sys
given, taken = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(given, 3)
os.dup2(taken, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)


class Browser:
    """One running browser."""

    def __init__(self, directory: Path) -> None:
        """Start the browser, with its profile in an empty directory."""
        assert PROGRAM is not None
        given, self._to = os.pipe()
        self._from, taken = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._from, selectors.EVENT_READ)
        command = [sys.executable, "-c", _LAUNCHER, str(given), str(taken), PROGRAM, *_OPTIONS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={directory}"],
            pass_fds=(given, taken),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(given)
        os.close(taken)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """Stop the browser."""
        try:
            self.send("Browser.close")
            self._process.wait(_PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            self._selector.close()
            os.close(self._to)
            os.close(self._from)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that arrive first are added to `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, method: str) -> None:
        """Wait for an event."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            assert self._selector.select(max(0, until - time.monotonic())), "the browser says nothing"
            data = os.read(self._from, 1 << 20)
            assert data, "the browser has ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


class Tab:
    """One page in a browser."""

    def __init__(
        self, browser: Browser, *, width: int = 1280, dark: bool = False, script: bool = True
    ) -> None:
        """Open an empty page with this width and color scheme."""
        self._browser = browser
        browser.events.clear()
        self._target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.send("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.send(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command for this page."""
        return self._browser.send(method, self._session, **parameters)

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a local file."""
        self._browser.events.clear()
        self.send("Page.navigate", url=file.resolve().as_uri() + fragment)
        self._browser.wait_for("Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        how = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        answer = self.send("Runtime.evaluate", expression=expression, **how)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        about = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        self.send("Input.dispatchKeyEvent", type="keyDown", **about)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def complaints(self) -> list[str]:
        """Return the complaints of the browser: errors, and violations of the content security policy."""
        self.ask("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        bad = []
        for event in self._browser.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method in {"Runtime.exceptionThrown", "Audits.issueAdded"}:
                bad.append(json.dumps(parameters))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in {"warning", "error"}:
                bad.append(parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled":
                bad.append(json.dumps(parameters["args"]))
        return bad

    def requests(self) -> list[str]:
        """Return all URLs that were requested."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        """Close the page."""
        self._browser.send("Target.closeTarget", targetId=self._target)
