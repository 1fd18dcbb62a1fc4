CREATE TABLE users ("user id" BIGINT, country TEXT) WITH (connector = 'files', path = 'x', format = 'json');
SELECT "user id" FROM users WHERE country = "Germany";
