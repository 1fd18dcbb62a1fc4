"""Analysis of SQL queries: relations and state."""
