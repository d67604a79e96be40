"""Random calls of all public functions in several threads, each checked."""
