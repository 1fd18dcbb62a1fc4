"""Options of components in files of other tools: declarations, reading, nodes, and their table."""
