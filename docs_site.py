"""Hooks of MkDocs: what stands outside ``docs/`` and is linked from there is part of the site, below ``project/``."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
FILES = ("LICENSE", "mkdocs.yml", "noxfile.py", *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("examples/*.py"))))
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files from outside ``docs/``."""
    for name in (*PAGES, *FILES):
        files.append(File.generated(config, f"project/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:  # noqa: ARG001  # called by name
    """Lead links between ``docs/`` and the rest of the project to where both are on the site."""
    here = page.file.src_uri
    in_checkout = here.removeprefix("project/") if here.startswith("project/") else f"docs/{here}"

    def led(found: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(in_checkout), found["target"]))
        on_site = there.removeprefix("docs/") if there.startswith("docs/") else f"project/{there}"
        return "](" + posixpath.relpath(on_site, posixpath.dirname(here) or ".") + (found["anchor"] or "") + ")"

    return LINK.sub(led, markdown)
