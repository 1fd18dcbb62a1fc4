-- URL directories: the first three parts of the path.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q22 (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING,
    dir1 STRING, dir2 STRING, dir3 STRING
) WITH (connector = 'files', path = 'out/q22', format = 'json');

INSERT INTO q22
SELECT auction, bidder, price, channel,
       split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6)
FROM bid;
