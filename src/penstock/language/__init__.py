"""Language service of pipeline files, for the console, the shell and editors.

`service.py` has its functions. The names that it proposes come from the registers by which errors
are found: models of options, components, functions, the plan. It reads a text that may be
incomplete: `yaml_outline.py` and `script.py` find its parts, `sql_scope.py` the scope in a query.
"""
