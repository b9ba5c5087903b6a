"""WebDataset shards end to end, and files of kinds that are known and not read."""

import io
import tarfile

import pytest
from checking import only_finding, report, run


def shard(path, labels):
    with tarfile.open(path, "w") as archive:
        for i, label in enumerate(labels):
            for end, data in [("jpg", b"picture"), ("cls", str(label).encode())]:
                info = tarfile.TarInfo(f"{i:06}.{end}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return path


def test_a_label_out_of_range_is_found_in_its_shard_sample_and_member(tmp_path):
    shard(tmp_path / "train-000000.tar", range(10))
    bad = shard(tmp_path / "train-000001.tar", [1, 2, 3, 10, 4])
    finding = only_finding("labels", tmp_path, "--classes", 10)
    assert finding["argument"] == "cls"
    assert finding["element"]["index"] == [3]
    assert finding["element"]["value"] == 10
    assert finding["evidence"][0] == {"source": f"{bad}/000003.cls", "text": "cls[3] is 10"}


def test_good_shards_pass_and_say_what_was_checked(tmp_path):
    shard(tmp_path / "train-000000.tar", range(10))
    found = report("labels", tmp_path / "train-000000.tar", "--classes", 10, exit_code=0)
    assert found["verdict"] == "clean"
    assert "as labels: cls" in found["notes"][0]


KINDS = {
    "old.mat": (b"MATLAB 5.0 MAT-file, Platform".ljust(200), "MATLAB files are not read", "scipy.io.loadmat"),
    "t.orc": (b"ORC" + b"\1" * 50 + b"ORC\x17", "ORC is not read", "pyarrow.orc"),
    "t.avro": (b"Obj\x01" + bytes(50), "Avro is not read", "JSON lines"),
    "data.mdb": (bytes(16) + b"\xde\xc0\xef\xbe\1\0\0\0" + bytes(50), "LMDB is not read", ".npy or CSV"),
    "t.rec": (b"\x0a\x23\xd7\xce" + bytes(50), "RecordIO is not read", ".npy or CSV"),
    "t.xlsx": (b"PK\x03\x04" + bytes(50), "Excel sheets are not read", "as CSV"),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_known_kind_that_is_not_read_says_what_to_do(tmp_path, name):
    data, why, what_to_do = KINDS[name]
    (tmp_path / name).write_bytes(data)
    done = run("labels", tmp_path / name, "--classes", 2)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"trapline: cannot read {tmp_path / name}: {why}: ")
    assert what_to_do in done.stderr


@pytest.mark.parametrize("text", ["ORC,label\n1.5,1\n2.5,0\n", "label,x,DUCK\n1,2,3\n0,1,2\n"])
def test_a_table_that_begins_alike_is_read(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    report("labels", tmp_path / "t.csv", "--classes", 2, exit_code=0)
