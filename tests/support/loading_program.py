"""Offers load over sockets into the folder that is named, and interrupts itself during the second crowd."""

import os
import signal
import sys
import threading

from docmind_lab.experiments.load import Constant, run_load

if __name__ == "__main__":
    try:
        run_load(
            [Constant(2.0)],
            alternatives="A,B",
            queries=6,
            replicates=1,
            slots=1,
            profile="local_gpu/5",
            decision_timeout_s=2.0,
            warm_up_s=0.0,
            clock="wall",
            out=sys.argv[1],
            # The services of the next crowd take two seconds or more to start, its queries begin within three more.
            progress=lambda *_: threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start(),
        )
    except KeyboardInterrupt:
        left = [thread.name for thread in threading.enumerate() if thread.name.startswith("query-")]
        print("interrupted", *left)
