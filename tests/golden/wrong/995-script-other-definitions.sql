CREATE SOURCE clicks (id INT) WITH (connector = 'generate');
CREATE SINK out WITH (connector = 'print') AS SELECT * FROM clicks;
CREATE MATERIALIZED VIEW counts AS SELECT count(*) FROM clicks;
CREATE CONNECTION kafka TO KAFKA (BROKER 'kafka:9092');
CREATE SCHEMA shop;
CREATE;
