"""Dialects of other systems, a package for each, and the registries that the rest asks for them.

A dialect owns its words: names of options, tables of differences, defaults and hints.
"""
