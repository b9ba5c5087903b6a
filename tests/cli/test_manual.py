"""Completions and manual pages, each read by the program that they are for, where that is here."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = str(BUILD / "bin" / "trapline")
COMMANDS = (
    "run",
    "supervise",
    "explain",
    "check labels",
    "check ids",
    "check model",
    "check dataset",
    "check finite",
    "doctor",
    "cache",
    "cache clean",
    "completions",
    "man",
    "why",
)


def trapline(*words: str) -> str:
    done = subprocess.run([TRAPLINE, *words], capture_output=True, check=True)
    return done.stdout.decode()


def flags_in_help(command: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", trapline(*command.split(), "--help"), re.MULTILINE))


def completed(line: str, *, cwd: Path) -> set[str]:
    """What bash offers at the end of ``line``, by the function that `complete` has been given."""
    script = f"""
    source <({TRAPLINE} completions bash)
    [[ $(complete -p trapline) == 'complete -o default -F _trapline trapline' ]] || exit 9
    COMP_WORDS=({line}) COMP_LINE={line!r} COMP_POINT=${{#COMP_LINE}}
    [[ {line!r} != *' ' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    _trapline trapline "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, check=False, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b""), done
    return set(done.stdout.decode().split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("trapline exp", {"explain"}),
        ("trapline c", {"check", "cache", "completions"}),
        ("trapline check ", {"labels", "ids", "model", "dataset", "finite"}),
        ("trapline cache ", {"clean"}),
        ("trapline explain --fo", {"--format"}),
        ("trapline explain --format s", {"sarif"}),
        ("trapline explain --format = s", {"sarif"}),  # bash makes three words of --format=s
        ("trapline run --on-fault ", {"raise", "skip", "stop"}),
        ("trapline run --on-fault s", {"skip", "stop"}),
        ("trapline run --cpu --ste", {"--steps"}),
        ("trapline run --steps 3 -- python --st", set()),  # the program's own
        ("trapline run python --st", set()),
        ("trapline why TL10", {f"TL10{i}" for i in range(1, 10)}),
        ("trapline doctor --self", {"--self-test"}),
        ("trapline completions ", {"bash", "zsh", "fish"}),
        ("trapline check labels --co", {"--column", "--color"}),
    ],
)
def test_bash_completes(line: str, offered: set[str], tmp_path: Path) -> None:
    assert completed(line, cwd=tmp_path) == offered


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_offers_every_flag(command: str, tmp_path: Path) -> None:
    assert flags_in_help(command) <= completed(f"trapline {command} --", cwd=tmp_path)


def test_bash_in_a_terminal(tmp_path: Path) -> None:
    """With readline itself: a key is pressed, and the line is completed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe(
            "bash", ["bash", "--norc", "--noprofile", "-i"], os.environ | {"PS1": "> ", "TERM": "dumb"}
        )
    os.write(terminal, f"source <({TRAPLINE} completions bash); echo rea''dy\n".encode())
    said = b""
    deadline = time.monotonic() + 30

    def wait_for(text: bytes) -> None:
        nonlocal said
        while text not in said:
            assert time.monotonic() < deadline, said
            if select.select([terminal], [], [], 0.2)[0]:
                said += os.read(terminal, 4096)

    wait_for(b"ready")
    os.write(terminal, b"trapline expl\t--form\tsar\t")
    wait_for(b"explain --format sarif")
    os.write(terminal, b"\x15exit\n")
    os.waitpid(pid, 0)
    os.close(terminal)


def test_zsh_and_fish_read_theirs(tmp_path: Path) -> None:
    read = 0
    for shell in ("zsh", "fish"):
        (tmp_path / shell).write_text(trapline("completions", shell))
        if shutil.which(shell):
            done = subprocess.run([shell, "-n", tmp_path / shell], capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b"")
            read += 1
    whole_fish = [
        "fish",
        "--no-config",
        "-c",
        "functions -q __fish_seen_subcommand_from",
    ]  # not only its program
    if shutil.which("fish") and subprocess.run(whole_fish, check=False).returncode == 0:
        ask = f"source {tmp_path / 'fish'}; complete -C 'trapline explain --format s'"
        done = subprocess.run(["fish", "--no-config", "-c", ask], capture_output=True, check=True)
        assert done.stdout.split()[0] == b"sarif"
    for shell in ("zsh", "fish"):
        text = (tmp_path / shell).read_text()
        for command in COMMANDS:
            for flag in flags_in_help(command):
                assert (flag if shell == "zsh" else f" -l {flag[2:]}") in text, (shell, command, flag)
    if read == 0:
        pytest.skip("neither zsh nor fish is here: their completions were only compared with the help")


def test_no_other_shell() -> None:
    done = subprocess.run([TRAPLINE, "completions", "tcsh"], capture_output=True, check=False)
    assert done.returncode == 2 and b"must be bash, zsh or fish, not 'tcsh'" in done.stderr


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man") / "man1"
    trapline("man", "--all", str(folder))
    return folder


def test_a_page_for_each_command(pages: Path) -> None:
    assert {path.name for path in pages.iterdir()} == {
        "trapline.1",
        *(f"trapline-{command.replace(' ', '-')}.1" for command in COMMANDS),
    }
    for command in COMMANDS:
        text = (pages / f"trapline-{command.replace(' ', '-')}.1").read_text()
        assert text == trapline("man", *command.split())
        for flag in flags_in_help(command):
            assert "\\fB" + flag.replace("-", "\\-") + "\\fR" in text, (command, flag)


def test_pages_are_clean(pages: Path) -> None:
    read = 0
    for page in sorted(pages.iterdir()):
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b""), page
            read += 1
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, check=False)
            assert done.stdout + done.stderr == b"", page
            read += 1
    if read == 0:
        pytest.skip("neither groff nor mandoc is here")


def test_a_page_reads_well(pages: Path) -> None:
    if not shutil.which("groff"):
        pytest.skip("groff is missing")
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-cbou", pages / "trapline-explain.1"], capture_output=True, check=True
    )
    text = " ".join(done.stdout.decode().split())
    assert "NAME trapline-explain - name the cause of a failure from its logs" in text
    assert "SYNOPSIS trapline explain [flags] [PATH|-]..." in text
    assert "-o, --output FILE write the report to FILE (- is standard output)" in text


def test_an_unknown_page() -> None:
    done = subprocess.run([TRAPLINE, "man", "explian"], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == b"trapline: there is no command 'explian': did you mean `trapline man explain`?\n"


@pytest.mark.parametrize("columns", [40, 50, 80, 200])
def test_help_fits_the_terminal(columns: int) -> None:
    import fcntl
    import struct
    import termios

    for words in (["--help"], ["run", "--help"], ["supervise", "--help"], ["explain", "--help"]):
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([TRAPLINE, *words], stdout=terminal)
        os.close(terminal)
        text = b""
        while True:
            try:
                piece = os.read(controller, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        process.wait()
        os.close(controller)
        lines = text.decode().split("\r\n")
        assert [line for line in lines if len(line) > min(columns, 80) and "usage:" not in line] == []
