"""A service that keeps runs and is spoken to by HTTP: ``python http_service.py`` prints its port and serves until standard input ends."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

RECORDS: dict[str, tuple[int, str]] = {}
LOCK = threading.Lock()


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        with LOCK:
            found = RECORDS.get(self._run_id())
        self._answer(404) if found is None else self._answer(200, found[1])

    def do_PUT(self) -> None:
        """Write a run if the version that is there is the one in If-Match, or nothing is there and none is named."""
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        expected = self.headers.get("If-Match")
        with LOCK:
            version = RECORDS.get(self._run_id(), (None, ""))[0]
            matches = version is None if expected is None else str(version) == expected
            if matches:
                RECORDS[self._run_id()] = (content["version"], content["record"])
        self._answer(204 if matches else 412)

    def _run_id(self) -> str:
        return unquote(self.path.removeprefix("/runs/"))

    def _answer(self, status: int, content: str = "") -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(content.encode())))
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()  # until whoever started this ends
