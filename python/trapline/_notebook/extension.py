"""``%load_ext trapline`` and ``%unload_ext trapline``, in IPython, Jupyter, Colab, Kaggle and VS Code."""

from __future__ import annotations

from typing import Any

from trapline import _boot
from trapline._library import paths, say
from trapline._library.errors import DeviceAssertError
from trapline._notebook import cards, cells, lost, magic


def load(shell: Any) -> None:
    """Guards the session and shows each fault below its cell.

    Raises:
        ImportError: libtrapline.so is missing or of another version.
        RuntimeError: torch is imported, but no guard fits it; the message says what to do.
    """
    paths.library()
    _boot.install()
    if _boot.failure() is not None:
        raise RuntimeError(_boot.failure())
    say.present_with(lambda finding: cards.show(shell, finding))
    if not shell.custom_exceptions or shell.custom_exceptions == (DeviceAssertError,):
        shell.set_custom_exc((DeviceAssertError,), cells.show_error)
    shell.register_magic_function(
        lambda line: magic.run(shell, line), magic_kind="line", magic_name="trapline"
    )
    shell.events.register("post_run_cell", lost.after_cell)
    lost.tell(shell)


def unload(shell: Any) -> None:
    """Takes the guard out of the session again."""
    try:
        shell.events.unregister("post_run_cell", lost.after_cell)
    except ValueError:  # it is not there
        pass
    if shell.custom_exceptions == (DeviceAssertError,):
        shell.custom_exceptions = ()
        shell.CustomTB = None
    shell.magics_manager.magics["line"].pop("trapline", None)
    say.present_with(None)
    _boot.uninstall()
