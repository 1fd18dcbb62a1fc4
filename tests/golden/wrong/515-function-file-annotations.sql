SET function_files = 'annotations.py';
CREATE TABLE orders (id INT, price DOUBLE) WITH (connector = 'files', path = 'in/*.json', format = 'json');
SELECT id FROM orders;
