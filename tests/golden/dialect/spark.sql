SELECT window.start, count(*) FROM t GROUP BY window(at, '5 minutes'), session_window(at, '1 minute')
SELECT /*+ BROADCAST(b) */ a.*, -- 'a comment'
  `odd name`, xs[0], named_struct('a', 1).a, 1.5e3, 10L, x"1F" FROM a, b WHERE a.x <=> b.x
