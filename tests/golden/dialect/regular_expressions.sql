SELECT a ~ 'x+', a !~ 'x', a ~* 'x', lower(a) !~* 'y', ~bits
SELECT regexp_match(a, '([a-z]+)=(\\d+)'), regexp_match(a, 'x+')
SELECT regexp_replace(a, 'x', 'y', 'g'), regexp_replace(a, 'x', 'y'), regexp_like(a, 'x')
SELECT regexp_like(a, '(x|y)', 'i'), regexp_count(a, 'x', 2), regexp_count(a, 'x', 1, 'i'), regexp_match(a, 'x', 'i')
SELECT regexp_like(a, '^\w+\.\d$'), a ~ '\d', a RLIKE '\d', regexp_like(a, r'\d'), regexp_match(a, '(\d+)\n'), a SIMILAR TO 'x|y'
SELECT regexp_replace(a, 'x(.)', '\1${1}$1', 'g'), regexp_replace(a, 'x', 'y', 'gi'), regexp_replace(a, 'x', 'y', 3)
