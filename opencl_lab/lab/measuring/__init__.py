"""How times are taken and checked: samples, rounds, timing sanity, guarded arrays, roofline."""
