"""Everything that calls OpenCL after discovery: building, memory, launching, timing."""
