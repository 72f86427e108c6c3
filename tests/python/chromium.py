"""Chromium without a window, driven by the DevTools protocol over two pipes: nothing to install beside Debian's package."""
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium")
SECONDS = 60


def pipe():
    """Its ends, beyond the descriptors that Chromium expects them at."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Chromium:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="chromium")
        (read, self.to), (self.messages, write) = pipe(), pipe()

        def wire():
            os.dup2(read, 3)  # where it reads
            os.dup2(write, 4)

        # Only a root that may make namespaces has the sandbox; the pages are our own.
        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={self.folder}", "about:blank"],
            close_fds=False, preexec_fn=wire, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.last, self.buffer, self.events = 0, b"", []

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.messages)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _next(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            assert left > 0 and select.select([self.messages], [], [], left)[0], "chromium says nothing"
            part = os.read(self.messages, 1 << 20)
            assert part, "chromium has ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + SECONDS
        while True:
            answer = self._next(until)
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])


class Page:
    """A tab. `events`: what it told so far, as (method, params)."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    @property
    def events(self):
        return [(one["method"], one["params"]) for one in self.browser.events if one.get("sessionId") == self.session]

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, expression):
        """Until the expression is true; its value, or of an element true."""
        until = time.monotonic() + SECONDS
        while not (value := self.js(f"(value => value instanceof Node || value)({expression})")):
            assert time.monotonic() < until, f"waited for {expression}"
            time.sleep(0.02)
        return value

    def open(self, url):
        self.load("Page.navigate", url=url)

    def click_to_load(self, selector):
        self.load("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)}).click()")

    def load(self, method, **params):
        """Calls what loads a page, and waits for it."""
        before = len([1 for name, _ in self.events if name == "Page.loadEventFired"])
        self.call(method, **params)
        until = time.monotonic() + SECONDS
        while len([1 for name, _ in self.events if name == "Page.loadEventFired"]) == before:
            assert time.monotonic() < until, f"{params} loaded nothing"
            self.browser.call("Browser.getVersion")  # brings what came meanwhile

    def resize(self, width, height=900, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def media(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=0 if kind == "mouseReleased" else 1, clickCount=1)

    def key(self, key, kinds=("keyDown", "keyUp"), **more):
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        if key == "Enter":
            more["text"] = "\r"
        for kind in kinds:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code="Space" if key == " " else key,
                      windowsVirtualKeyCode=codes[key], **(more if kind == "keyDown" else {}))

    def screenshot(self):
        import base64
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
