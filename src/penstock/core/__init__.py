"""Words that every layer shares."""
