"""What comes before all else: signals that end a command, and the end of the process.

It imports next to nothing. The handlers stay for the whole life of a command, and what would be
left is undone whichever way it ends; `opencl_lab.core.interrupt` has what other modules use.
"""

import atexit
import os
import signal
import sys
import time
from _thread import get_ident, interrupt_main, start_new_thread
from collections.abc import Callable
from contextlib import suppress

INTERRUPTED = 130  # the exit status
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Ctrl-C; batch schedulers and CI; closed terminals
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
GRACE_SECONDS = 0.6
"""For the main thread to end by itself; it may be in C code, which no signal interrupts."""
REPEAT_SECONDS = 0.3
"""Some senders repeat a signal; later than this, it asks to end at once."""
LOST_SECONDS = 0.01  # until a signal whose exception was lost comes again
HELD_SECONDS = 5.0  # for work that must be completed, which a disk may block
UNDO_SECONDS = 0.4  # a lock that the main thread holds may keep files from being removed

undo: dict[object, Callable[[], object]] = {}
"""What a process that ends at once must still do, such as removing temporary files."""


class Command:
    """The state of the command of this process."""

    installed = False
    """Whether it has the handlers."""
    raises = False
    """Whether a signal raises KeyboardInterrupt; else it ends the process at once."""
    patient = False
    """Whether results so far will be written first, however long a running call takes."""
    kept = ""
    """What an interrupt keeps, in words."""
    status = INTERRUPTED
    """The exit status if it is told to end now; another one after its work is done."""
    told: float | None = None
    """When the first signal was handled."""
    number = signal.SIGINT
    """The last signal that was handled."""
    resent = 0
    """How many signals were sent again that `_watch` has not seen."""
    held = 0
    """How many blocks that are running must be completed."""
    leaver: int | None = None
    """The thread that ends the process."""

    @property
    def sentence(self) -> str:
        """Say that it was interrupted, and what is kept."""
        return f"interrupted; {self.kept}" if self.kept else "interrupted"


command = Command()


def at_end(action: Callable[[], object]) -> None:
    """Call `action` when the process ends, by itself or at once."""
    undo[action] = action
    atexit.register(action)


def undo_all() -> None:
    """Undo what is left to undo, the latest first."""
    for key in reversed(list(undo)):
        with suppress(Exception):  # the rest must be undone, too
            undo[key]()


def leave(status: int, said: str) -> None:
    """End the process at once, after everything was undone and `said` was said."""
    first = command.leaver is None
    command.leaver = command.leaver or get_ident()
    with suppress(RuntimeError):  # Python 3.12 starts none while it ends
        start_new_thread(_end_late, (status, said))
    while not first:  # another thread is ending it
        time.sleep(UNDO_SECONDS)
    undo_all()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, or this handler has interrupted its writing
            stream.flush()
    _end(status, said)


def _end_late(status: int, said: str) -> None:
    time.sleep(UNDO_SECONDS)
    _end(status, said)


def _end(status: int, said: str) -> None:
    if said:
        say(said)
    os._exit(status)


def say(text: str) -> None:
    """Print a sentence, even where other code is just printing."""
    with suppress(OSError):
        os.write(2, f"oclab: {text}\n".encode())


def interrupted() -> None:
    """End the process as a signal asks for."""
    leave(command.status, command.sentence if command.status == INTERRUPTED else "")


def handle(number: int, frame: object = None) -> None:
    """Handle a signal in the main thread."""
    command.number = signal.Signals(number)
    if command.leaver == get_ident():
        return
    if not command.raises:
        interrupted()
    if command.told is None:
        command.told = time.monotonic()
        raise KeyboardInterrupt
    if time.monotonic() > command.told + REPEAT_SECONDS:
        interrupted()


def _not_raised(lost: "sys.UnraisableHookArgs") -> None:
    """Send a signal again whose exception was lost, as Python does while it deletes an object."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    command.told = None
    command.resent += 1
    try:
        start_new_thread(_send_again, ())  # later: raised here, it would be lost, too
    except RuntimeError:  # see `leave`
        interrupted()


def _send_again() -> None:
    time.sleep(LOST_SECONDS)
    if sys.platform == "win32":
        interrupt_main()
    else:
        os.kill(os.getpid(), command.number)  # also ends what the main thread waits for


def watch() -> None:
    """Start the thread that ends the process where the main thread does not after a signal."""
    if not command.installed or sys.platform == "win32":
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)
    start_new_thread(_watch, (read,))


def _forget() -> None:
    """Leave a forked process without handlers, and its parent's files alone."""
    signal.set_wakeup_fd(-1)
    undo.clear()
    for number in SIGNALS:
        if signal.getsignal(number) is handle:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def _watch(read: int) -> None:
    from select import select

    while os.read(read, 1)[0] not in SIGNALS:
        pass
    begin = since = time.monotonic()
    left: float | None = GRACE_SECONDS
    while True:
        if select([read], [], [], left)[0]:
            again = os.read(read, 1)[0] in SIGNALS
            if again and command.resent:  # by `_not_raised`, not by the user
                command.resent -= 1
                continue
            held = command.held and time.monotonic() < begin + HELD_SECONDS
            if again and not held and time.monotonic() > begin + REPEAT_SECONDS:
                interrupted()
        elif command.held and time.monotonic() < begin + HELD_SECONDS:
            time.sleep(0.05)
            since = time.monotonic()  # the grace begins anew
        elif command.patient:
            left = None
            if command.told is None:
                say("a running call must end before results are written; a second signal ends all")
        else:
            interrupted()
        left = left if left is None else max(0.0, since + GRACE_SECONDS - time.monotonic())


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _end_calls() -> None:
    if "opencl_lab.core.queues" in sys.modules:  # else OpenCL has not been used
        from opencl_lab.core.queues import end_calls

        end_calls()


atexit.register(_end_calls)  # before others: so functions that users register can still make calls


def is_command() -> bool:
    """Return whether this process was started as ``oclab`` or ``python -m opencl_lab``."""
    script = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119 - imports no more
    # Python replaces this -m when it has found the module to run.
    return script in ("oclab", "oclab.exe") or (script == "-m" and "opencl_lab" in sys.orig_argv)


if is_command():
    atexit.register(_ignore)  # from its call on, Python soon has no handlers
    for number in SIGNALS:
        # The parent may have them ignored, as nohup has SIGHUP.
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, handle)
            command.installed = True
            sys.unraisablehook = _not_raised
