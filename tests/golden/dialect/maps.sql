SELECT map([1], [2]), map(make_array('a'), make_array(b)), map('a', 1), map(xs, ys), make_map('a', 1)
SELECT map_extract(m, 'a'), element_at(m, 'a'), map_keys(m), row(1, 'a')
SELECT get_field(s, 'n'), get_field(s, 'two words', 'n'), struct(1 AS n)
