"""Files that change, lie or are no files, as lines of bash: what `explain` and `check` make of each."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    name: str
    line: str  # TOOL: Trapline; FAULT and FINE: a log with a device-side assertion, and one without a fault
    verdict: str  # of --format json; "": there is no report
    words: str = ""  # somewhere in the report or on stderr


EXPLAIN = [
    Row("many lines before the fault", "(yes fine | head -n 2000000; cat FAULT) > l; TOOL explain l", "fault"),
    Row("many lines behind the fault", "(cat FAULT; yes fine | head -n 2000000) > l; TOOL explain l", "fault"),
    Row("one line of 100 MB, then the fault", "(head -c 100000000 /dev/zero | tr '\\0' x; echo; cat FAULT) > l; TOOL explain l", "fault"),
    Row("zeros before the fault, as after a crash of a file server", "(head -c 4096 /dev/zero; echo; cat FAULT) > l; TOOL explain l", "fault"),
    Row("a hole of 1 GB before the fault", "truncate -s 1G l; (echo; cat FAULT) >> l; TOOL explain l", "fault"),
    Row("only a carriage return between lines", "tr '\\n' '\\r' < FAULT > l; TOOL explain l", "fault"),
    Row("a progress bar of 10 MB before the fault", "(for i in $(seq 1000); do printf 'x%.0s' $(seq 1000); printf '\\r'; done; cat FAULT) > l; TOOL explain l", "fault"),
    Row("CRLF", "sed 's/$/\\r/' FAULT > l; TOOL explain l", "fault"),
    Row("no newline at the end", "head -c -1 FAULT > l; TOOL explain l", "fault"),
    Row("escapes around each word", "sed 's/[^ ]*/\\x1b[31m&\\x1b[0m/g' FAULT > l; TOOL explain l", "fault"),
    Row("UTF-16", "iconv -t UTF-16 FAULT > l; TOOL explain l", "fault"),
    Row("UTF-16BE without a mark", "iconv -t UTF-16BE FAULT > l; TOOL explain l", "fault"),
    Row("UTF-32", "iconv -t UTF-32 FAULT > l; TOOL explain l", "unknown"),
    Row("Latin-1 around it", "(printf 'caf\\xe9\\n'; cat FAULT; printf '\\xff\\xfe\\n') > l; TOOL explain l", "fault"),
    Row("gzip", "gzip -c FAULT > l.gz; TOOL explain l.gz", "fault"),
    Row("gzip without its name", "gzip -c FAULT > l; TOOL explain l", "fault"),
    Row("gzip in two members, the fault in the second", "(gzip -c FINE; gzip -c FAULT) > l.gz; TOOL explain l.gz", "fault"),
    Row("gzip with garbage behind it", "(gzip -c FINE; head -c 99 /dev/urandom) > l.gz; TOOL explain l.gz", "unknown"),
    Row("gzip cut short", "(yes fine | head -n 100000; cat FAULT) | gzip -c | head -c 300 > l.gz; TOOL explain l.gz", "unknown"),
    Row("gzip with a wrong sum", "gzip -c FINE > l.gz; printf '\\0\\0\\0\\0' | dd of=l.gz bs=1 seek=$(($(stat -c %s l.gz) - 8)) conv=notrunc 2> /dev/null; TOOL explain l.gz", "unknown"),
    Row("xz", "xz -c FAULT > l.xz; TOOL explain l.xz", "fault"),
    Row("bzip2", "bzip2 -c FAULT > l.bz2; TOOL explain l.bz2", "fault"),
    Row("gzip within gzip", "gzip -c FAULT | gzip -c > l.gz; TOOL explain l.gz", "unknown"),
    Row("a bomb of 1 GB with the fault at its end", "(head -c 1000000000 /dev/zero | tr '\\0' '\\n'; cat FAULT) | gzip -1 > l.gz; TOOL explain l.gz", "fault"),
    Row("standard input", "TOOL explain - < FAULT", "fault"),
    Row("a pipe", "cat FAULT | TOOL explain -", "fault"),
    Row("a slow pipe", "(head -c 50 FAULT; sleep 0.5; tail -c +51 FAULT) | TOOL explain -", "fault"),
    Row("an empty file", ": > l; TOOL explain l", "unknown"),
    Row("only newlines", "yes '' | head -n 1000 > l; TOOL explain l", "unknown"),
    Row("a file that is missing", "TOOL explain no", "", "No such file"),
    Row("a file that is missing, beside one with the fault", "TOOL explain no FAULT", "fault", "No such file"),
    Row("a folder without a log", "mkdir d; TOOL explain d", "unknown"),
    Row("a folder in which everything is hidden", "mkdir -p d/.git; cp FAULT d/.git/x.log; TOOL explain d", "unknown"),
    Row("a hidden log", "mkdir d; cp FAULT d/.x.log; TOOL explain d", "fault"),
    Row("a name of escapes", "cp FAULT $'a\\x1b]0;x\\x07.log'; TOOL explain $'a\\x1b]0;x\\x07.log'", "fault"),
    Row("a name with a newline", "cp FAULT $'a\\nb.log'; TOOL explain $'a\\nb.log'", "fault"),
    Row("a name that is no UTF-8", "cp FAULT $'a\\xff.log'; TOOL explain $'a\\xff.log'", "fault"),
    Row("a name that begins with a dash", "cp FAULT ./-x.log; TOOL explain -- -x.log", "fault"),
    Row("a path of 3,000 characters", "p=$(printf 'd%.0s' $(seq 200)); p=$p/$p/$p/$p/$p; mkdir -p $p; cp FAULT $p/l; TOOL explain $p/l", "fault"),
    Row("10,000 links to one log", "mkdir d; cp FINE d/l.log; for i in $(seq 10000); do echo l.log d/$i.log; done | xargs -n 2 ln -s; TOOL explain d", "clean"),
    Row("two links in a ring", "mkdir d; ln -s b d/a; ln -s a d/b; cp FAULT d/l; TOOL explain d", "fault", "Too many levels"),
    Row("a socket beside the fault", "mkdir d; cp FAULT d/l; python3 -c \"import socket; socket.socket(1).bind('d/s')\"; TOOL explain d", "fault"),
    Row("a device", "TOOL explain /dev/null", "unknown"),
    Row("a process's memory", "TOOL explain /proc/self/mem", "", "proc/self/mem"),
    Row("a log that grows", "cp FINE l; (for i in $(seq 50); do cat FINE; sleep 0.01; done >> l) & TOOL explain l; r=$?; wait; exit $r", "clean"),
    Row("a log that is renamed, as logrotate does", "(yes fine | head -n 3000000; cat FAULT) > l; (sleep 0.02; mv l l.1; : > l) & TOOL explain l; r=$?; wait; exit $r", "fault"),
    Row("a log that is removed", "(yes fine | head -n 3000000; cat FAULT) > l; (sleep 0.02; rm l) & TOOL explain l; r=$?; wait; exit $r", "fault"),
    Row("a log that is cut while it is read", "(yes fine | head -n 60000000; cat FAULT) > l; (sleep 0.03; : > l) & TOOL explain l; r=$?; wait; exit $r", "unknown"),
    Row("with little memory", "ulimit -v 400000; TOOL explain FAULT", "fault"),
    Row("with 8 open files", "ulimit -n 8; TOOL explain FAULT", "fault"),
    Row("with little stack", "ulimit -s 256; TOOL explain FAULT", "fault"),
    Row("no HOME, no locale", "env -i TOOL explain FAULT", "fault"),
    Row("the reader of the pipe is gone", "TOOL explain FAULT FAULT FAULT | head -c 1 > /dev/null; exit 1", ""),
    Row("1,000 ranks with the fault in one", "mkdir d; for i in $(seq 1000); do cp FINE d/rank$i.log; done; cp FAULT d/rank77.log; TOOL explain d", "fault"),
    Row("1,000 ranks with the fault in all", "mkdir d; for i in $(seq 1000); do cp FAULT d/rank$i.log; done; TOOL explain d", "fault"),
    Row("JSON lines 100,000 deep", "python3 -c \"print('[' * 100000)\" > l; cat FAULT >> l; TOOL explain l", "fault"),
    Row("a notebook cut short", "python3 -c \"import json; print(json.dumps({'cells': [{'outputs': [{'text': open('FAULT').read()}]}]})[:-4])\" > n.ipynb; TOOL explain n.ipynb", "fault"),
]  # fmt: skip

TABLE = "printf 'x,label\\n1,0\\n2,7\\n' > t.csv; "
CHECK = "TOOL check labels"
DATA = [
    Row("CSV", TABLE + f"{CHECK} t.csv --column label --classes 3", "fault", "label[1] is 7"),
    Row("CSV with CRLF", TABLE + f"sed -i 's/$/\\r/' t.csv; {CHECK} t.csv --column label --classes 3", "fault"),
    Row("CSV with a mark", TABLE + f"(printf '\\xef\\xbb\\xbf'; cat t.csv) > u.csv; {CHECK} u.csv --column label --classes 3", "fault"),
    Row("CSV in UTF-16", TABLE + f"iconv -t UTF-16 t.csv > u.csv; {CHECK} u.csv --column label --classes 3", "", "UTF-16"),
    Row("CSV with NULs", TABLE + f"(cat t.csv; head -c 4096 /dev/zero) > u.csv; {CHECK} u.csv --column label --classes 3", "fault"),
    Row("CSV with an open quote", TABLE + f"echo '3,\"1' >> t.csv; {CHECK} t.csv --column label --classes 3", "fault", "does not end"),
    Row("CSV of one column of 1,000,000", f"python3 -c \"print(','.join(f'c{{i}}' for i in range(1000000)) + '\\n' + '7,' * 999999 + '7')\" > t.csv; {CHECK} t.csv --column c999999 --classes 3", "fault"),
    Row("CSV with two columns of one name", f"printf 'label,label\\n0,7\\n' > t.csv; {CHECK} t.csv --column label --classes 3", "", "label"),
    Row("CSV of a header only", f"echo x,label > t.csv; {CHECK} t.csv --column label --classes 3", "", "no "),
    Row("an empty file", f": > t.csv; {CHECK} t.csv --column label --classes 3", "", "empty"),
    Row("a file that is a folder", f"mkdir t.csv; {CHECK} t.csv --column label --classes 3", "", "t.csv"),
    Row("a file that is missing", f"{CHECK} t.csv --column label --classes 3", "", "No such file"),
    Row("a column that is missing", TABLE + f"{CHECK} t.csv --column lable --classes 3", "", "lable"),
    Row("a FIFO", f"mkfifo t.csv; {CHECK} t.csv --column label --classes 3", "", "t.csv"),
    Row("a link to /dev/zero", f"ln -s /dev/zero t.csv; {CHECK} t.csv --column label --classes 3", "", "t.csv"),
    Row("a table that grows", f"(echo label; yes 1 | head -n 3000000) > t.csv; (sleep 0.01; echo 7 >> t.csv) & {CHECK} t.csv --column label --classes 3; r=$?; wait; exit $r", "*"),
    Row("a table that is cut", f"(echo label; yes 1 | head -n 80000000) > t.csv; (sleep 0.03; : > t.csv) & {CHECK} t.csv --column label --classes 3; r=$?; wait; exit $r", "", "t.csv"),
    Row("a table that is cut, as .npy", f"python3 -c \"import struct; h = b\\\"{{'descr': '<i8', 'fortran_order': False, 'shape': (100000000,), }}\\\".ljust(117) + b'\\\\n'; open('l.npy', 'wb').write(b'\\\\x93NUMPY\\\\x01\\\\x00' + struct.pack('<H', len(h)) + h)\"; truncate -s 800000128 l.npy; (sleep 0.02; : > l.npy) & {CHECK} l.npy --classes 3; r=$?; wait; exit $r", "", "l.npy"),
    Row("gzip cut short", TABLE + f"gzip t.csv; truncate -s -5 t.csv.gz; {CHECK} t.csv.gz --column label --classes 3", "*", "t.csv.gz"),
    Row("a bomb", f"(echo label; head -c 2000000000 /dev/zero | tr '\\0' '\\n'; echo 7) | gzip -1 > t.csv.gz; ulimit -v 2000000; {CHECK} t.csv.gz --column label --classes 3", "*"),
    Row("a pickle that would run something", f"python3 -c \"import pickle, os; T = type('T', (), dict(__reduce__=lambda s: (os.system, ('touch ran',)))); pickle.dump(T(), open('l.pkl', 'wb'))\"; {CHECK} l.pkl --classes 3; r=$?; [ ! -e ran ] || echo RAN; exit $r", "", "l.pkl"),
    Row("JSON lines 1,000,000 deep", f"python3 -c \"print('{{\\\"label\\\": ' + '[' * 1000000)\" > t.jsonl; {CHECK} t.jsonl --column label --classes 3", "*", "t.jsonl"),
    Row("a name of escapes", TABLE + f"cp t.csv $'a\\x1b]0;x\\x07.csv'; {CHECK} $'a\\x1b]0;x\\x07.csv' --column label --classes 3", "fault"),
    Row("values of escapes", f"printf 'label\\n\\x1b]0;x\\x07\\n' > t.csv; {CHECK} t.csv --column label --classes 3", "fault"),
    Row("with little memory", TABLE + f"ulimit -v 1000000; {CHECK} t.csv --column label --classes 3", "fault"),
    Row("with 8 open files", TABLE + f"ulimit -n 8; {CHECK} t.csv --column label --classes 3", "fault"),
    Row("without threads", TABLE + f"{CHECK} t.csv --column label --classes 3 --threads 1", "fault"),
    Row("1,000 files", f"mkdir d; for i in $(seq 1000); do printf 'label\\n%s\\n' $((i / 1000 * 7)) > d/$i.csv; done; {CHECK} d/*.csv --column label --classes 3", "fault", "1000.csv"),
]  # fmt: skip
