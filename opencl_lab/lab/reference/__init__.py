"""References: independent implementations to compare OpenCL results and times with."""
