CREATE TABLE a (id BIGINT, at TIMESTAMP, WATERMARK FOR at) WITH (
  connector = 'files', path = 'in/*.csv', format = 'csv', watch = true
);
CREATE TABLE o (id BIGINT) WITH (connector = 'files', path = 'x', format = 'csv');
INSERT INTO o SELECT id FROM a;
INSERT INTO a SELECT id, now() FROM a;
