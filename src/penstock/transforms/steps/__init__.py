"""The transform `steps`: each message is a batch, whose columns are known when it is there.

`transform.py` is the file to start at.
"""

from penstock.transforms.steps.transform import Steps

__all__ = ["Steps"]
