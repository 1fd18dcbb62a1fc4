-- Final rows of a script whose inputs end.
CREATE TABLE orders (id INT, customer STRING, price INT)
WITH (connector = 'files', path = 'in/orders/*.csv');
CREATE TABLE returns (id INT)
WITH (connector = 'files', path = 'in/returns/*.csv');
CREATE TABLE totals WITH (connector = 'files', path = 'out/totals', 'format' = 'json');
CREATE TABLE counted WITH (connector = 'files', path = 'out/counted', 'format' = 'json');
INSERT INTO totals
SELECT customer, sum(price) AS total, count(r.id) AS returned
FROM orders LEFT JOIN returns r USING (id) GROUP BY customer ORDER BY customer;
INSERT INTO counted SELECT count(*) AS n FROM orders;
