"""The queries of Nexmark in Flink SQL, each with the primary key of its result if rows change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    sql: str
    key: str | None = None


RANKS = (
    "price < 10000",
    "price >= 10000 AND price < 1000000",
    "price >= 1000000",
)
STATISTICS = ",\n".join(
    [
        f"{function} AS total_{name}, "
        + ", ".join(
            f"{function} FILTER (WHERE {rank}) AS rank{place}_{name}"
            for place, rank in enumerate(RANKS, 1)
        )
        for function, name in (
            ("COUNT(*)", "bids"),
            ("COUNT(DISTINCT bidder)", "bidders"),
            ("COUNT(DISTINCT auction)", "auctions"),
        )
    ]
)
WINNING = """
    SELECT a.*, b.auction, b.bidder, b.price, b.`datetime` AS bid_datetime, b.extra AS bid_extra,
           ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.`datetime`) AS place
    FROM auction AS a JOIN bid AS b ON a.id = b.auction
    WHERE b.`datetime` BETWEEN a.`datetime` AND a.expires"""
DAY = "DATE_FORMAT(`datetime`, 'yyyy-MM-dd')"

QUERIES = {
    "q0": Query("SELECT auction, bidder, price, `datetime`, extra FROM bid"),
    "q1": Query("SELECT auction, bidder, 0.908 * price AS price, `datetime`, extra FROM bid"),
    "q2": Query("SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),
    "q3": Query("""
        SELECT p.name, p.city, p.state, a.id
        FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')"""),
    "q4": Query(
        """
        SELECT category, AVG(CAST(final AS DOUBLE)) AS average
        FROM (
          SELECT a.category, MAX(b.price) AS final
          FROM auction AS a JOIN bid AS b ON a.id = b.auction
          WHERE b.`datetime` BETWEEN a.`datetime` AND a.expires
          GROUP BY a.id, a.category
        )
        GROUP BY category""",
        "category",
    ),
    "q5": Query("""
        WITH counts AS (
          SELECT auction, COUNT(*) AS num, window_start, window_end
          FROM TABLE(HOP(
            TABLE bid, DESCRIPTOR(`datetime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
          GROUP BY auction, window_start, window_end
        )
        SELECT c.auction, c.num, c.window_start AS starttime, c.window_end AS endtime
        FROM counts AS c JOIN (
          SELECT MAX(num) AS maxn, window_start, window_end
          FROM counts GROUP BY window_start, window_end
        ) AS m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.maxn"""),
    "q6": Query(
        f"""
        SELECT id, seller, AVG(CAST(price AS DOUBLE)) OVER (
          PARTITION BY seller ORDER BY bid_datetime ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
        ) AS average
        FROM ({WINNING})
        WHERE place <= 1""",
        "id",
    ),
    "q7": Query("""
        SELECT b.auction, b.price, b.bidder, b.`datetime`, b.extra
        FROM bid AS b JOIN (
          SELECT MAX(price) AS maxprice, window_time AS closed
          FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`datetime`), INTERVAL '10' SECOND))
          GROUP BY window_start, window_end, window_time
        ) AS m
        ON b.price = m.maxprice
        WHERE b.`datetime` BETWEEN m.closed - INTERVAL '10' SECOND AND m.closed"""),
    "q8": Query("""
        SELECT p.id, p.name, p.window_start AS starttime
        FROM (
          SELECT id, name, window_start, window_end
          FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`datetime`), INTERVAL '10' SECOND))
          GROUP BY id, name, window_start, window_end
        ) AS p JOIN (
          SELECT seller, window_start, window_end
          FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`datetime`), INTERVAL '10' SECOND))
          GROUP BY seller, window_start, window_end
        ) AS a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end"""),
    "q9": Query(
        f"""
        SELECT id, item_name, description, initial_bid, reserve, `datetime`, expires, seller,
               category, extra, auction, bidder, price, bid_datetime, bid_extra
        FROM ({WINNING})
        WHERE place <= 1""",
        "id",
    ),
    "q10": Query(f"""
        SELECT auction, bidder, price, `datetime`, extra, {DAY} AS dt,
               DATE_FORMAT(`datetime`, 'HH:mm') AS hm
        FROM bid"""),
    "q11": Query("""
        SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(SESSION(
          TABLE bid PARTITION BY bidder, DESCRIPTOR(`datetime`), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end"""),
    "q12": Query("""
        SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE arrivals, DESCRIPTOR(arrival), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end"""),
    "q13": Query("""
        SELECT b.auction, b.bidder, b.price, b.`datetime`, s.`value`
        FROM (SELECT *, MOD(auction, 10000) AS place FROM bid) AS b
        JOIN side_input AS s ON b.place = s.key"""),
    "q14": Query("""
        SELECT auction, bidder, 0.908 * price AS price,
               CASE
                 WHEN HOUR(`datetime`) BETWEEN 8 AND 18 THEN 'dayTime'
                 WHEN HOUR(`datetime`) <= 6 OR HOUR(`datetime`) >= 20 THEN 'nightTime'
                 ELSE 'otherTime'
               END AS bid_time_type,
               `datetime`, extra, count_char(extra, 'c') AS c_counts
        FROM bid
        WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000"""),
    "q15": Query(f"SELECT {DAY} AS `day`, {STATISTICS} FROM bid GROUP BY {DAY}", "day"),
    "q16": Query(
        f"""
        SELECT channel, {DAY} AS `day`, MAX(DATE_FORMAT(`datetime`, 'HH:mm')) AS `minute`,
               {STATISTICS}
        FROM bid GROUP BY channel, {DAY}""",
        "channel, day",
    ),
    "q17": Query(
        f"""
        SELECT auction, {DAY} AS `day`, COUNT(*) AS total_bids,
               COUNT(*) FILTER (WHERE {RANKS[0]}) AS rank1_bids,
               COUNT(*) FILTER (WHERE {RANKS[1]}) AS rank2_bids,
               COUNT(*) FILTER (WHERE {RANKS[2]}) AS rank3_bids,
               MIN(price) AS min_price, MAX(price) AS max_price,
               AVG(CAST(price AS DOUBLE)) AS avg_price, SUM(price) AS sum_price
        FROM bid GROUP BY auction, {DAY}""",
        "auction, day",
    ),
    "q18": Query(
        """
        SELECT auction, bidder, price, channel, url, `datetime`, extra
        FROM (
          SELECT *, ROW_NUMBER() OVER (
            PARTITION BY bidder, auction ORDER BY `datetime` DESC) AS place
          FROM bid
        )
        WHERE place <= 1""",
        "bidder, auction",
    ),
    "q19": Query(
        """
        SELECT auction, bidder, price, channel, url, `datetime`, extra, place
        FROM (
          SELECT *, ROW_NUMBER() OVER (
            PARTITION BY auction ORDER BY price DESC, `datetime`) AS place
          FROM bid
        )
        WHERE place <= 10""",
        "auction, place",
    ),
    "q20": Query("""
        SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.`datetime` AS bid_datetime,
               b.extra AS bid_extra, a.item_name, a.description, a.initial_bid, a.reserve,
               a.`datetime` AS auction_datetime, a.expires, a.seller, a.category,
               a.extra AS auction_extra
        FROM bid AS b JOIN auction AS a ON b.auction = a.id
        WHERE a.category = 10"""),
    "q21": Query("""
        SELECT * FROM (
          SELECT auction, bidder, price, channel,
                 CASE LOWER(channel)
                   WHEN 'apple' THEN '0'
                   WHEN 'google' THEN '1'
                   WHEN 'facebook' THEN '2'
                   WHEN 'baidu' THEN '3'
                   ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
                 END AS channel_id
          FROM bid
        )
        WHERE channel_id IS NOT NULL"""),
    "q22": Query("""
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1,
               SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid"""),
}
