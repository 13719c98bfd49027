"""A badge for a README: the verdict in one small picture, and the same as JSON for services that draw badges."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from runcert.grading import Outcome, TargetReport

__all__ = ["badge_json", "badge_svg"]

_COLOURS = {Outcome.CERTIFIED: "#1a6e37", Outcome.PARTIAL: "#7a5200"}
_BAD = "#b3261e"
_LABEL = "runcert"
_CHARACTER = 7
_PADDING = 12


def _message(report: TargetReport, depth: str) -> str:
    """Give what the badge says: never more than the certificate does, so the depth is part of it."""
    verdict = report.outcome.value.partition(",")[0]
    return f"{verdict}, {depth}" if report.outcome is Outcome.CERTIFIED else verdict


def badge_json(report: TargetReport, depth: str) -> str:
    """Give the badge in the form of the endpoint of shields.io.

    Args:
        report: the verdict.
        depth: the depth of the run.
    """
    colour = _COLOURS.get(report.outcome, _BAD)
    return json.dumps({"schemaVersion": 1, "label": _LABEL, "message": _message(report, depth), "color": colour}) + "\n"


def badge_svg(report: TargetReport, depth: str) -> str:
    """Give the badge as a picture that loads nothing."""
    message = escape(_message(report, depth))
    left, right = (len(text) * _CHARACTER + _PADDING for text in (_LABEL, message))
    colour = _COLOURS.get(report.outcome, _BAD)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{_LABEL}: {message}">'
        f"<title>{_LABEL}: {message}</title>"
        f'<rect width="{left}" height="20" fill="#3a444e"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{_LABEL}</text><text x="{left + right / 2}" y="14">{message}</text></g></svg>\n'
    )
