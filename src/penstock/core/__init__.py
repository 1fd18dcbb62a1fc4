"""Types shared by all layers: errors, locations, units, names, logging."""
