"""A real browser for tests of pages: headless Chromium, by its own protocol over a pipe.

Messages are JSON objects that end in a zero byte, on file descriptors 3 and 4 of the browser
(https://chromedevtools.github.io/devtools-protocol/, --remote-debugging-pipe).
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ANSWER_SECONDS = 30.0


def find_browser():
    """Return the path of a Chromium, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A page in a browser; `errors` has what its console and its scripts complained about."""

    def __init__(self, path):
        self.errors = []
        self._count, self._buffer, self._session = 0, b"", None
        self._home = tempfile.mkdtemp(prefix="oclab-browser-")
        pipes = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (*os.pipe(), *os.pipe())]
        theirs_in, self._out, self._in, theirs_out = pipes

        def number_pipes():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        flags = (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--disable-extensions", "--disable-background-networking",
            "--hide-scrollbars", f"--user-data-dir={self._home}", "--remote-debugging-pipe",
        )  # fmt: skip
        self._process = subprocess.Popen(
            [path, *flags, "about:blank"], pass_fds=(3, 4), preexec_fn=number_pipes,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send a command and return its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _receive(self):
        limit = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, limit - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        """Keep what the console shows, and every request that leaves the page."""
        what = event.get("params", {})
        if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(what)
        if event.get("method") == "Runtime.consoleAPICalled":
            self.errors.append(what)

    def open(self, path, width=1440, height=900, dark=False):
        """Open a file in a window of some size."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.call("Page.navigate", url=path.resolve().as_uri())
        limit = time.monotonic() + ANSWER_SECONDS
        while (
            self.run("document.readyState") != "complete"
            or self.run("location.protocol") != "file:"
        ):
            assert time.monotonic() < limit, "the page does not load"
            time.sleep(0.02)

    def run(self, script):
        """Return the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self, path, clip=None):
        """Write a picture of the whole page, or of a part, as PNG."""
        more = {} if clip is None else {"clip": {**clip, "scale": 1}}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, **more)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        """Print the page."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF")["data"]))

    def close(self):
        """End the browser."""
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(ANSWER_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._out)
            os.close(self._in)
            shutil.rmtree(self._home, ignore_errors=True)
