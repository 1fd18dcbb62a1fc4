"""Programs in Vector Remap Language (VRL)."""
