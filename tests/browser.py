"""A headless Chromium that is driven by its debugging pipe, which needs no other package."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


# The browser reads from file 3 and writes to file 4.
_PLACE = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(file), fcntl.F_DUPFD, 10) for file in sys.argv[1:3]]
for place, file in enumerate(pipes, 3):
    os.dup2(file, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class BrowserError(RuntimeError):
    """The page or the browser reported an error."""


class Page:
    """A page in its own browser, whose profile is in a folder."""

    def __init__(self, folder):
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()
        self._write, self._read = ours, theirs

        command = [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"),
            *("--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"),
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PLACE, str(to_browser), str(from_browser), *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, None
        self.errors, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(1400)
        self.choose_scheme("light")

    def call(self, method, **params):
        """Send a command and wait for its answer. Errors and requests that are reported meanwhile are kept."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise BrowserError("no answer from the browser")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise BrowserError("the browser has ended")
            self._buffer += more
        first, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(first)
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        return message

    def open(self, path):
        """Load a file, and wait until it is loaded and the script of a report has unpacked its data."""
        self.call("Page.navigate", url=path.absolute().as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass
        ready = "!document.getElementById('data') || document.documentElement.classList.contains('has-js')"
        end = time.monotonic() + 10
        while not self.js(ready) and time.monotonic() < end:
            time.sleep(0.02)

    def js(self, expression):
        """Return the value of an expression, as far as JSON can hold it."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise BrowserError(done["exceptionDetails"].get("exception", {}).get("description", "error"))
        return done["result"].get("value")

    def all(self, selector, value):
        """Return the value of an expression of `e` for each element that a selector finds."""
        return self.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => {value})")

    def resize(self, width, height=900):
        """Set the size of the window. A width below 600 pixels makes it a telephone."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def choose_scheme(self, name):
        """Prefer light or dark colours."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def press(self, key, **more):
        """Press a key as a user would."""
        text = {"Enter": "\r", " ": " "}.get(key)
        down = {"type": "keyDown", "key": key, **({"text": text} if text else {})}
        codes = {"Enter": 13, " ": 32, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "Escape": 27}
        down["windowsVirtualKeyCode"] = codes[key]
        self.call("Input.dispatchKeyEvent", **down, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=codes[key], **more)

    def settle(self):
        """Wait until scrolling and drawing are over."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def hover(self, selector):
        """Move the mouse to the middle of an element."""
        place = self.js(
            f"(() => {{const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.settle()
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])

    def close(self):
        """End the browser."""
        with contextlib.suppress(BrowserError, OSError):
            self._session = None
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
