"""topk, unique and searchsorted in the lab."""
