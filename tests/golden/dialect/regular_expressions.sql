SELECT a ~ 'x+', a !~ 'x', a ~* 'x', lower(a) !~* 'y', ~bits
SELECT regexp_match(a, '([a-z]+)=(\\d+)'), regexp_match(a, 'x+')
SELECT regexp_replace(a, 'x', 'y', 'g'), regexp_replace(a, 'x', 'y'), regexp_like(a, 'x')
