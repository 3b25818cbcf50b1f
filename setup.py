"""Puts the files of `conf/` that Evenkeel needs at run time into the wheel, as `streaming/conf/`.

Everything else is in pyproject.toml. `conf/` stays at the top of the repository, where people look for it, and would be
a top-level package `conf` of everybody's site-packages if it were declared as one. A checkout and an editable install
read it where it is (`streaming/places.py`).
"""

from pathlib import Path

from setuptools import Command, setup
from setuptools.command.build import build

_FILES = ("*.conf", "*.properties", "*.toml", "*.yaml")


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


build.sub_commands.append(("build_conf", None))
setup(cmdclass={"build_conf": BuildConf})
