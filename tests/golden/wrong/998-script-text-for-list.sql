CREATE TABLE events (id BIGINT, kind STRING, day DATE) WITH (connector = 'files', path = 'in/*.json');
CREATE TABLE lake WITH (connector = 'delta', path = 'lake/events', partition_by = 'day, kind');
INSERT INTO lake SELECT * FROM events;
