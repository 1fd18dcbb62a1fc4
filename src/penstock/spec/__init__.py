"""What the user wrote, as frozen models with positions."""
