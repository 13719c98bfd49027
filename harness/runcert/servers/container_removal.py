"""Removes every container that has a label, on a Docker, both named on the command line; run by the guardian at the end."""

from __future__ import annotations

import sys


def main() -> None:
    """Remove the containers, and their volumes."""
    import docker  # noqa: PLC0415  # comes with an extra

    client = docker.DockerClient(base_url=sys.argv[2]) if sys.argv[2] else docker.from_env()
    for container in client.containers.list(all=True, filters={"label": sys.argv[1]}):
        container.remove(force=True, v=True)


if __name__ == "__main__":
    main()
