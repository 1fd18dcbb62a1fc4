CREATE FUNCTION net(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS $$ return x;
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
