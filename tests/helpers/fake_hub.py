"""A small stand-in for the Hugging Face hub on this machine."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import unquote, urlparse

Handler = http.server.BaseHTTPRequestHandler

COMMIT = "89abcdef" * 5


def send(handler: Handler, code: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(code)
    handler.send_header("Content-Length", headers.pop("Content_Length", str(len(body))))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    if handler.command == "GET":
        handler.wfile.write(body)


def status(code: int, **headers: str) -> Callable[[Handler], None]:
    """An answer to every request."""
    return lambda handler: send(handler, code, b"<html>", **headers)


@contextmanager
def fake_hub(
    monkeypatch,
    files: Mapping[str, bytes] = {},
    *,
    always: Callable[[Handler], None] | None = None,
    commit: str | None = COMMIT,
    header: str | None = COMMIT,
    cut: str = "",
) -> Iterator[Counter[str]]:
    """Have every repository on the hub hold `files`; yields requests by path.

    Args:
        always: answers all requests instead.
        commit: what the interface says the commit is.
        header: the commit that files are sent with; None for none.
        cut: name of a file of which half is sent.
    """
    requests: Counter[str] = Counter()

    class Hub(Handler):
        def do_GET(self) -> None:  # noqa: N802
            path = unquote(urlparse(self.path).path)
            requests[path] += 1
            with suppress(OSError):  # the client may hang up
                if always:
                    always(self)
                elif "/tree/" in path:
                    tree = [
                        {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                        for name, content in files.items()
                    ]
                    send(self, 200, json.dumps(tree).encode())
                elif path.startswith("/api/"):
                    names = [{"rfilename": name} for name in files]
                    about = {"id": "org/m", "sha": commit, "siblings": names}
                    send(self, 200, json.dumps(about).encode())
                else:
                    name = re.sub(".*/resolve/[^/]+/", "", path)
                    content, more = files[name], {"ETag": f'"{abs(hash(name))}"'}
                    if header is not None:
                        more["X_Repo_Commit"] = header
                    if name == cut and self.command == "GET":
                        content, more["Content_Length"] = content[:9], str(len(content))
                        self.close_connection = True
                    send(self, 200, content, **more)

        do_HEAD = do_CONNECT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    constants = "huggingface_hub.constants."
    monkeypatch.setattr(constants + "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants + "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants + "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("probes.common.hub._silent_until", 0.0, raising=False)
    try:
        yield requests
    finally:
        server.shutdown()
        server.server_close()
