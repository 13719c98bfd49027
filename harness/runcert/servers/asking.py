"""The side of an adapter: asks the process that owns the run for a server."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

from runcert.problems import AdapterProblem, UsageProblem
from runcert.waiting import not_counted

__all__ = ["ask_for_server"]


def ask_for_server(desk: str, name: str, settings: Mapping[str, object]) -> str:
    """Ask for a server and wait until it runs; the time counts against nobody.

    Args:
        desk: where to ask, from the lab.
        name: the kind of server.
        settings: its settings, in its own words.

    Returns:
        Its address.

    Raises:
        UsageProblem: it cannot be had.
        AdapterProblem: it ended in the middle of the run, or the run did.
    """
    host, port, word = desk.split(":")
    try:
        question = json.dumps({"word": word, "ask": "server", "name": name, "settings": dict(settings)})
    except (TypeError, ValueError) as error:
        raise UsageProblem(f"lab.server({name!r}): a setting is no text, number or bool ({error})") from error
    answer = _answer((host, int(port)), question)
    if "usage" in answer:
        raise UsageProblem(answer["usage"])
    if "url" not in answer:
        raise AdapterProblem(f"lab.server({name!r}): {answer.get('lost') or answer.get('trouble')}")
    return str(answer["url"])


def _answer(address: tuple[str, int], question: str) -> dict[str, Any]:
    try:
        with not_counted(), socket.create_connection(address) as connection:
            connection.sendall(question.encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer: dict[str, Any] = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        raise AdapterProblem(f"the process that owns the servers of this run is gone ({error})") from error
    return answer
