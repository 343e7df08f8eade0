"""A local web server that misbehaves on request."""

from __future__ import annotations

import http.server
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import unquote

Handler = http.server.BaseHTTPRequestHandler
Answer = Callable[[Handler, bytes], None]


def whole(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def broken_off(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.wfile.flush()
    handler.connection.close()


def altered(handler: Handler, content: bytes) -> None:
    whole(handler, b"X" + content[1:])


def stalled(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[:10])
    handler.wfile.flush()
    time.sleep(3)


def slow(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    step = max(1, len(content) // 10)
    for start in range(0, len(content), step):
        handler.wfile.write(content[start : start + step])
        handler.wfile.flush()
        time.sleep(0.1)


def missing(handler: Handler, content: bytes) -> None:
    handler.send_error(404)


@contextmanager
def serving(files: dict[str, bytes], *answers: Answer) -> Iterator[tuple[str, Counter[str]]]:
    """Serve `files` by name; the first requests get `answers`, the rest whole files.

    Yields the address, and requests by name.
    """
    requests: Counter[str] = Counter()
    pending = list(answers)

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = unquote(self.path.strip("/"))
            requests[name] += 1
            answer = pending.pop(0) if pending else whole
            with suppress(OSError):  # the client may hang up
                (answer if name in files else missing)(self, files.get(name, b""))

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    # It looks this often (in seconds) whether it is to stop.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
