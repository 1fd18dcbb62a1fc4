-- Channel IDs: the ID of known channels, or that in the URL.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q21 (
    auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, channel_id STRING
) WITH (connector = 'files', path = 'out/q21', format = 'json');

INSERT INTO q21
SELECT * FROM (
    SELECT auction, bidder, price, channel,
           CASE lower(channel)
               WHEN 'apple' THEN '0'
               WHEN 'google' THEN '1'
               WHEN 'facebook' THEN '2'
               WHEN 'baidu' THEN '3'
               ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')
           END AS channel_id
    FROM bid
)
WHERE channel_id IS NOT NULL;
