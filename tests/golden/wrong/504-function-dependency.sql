CREATE FUNCTION net(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON WITH (dependencies = ['no-such-package>=2']) AS $$ return x $$;
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
