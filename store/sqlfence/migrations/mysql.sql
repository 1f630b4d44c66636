-- The marks of resource fences: the highest token that ever worked on each. Names are
-- bytes: no collation may take two resources for one.
CREATE TABLE IF NOT EXISTS fencing_marks (
    resource VARBINARY(255) NOT NULL PRIMARY KEY,
    token    BIGINT NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
) ENGINE = InnoDB;

-- The row without a name is nobody's: what opens a store tries its connection on it.
INSERT IGNORE INTO fencing_marks (resource, token) VALUES ('', 0);
