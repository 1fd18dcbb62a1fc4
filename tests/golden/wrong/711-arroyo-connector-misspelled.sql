CREATE TABLE cars (driver_id BIGINT) WITH (connector = 'singel_file', path = 'cars.json', format = 'json', type = 'source');
CREATE TABLE out (driver_id BIGINT) WITH (connector = 'blackhol', type = 'sink');
INSERT INTO out SELECT driver_id FROM cars;
