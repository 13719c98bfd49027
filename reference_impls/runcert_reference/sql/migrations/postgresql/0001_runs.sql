CREATE TABLE runs (
    run_id    BYTEA   NOT NULL PRIMARY KEY,
    tenant_id BYTEA   NOT NULL,
    version   BIGINT  NOT NULL,
    terminal  BOOLEAN NOT NULL,
    retired   BOOLEAN NOT NULL,
    payload   TEXT    NOT NULL
);

CREATE INDEX runs_by_tenant ON runs (tenant_id) WHERE NOT terminal;
