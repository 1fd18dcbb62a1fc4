-- Local item suggestion: sellers in three states and their auctions of a category.
CREATE TABLE person (id BIGINT, name STRING, city STRING, state STRING)
WITH (connector = 'files', path = 'data/person', format = 'parquet');

CREATE TABLE auction (id BIGINT, seller BIGINT, category BIGINT)
WITH (connector = 'files', path = 'data/auction', format = 'parquet');

CREATE TABLE q3 (
    name STRING, city STRING, state STRING, id BIGINT
) WITH (connector = 'files', path = 'out/q3', format = 'json');

INSERT INTO q3
SELECT p.name, p.city, p.state, a.id
FROM auction AS a JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');
