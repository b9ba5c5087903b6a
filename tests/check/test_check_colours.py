"""Masks in colours: told as such, and never photographs, drawings in gray or good masks."""

import pytest
from checking import report, run

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

PALETTE = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]], np.uint8)
WORDS = "looks like a mask in colours"


def save(folder, pixels):
    folder.mkdir(exist_ok=True)
    for i in range(4):
        Image.fromarray(pixels(np.random.default_rng(i))).save(folder / f"{i}.png")
    return folder


@pytest.fixture
def coloured(tmp_path):
    return save(tmp_path / "masks", lambda random: PALETTE[random.integers(0, 4, (32, 48))])


@pytest.mark.parametrize("command", ["labels", "dataset"])
def test_what_was_seen_is_said(coloured, command):
    for path, where in [(coloured, "4 pictures"), (coloured / "0.png", "the picture")]:
        done = run(command, path, "--classes", 4)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(
            f"trapline: cannot check {path}: 4 colours (#000000, #008000, #800000, #808000) in {where}, "
        )
        assert WORDS in done.stderr and "replace each colour by its class number" in done.stderr


def test_with_transparency(tmp_path):
    folder = save(
        tmp_path / "masks",
        lambda random: np.dstack(
            [PALETTE[random.integers(0, 4, (32, 48))], np.full((32, 48, 1), 255, np.uint8)]
        ),
    )
    assert WORDS in run("labels", folder, "--classes", 4).stderr


OTHERS = {
    "photographs": lambda random: random.integers(0, 256, (64, 64, 3)).astype(np.uint8),
    "gray, saved in colour": lambda random: np.repeat(
        random.integers(0, 4, (32, 48, 1)).astype(np.uint8), 3, axis=2
    ),
    "one colour": lambda random: np.full((32, 48, 3), PALETTE[1], np.uint8),
    "tiny": lambda random: random.integers(0, 256, (4, 4, 3)).astype(np.uint8),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_pictures_are_only_unknown(tmp_path, kind):
    done = run("labels", save(tmp_path / "pictures", OTHERS[kind]), "--classes", 4)
    assert done.returncode == 2 and WORDS not in done.stderr


def test_beside_masks_with_class_numbers_they_are_left_out(coloured, tmp_path):
    save(tmp_path / "numbers", lambda random: random.integers(0, 4, (32, 48)).astype(np.uint8))
    assert report("labels", tmp_path, "--classes", 4, exit_code=0)["verdict"] == "clean"


def test_a_damaged_one_is_no_crash(coloured):
    for path in coloured.iterdir():
        path.write_bytes(path.read_bytes()[:120])
    done = run("labels", coloured, "--classes", 4)
    assert done.returncode == 2 and WORDS not in done.stderr
