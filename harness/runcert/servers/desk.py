"""Where adapters ask the kit for a service: one socket on 127.0.0.1, one JSON object in a line, one in answer.

Every process of a run can ask, also one in another language: its :class:`~runcert.lab.Lab` has the address and a word that
only this run knows.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socketserver
import threading
from typing import Any

from runcert.problems import KitProblem, ServerLost, UsageProblem
from runcert.servers.kinds import HOST
from runcert.servers.owner import Servers

__all__ = ["Desk"]

_LONGEST = 1 << 20


class Desk:
    """Answers questions until :meth:`close`.

    Args:
        servers: the servers of this run.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._word = secrets.token_hex(16)
        desk = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                answer = desk._answer(self.rfile.readline(_LONGEST))
                self.wfile.write(json.dumps(answer).encode() + b"\n")

        self._server = _QuietServer((HOST, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="runcert-desk", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it is and what to say there, as one text."""
        return f"{HOST}:{self._server.server_address[1]}:{self._word}"

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            question = json.loads(line)
            if not hmac.compare_digest(str(question["word"]), self._word):
                return {"trouble": "this is not the word of the run"}
            if question["ask"] != "server":
                return {"trouble": f"there is no service {question['ask']!r}"}
            return {"url": self._servers.url(str(question["name"]), dict(question["settings"]))}
        except UsageProblem as problem:
            return {"usage": str(problem)}
        except ServerLost as problem:
            return {"lost": str(problem)}
        except KitProblem as problem:
            return {"trouble": str(problem)}
        except (ValueError, KeyError, TypeError) as error:
            return {"trouble": f"the question cannot be read ({error!r})"}


class _QuietServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked is gone; nobody waits for the answer."""
