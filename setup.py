"""Puts what is not in a package of the repository into the wheel: files of `conf/`, and the page's libraries.

Everything else is in pyproject.toml. `conf/scripts.py` fetches the libraries, without which there is no wheel. The
files of `conf/` that Evenkeel needs at run time become `streaming/conf/`: `conf/` stays at the top of the repository,
where people look for it, and would be a top-level package `conf` of everybody's site-packages if it were declared as
one. A checkout and an editable install read it where it is (`streaming/places.py`).
"""

import subprocess
import sys
from pathlib import Path

from setuptools import Command, setup
from setuptools.command.build import build

_FILES = ("*.conf", "*.properties", "*.toml", "*.yaml")


class BuildScripts(Command):
    """A step of the build, before the packages are copied: fetches the libraries that the page loads."""

    description = "fetch the page's libraries into dashboards/static/vendor/"
    user_options = ()

    def initialize_options(self):
        """Begin with nothing (required by setuptools)."""
        self.editable_mode = False

    def finalize_options(self):
        """Nothing depends on other steps (required by setuptools)."""

    def run(self):
        """Fetch, unless the install is editable: then set-up does it, and the page also works without."""
        if self.editable_mode:
            return
        command = [sys.executable, "-P", str(Path("conf") / "scripts.py")]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"The wheel cannot be built: {done.stderr.strip()}")

    def get_source_files(self):
        """What a source distribution needs for this step."""
        return ["conf/scripts.py", "conf/scripts.toml"]

    def get_outputs(self):
        """Nothing of its own: the step that copies the packages takes the files."""
        return []

    def get_output_mapping(self):
        """See `get_outputs`."""
        return {}


class BuildConf(Command):
    """A step of the build (setuptools' `SubCommand`): copies the files."""

    description = "copy conf/ into the package streaming"
    user_options = ()

    def initialize_options(self):
        """Begin with nothing (required by setuptools)."""
        self.build_lib = None
        self.editable_mode = False

    def finalize_options(self):
        """Take the folder of the build from the step that copies the packages."""
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self):
        """Copy, unless the install is editable."""
        if self.editable_mode:
            return
        for target, source in self.get_output_mapping().items():
            self.mkpath(str(Path(target).parent))
            self.copy_file(source, target)

    def get_source_files(self):
        """What a source distribution needs for this step."""
        return sorted(str(path) for pattern in _FILES for path in Path("conf").glob(pattern))

    def get_outputs(self):
        """What the step makes."""
        return list(self.get_output_mapping())

    def get_output_mapping(self):
        """Source by target; nothing for an editable install, which has no targets."""
        if self.editable_mode:
            return {}
        folder = Path(self.build_lib) / "streaming" / "conf"
        return {str(folder / Path(source).name): source for source in self.get_source_files()}


build.sub_commands.insert(0, ("build_scripts", None))
build.sub_commands.append(("build_conf", None))
setup(cmdclass={"build_conf": BuildConf, "build_scripts": BuildScripts})
