"""The transform `handlers`: handlers of stream-data-processor in order, with state by group.

`config.py` has the options of each handler, `chain.py` makes the handlers and checks their columns,
and `transform.py` is the transform.
"""

from penstock.transforms.handlers.transform import Handlers

__all__ = ["Handlers"]
