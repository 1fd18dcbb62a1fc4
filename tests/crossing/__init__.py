"""Rows of every type and every extreme value, and the systems between which they are moved."""
