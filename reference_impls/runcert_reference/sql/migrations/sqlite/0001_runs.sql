CREATE TABLE runs (
    run_id    BLOB    NOT NULL PRIMARY KEY,
    tenant_id BLOB    NOT NULL,
    version   INTEGER NOT NULL,
    terminal  BOOLEAN NOT NULL,
    retired   BOOLEAN NOT NULL,
    payload   TEXT    NOT NULL
);

CREATE INDEX runs_by_tenant ON runs (tenant_id, terminal);
