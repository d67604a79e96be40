"""`python -m opencl_lab` is `oclab`."""

import sys

from opencl_lab.cli import main

sys.exit(main())
