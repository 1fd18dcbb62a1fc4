SELECT a."end", w."start" AS "first day", "a text" FROM "orders" AS o JOIN "users" ON true
SELECT "x" || 'y'
