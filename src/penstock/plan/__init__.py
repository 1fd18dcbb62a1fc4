"""Planning: nodes, edges and queries with all names resolved."""
