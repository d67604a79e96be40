"""conv2d in the lab."""
