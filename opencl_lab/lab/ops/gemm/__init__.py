"""What the lab needs of gemm."""
