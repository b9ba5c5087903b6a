"""Masks that Pillow saved, trees of pictures, COCO and YOLO labels."""

import json
import os
import struct
import zlib

import numpy as np
import pytest
from reading import read, read_well, write

image = pytest.importorskip("PIL.Image")


def mask(shape=(30, 40), most=20) -> np.ndarray:
    return np.random.default_rng(6).integers(0, most, shape)


@pytest.mark.parametrize(
    ("mode", "dtype", "most"), [("L", "u1", 256), ("P", "u1", 256), ("I;16", "u2", 65536)]
)
def test_masks(tmp_path, mode, dtype, most):
    pixels = mask(most=most).astype(dtype)
    picture = image.fromarray(pixels)
    if mode == "P":
        picture.putpalette([i % 251 for i in range(768)])
    assert picture.mode == mode
    picture.save(tmp_path / "m.png")
    reading = read_well(tmp_path / "m.png")
    assert reading.reader == "png"
    column = reading.columns[""]
    assert column.sizes == [30, 40]
    assert np.array_equal(column.array(), pixels)
    assert column.rows == [row for row in range(30) for _ in range(40)]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_packed_palettes_are_not_scaled(tmp_path, bits):
    pixels = mask(most=2**bits).astype("u1")
    picture = image.fromarray(pixels)
    picture = picture.convert("P") if bits > 1 else picture
    picture.putpalette([i % 251 for i in range(3 * 2**bits)])
    picture.putdata(pixels.ravel().tolist())
    picture.save(tmp_path / "m.png", bits=bits)
    assert (tmp_path / "m.png").read_bytes()[24] == bits
    assert np.array_equal(read_well(tmp_path / "m.png").columns[""].array(), pixels)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, data: bytes, depth=8, color=0, interlace=0) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_interlaced_masks(tmp_path):
    pixels = mask((9, 11)).astype("u1")
    data = b""
    for x, y, dx, dy in [
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ]:
        part = pixels[y::dy, x::dx]
        if part.size:
            data += b"".join(b"\0" + row.tobytes() for row in part)
    path = write(tmp_path / "m.png", png(11, 9, zlib.compress(data), interlace=1))
    assert np.array_equal(np.asarray(image.open(path)), pixels)
    assert np.array_equal(read_well(path).columns[""].array(), pixels)


def test_a_bomb_is_read_in_little_memory(tmp_path):
    stream = zlib.compressobj(9)
    data = b"".join(stream.compress(bytes(1 << 20)) for _ in range(600)) + stream.flush()
    path = write(tmp_path / "m.png", png(30_000, 900_000, data))
    # 27 gigapixels, most of them not there; nothing is wanted of them.
    assert read(path, "other").error == ""
    path = write(tmp_path / "i.png", png(30_000, 900_000, data, interlace=1))
    assert "an interlaced picture of more than 256 MiB" in read(path).error
    path = write(tmp_path / "w.png", png(2_000_000_000, 1, data))
    assert "cannot read" in read(path).error


def test_pictures_in_colour_are_no_masks(tmp_path):
    image.fromarray(np.zeros((4, 4, 3), "u1")).save(tmp_path / "rgb.png")
    assert "no reader knows this format" in read(tmp_path / "rgb.png").error


def test_damaged_masks(tmp_path):
    image.fromarray(mask().astype("u1")).save(tmp_path / "m.png")
    whole = (tmp_path / "m.png").read_bytes()
    for size in range(26, len(whole) - 12, 23):
        reading = read(write(tmp_path / "cut.png", whole[:size]))
        assert reading.code == 2 and "(at byte " in reading.error, size
    for at in range(8, len(whole), 11):
        flipped = bytearray(whole)
        flipped[at] ^= 0x41
        read(write(tmp_path / "flipped.png", bytes(flipped)))  # any answer, but no crash


def test_a_folder_of_masks(tmp_path):
    for i, shape in enumerate([(3, 4), (5, 2)]):
        image.fromarray(np.full(shape, i, "u1")).save(tmp_path / f"{i}.png")
    columns = [column for _, column in read_well(tmp_path).all]
    assert [column.sizes for column in columns] == [[3, 4], [5, 2]]
    assert [set(column.values) for column in columns] == [{0}, {1}]
    assert [set(column.files) for column in columns] == [{str(tmp_path / "0.png")}, {str(tmp_path / "1.png")}]


