CREATE TABLE clicks (id BIGINT) WITH (connector = 'generate', 'fields' = '{id: sequence}');
CREATE TABLE orders (id BIGINT) WITH (
  connector = 'kafka', brokers = 'kafka:9092', topic = 'orders', format = 'json', auth = 'ann'
);
CREATE TABLE out WITH (type = 'print');
INSERT INTO out SELECT id FROM clicks;
SELECT id FROM orders;
