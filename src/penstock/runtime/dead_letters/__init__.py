"""Dead letters of a run: their store, their collection and their replay.

Start at `store.py`; `replay.py` sends dead letters through the plan again.
"""
