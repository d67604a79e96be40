"""The modules of `fuzz_replay.py`; calls are recorded whatever the environment says."""

import os

os.environ["OCLAB_REPLAY"] = "on"
