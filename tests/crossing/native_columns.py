"""Columns with the own types of databases, and their extreme values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal

from crossing.native import Column

UINT256, INT256 = 2**256 - 1, 2**255 - 1
EVENING = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
LOCAL = EVENING.replace(tzinfo=None)
POSTGRES: Mapping[str, Column] = {
    "wide": Column(
        "numeric(78,0)", [str(UINT256), "-" + "9" * 78, "0"], unwritten=["1.5", "1e-1", "1" * 79]
    ),
    "fine": Column("numeric(78,20)", [f"{'9' * 58}.{'9' * 20}", "1e-20"], unwritten=["1e-21"]),
    "free": Column(
        "numeric",
        ["1e-18", "12345678901234567890.123456789012345678"],
        ["'NaN'", "1e-19", "1e40", "'Infinity'"],
    ),
    "coarse": Column("numeric(5,-2)", ["12300"], unwritten=[Decimal(12345)]),
    "exact": Column("numeric(10,2)", ["12.30", "-99999999.99"], ["'NaN'"]),
    "span": Column(
        "interval",
        ["'1 year 2 mons -3 days 04:05:06.789012'", "'-178000000 years'", "'0'"],
        unwritten=["PT0.0000001S", "1.0000001 seconds"],
    ),
    "short_span": Column("interval(0)", ["'1 hour 2 seconds'"], unwritten=["PT0.5S", "1.5 s"]),
    "days": Column("interval day", ["'3 days'"], unwritten=["P1DT5H"]),
    "mood": Column("mood", ["'glad'", "'so \"so\"'", "''"], unwritten=["sad"]),
    "moods": Column("mood[]", ['\'{glad,"so \\"so\\"",NULL}\'', "'{}'"], unwritten=[["sad"]]),
    "day": Column(
        "date",
        ["'0001-01-01'", "'9999-12-31'", "'1582-10-10'"],
        ["'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-12-31'"],
    ),
    "days_off": Column("date[]", ["'{2024-02-29,NULL}'"], ["'{infinity}'"]),
    "moment": Column(
        "timestamptz",
        ["'0001-01-01 00:00:00+00'", "'9999-12-31 23:59:59.999999+00'"],
        ["'infinity'", "'-infinity'", "'4713-01-01 00:00:00+00 BC'", "'294276-12-31 23:59:59+00'"],
    ),
    "wall": Column("timestamp", ["'9999-12-31 23:59:59.999999'"], ["'infinity'", "'-infinity'"]),
    "seconds": Column("timestamptz(0)", ["'2024-02-29 23:59:59+00'"], unwritten=[EVENING]),
    "instants": Column("timestamp(0)[]", ["'{2024-02-29 23:59:59}'"], unwritten=[[LOCAL]]),
    "clock": Column(
        "time(3)", ["'23:59:59.999'", "'24:00:00'"], unwritten=["10:00:00.0005", "25:00"]
    ),
    "zoned_clock": Column("timetz", ["'10:11:12.123456+05:30'"], unwritten=["10:00:00.0000001Z"]),
    "code": Column("varchar(3)", ["'abc'", "'a  '", "''"], unwritten=["abc ", "abcd"]),
    "codes": Column("varchar(3)[]", ["'{abc,\"a  \"}'"], unwritten=[["abc "]]),
    "padded": Column("char(4)", ["'ab'"], unwritten=["abcd ", "abcde"]),
    "label": Column("name", ["'ab'"], unwritten=["a" * 64, "ü" * 32]),
    "letter": Column('"char"', ["'a'"], unwritten=["ab"]),
    "cash": Column("money", ["'-92233720368547758.08'"], unwritten=["1.239"]),
    "uid": Column("uuid", ["'6f9619ff-8b86-d011-b42d-00cf4fc964ff'"], unwritten=["6f96"]),
    "net": Column("inet", ["'10.0.0.1/8'", "'::ffff:1.2.3.4'"], unwritten=["10.0.0.256"]),
    "bits": Column("bit(3)", ["B'101'"], unwritten=["1", "1010"]),
    "more_bits": Column("varbit(3)", ["B'10'", "B''"], unwritten=["1010"]),
    "number": Column("oid", ["4294967295"], unwritten=[-1, 2**32]),
    "small": Column("smallint", ["32767", "-32768"]),
    "single": Column("real", ["'3.4028235e38'", "'NaN'", "'-0'", "'1e-45'", "'-Infinity'"]),
    "twice": Column("double precision", ["1.7976931348623157e308", "'-0'", "5e-324", "0.1"]),
    "numbers": Column(
        "numeric(78,0)[]",
        [f"'{{{UINT256},NULL}}'", "'{}'"],
        ["'{{1,2},{3,4}}'"],
        unwritten=[["1.5"]],
    ),
    "grid": Column("integer[]", ["'{1,NULL}'"], ["'{{1,2}}'", "'[0:1]={1,2}'"]),
    "documents": Column("jsonb[]", ["ARRAY['{\"a\": [1.50, null]}'::jsonb, NULL]"]),
    "document": Column("jsonb", ['\'{"a": 1.50, "": "\\""}\'', "'null'", "'[]'"], ["'1e400'"]),
    "text_document": Column("json", ["'{\"a\" : 1.0}'", "'null'"]),
    "seven": Column("int4range", ["'[1,5)'", "'empty'"]),
    "pair": Column("pair", ["ROW(1, 'a,\"b')"], unwritten=["(x,y)"]),
    "pairs": Column(
        "pair[]", ["ARRAY[ROW(1, 'a,\"b\\'), NULL]::pair[]", "'{}'"], unwritten=[["(1,x,y)"]]
    ),
    "fine_pair": Column(
        "fine_pair",
        [
            "ROW(1.25, 'abc', ROW(1, NULL), ARRAY[1.5, NULL], '[2024-02-29 10:00,)', "
            "'2024-02-29', 0.1, '1 mon 2 days', ARRAY[ROW(1, '(\"')]::pair[])"
        ],
        unwritten=[
            '(1.239,abc,"(1,)",,,,,,)',
            '(1.25,"abc ",,,,,,,)',
            '(,,,"{{1.5},{1.239}}",,,,,)',
            '(,,,,"[""2024-02-29 10:00:00.0000001"",)",,,,)',
            '(,,,,,"2024-02-29 10:00",,,)',
            '(,,,,"[2024-02-29T10:00:00+01,)",,,,)',
            "(,,,,,,0.10000000149,,)",
            "(,,,,,,,PT0.0000001S,)",
            '(,,,"[0:0]={1.239}",,,,,)',
        ],
    ),
    "cents": Column("cents", ["1.20"], unwritten=[Decimal("-1.20")]),
    "cent_list": Column("cents[]", ["'{1.20,NULL}'", "'{}'"], ["'{{1},{2}}'", "'{NaN}'"]),
    "whole_cents": Column("whole_cents", ["120"], unwritten=[Decimal("-1.00")]),
    "lists": Column(
        "cent_lists[]",
        ["ARRAY['{1.20,NULL}', '{}', NULL]::cent_lists[]", "'{}'"],
        ["'{\"{{1}}\"}'", "'{\"[0:0]={1}\"}'"],
    ),
    "list": Column("cent_lists", ["'{1.20}'"], ["'[2:2]={1}'"]),
    "pair_domain": Column("pair_domain", ["'(1,b)'"], unwritten=["(-1,b)"]),
    "spans": Column("interval(0)[]", ["'{PT2S,NULL}'"], unwritten=[["PT0.5S"]]),
    "moments": Column(
        "tstzrange",
        ["'[2024-02-29 10:00+00,infinity)'", "'(,)'"],
        unwritten=["[2024-02-29 10:00:00.0000001+00,)"],
    ),
    "dates": Column(
        "daterange", ["'[2024-02-29,2024-03-01]'"], unwritten=["[2024-02-29 10:00,2025-01-01)"]
    ),
    "holes": Column(
        "tsmultirange",
        ["'{[2024-02-29 10:00,2024-03-01 10:00)}'", "'{}'"],
        unwritten=["{[2024-02-29 10:00:00.0000001,)}", "{[2024-02-29 10:00:00+05,)}"],
    ),
    "amounts": Column("numrange", ["'[1.10,1e40)'"]),
    "ranges": Column("int4range[]", ["ARRAY['[1,5)', NULL, 'empty']::int4range[]"]),
    "bit_list": Column("varbit(3)[]", ["ARRAY[B'10', B'', NULL]"], unwritten=[["1010"]]),
    "chars": Column("char(4)[]", ["'{ab,NULL}'"], unwritten=[["abcde"]]),
    "local_clock": Column(
        "time", ["'10:00'"], unwritten=["10:00+05", "2024-02-29 10:00", "10:00 UTC"]
    ),
    "store": Column("public.hstore", ['\'a=>1, "b \\""=>NULL\'', "''"]),
    "markup": Column("xml", ["'<a b=\"c\">&lt;</a>'", "'x'"], unwritten=["<a"]),
    "words": Column("tsvector", ["'a:1A ''b c'':2,3'", "''"]),
    "search": Column("tsquery", ["'a & !b:*'"]),
    "point": Column(
        "point", ["'(0.1,-0)'", "'(NaN,Infinity)'"], unwritten=["(0.12345678901234567,1)"]
    ),
    "areas": Column("box[]", ["'{(1,1),(0,0);(2,2),(0,0)}'"]),
    "points": Column("point[]", ["'{\"(0.1,1)\"}'"], unwritten=[["(0.12345678901234567,1)"]]),
    "shape": Column("polygon", ["'((0,0),(1,1),(1e-300,0))'"]),
    "round": Column("circle", ["'<(0,0),0.1>'"]),
    "class": Column("regclass", ["'pg_class'", "'0'"], unwritten=["no_such_table"]),
    "log": Column("pg_lsn", ["'FFFFFFFF/FFFFFFFF'"], unwritten=["0"]),
    "short_number": Column("xid", ["'4294967295'"], unwritten=["-1", "4294967296", "x"]),
    "long_number": Column("xid8", ["'18446744073709551615'"], unwritten=["-1", "x"]),
    "infinite_days": Column("timestamp[]", ["'{2024-02-29 10:00}'"], ["'{infinity}'"]),
    "raw": Column("bytea", ["'\\x00ff'", "''"]),
}
MYSQL: Mapping[str, Column] = {
    "whole": Column(
        "bigint unsigned", [str(2**64 - 1), "0"], unwritten=[Decimal(2**64), Decimal(-1)]
    ),
    "tiny": Column("tinyint unsigned", ["255"], unwritten=[-1, 256]),
    "medium": Column("mediumint", ["-8388608"], unwritten=[8388608]),
    "flag": Column("tinyint(1)", ["1", "0"], ["2", "-1"]),
    "wide": Column(
        "decimal(65,30)", [f"{'9' * 35}.{'9' * 30}", "1e-30"], unwritten=["1e-31", "1" * 36]
    ),
    "narrow": Column("decimal(65,0)", ["9" * 65], unwritten=["1.5", "1e-1", "x"]),
    "price": Column("decimal(10,2) unsigned", ["1.50"], unwritten=[Decimal("-1.00")]),
    "bits": Column("bit(64)", ["b'1'", str(2**64 - 1)], unwritten=[b"\0" * 9, b"1"]),
    "bit": Column("bit(1)", ["b'1'"]),
    "born": Column("year", ["1901", "2155", "0"], unwritten=[24, 1900, 2156]),
    "single": Column("float", ["16777217", "0.1", "-3.4e38", "1e-45"]),
    "twice": Column("double", ["1.7976931348623157e308", "5e-324", "0.1"]),
    "rounded": Column("float(7,2)", ["1.25"], unwritten=[1.239]),
    "rounded_twice": Column("double(7,2)", ["1.25"], unwritten=[1.239]),
    "day": Column(
        "date", ["'0001-01-01'", "'9999-12-31'"], ["'0000-00-00'", "'2024-00-10'", "'2024-01-00'"]
    ),
    "moment": Column(
        "timestamp(6) NULL",
        ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'"],
        ["0"],
        unwritten=[dt.datetime(2038, 1, 20, tzinfo=dt.UTC), dt.datetime(1969, 1, 1, tzinfo=dt.UTC)],
    ),
    "wall": Column(
        "datetime(6)", ["'9999-12-31 23:59:59.999999'"], ["'0000-00-00'", "'2024-00-10 10:00:00'"]
    ),
    "seconds": Column("datetime", ["'2024-02-29 23:59:59'"], unwritten=[LOCAL]),
    "clock": Column(
        "time(1)", ["'-838:59:59'", "'10:11:12.5'"], unwritten=["10:11:12.55", "839:00:00"]
    ),
    "document": Column("json", ["'{\"a\" : 1.50}'", "'null'", "'[]'"]),
    "choice": Column("enum('a', 'it''s', '')", ["'it''s'", "''"], unwritten=["b", "1", "A "]),
    "choices": Column("set('x', 'y')", ["'x,y'", "''"], unwritten=["z", "x,z", "3"]),
    "code": Column("varchar(3)", ["'abc'", "'a  '"], unwritten=["abc ", "abcd"]),
    "padded": Column("char(4)", ["'ab'"], unwritten=["abcd ", "abcde", "ab "]),
    "latin": Column("varchar(9) CHARACTER SET latin1", ["'é'"], unwritten=["\u4e00"]),
    "ascii_text": Column("varchar(9) CHARACTER SET ascii", ["'e'"], unwritten=["é"]),
    "short_emoji": Column("varchar(9) CHARACTER SET utf8mb3", ["'é'"], unwritten=["\U0001f600"]),
    "tiny_text": Column("tinytext", ["repeat('a', 255)"], unwritten=["a" * 256]),
    "fixed": Column("binary(3)", ["X'010200'"], unwritten=[b"12", b"1234"]),
    "raw": Column("varbinary(2)", ["X'00ff'", "''"], unwritten=[b"123"]),
    "place": Column("point", ["ST_GeomFromText('POINT(1 2)')"]),
    "uid": Column(
        "uuid", ["'6f9619ff-8b86-1011-b42d-00cf4fc964ff'"], unwritten=["6f96", "", "6f9619ff "]
    ),
    "net4": Column("inet4", ["'10.0.0.1'", "'0.0.0.0'"], unwritten=["10.0.0.256", "::1", "1.2.3"]),
    "net6": Column("inet6", ["'::ffff:1.2.3.4'", "'2001:db8::'"], unwritten=["1.2.3.4", "::g"]),
}
CLICKHOUSE: Mapping[str, Column] = {
    "int256": Column(
        "Int256", [f"'{INT256}'", f"'{-INT256 - 1}'"], unwritten=[str(INT256 + 1), "1.5", "1e3"]
    ),
    "uint256": Column("UInt256", [f"'{UINT256}'", "0"], unwritten=[str(UINT256 + 1), "-1"]),
    "int128": Column("Nullable(Int128)", [f"'{-(2**127)}'", "NULL"], unwritten=[str(2**127)]),
    "uint64": Column("UInt64", [str(2**64 - 1)], unwritten=[Decimal(2**64), Decimal(-1)]),
    "uint8": Column("UInt8", ["255"], unwritten=[-1, 256]),
    "wide": Column(
        "Decimal256(30)",
        [f"'{'9' * 46}.{'9' * 30}'", "'-1e-30'"],
        unwritten=["0." + "0" * 30 + "1", "1" * 47],
    ),
    "price": Column("Decimal(10, 2)", ["'12.30'", "'-99999999.99'"]),
    "nanos": Column(
        "DateTime64(9, 'UTC')",
        ["'2024-02-29 23:59:59.123456000'"],
        ["'2024-02-29 23:59:59.123456789'"],
        unwritten=[dt.datetime(2300, 1, 1, tzinfo=dt.UTC)],
    ),
    "millis": Column(
        "DateTime64(3, 'Asia/Tokyo')", ["'2024-02-29 23:59:59.123'"], unwritten=[EVENING]
    ),
    "seconds": Column(
        "DateTime('Europe/Zurich')",
        ["'2024-10-27 02:30:00'"],
        unwritten=[
            EVENING,
            dt.datetime(1969, 12, 31, tzinfo=dt.UTC),
            dt.datetime(2106, 2, 8, tzinfo=dt.UTC),
        ],
    ),
    "day": Column(
        "Date",
        ["'2149-06-06'", "'1970-01-01'"],
        unwritten=[dt.date(1969, 12, 31), dt.date(2149, 6, 7)],
    ),
    "long_day": Column(
        "Date32",
        ["'1900-01-01'", "'2299-12-31'"],
        unwritten=[dt.date(1899, 12, 31), dt.date(2300, 1, 1)],
    ),
    "fixed": Column("FixedString(3)", ["'abc'"], unwritten=[b"ab", b"abcd"]),
    "text": Column("String", ["'a\\0b'", "'ü'"], ["unhex('ff')"]),
    "choice": Column("Enum8('a' = 1, 'it\\'s' = -2)", ["'it\\'s'"], unwritten=["b", "1", ""]),
    "uid": Column("UUID", ["'6f9619ff-8b86-d011-b42d-00cf4fc964ff'"], unwritten=["6f96", ""]),
    "ipv4": Column("IPv4", ["'255.0.0.1'"], unwritten=["256.0.0.1", "1.2.3"]),
    "ipv6": Column("IPv6", ["'::1'", "'::ffff:1.2.3.4'"], unwritten=[":::1", "x"]),
    "single": Column("Float32", ["'nan'", "'-inf'", "16777217", "0.1", "'-0'"]),
    "small": Column("BFloat16", ["1.5"], unwritten=[1.001]),
    "twice": Column("Float64", ["5e-324", "0.1", "'-0'"]),
    "wides": Column(
        "Array(Int256)", [f"['{INT256}']", "[]"], unwritten=[["1.5"], [str(INT256 + 1)]]
    ),
    "decimals": Column(
        "Array(Nullable(Decimal(76, 4)))", ["['1.5000', NULL]"], unwritten=[["1.23456"]]
    ),
    "nano_list": Column(
        "Array(DateTime64(9, 'UTC'))",
        ["['2024-02-29 23:59:59.123456000']"],
        ["['2024-02-29 23:59:59.123456789']"],
    ),
    "milli_list": Column(
        "Array(DateTime64(3, 'UTC'))", ["['2024-02-29 23:59:59.123']"], unwritten=[[EVENING]]
    ),
    "grid": Column("Array(Array(Nullable(Int8)))", ["[[1, NULL], []]"]),
    "place": Column(
        "Tuple(n UInt256, at DateTime64(3, 'UTC'), inner Tuple(e Enum8('a' = 1)))",
        [f"('{UINT256}', '2024-02-29 23:59:59.123', tuple('a'))"],
        unwritten=[
            {"n": "-1", "at": EVENING.replace(microsecond=0), "inner": {"e": "a"}},
            {"n": "1", "at": EVENING, "inner": {"e": "a"}},
            {"n": "1", "at": EVENING.replace(microsecond=0), "inner": {"e": "b"}},
        ],
    ),
    "visits": Column(
        "Array(Tuple(a Int64, b Decimal(76, 2)))",
        ["[(1, '1.50')]", "[]"],
        unwritten=[[{"a": 1, "b": "1.505"}]],
    ),
    "tags": Column(
        "Map(String, UInt256)", [f"map('a', '{UINT256}', '', '0')"], unwritten=[[("a", "-1")]]
    ),
    "keyed": Column("Map(UInt64, Array(String))", ["map(1, ['a'])"]),
    "code": Column("LowCardinality(Nullable(String))", ["'a'", "NULL"]),
}
DUCKDB: Mapping[str, Column] = {
    "huge": Column("HUGEINT", [str(10**38 - 1)], [str(2**127 - 1)]),
    "uhuge": Column("UHUGEINT", ["0"], [str(2**128 - 1)], unwritten=[Decimal(-1)]),
    "uint64": Column("UBIGINT", [str(2**64 - 1)], unwritten=[Decimal(2**64), Decimal(-1)]),
    "uint8": Column("UTINYINT", ["255"], unwritten=[-1, 256]),
    "wide": Column("DECIMAL(38, 10)", ["'9999999999999999999999999999.9999999999'"]),
    "number": Column("BIGNUM", [f"'{UINT256}'::BIGNUM"], unwritten=["1.5", "x"]),
    "nanos": Column(
        "TIMESTAMP_NS",
        ["'2024-02-29 23:59:59.123456'"],
        ["'2024-02-29 23:59:59.123456789'"],
        unwritten=[dt.datetime(2300, 1, 1)],
    ),
    "millis": Column("TIMESTAMP_MS", ["'2024-02-29 23:59:59.123'"], unwritten=[LOCAL]),
    "seconds": Column("TIMESTAMP_S", ["'2024-02-29 23:59:59'"], unwritten=[LOCAL]),
    "moment": Column(
        "TIMESTAMPTZ",
        ["'9999-12-31 23:59:59.999999+00'"],
        ["'infinity'", "'-infinity'", "'294247-01-10 04:00:54+00'"],
    ),
    "day": Column("DATE", ["'0001-01-01'", "'9999-12-31'"], ["'infinity'", "'0044-03-15 (BC)'"]),
    "clock": Column("TIME", ["'23:59:59.999999'"], unwritten=["10:00:00.0000001", "25:00:00"]),
    "zoned_clock": Column("TIMETZ", ["'10:11:12.123456+05:30'"], unwritten=["10:00:00.0000001+00"]),
    "span": Column(
        "INTERVAL",
        ["'1 year 2 months -3 days 04:05:06.789012'"],
        unwritten=["0.0000001 seconds", "x"],
    ),
    "mood": Column("ENUM('glad', 'it''s')", ["'it''s'"], unwritten=["sad", "GLAD"]),
    "uid": Column("UUID", ["'6f9619ff-8b86-d011-b42d-00cf4fc964ff'"], unwritten=["6f96"]),
    "bits": Column("BIT", ["'101'"], unwritten=["102"]),
    "single": Column("FLOAT", ["'nan'", "'-inf'", "16777217", "0.1", "'-0'"]),
    "huges": Column("HUGEINT[]", [f"[{10**38 - 1}, NULL]", "[]"], [f"[{2**127 - 1}]"]),
    "nano_list": Column(
        "TIMESTAMP_NS[]", ["['2024-02-29 23:59:59.123456']"], ["['2024-02-29 23:59:59.123456789']"]
    ),
    "milli_list": Column("TIMESTAMP_MS[]", ["['2024-02-29 23:59:59.123']"], unwritten=[[LOCAL]]),
    "triple": Column("INTEGER[3]", ["[1, NULL, 3]"], unwritten=[[1], [1, 2, 3, 4]]),
    "grid": Column("INTEGER[][]", ["[[1, NULL], [], NULL]"]),
    "place": Column(
        "STRUCT(n UBIGINT, moment TIMESTAMP_S, clock TIME)",
        [f"{{'n': {2**64 - 1}, 'moment': '2024-02-29 23:59:59', 'clock': '10:00:00'}}"],
        unwritten=[
            {"n": Decimal(1), "moment": LOCAL, "clock": "10:00:00"},
            {"n": Decimal(1), "moment": LOCAL.replace(microsecond=0), "clock": "10:00:00.0000001"},
        ],
    ),
    "tags": Column(
        "MAP(VARCHAR, UBIGINT)",
        [f"MAP {{'a': {2**64 - 1}, '': NULL}}"],
        unwritten=[[("a", Decimal(-1))]],
    ),
    "either": Column(
        "UNION(n INTEGER, s VARCHAR)", ["union_value(n := 1)", "union_value(s := 'x')"]
    ),
    "document": Column("JSON", ["'{\"a\": 1.50}'", "'null'"]),
}
