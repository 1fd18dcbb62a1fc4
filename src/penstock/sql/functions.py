"""Functions of Spark SQL with state, chance or the current time, from Spark's registry.

Written by `tests/integration/function_registry.py`; do not edit.
"""

from __future__ import annotations

AGGREGATES = frozenset(
    [
        "any", "any_value", "approx_count_distinct", "approx_percentile", "approx_top_k",
        "approx_top_k_accumulate", "approx_top_k_combine", "array_agg", "avg", "bit_and", "bit_or",
        "bit_xor", "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or",
        "collect_list", "collect_set", "collect_union", "corr", "count", "count_if",
        "count_min_sketch", "covar_pop", "covar_samp", "cume_dist", "dense_rank", "every", "first",
        "first_value", "grouping", "grouping_id", "histogram_numeric", "hll_sketch_agg",
        "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float",
        "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "kurtosis",
        "last", "last_value", "listagg", "max", "max_by", "mean", "measure", "median", "min",
        "min_by", "mode", "nth_value", "ntile", "percent_rank", "percentile", "percentile_approx",
        "percentile_cont", "percentile_disc", "rank", "regr_avgx", "regr_avgy", "regr_count",
        "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "row_number",
        "schema_of_variant_agg", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp",
        "string_agg", "sum", "theta_intersection_agg", "theta_sketch_agg", "theta_union_agg",
        "try_avg", "try_sum", "tuple_intersection_agg_double", "tuple_intersection_agg_integer",
        "tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double",
        "tuple_union_agg_integer", "var_pop", "var_samp", "variance", "vector_avg", "vector_sum",
    ]
)  # fmt: skip
"""Functions over several rows."""

NONDETERMINISTIC = frozenset(
    [
        "input_file_block_length", "input_file_block_start", "input_file_name", "java_method",
        "monotonically_increasing_id", "rand", "randn", "random", "randstr", "reflect", "shuffle",
        "spark_partition_id", "try_reflect", "uniform", "uuid",
    ]
)  # fmt: skip
"""Functions whose results differ between two evaluations of the same rows."""

CLOCKS = frozenset(
    [
        "current_date", "current_time", "current_timestamp", "localtime",
    ]
)  # fmt: skip
"""Functions that read the current time."""

CLOCKS_WITHOUT_ARGUMENTS = frozenset(
    [
        "curdate", "current_date", "current_time", "current_timestamp", "localtime",
        "localtimestamp", "now", "unix_timestamp",
    ]
)  # fmt: skip
"""Functions that read the current time if called with no argument."""

CLOCKS_WITHOUT_PARENTHESES = frozenset(
    [
        "current_date", "current_time", "current_timestamp", "localtime",
    ]
)  # fmt: skip
"""Functions that read the current time, also as a bare word."""
