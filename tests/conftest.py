"""What holds for all tests."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile

# what runs in the background of a shell begins with it ignored, and so would all that tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# the key that seals caches is not that of whoever runs the tests
os.environ.pop("FSRACE_CACHE_KEY", None)
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="fsrace-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
