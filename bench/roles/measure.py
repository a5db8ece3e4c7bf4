"""One run of a program: how long, how much, and what it printed."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Sample:
    seconds: float
    memory: float  # peak, MB
    client: float  # CPU seconds of the program
    server: float  # CPU seconds of its sessions
    output: str = ""
    round_trips: int | None = None


def median(samples):
    middle = lambda field: statistics.median(getattr(sample, field) for sample in samples)
    memory = max(sample.memory for sample in samples)
    return Sample(middle("seconds"), memory, middle("client"), middle("server"), samples[0].output, samples[0].round_trips)


def run(server, command, expect=(0,)):
    with tempfile.TemporaryFile() as out:
        environment = {**os.environ, "RUST_LOG": "error"}
        before = server.cpu()
        begun = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment)
        # wait4() reports the memory of this interpreter, which the child was for a moment. The kernel's own
        # high-water mark of the child is right, and has to be read while it lives.
        peak, done = 0, threading.Event()

        def watch():
            nonlocal peak
            while True:
                try:
                    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{child.pid}/status").read_text())
                except OSError:
                    return
                peak = max(peak, int(found[1]) if found else 0)
                if done.wait(0.002):
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        done.set()
        watcher.join()
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in expect:
            sys.exit(f"{' '.join(map(str, command))}: exit code {child.returncode}")
        out.seek(0)
        cpu = usage.ru_utime + usage.ru_stime
        return Sample(seconds, peak / 1024, cpu, server.cpu() - before, out.read().decode())
