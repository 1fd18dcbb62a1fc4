"""Python functions with state by key: `type: python` with the option `state`.

`key_state.py` is the state of a key, `calls.py` has the function of the user, and `keyed_states.py`
calls it for rows and timers in plain Python. `task.py` runs it in Spark, and `transform.py` is the
transform. Start at `transform.py`.
"""
