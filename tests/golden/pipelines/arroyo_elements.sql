-- Elements of arrays within expressions, and paths of several values in JSON texts.
CREATE TABLE posts (id BIGINT, tags JSON[], body TEXT, at TIMESTAMP, WATERMARK FOR at)
WITH (connector = 'single_file', path = 'in/*.json', format = 'json', type = 'source');

CREATE VIEW tags AS SELECT unnest(tags) ->> 'name' AS tag FROM posts;

CREATE TABLE each_tag (id BIGINT, name TEXT, size BIGINT) WITH (connector = 'memory');
INSERT INTO each_tag
SELECT id, upper(element ->> 'name'), (element -> 'size')::BIGINT
FROM (SELECT id, concat(unnest(tags), '') AS element FROM posts WHERE id < 3);

CREATE TABLE minutes (start TIMESTAMP, tag TEXT, n BIGINT) WITH (connector = 'memory');
INSERT INTO minutes
SELECT window.start, tag, n FROM (
    SELECT tumble(INTERVAL '1 minute') AS window, tag, count(*) AS n FROM tags GROUP BY 1, 2
);

CREATE TABLE totals (tag TEXT, n BIGINT, PRIMARY KEY (tag)) WITH (connector = 'memory');
INSERT INTO totals SELECT tag, count(*) FROM tags GROUP BY tag;

CREATE TABLE links (id BIGINT, link TEXT) WITH (connector = 'memory');
INSERT INTO links
SELECT id, unnest(extract_json(body, '$.facets[*].features[?@.kind == "link"].uri')) FROM posts;

CREATE TABLE first_links (id BIGINT, uri TEXT, value TEXT) WITH (connector = 'memory');
INSERT INTO first_links
SELECT id, extract_json_string(body, '$..uri'), get_first_json_object(body, '$..uri') FROM posts;
