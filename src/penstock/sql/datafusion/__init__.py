"""The SQL of DataFusion as Spark SQL, for all dialects of scripts that are built on DataFusion.

`rules` has forms that Spark does not have, and `meaning` forms with another meaning in Spark: the
division of whole numbers, the numbers of elements, the order of nulls. JSON functions are those of
`datafusion-functions-json`; patterns are those of Rust.
"""
