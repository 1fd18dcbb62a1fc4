-- Average selling price by seller: of each winning bid and the ten before it.
CREATE TABLE auction (id BIGINT, seller BIGINT, datetime TIMESTAMP, expires TIMESTAMP)
WITH (connector = 'files', path = 'data/auction', format = 'parquet');

CREATE TABLE bid (auction BIGINT, price BIGINT, datetime TIMESTAMP)
WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q6 (
    id BIGINT, seller BIGINT, average DOUBLE,
    PRIMARY KEY (id)
) WITH (connector = 'files', path = 'out/q6', format = 'debezium_json');

INSERT INTO q6
SELECT id, seller, avg(final) OVER (
    PARTITION BY seller ORDER BY datetime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
) AS average
FROM (
    SELECT a.id, a.seller, b.price AS final, b.datetime,
           row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.datetime) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.datetime BETWEEN a.datetime AND a.expires
)
WHERE place <= 1;
