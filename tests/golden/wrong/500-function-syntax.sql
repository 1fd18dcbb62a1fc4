CREATE FUNCTION net(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS $$
if x > 0
    return x
return 0
$$;
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