def tree(folder, classes: dict) -> None:
    for name, count in classes.items():
        (folder / name / "deep").mkdir(parents=True)
        for i in range(count):
            image.new("RGB", (2, 2)).save(folder / name / ("deep" if i % 2 else ".") / f"{i}.jpg")
        (folder / name / "notes.txt").write_text("no picture")


def test_a_tree_of_pictures(tmp_path):
    tree(tmp_path, {"zebra": 2, "ant": 3, "cat": 0, "Dog": 1})
    reading = read_well(tmp_path)
    assert reading.reader == "image folder"
    column = reading.columns["label"]
    # As torchvision.datasets.ImageFolder: the names sorted.
    assert column.class_names == [(0, "Dog"), (1, "ant"), (2, "cat"), (3, "zebra")]
    assert column.values == [0, 1, 1, 1, 3, 3]
    assert column.sizes == [6]
    assert column.files == [str(tmp_path / name) for name in ("Dog", "ant", "zebra")]
    assert reading.skipped == {str(tmp_path / "cat"): "a class without pictures"}


def test_splits_are_no_classes(tmp_path):
    tree(tmp_path / "train", {"a": 2, "b": 2})
    tree(tmp_path / "test", {"a": 1, "b": 1, "c": 1})
    columns = [column for _, column in read_well(tmp_path).all]
    assert [column.values for column in columns] == [[0, 1, 2], [0, 0, 1, 1]]
    assert [len(column.class_names) for column in columns] == [3, 2]


def coco() -> dict:
    return {
        "info": {"year": 2024, "annotations": "none"},
        "images": [{"id": 1, "width": 640, "height": 480, "file_name": "a.jpg"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 18, "bbox": [1, 2.5, 3, 4], "area": 12, "iscrowd": 0,
             "segmentation": [[1, 2, 3, 4, 5, 6]]},
            {"id": 2, "image_id": 1, "category_id": 91, "bbox": [5, 6, 7, 8], "area": 56.5, "iscrowd": 1,
             "segmentation": {"counts": [9, 8], "size": [480, 640]}},
        ],
        "categories": [{"id": 18, "name": "dog", "supercategory": "animal"}, {"id": 90, "name": "\u00e9"}],
    }  # fmt: skip


def test_coco(tmp_path):
    path = tmp_path / "instances.json"
    for text in (json.dumps(coco()), json.dumps(dict(reversed(coco().items())), indent=1)):
        path.write_text(text)
        reading = read_well(path)
        assert reading.reader == "json"
        columns = reading.columns
        assert columns["category_id"].values == [18, 91]
        assert columns["category_id"].class_names == [(18, "dog"), (90, "\u00e9")]
        assert columns["bbox"].values == [1, 2.5, 3, 4, 5, 6, 7, 8]
        assert columns["bbox"].rows == [0, 0, 0, 0, 1, 1, 1, 1]
        assert columns["area"].values == [12, 56.5]
        assert columns["segmentation"].values == [1, 2, 3, 4, 5, 6]
        assert columns["segmentation.counts"].values == [9, 8]
        assert "width" not in columns and "year" not in columns


def test_a_list_of_records(tmp_path):
    records = [
        {"label": 3, "text": "a", "ids": [1, 2]},
        {"label": None, "text": "b", "ids": []},
        {"label": "x", "ids": [3]},
    ]
    reading = read_well(write(tmp_path / "t.json", json.dumps(records).encode()))
    label, ids = reading.columns["label"], reading.columns["ids"]
    assert (label.values, label.rows, label.malformed) == ([3], [0], [(1, ""), (2, "x")])
    assert (ids.values, ids.rows) == ([1, 2, 3], [0, 0, 2])
    assert reading.skipped == {"text": "text"}


def test_other_json_is_left_alone(tmp_path):
    for value in ({"vocab_size": 10}, [1, 2], "x", {"annotations": []}):
        assert (
            "no reader knows this format"
            in read(write(tmp_path / "t.json", json.dumps(value).encode())).error
        )


