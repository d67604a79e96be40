"""What measures, compares, tunes and reports. The library imports nothing of it."""
