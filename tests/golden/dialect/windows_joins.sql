SELECT a.c, b.c FROM w AS a JOIN w AS b ON a.u = b.u WHERE a.c > 1
SELECT a.c FROM w AS a FULL JOIN w AS b ON a.window = b.window AND a.u = b.u
SELECT a.c, b.c FROM w AS a JOIN w AS b USING (u)
SELECT a.c, b.c FROM w AS a JOIN w AS b USING (u, window)
SELECT a.c FROM w AS a JOIN (SELECT * FROM w) b ON a.u = b.u JOIN (SELECT * FROM w) c ON b.u = c.u
