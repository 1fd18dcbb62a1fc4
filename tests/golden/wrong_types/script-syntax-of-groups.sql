CREATE TABLE orders (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds')
WITH (connector = 'files', path = 'orders.json', format = 'json');
SELECT id,
  count(*)
FROM orders
GROUP BY id, tumble(INTERVAL '10 seconds') AS first;
