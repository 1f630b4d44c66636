-- The marks of resource fences: the highest token that ever worked on each.
CREATE TABLE IF NOT EXISTS fencing_marks (
    resource text COLLATE "C" PRIMARY KEY CHECK (octet_length(resource) <= 255),
    token    bigint NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
);

-- The row without a name is nobody's: what opens a store tries its connection on it.
INSERT INTO fencing_marks (resource, token) VALUES ('', 0) ON CONFLICT DO NOTHING;
