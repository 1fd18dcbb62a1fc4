"""Components of graphs of stream-data-processor, each with its reading."""

from __future__ import annotations

from typing import Any

PARSER = "parser: {type: csv, schema: {time: timestamp, v: double}}"
PRODUCERS: list[tuple[str, dict[str, Any]]] = [
    ("{type: tcp, endpoint: 'tcp://127.0.0.1:4200', batch: [time], PARSER}",
     {"type": "tcp", "listen": "127.0.0.1:4200", "framing": None}),
    ("{type: tcp, endpoint: '127.0.0.1:4200', is_external: false, PARSER}",
     {"listen": "127.0.0.1:4200", "framing": {"digits": 10}}),
    ("{type: zeromq, endpoint: 'ipc:///tmp/A_to_B', PARSER}",
     {"type": "zeromq", "connect": "ipc:///tmp/A_to_B", "sync": "ipc:///tmp/A_to_B_sync"}),
    ("{type: zeromq, endpoint: 'tcp://h:1', sync: 'tcp://h:2', PARSER}",
     {"connect": "tcp://h:1", "sync": "tcp://h:2"}),
    ("{type: zeromq, endpoint: 'ipc:///tmp/x', sync: false, batch: [v], PARSER}", {"sync": None}),
    ("{type: file, path: in/*.csv, batch: [v], PARSER}",
     {"type": "files", "path": "in/*.csv", "order": "name", "max_files": 1}),
]  # fmt: skip
PARSERS: list[tuple[str, dict[str, Any]]] = [
    ("{type: graphite, template_strings: [host.measurement.cpu], time_column_name: at, "
     "measurement_column_name: name, separator: '/', fields: {idle: double, user: int64}}",
     {"format": {"type": "graphite", "templates": ["host.measurement.cpu"], "separator": "/",
                 "time": "at", "measurement": "name"},
      "schema": "`at` TIMESTAMP, `name` STRING, `host` STRING, `cpu` STRING, `idle` DOUBLE, "
                "`user` BIGINT"}),
    ("{type: graphite, template_strings: ['x.* .host.field* a=b,c=d']}",
     {"format": {"type": "graphite", "templates": ["x.* .host.field* a=b,c=d"]}}),
    ("{type: csv, schema: {time: timestamp, b: bool, s: string}, time_column_name: time, "
     "header: none}",
     {"format": {"type": "csv", "header": False},
      "schema": "`time` TIMESTAMP, `b` BOOLEAN, `s` STRING"}),
    ("{type: csv, schema: {time: timestamp}}", {"format": {"type": "csv", "header": True}}),
]  # fmt: skip
CONSUMERS: list[tuple[str, dict[str, Any]]] = [
    ("{type: print, from: n}", {"type": "print", "table": True}),
    ("{type: print, from: n, format: json}", {"type": "print", "format": "json"}),
    ("{type: file, from: n, path: out, format: csv}",
     {"type": "files", "path": "out", "format": "csv"}),
    ("{type: tcp, from: n, endpoints: ['tcp://h:1'], format: json}",
     {"type": "tcp", "connect": "h:1", "framing": {"digits": 10}, "format": "json"}),
    ("{type: tcp, from: n, endpoints: ['h:1'], is_external: true}",
     {"connect": "h:1", "framing": None}),
    ("{type: zeromq, from: n, endpoint: 'tcp://*:5', sync: ['tcp://h:6'], format: csv}",
     {"type": "zeromq", "listen": "tcp://*:5", "sync": ["tcp://h:6"], "format": "csv"}),
]  # fmt: skip
HANDLERS: list[tuple[str, dict[str, Any]]] = [
    ("{type: default, int64: {i: 1}, double: {d: 1, i: 2}, string: {s: x}, bool: {b: true}, "
     "scope: both, column_type: tag}",
     {"columns": {"i": 1, "d": 1.0, "s": "x", "b": True}, "scope": "both", "role": "TAG"}),
    ("{type: filter, conditions: [v > 1, v < 5]}", {"where": ["v > 1", "v < 5"]}),
    ("{type: map, expressions: {w: v + 1.0}, column_type: field}",
     {"set": {"w": "v + 1.0"}, "role": "FIELD"}),
    ("{type: group, columns: [k, i]}", {"by": ["k", "i"]}),
    ("{type: sort, columns: [k]}", {"by": ["k"]}),
    ("{type: aggregate, aggregate_columns: {v: {last: v.last, mean: v.mean}}, "
     "result_time_column_rule: {max: at}, column_type: field}",
     {"columns": [
         {"function": "last", "column": "v", "as": "v.last", "role": "FIELD"},
         {"function": "mean", "column": "v", "as": "v.mean", "role": "FIELD"},
     ], "time": "max", "time_as": "at"}),
    ("{type: join, join_on_columns: [k], tolerance: 3}", {"on": ["k"], "tolerance": "3s"}),
    ("{type: window, period: 420, every: 2 minutes, fill_period: true}",
     {"period": "420s", "every": "2 minutes", "fill_period": True}),
    ("{type: dynamic_window, period: 7, every: 5, fill_period: false, period_column_name: i, "
     "every_column_name: i, time_unit: s}",
     {"period": "7s", "every": "5s", "fill_period": False, "period_column": "i",
      "every_column": "i", "unit": "s"}),
    ("{type: threshold, watch_column: v, threshold_column: level, default_threshold: 10, "
     "increase_scale_factor: 2, increase_after: 5, decrease_trigger_factor: 0.3, "
     "decrease_scale_factor: 0.5, decrease_after: 6, min_threshold: 2, max_threshold: 70}",
     {"column": "v", "as": "level", "default": 10, "min": 2, "max": 70,
      "increase": {"factor": 2, "duration": "5s"},
      "decrease": {"trigger": 0.3, "factor": 0.5, "duration": "6s"}}),
    ("{type: derivative, unit: 1000000000, neighbourhood: 2s, no_wait: false, "
     "cases: {d: v, dd: {column: v, order: 2}}}",
     {"columns": {"d": {"column": "v"}, "dd": {"column": "v", "order": 2}},
      "unit": "1000000us", "neighbourhood": "2s", "no_wait": False}),
    ("{type: dispatch, handler: {type: window, period: 5, every: 5}}",
     {"handler": {"type": "window", "period": "5s", "every": "5s"}}),
    ("{type: pipeline, handlers: [{type: pipeline, handlers: [{type: sort, columns: [k]}]}]}",
     {"type": "sort", "by": ["k"]}),
    ("{type: log, level: debug}, {type: sort, columns: [k]}", {"type": "sort", "by": ["k"]}),
]  # fmt: skip
