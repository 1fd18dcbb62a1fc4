CREATE TABLE log (line TEXT) WITH (
  connector = 'files', path = 'in/*.log', format = 'text', 'text.record_start' = '^\d{4'
);
CREATE TABLE messages (line TEXT) WITH (
  connector = 'kafka', brokers = 'localhost:9092', topic = 'log', format = 'text', 'text.record_start' = '^\d{4}('
);
INSERT INTO messages SELECT line FROM log;
