SELECT *, row_number() OVER (PARTITION BY window ORDER BY c) AS place FROM w
