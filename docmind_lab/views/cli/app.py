"""The application of the command line: its commands, and how it reports errors."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.views.cli.compare import compare
from docmind_lab.views.cli.console import INTERRUPTED
from docmind_lab.views.cli.doctor import crash_test, doctor
from docmind_lab.views.cli.fields_as_options import right_option
from docmind_lab.views.cli.probe import probe
from docmind_lab.views.cli.servers import init, lab, serve
from docmind_lab.views.cli.studies import diff, recommend, report, show, watch
from docmind_lab.views.cli.sweep import sweep
from docmind_lab.views.cli.traces import profile, traces, watchdog, what_if


def _with_a_word_on_ctrl_c(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, saying that it was interrupted, of which typer only makes an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **keywords: Any) -> Any:
        try:
            return command(*args, **keywords)
        except KeyboardInterrupt:
            typer.echo("docmind-lab: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run


app = typer.Typer(
    name="docmind-lab",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command, short_help in (
    (compare, "The main job: the same questions under every alternative."),
    (sweep, "A designed experiment: every combination of factors, repeated."),
    (recommend, "Which alternative to take for your own graph, and how long the timeout should be."),
    (report, "Write what a study says as one page."),
    (what_if, "What another deadline would have done to runs recorded anywhere."),
    (watchdog, "Which limits of calls notice a hang, and still let healthy calls end."),
    (diff, "What changed between two studies."),
    (watch, "Whether production behaves as a study said."),
    (show, "What happened in one run, on a line of time."),
    (profile, "Make a latency profile of calls that were measured."),
    (doctor, "Check versions, settings and endpoints, or the deadline of your own graph."),
    (crash_test, "Cut your own graph at every point a deadline can fall, and see what that leaves."),
    (init, "Copy a starter notebook, a graph and its inputs to a folder."),
    (lab, "Open JupyterLab on the notebooks."),
    (serve, "Serve the simulated model and vector store."),
):
    app.command(short_help=short_help)(_with_a_word_on_ctrl_c(command))

app.add_typer(traces, name="traces", short_help="Read runs from where they were recorded.")
app.add_typer(probe, name="probe", short_help="Does it stop? What goes on after a timeout has fired.")

_LESS_MEMORY = "use fewer --workers, or a machine or container with more memory"
_REMEDIES = {
    errno.EMFILE: "; raise the limit of open files (ulimit -n 4096), or use fewer --workers",
    errno.ENFILE: "; the machine has too many files open",
    errno.ENOMEM: f"; {_LESS_MEMORY}",
    errno.ENOSPC: "; make room there",
    errno.EROFS: "; make it writable",
}

# typer does not export the root of what a command line can get wrong.
_USAGE_ERROR = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"docmind-lab {version('docmind_lab')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and nothing else."),
    ] = False,
) -> None:
    """Measure how a multi-agent system should enforce its deadline, and how long the deadline should be.

    Settings come from DOCMIND_ environment variables; docmind-lab doctor shows them.

    Exit code 0: done; 1: it failed, such as at an endpoint that does not answer or a damaged file; 2: bad usage, such
    as an unknown name, a value that cannot be used or a file that is not there; 130: interrupted.
    """


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; a known error is one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows ASCII only gets "?" for what it has no sign for, and not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with _stopped_by_sigterm():
            ended = app(list(words) if words is not None else None, standalone_mode=False, prog_name="docmind-lab")
        sys.exit(ended if isinstance(ended, int) else 0)
    except ConfigurationError as error:
        _say(str(error), 2)
    except DocmindLabError as error:
        _say(str(error), 1)
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`); the interpreter must not complain of it while it ends.
        sys.stderr.close()
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted", INTERRUPTED)
    except MemoryError:
        _say(f"out of memory; {_LESS_MEMORY}", 1)
    except OSError as error:
        _say(_of_the_system(error), 1)
    except Exception as error:
        if str(error) == "can't start new thread":
            _say(f"no further thread can be started; {_LESS_MEMORY}", 1)
        if not isinstance(error, _USAGE_ERROR):
            raise
        _say_usage(error)


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Have what ends a service or a container stop a study as Ctrl-C does: with its finished runs saved."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _of_the_system(error: OSError) -> str:
    """What the system refused, in a line, with the remedy where there is a usual one."""
    what = error.strerror or " ".join(str(error).split()) or type(error).__name__
    named = f": {error.filename}" if error.filename is not None else ""
    return f"{what}{named}{_REMEDIES.get(error.errno or 0, '')}"


def _say_usage(error: BaseException) -> None:
    message = str(getattr(error, "format_message", error.__str__)())
    if not message:
        # No command was given: the help, which is printed already, is the answer.
        sys.exit(2)
    context = getattr(error, "ctx", None)
    command = "docmind-lab" if context is None else context.command_path
    if place := right_option(str(getattr(error, "option_name", ""))):
        message = f"{message.rstrip('.').partition(' Did you mean')[0].rstrip('.')}: {place}"
    _say(f"{' '.join(message.split()).rstrip('.')}; see {command} --help", 2)


def _say(message: str, exit_code: int) -> None:
    typer.echo(f"docmind-lab: {message}", err=True)
    sys.exit(exit_code)
