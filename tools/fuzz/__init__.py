"""What `fuzz_replay.py` is made of; calls are recorded, whatever the environment says."""

import os

os.environ["OCLAB_REPLAY"] = "on"
