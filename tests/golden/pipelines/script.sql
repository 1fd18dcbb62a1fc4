-- Purchases of each customer per minute, and all refunds.
SET description = 'a SQL script';

CREATE TABLE purchases (
    id BIGINT,
    customer STRUCT<name: TEXT, country: TEXT>,
    price DECIMAL(10, 2),
    quantity INT,
    total DOUBLE GENERATED ALWAYS AS (price * quantity),
    at TIMESTAMP(6) NOT NULL,
    tags TEXT[]
) WITH (
    connector = 'files',
    path = 'in/*.json',
    'format' = 'json'
);

CREATE VIEW refunds AS
SELECT id, customer.name AS name, total FROM purchases WHERE total < 0;

CREATE TABLE large (id BIGINT, total DOUBLE);
INSERT INTO large SELECT id, total FROM purchases WHERE total >= 100;

CREATE TABLE out (id BIGINT, who STRING, total DECIMAL(12, 2), note STRING) WITH (
    connector = 'memory'
);
INSERT INTO out SELECT id, upper(name), total, 'refund' FROM refunds;
INSERT INTO out (total, id) SELECT total, id FROM large;

CREATE TABLE tagged WITH (connector = 'memory') AS
SELECT id, explode(tags) AS tag FROM purchases;

SELECT count FROM (SELECT size(tags) AS count FROM purchases) AS counts WHERE count > 1;
