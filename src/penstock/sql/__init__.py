"""Reading SQL: which relations, which columns, what state."""
