"""gemm in the lab."""
