SELECT approx_median(a), approx_percentile_cont(a, 0.5), approx_percentile_cont(a, 0.5, 200)
SELECT approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY a), approx_percentile_cont(0.9, 50) WITHIN GROUP (ORDER BY a DESC)
SELECT approx_percentile_cont_with_weight(w, 0.9) WITHIN GROUP (ORDER BY a) FILTER (WHERE a > 1), approx_percentile_cont_with_weight(a, w, 0.9)
SELECT percentile_cont(a, 0.9), quantile_cont(a, 0.9), quantile_cont(0.9) WITHIN GROUP (ORDER BY a DESC), percentile_cont(0.9) WITHIN GROUP (ORDER BY a)
