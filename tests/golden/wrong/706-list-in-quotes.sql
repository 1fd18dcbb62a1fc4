CREATE TABLE orders (id BIGINT) WITH (
    connector = 'files', path = 'in/*.csv', format = 'csv', 'csv.columns' = '[id, price]'
);
SELECT id FROM orders;
