SELECT a ~ 'x+', a !~ 'x', a ~* 'x', lower(a) !~* 'y', ~bits
SELECT regexp_match(a, '([a-z]+)=(\\d+)'), regexp_match(a, 'x+')
SELECT regexp_replace(a, 'x', 'y', 'g'), regexp_replace(a, 'x', 'y'), regexp_like(a, 'x')
SELECT regexp_like(a, '(x|y)', 'i'), regexp_count(a, 'x', 2), regexp_count(a, 'x', 1, 'i'), regexp_match(a, 'x', 'i')
SELECT regexp_like(a, '^\w+\.\d$'), a ~ '\d', a RLIKE '\d', regexp_like(a, r'\d'), regexp_match(a, '(\d+)\n'), a SIMILAR TO 'x|y'
SELECT regexp_replace(a, 'x(.)', '\1${1}$1', 'g'), regexp_replace(a, 'x', 'y', 'gi'), regexp_replace(a, 'x', 'y', 3)
SELECT regexp_match(a, 'v(?<maj>[0-9])\.(?P<min_or>\d+)'), a ~ '^\w+ .$', a ~* 'é', a !~ '[[:alpha:]_[:^space:]]\p{Letter}\p{Greek}\pL\x{e9}\u{e9}'
SELECT a ~ r'\<a\>\v', a ~ '(?i-s:x)(?-i)y', a ~ '(?m)^x$', a ~ '[]$.]\Q(.$\E(?=x)(?<!y)', a ~ '[^[:digit:]].{2}' || b, a ~* 'x' || b
SELECT regexp_replace(a, '(\d{3})-(?<to>\d)', '$1 ${to}2 $$ US$5 $to', ''), regexp_replace(a, 'x', b, 'i'), regexp_replace(a, b, '\1', ''), regexp_replace(a, b, c, 'i')
SELECT regexp_instr(a, 'x$', 3, 1), regexp_instr(a, b, 1, 1, 'i'), regexp_count(a, '.', n, ''), regexp_like(a, b, 'i'), regexp_like(a, '\p{Lu}')
SELECT regexp_extract(a, '\d+', 0), regexp_extract_all(a, "\w"), regexp_substr(a, '\\.\.'), split(a, '\|'), split(a, b), rlike(a, '\s'), regexp(a, r'\d') FROM t WHERE a RLIKE '\d\\d' AND NOT a REGEXP '^\w' AND a NOT RLIKE '\n\t\%'
