"""Serve the built book on this machine."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(SimpleHTTPRequestHandler):
    """Files of one folder, never cached, without a line in the terminal for each."""

    def end_headers(self) -> None:
        """Ask browsers to look again: the book may have been built anew."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the terminal quiet."""


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of `folder` on this machine alone, at `port` or, if that is taken, at a free one."""
    handler = functools.partial(Handler, directory=str(folder))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)


def serve(folder: Path, port: int) -> None:
    """Serve until Ctrl-C."""
    with server(folder, port) as running:
        if running.server_port != port:
            print(f"Port {port} is taken.")
        print(f"The book is at http://127.0.0.1:{running.server_port}/ (Ctrl-C stops)", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()
