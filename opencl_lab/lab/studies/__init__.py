"""Studies: the experiments of the source reports as data, with questions about their rows."""
