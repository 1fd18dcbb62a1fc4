SELECT a."end", w."start" AS "first day", "a text" FROM "orders" AS o JOIN "users" ON true
SELECT "x" || 'y'
WITH été AS (SELECT id AS größe FROM e) SELECT été.größe + 1 ñ FROM été
