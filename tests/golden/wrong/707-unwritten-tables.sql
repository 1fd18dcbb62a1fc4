CREATE TABLE e (id BIGINT) WITH (connector='files', path='e.json', format='json');
CREATE TABLE later (id BIGINT) WITH (connector='single_file', path='l.json', format='json', type='sink');
CREATE TABLE m (id BIGINT);
SELECT id FROM e;
