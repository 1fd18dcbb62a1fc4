"""Pipeline files as frozen models with locations."""
