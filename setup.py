"""Puts what is not in a package of the repository into the wheel: files of `conf/`, and the page's libraries.

Everything else is in pyproject.toml, and MANIFEST.in for sources. `conf/scripts.py` fetches the libraries, without
which there is no wheel. The files of `conf/` that Evenkeel needs at run time become `streaming/conf/`: `conf/` stays at
the top of the repository, where people look for it, and would be a top-level package `conf` of everybody's
site-packages if it were declared as one. A checkout and an editable install read it where it is
(`streaming/places.py`).
"""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_FILES = ("*.conf", "*.properties", "*.toml", "*.yaml")


class BuildPy(build_py):
    """Copies the packages, and those files beside them."""

    def run(self):
        """Fetch and copy; for an editable install set-up fetches, and the page also works without."""
        if self.editable_mode:
            return
        command = [sys.executable, "-P", str(Path("conf") / "scripts.py")]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"The wheel cannot be built: {done.stderr.strip()}")
        super().run()
        folder = Path(self.build_lib) / "streaming" / "conf"
        self.mkpath(str(folder))
        for pattern in _FILES:
            for source in Path("conf").glob(pattern):
                self.copy_file(str(source), str(folder / source.name))


setup(cmdclass={"build_py": BuildPy})
