"""Sources of generated rows: deterministic random numbers, a clock, offsets by row number."""
