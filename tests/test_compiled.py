"""Compiled kernels live on disk, and a change of any source file ends their life."""

import os
import subprocess
import sys
from pathlib import Path

import untold

PROGRAM = """
import numpy as np, sys
sys.path.insert(0, sys.argv[1])
from untold.private.sampling import additive
out = np.empty(2, dtype=np.int64)
additive.gaussian(np.ones(1, np.uint64), np.ones(1, np.uint64), 1.0, out)
print(sum(additive.gaussian.stats.cache_hits.values()))
"""


def test_a_kernel_is_kept_until_any_source_changes(tmp_path):
    source = Path(untold.__file__).parent
    copy = tmp_path / "untold"
    for path in source.rglob("*.py*"):
        if "__pycache__" not in path.parts:
            target = copy / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())

    def hits():
        env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        return int(subprocess.check_output(command, env=env, text=True))

    assert hits() == 0
    assert hits() == 1
    elementary = copy / "private" / "sampling" / "elementary.py"
    elementary.write_text(elementary.read_text() + "\n# a change elsewhere\n")
    assert hits() == 0
