"""A hub that misbehaves, and a cache of its own for each test."""

import http.server
import threading

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test reads or writes the user's cache, or is told by the user's settings where the hub is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


class Hub:
    """A server on this machine. ``answers``: path ending -> bytes, a status, "hang" or "break"; else the default."""

    def __init__(self, default):
        self.answers, self.default, self.asked = {}, default, []
        self.release = threading.Event()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                hub.asked.append(self.path)
                chosen = [answer for end, answer in hub.answers.items() if self.path.endswith(end)]
                answer = chosen[0] if chosen else hub.default
                if answer == "hang":
                    hub.release.wait(30)
                    return
                content = answer if isinstance(answer, bytes) else b"half"
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("Content-Length", str(len(content) + (answer == "break")))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hub(monkeypatch):
    """Start a hub that the library takes for the real one: ``hub(default)``."""
    started = []

    def start(default):
        started.append(Hub(default))
        monkeypatch.setenv("HF_ENDPOINT", started[-1].address)
        return started[-1]

    yield start
    for one in started:
        one.close()
