"""The experiments of the source reports, as data: what to run, and what to ask of the rows."""
