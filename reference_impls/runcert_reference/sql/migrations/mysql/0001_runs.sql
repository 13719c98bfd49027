CREATE TABLE runs (
    run_id    VARBINARY(3072) NOT NULL PRIMARY KEY,
    tenant_id VARBINARY(3072) NOT NULL,
    version   BIGINT          NOT NULL,
    terminal  BOOLEAN         NOT NULL,
    retired   BOOLEAN         NOT NULL,
    payload   LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    KEY runs_by_tenant (tenant_id(768), terminal)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
