"""What holds for all tests."""

from __future__ import annotations

import signal

# what runs in the background of a shell begins with it ignored, and so would all that tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
