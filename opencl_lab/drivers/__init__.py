"""Discovery of devices; registration, repairs and caches of their drivers."""
