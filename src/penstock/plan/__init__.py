"""From a pipeline to a plan: nodes, edges and queries, with every name resolved."""
