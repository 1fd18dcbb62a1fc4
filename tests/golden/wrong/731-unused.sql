CREATE TABLE clicks (page TEXT) WITH (connector = 'files', path = 'a.csv');
CREATE TABLE users (name TEXT) WITH (connector = 'files', path = 'b.csv');
CREATE VIEW big_pages AS SELECT page FROM clicks WHERE length(page) > 9;
SELECT page FROM clicks;
