"""How a worker process begins: it ends with the process that started it, and leaves nothing in the system."""

from __future__ import annotations

import os
import threading
import time

from tqdm.std import tqdm

_LOOK_S = 1.0


def begin_worker(parent_id: int) -> None:
    """Have this process end within about a second of its parent's end. For the initializer of a pool.

    A parent that was killed cannot tell its workers, which would wait for ever for the next cell. A worker that is
    killed cannot give back a semaphore of the system, so progress bars get a lock that is none.

    Args:
        parent_id: The process that started this one.
    """
    tqdm.set_lock(threading.RLock())
    threading.Thread(target=_watch, args=(parent_id,), name="docmind-parent-watch", daemon=True).start()


def _watch(parent_id: int) -> None:
    while os.getppid() == parent_id:
        time.sleep(_LOOK_S)
    # Nobody is left to hear of anything that the usual way out would do.
    os._exit(1)
