SELECT [1, 2, 3], [[1], []], ARRAY[1, 2], array[0], xs[0], xs[0][1], f(x)[2], [1, 2][0], a::INT[]
SELECT MAP {'a': 1, 'b': [2]}, MAP {'a': 1}['a'], {n: 1, 's': {t: 'x'}}, MAP {}
SELECT xs @> make_array(1), make_array(1) <@ f(xs), a.xs @> ys
