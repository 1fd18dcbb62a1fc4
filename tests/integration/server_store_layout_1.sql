CREATE TABLE pipelines (
    id VARCHAR NOT NULL PRIMARY KEY, file VARCHAR NOT NULL UNIQUE, wish VARCHAR NOT NULL,
    wished_by VARCHAR, wished_at VARCHAR, fresh BOOLEAN NOT NULL, version INTEGER, digest VARCHAR,
    failure JSON, stamp VARCHAR, facts JSON
);
CREATE TABLE starts (
    run VARCHAR NOT NULL PRIMARY KEY,
    pipeline VARCHAR NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE, version INTEGER,
    time VARCHAR NOT NULL, author VARCHAR NOT NULL, pid INTEGER, identity VARCHAR,
    ended BOOLEAN NOT NULL
);
CREATE TABLE store (layout INTEGER NOT NULL);
CREATE TABLE users (
    name VARCHAR NOT NULL PRIMARY KEY, password VARCHAR, rights JSON NOT NULL,
    time VARCHAR NOT NULL
);
CREATE TABLE tokens (
    id VARCHAR NOT NULL PRIMARY KEY,
    "user" VARCHAR NOT NULL REFERENCES users (name) ON DELETE CASCADE, name VARCHAR NOT NULL,
    hash VARCHAR NOT NULL UNIQUE, kind VARCHAR NOT NULL, rights JSON NOT NULL,
    time VARCHAR NOT NULL, expires VARCHAR, UNIQUE ("user", name)
);
CREATE TABLE versions (
    pipeline VARCHAR NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, text TEXT NOT NULL, author VARCHAR NOT NULL, note VARCHAR NOT NULL,
    time VARCHAR NOT NULL, PRIMARY KEY (pipeline, number)
);
INSERT INTO store VALUES (1);
INSERT INTO users VALUES ('ann', NULL, '["admin"]', '2026-11-01T00:00:00Z');
INSERT INTO pipelines VALUES (
    '4428210945', '/pipelines/shop.yaml', 'running', 'ann', '2026-11-01T00:00:00Z', FALSE, 1,
    '982d', NULL, '1:2:3', '{"errors": []}'
);
INSERT INTO versions VALUES ('4428210945', 1, 'text', 'ann', 'first', '2026-11-01T00:00:00Z');
INSERT INTO starts VALUES
    ('run1', '4428210945', 1, '2026-11-01T00:00:00Z', 'ann', NULL, NULL, FALSE);
