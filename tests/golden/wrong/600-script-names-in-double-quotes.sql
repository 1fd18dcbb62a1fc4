CREATE TABLE users ("user id" BIGINT, country TEXT) WITH (connector = 'files', path = 'x', format = 'json');
CREATE VIEW a AS SELECT country FROM users WHERE country <> "";
CREATE VIEW b AS SELECT "a`b" FROM users;
SELECT "user id" FROM "user";
