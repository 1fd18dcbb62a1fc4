CREATE TABLE a (id BIGINT) WITH (connector = 'single_file', path = 'in', format = 'json');
CREATE TABLE o (id DECIMAL(10, 2)) WITH (connector = 'kafka', bootstrap_servers = 'h:9092', topic = 't',
  format = 'json', 'json.decimal_encoding' = 'hex');
INSERT INTO o SELECT id FROM a;
