CREATE FUNCTION net(price DOUBLE, rate DOUBLE) RETURNS DOUBLE STRICT LANGUAGE PYTHON AS $$
if rate < 0:
    raise ValueError(f"the rate {rate} is negative; 'quoted' -- no comment")
return price / (1 + rate)
$$;

CREATE FUNCTION words(line STRING) RETURNS TABLE (word STRING, size INT) LANGUAGE PYTHON AS $$
def words(line):
    for word in line.split():
        yield word, len(word)
$$;

CREATE FUNCTION plus(x BIGINT) RETURNS BIGINT RETURN x + 1;
CREATE MACRO clean(x) AS trim(lower(x));
CREATE MACRO twice(x) AS plus(plus(x));

CREATE TABLE orders (id INT, line STRING, price DOUBLE, rate DOUBLE)
WITH (connector = 'files', path = 'in/*.json', format = 'json');

CREATE TABLE nets (id INT, net DOUBLE, line STRING, next INT, safe DOUBLE) WITH (connector = 'memory');
INSERT INTO nets
SELECT id, net(net(price, rate), 0), clean(line), twice(id),
    CASE WHEN id > 0 THEN net(1, rate) END
FROM orders;

CREATE TABLE lazy (id INT, net DOUBLE) WITH (connector = 'memory');
INSERT INTO lazy SELECT id, CASE WHEN rate >= 0 THEN net(price, rate) END FROM orders;

CREATE TABLE sized (id INT, word STRING, size INT) WITH (connector = 'memory');
INSERT INTO sized SELECT id, w.word, w.size FROM orders, LATERAL words(line) AS w;

CREATE TABLE viewed (id INT, word STRING) WITH (connector = 'memory');
INSERT INTO viewed SELECT id, w.word FROM orders LATERAL VIEW words(line) w AS word, size WHERE size = 1;
