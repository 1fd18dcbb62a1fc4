-- Log to files: all bids, in a directory for each day and minute.
CREATE TABLE bid (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING
) WITH (connector = 'files', path = 'data/bid', format = 'parquet');

CREATE TABLE q10 (
    auction BIGINT, bidder BIGINT, price BIGINT, datetime TIMESTAMP, extra STRING, dt STRING, hm STRING
) WITH (connector = 'files', path = 'out/q10', format = 'json')
PARTITIONED BY (dt, hm);

INSERT INTO q10
SELECT auction, bidder, price, datetime, extra,
       date_format(datetime, 'yyyy-MM-dd'), date_format(datetime, 'HH:mm')
FROM bid;
