CREATE TABLE people (name STRUCT<first TEXT, last TEXT>, part TEXT) WITH (
    connector = 'single_file', path = 'people.json', format = 'json', type = 'source'
);
CREATE TABLE firsts (first TEXT) WITH (connector = 'blackhole');
CREATE TABLE parts (part TEXT) WITH (connector = 'blackhole');
INSERT INTO firsts SELECT get_field() FROM people;
CREATE TABLE shares (share DOUBLE) WITH (connector = 'blackhole');
INSERT INTO parts SELECT get_field(name, 'first', part) FROM people;
INSERT INTO shares SELECT quantile_cont(0.4) WITHIN GROUP (ORDER BY part FROM people;
