CREATE FUNCTION net(x DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS $$
    import no_such_module.inner
    return x
$$;
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
