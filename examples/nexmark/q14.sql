-- Calculation: bids of a range of prices, with a function in Python.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE FUNCTION count_char(text STRING, character STRING) RETURNS BIGINT LANGUAGE PYTHON AS $$
return text.count(character)
$$;

CREATE TABLE q14 (
    auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bid_time_type STRING, datetime TIMESTAMP,
    extra STRING, c_counts BIGINT
) WITH (connector = 'files', path = 'out/q14', format = 'json');

INSERT INTO q14
SELECT auction, bidder, 0.908 * price AS price,
       CASE
           WHEN hour(datetime) BETWEEN 8 AND 18 THEN 'dayTime'
           WHEN hour(datetime) <= 6 OR hour(datetime) >= 20 THEN 'nightTime'
           ELSE 'otherTime'
       END AS bid_time_type,
       datetime, extra, count_char(extra, 'c') AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
