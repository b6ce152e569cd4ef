"""The programs of ours in Go, in folders of deploy/: found on the PATH, and run confined on what is untrusted."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from provisioner.child_process import started
from provisioner.confined_program import MODULE, PROGRAM
from provisioner.errors import BadBundle, TryLater

NOT_STARTED = 1  # as Python ends


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """`version` is that of the library `library`, since another one could make other objects; `wanted_by` says who
    needs the program, and the page of the manual `page` how to get it."""

    folder: str
    library: str
    version: str
    wanted_by: str
    page: str

    @property
    def name(self) -> str:
        return f"pratique-{self.folder}"

    def find(self) -> str:
        """The path of the program. Raises BadBundle where there is none."""
        program = shutil.which(self.name)
        if program is None:
            raise BadBundle(
                f"{self.wanted_by} the program {self.name} on the PATH here. The image has it; elsewhere, build it with"
                f" Go from deploy/{self.folder} ({self.page})"
            )
        return os.path.abspath(program)

    def start(self, program: str) -> subprocess.Popen[bytes]:
        """Raises TryLater."""
        try:
            return started(MODULE, **{PROGRAM: program})
        except OSError as exc:
            raise TryLater(f"{self.name} could not be started ({type(exc).__name__})") from exc

    def check_version(self, program: str, version: object) -> None:
        """Raises BadBundle for a program with another version of its library."""
        if version != self.version:
            expected = f"expected {self.version}: build it anew from deploy/{self.folder}"
            raise BadBundle(f"{program} has {self.library} {version!a}; {expected}")

    def broken(self, program: str) -> BadBundle:
        return BadBundle(f"{program} could not be run; build it anew from deploy/{self.folder}, with CGO_ENABLED=0")
