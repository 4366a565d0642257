"""Cases: small programs, each an agent of one framework with that framework's own timeout, and their environments.

surveys/cases/NAME/case.toml     framework, packages, the page that says how a timeout is set, and the ways to do so
surveys/cases/NAME/main.py, .mjs the program
surveys/cases/NAME/requirements.txt its packages with hashes; in JavaScript, package-lock.json
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from surveys.agent_services import AgentFault

Means = Literal["own", "language", "enforce"]
"""Whose timeout it is: the framework's own, one that the language offers, or the lab's around the framework."""

# A cold install of the largest framework takes minutes on a slow core.
_INSTALL_LIMIT_S = 1200.0
_READY = ".ready"


class NotMeasured(DocmindLabError):
    """A case cannot be run here; the message is the reason."""


class Way(BaseModel):
    """One way to set the timeout of an agent.

    Args:
        title: How users call it.
        means: Whose timeout it is.
        counts_from: When the timeout begins: with the whole call, or with the step or the model call that it limits.
        faults: What the timeout can be made to fall into.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    means: Means
    counts_from: Literal["start", "step", "request"] = "start"
    faults: tuple[AgentFault, ...] = Field(min_length=1)


class Case(BaseModel):
    """One framework, as `case.toml` describes it.

    Args:
        name: Of its folder.
        folder: Where its files are.
        framework: How its users call it.
        language: Of its program.
        packages: Packages that its users install; the version of the first names the row.
        docs: Address of the page that says how a timeout is set.
        issues: Addresses of upstream issues that say the same as the measurement, or the contrary.
        not_measured: Why it cannot be run; empty for one that can.
        ways: The ways to set the timeout, by name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    folder: Path
    framework: str
    language: Literal["python", "javascript"]
    packages: tuple[str, ...] = Field(min_length=1)
    docs: str
    issues: tuple[str, ...] = ()
    not_measured: str = ""
    ways: dict[str, Way] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_ways(self) -> Case:
        if not self.ways and not self.not_measured:
            raise ValueError("ways: name at least one, as [ways.asyncio-timeout], or say why in not_measured")
        return self

    @property
    def main(self) -> Path:
        """The program."""
        return self.folder / ("main.py" if self.language == "python" else "main.mjs")

    @property
    def lock(self) -> Path:
        """The file with the versions of all of its packages."""
        return self.folder / ("requirements.txt" if self.language == "python" else "package-lock.json")

    @property
    def version(self) -> str:
        """The version of the first package, as the lock has it; empty without a lock."""
        if not self.lock.is_file():
            return ""
        text = self.lock.read_text(encoding="utf-8")
        if self.language == "javascript":
            entry = json.loads(text).get("packages", {}).get(f"node_modules/{self.packages[0]}", {})
            return str(entry.get("version", ""))
        found = re.search(rf"^{re.escape(self.packages[0])}(\[[^]]*\])?==([^\s;\\]+)", text, re.MULTILINE)
        return found[2] if found else ""

    @classmethod
    def read(cls, folder: Path) -> Case:
        """The case in a folder. Raises: ConfigurationError naming each field of its case.toml that is wrong."""
        path = folder / "case.toml"
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            return cls.model_validate({**data, "name": folder.name, "folder": folder.absolute()})
        except ValidationError as error:
            fields = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'case'}: {each['msg']}" for each in error.errors())
            raise ConfigurationError(f"{path}: {fields}") from error
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{path} cannot be read ({error})") from error


def read_cases(folder: Path, names: Sequence[str] = ()) -> tuple[Case, ...]:
    """The cases in a folder, by name.

    Args:
        folder: Folder with one folder for each case.
        names: The cases that are wanted; all of them when empty.

    Raises: ConfigurationError when there are none, or none of a name.
    """
    found = {path.parent.name: path.parent for path in sorted(folder.glob("*/case.toml"))}
    if not found:
        raise ConfigurationError(f"{folder} has no cases; name a folder of NAME/case.toml with --cases")
    unknown = sorted(set(names) - found.keys())
    if unknown:
        raise ConfigurationError(f"no case {', '.join(unknown)} in {folder}; there are {', '.join(found)}")
    return tuple(Case.read(path) for name, path in found.items() if not names or name in names)


def made_environment(case: Case, cache: Path) -> Path:
    """The folder with a case's packages, which is made unless it is there.

    Args:
        case: The case.
        cache: Folder of all environments.

    Raises: NotMeasured when it cannot be made.
    """
    if case.not_measured:
        raise NotMeasured(case.not_measured)
    if not case.lock.is_file():
        raise NotMeasured(f"{case.name} has no {case.lock.name}")
    environment = cache.absolute() / case.name
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(case.lock.read_bytes() + python.encode()).hexdigest()
    ready = environment / _READY
    if ready.is_file() and ready.read_text(encoding="utf-8") == key:
        return environment
    shutil.rmtree(environment, ignore_errors=True)
    environment.parent.mkdir(parents=True, exist_ok=True)
    if case.language == "python":
        uv = _program("uv")
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], cache)
        options = [
            "--quiet",
            "--python",
            str(environment / "bin" / "python"),
            "--require-hashes",
            "--allow-empty-requirements",
        ]
        _run([uv, "pip", "sync", *options, str(case.lock)], cache)
    else:
        environment.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(case.folder / name, environment / name)
        _run([_program("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], environment)
    ready.write_text(key, encoding="utf-8")
    return environment


def command_of(case: Case, environment: Path) -> list[str]:
    """What runs a case in its environment. Raises: NotMeasured without Node.js for a case in JavaScript."""
    if case.language == "python":
        return [str(environment / "bin" / "python"), str(case.main)]
    # A module finds its packages beside itself.
    shutil.copy(case.main, environment / case.main.name)
    # A framework that needs a newer Node.js than the machine's has it among its packages.
    own = environment / "node_modules" / ".bin" / "node"
    return [str(own) if own.is_file() else _program("node"), str(environment / case.main.name)]


def _program(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise NotMeasured(f"{name} is not installed")
    return found


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=_INSTALL_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.CalledProcessError as error:
        lines = [line.strip() for line in (error.stderr or error.stdout).splitlines() if line.strip()]
        raise NotMeasured(f"{Path(command[0]).name} failed: {' '.join(lines[-6:])[:400]}") from error
    except subprocess.TimeoutExpired as error:
        raise NotMeasured(f"{Path(command[0]).name} took longer than {_INSTALL_LIMIT_S:.0f} s") from error
