-- Writes 20,000 events of the Nexmark benchmark to files: persons, auctions and bids. The same
-- options generate the same events. A batch is half of them and becomes a file of each kind.
CREATE TABLE events (
    person STRUCT<
        id: BIGINT, name: STRING, email_address: STRING, credit_card: STRING, city: STRING,
        state: STRING, datetime: TIMESTAMP, extra: STRING
    >,
    auction STRUCT<
        id: BIGINT, description: STRING, item_name: STRING, initial_bid: BIGINT, reserve: BIGINT,
        datetime: TIMESTAMP, expires: TIMESTAMP, seller: BIGINT, category: BIGINT, extra: STRING
    >,
    bid STRUCT<
        auction: BIGINT, bidder: BIGINT, price: BIGINT, channel: STRING, url: STRING,
        datetime: TIMESTAMP, extra: STRING
    >,
    position BIGINT METADATA FROM 'position'
) WITH (
    connector = 'nexmark',
    rows = 20000,
    max_records = 10000,
    start_time = '2026-01-01T18:45:00Z',
    interval = INTERVAL '1 second',
    shuffle = 3,
    seed = 1
);

CREATE TABLE person WITH (connector = 'files', path = 'data/person', format = 'parquet')
AS SELECT person.* FROM events WHERE person IS NOT NULL;

CREATE TABLE auction WITH (connector = 'files', path = 'data/auction', format = 'parquet')
AS SELECT auction.* FROM events WHERE auction IS NOT NULL;

-- The time of arrival follows the order of the events, which is not that of their times.
CREATE TABLE bid WITH (connector = 'files', path = 'data/bid', format = 'parquet')
AS SELECT bid.*, timestampadd(SECOND, position, TIMESTAMP '2026-01-01 18:45:00') AS arrival
FROM events WHERE bid IS NOT NULL;

-- The side input of q13.
CREATE TABLE numbers (counter BIGINT) WITH (connector = 'impulse', rows = 10000);

CREATE TABLE side_input WITH (connector = 'files', path = 'data/side_input', format = 'parquet')
AS SELECT counter AS key, concat('value ', counter) AS value FROM numbers;
