"""How anything is measured: rows of calls, samples, doubt, guarded arrays, the roofline."""