def test_damaged_json(tmp_path):
    whole = json.dumps(coco()).encode()
    for size in range(300, len(whole), 17):
        reading = read(write(tmp_path / "cut.json", whole[:size]))
        assert reading.code == 2, size
        assert "no reader knows" in reading.error or (
            "no valid JSON" in reading.error and "(at byte " in reading.error
        )
    deep = b'[{"a":' + b"[" * 200_000
    assert "nested more than 64 deep" in read(write(tmp_path / "deep.json", deep)).error
    many = [{f"k{i}": i for i in range(3000)}]
    assert len(read_well(write(tmp_path / "many.json", json.dumps(many).encode())).columns) == 1024


def yolo(folder, names: str) -> None:
    (folder / "labels" / "train").mkdir(parents=True)
    (folder / "images" / "train").mkdir(parents=True)
    (folder / "data.yaml").write_text(names)
    (folder / "labels" / "train" / "a.txt").write_text("0 0.5 0.5 0.1 0.2\n\n81 0.25 0.25 1 1\n")
    (folder / "labels" / "train" / "b.txt").write_text("")
    (folder / "labels" / "train" / "c.txt").write_text("1 0.1 0.2 0.3 0.4 0.5 0.6\r\n")
    image.new("RGB", (2, 2)).save(folder / "images" / "train" / "a.jpg")


NAMES = [
    "path: .\nnc: 3\nnames: ['cat', \"dog, wet\", eel]  # three\ntrain: images\n",
    "names: [cat,\n  'dog, wet',\n  eel,\n]\n",
    "names:\n  0: cat\n  1: 'dog, wet' # a comment\n  # another\n  2: eel\nnc: 3\n",
    'names:\n- cat\n- "dog, wet"\n- eel\nnc: 3\n',
]


@pytest.mark.parametrize("names", NAMES)
def test_yolo(tmp_path, names):
    yolo(tmp_path, names)
    for target in (tmp_path, tmp_path / "labels", f"{tmp_path}/labels/", tmp_path / "labels" / "train"):
        reading = read_well(target)
        assert reading.reader == "yolo"
        column = reading.columns["class"]
        assert column.class_names == [(0, "cat"), (1, "dog, wet"), (2, "eel")]
        assert column.values == [0, 81, 1]
        where = [(os.path.basename(piece["file"]), piece["first_line"]) for piece in column.pieces]
        assert where == [("a.txt", 1), ("a.txt", 3), ("c.txt", 1)]
        box = reading.columns["box"]
        assert box.values == [0.5, 0.5, 0.1, 0.2, 0.25, 0.25, 1, 1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
        assert box.rows == [0] * 4 + [1] * 4 + [2] * 6
    reading = read_well(tmp_path / "labels" / "train" / "a.txt")
    assert reading.columns["class"].values == [0, 81]


def test_yolo_with_a_list_of_classes(tmp_path):
    write(tmp_path / "classes.txt", b"cat\r\ndog\n\n")
    write(tmp_path / "a.txt", b"1 0.5 0.5 0.1 0.2\n")
    column = read_well(tmp_path).columns["class"]
    assert column.values == [1] and column.class_names == [(0, "cat"), (1, "dog")]


def test_damaged_yolo(tmp_path):
    write(tmp_path / "a.txt", b"1 0.5 0.5 0.1 0.2\nx 0.5 0.5 0.1 y\n2 0.5\n")
    reading = read(tmp_path)
    assert (
        f"cannot read {tmp_path}/a.txt: line 3 has 2 fields" in reading.error
        and "(at byte 34)" in reading.error
    )
    assert reading.columns["class"].values == [1]
    assert reading.columns["class"].malformed == [(1, "x")]
    assert reading.columns["box"].malformed == [(1, "y")]


def test_other_text_is_left_alone(tmp_path):
    for text in (b"the\nof\nand\n", b"1 2 3 4 5\n", b"7\n"):
        assert "no reader knows this format" in read(write(tmp_path / "vocab.txt", text)).error
