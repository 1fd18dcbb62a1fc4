SELECT arrow_cast(a, 'Int64'), arrow_cast(a + 1, 'Timestamp(Microsecond, None)'), arrow_try_cast(a, 'Utf8')
SELECT arrow_cast(a, 'Timestamp(Millisecond, Some("UTC"))'), arrow_cast(a, 'List(Decimal128(10, 2))')
