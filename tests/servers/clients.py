"""The smallest clients: each logs in, writes, reads, and says what it found."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import redis


def version_at(url: str) -> str:
    """Log in, write and read one value, and give the version of the server."""
    return {"postgresql": _postgresql, "mysql": _mariadb, "redis": _redis}[urlsplit(url).scheme](url)


def _postgresql(url: str) -> str:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TEMPORARY TABLE t (v text)")
        connection.execute("INSERT INTO t VALUES (%s)", ("ü",))
        assert ("ü",) == connection.execute("SELECT v FROM t").fetchone()
        row = connection.execute("SHOW server_version").fetchone()
        assert row is not None
        return str(row[0])


def _mariadb(url: str) -> str:
    with closing(mariadb_connection(url)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE t (v text)")
        cursor.execute("INSERT INTO t VALUES (%s)", ("ü",))
        cursor.execute("SELECT v, VERSION() FROM t")
        value, version = cursor.fetchone()
        assert value == "ü"
        return str(version)


def mariadb_connection(url: str) -> Any:
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "",
        port=parts.port or 0,
        user=parts.username,
        password=parts.password or "",
        database=parts.path[1:],
    )


def _redis(url: str) -> str:
    with redis.Redis.from_url(url) as client:
        name = f"k{os.getpid()}"
        client.set(name, "ü")
        assert "ü".encode() == client.get(name)
        info: Any = client.info("server")
        return str(info.get("valkey_version") or info["redis_version"])
