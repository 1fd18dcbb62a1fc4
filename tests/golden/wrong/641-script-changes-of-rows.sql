CREATE TABLE a (id BIGINT) WITH (connector = 'files', path = 'in/*.csv', format = 'csv');
ALTER TABLE a ADD COLUMN name STRING;
UPDATE a SET id = 1;
DELETE FROM a WHERE id = 1;
MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE;
