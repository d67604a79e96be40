"""Selecting among keys: the first k, each key once, where keys would go."""
