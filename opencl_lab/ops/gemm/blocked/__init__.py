"""Products on GPUs: tiles in local memory and in registers."""
