"""`garlic serve` as a child process."""

import contextlib
import os
import subprocess
import threading


@contextlib.contextmanager
def served(program, *arguments, **environment):
    """Runs a server on a free port and gives its address."""
    command = [str(program), "serve", "--listen", "127.0.0.1:0", *map(str, arguments)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    log = []
    drain = threading.Thread(target=lambda: log.extend(child.stderr), daemon=True)
    drain.start()
    try:
        line = child.stdout.readline()
        assert line.startswith("serving at "), (line, child.poll(), log)
        yield line.split()[-1].rstrip("/")
    finally:
        child.terminate()
        child.wait(60)
        drain.join(60)
