SELECT strpos(a, 'x'), array_length(xs), unnest(xs) AS x, make_array(1, 2), starts_with(a, 'b')
SELECT array_has(xs, 1), array_has_any(xs, ys), array_has_all(xs, ys), array_to_string(xs, ',')
SELECT approx_distinct(a), approx_median(b), approx_percentile_cont(b, 0.9), var(x), stddev(x)
SELECT array_push_back(xs, 1), array_element(xs, 1), arrow_typeof(a), count(*), coalesce(a, b)
