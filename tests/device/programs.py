"""Random programs for a device whose work is late: what they do, what is wrong with them, and how they went.

A program is a list of statements of one or two threads on several streams. Every bad value stands in the
text of its statement, so that what must be reported is known before it runs; nothing else is ever bad.
"""

from __future__ import annotations

import random
import threading
import time

import torch
import torch.nn.functional as F

ROWS, WIDTH, CLASSES = 9, 4, 5


class Statement:
    """One line. `needs` are names of variables, `bad` is what must be reported of it, if anything."""

    def __init__(self, line, stream, text, kind="op", result=None, needs=(), bad=None):
        self.line, self.stream, self.text, self.kind = line, stream, text, kind
        self.result, self.needs, self.bad = result, tuple(needs), bad
        self.causes = frozenset()  # lines of bad statements that what it reads depends on


class Report:
    def __init__(self, line, contract, first, value, count, thread, began):
        self.line, self.contract, self.first, self.value, self.count = line, contract, first, value, count
        self.thread, self.began = thread, began

    def key(self):
        return (self.line, self.contract, self.first, self.value, self.count)


class Program:
    """Drawn from a seed: a common beginning, then one or two threads."""

    def __init__(self, seed):
        self.seed, self.random, self.line = seed, random.Random(seed), 0
        self.streams = self.random.randint(1, 3)
        self.bad_share = self.random.choice((0.0, 0.1, 0.3, 0.6))
        self.taint = {}  # variable -> lines of bad statements that it depends on
        self.home = {}  # variable -> stream
        self.names = 0
        self.expected = {}
        self.beginning, self.threads = [], []
        self.visible = []
        for _ in range(self.random.randint(0, 4)):
            self._draw(self.beginning)
        common = list(self.visible)
        for _ in range(self.random.randint(1, 2)):
            self.visible = list(common)
            statements = []
            for _ in range(self.random.randint(3, 9)):
                self._draw(statements)
            self.threads.append(statements)

    def _add(self, statements, text, stream, needs=(), bad=None, kind="op"):
        for name in needs:  # another stream made it: this one has to wait
            if self.home.get(name, stream) != stream:
                self._line(statements, f"order({self.home[name]}, {stream})", stream, kind="order")
        result = None
        if kind == "op":
            self.names += 1
            result = f"v{self.names}"
            text = f"{result} = {text}"
        statement = self._line(statements, text, stream, kind, result, needs, bad)
        causes = set().union(*(self.taint.get(name, ()) for name in needs))
        if bad is not None:
            self.expected[statement.line] = (statement.line, *bad)
            causes.add(statement.line)
        statement.causes = frozenset(causes)
        if result is not None:
            self.taint[result], self.home[result] = causes, stream
            self.visible.append(result)

    def _line(self, statements, text, stream, kind, result=None, needs=(), bad=None):
        self.line += 1
        statements.append(Statement(self.line, stream, text, kind, result, needs, bad))
        return statements[-1]

    def _draw(self, statements):
        stream = self.random.randrange(self.streams)
        choice = self.random.random()
        if choice < 0.5 or not self.visible:
            self._operation(statements, stream)
        elif choice < 0.65:
            needs = self.random.sample(self.visible, min(2, len(self.visible)))
            self._add(statements, " + ".join(f"{name}.sum() * 0.5" for name in needs), stream, needs)
        elif choice < 0.8:
            name = self.random.choice(self.visible)
            how = self.random.choice((f"{name}.sum().item()", f"{name}.cpu()", f"{name}.nonzero()"))
            self._add(statements, f"read({how})", stream, [name], kind="read")
        elif choice < 0.88:
            how = self.random.choice(("torch.cuda.synchronize()", f"S[{stream}].synchronize()"))
            self._add(statements, how, stream, kind="wait")
        else:
            self._train(statements, stream)

    def _values(self, low, high, count, wrapped=False):
        """Integers in range, and with a share of bad ones what must be reported of them."""
        values = [self.random.randrange(-high if wrapped else low, high) for _ in range(count)]
        if self.random.random() >= self.bad_share:
            return values, None
        places = sorted(self.random.sample(range(count), self.random.randint(1, min(2, count))))
        for place in places:
            values[place] = self.random.choice((high, high + 7, -high - 1, 10**12, -(10**12)))
        return values, (places[0], values[places[0]], len(places))

    def _operation(self, statements, stream):
        contract, text, bad = getattr(self, "_" + self.random.choice(OPERATIONS))()
        self._add(statements, text, stream, bad=None if bad is None else (contract, *bad))

    def _copied(self, values, dtype="long"):
        how = self.random.choice((".to(D)", ".to(D, non_blocking=True)"))
        return f"torch.tensor({values}, dtype=torch.{dtype}){how}"

    def _embedding(self):
        values, bad = self._values(0, ROWS, self.random.randint(1, 6))
        dtype = self.random.choice(("long", "int")) if bad is None or abs(bad[1]) < 1e9 else "long"
        dtype = "long" if max(map(abs, values)) > 1e9 else dtype
        return "embedding.indices", f"F.embedding({self._copied(values, dtype)}, W)", bad

    def _index_select(self):
        values, bad = self._values(0, ROWS, self.random.randint(1, 6))
        return "index_select.index", f"W.index_select(0, {self._copied(values)})", bad

    def _index(self):
        values, bad = self._values(0, ROWS, self.random.randint(1, 6), wrapped=True)
        return "index.indices", f"W[{self._copied(values)}]", bad

    def _gather(self):
        values, bad = self._values(0, WIDTH, ROWS)
        return "gather.index", f"W.gather(1, {self._copied(values)}.view(-1, 1))", bad

    def _gather_strided(self):
        values, bad = self._values(0, WIDTH, 2 * ROWS)
        pairs = [values[0::2], values[1::2]]  # its transpose is (ROWS, 2) in the order of `values`
        return "gather.index", f"W.gather(1, {self._copied(pairs)}.t())", bad

    def _scatter_add(self):
        values, bad = self._values(0, ROWS, self.random.randint(1, 5))
        index = self._copied(values)
        return (
            "scatter_add_.index",
            f"torch.zeros({ROWS}, device=D).scatter_add_(0, {index}, ONE[:{len(values)}])",
            bad,
        )

    def _put(self):
        values, bad = self._values(0, ROWS, self.random.randint(1, 5), wrapped=True)
        return "index_put_.indices", f"put(W.clone(), {self._copied(values)})", bad

    def _labels(self):
        values, bad = self._values(0, CLASSES, self.random.randint(1, 6))
        return (
            "nll_loss_forward.target",
            f"F.cross_entropy(LOGITS[:{len(values)}], {self._copied(values)})",
            bad,
        )

    def _probabilities(self, high=1.0):
        values = [round(self.random.uniform(0.1, high), 3) for _ in range(4)]
        if self.random.random() >= self.bad_share:
            return values, None
        place = self.random.randrange(4)
        values[place] = self.random.choice((-0.5, -3.0))
        return values, place

    def _multinomial(self):
        values, place = self._probabilities()
        bad = None if place is None else (place, values[place], 1)
        return "multinomial.self", f"torch.multinomial({self._copied(values, 'float')}, 2, True)", bad

    def _binary(self):
        values, place = self._probabilities()
        bad = None if place is None else (place, values[place], 1)
        target = "torch.tensor([0.0, 1.0, 0.0, 1.0]).to(D)"
        text = f"F.binary_cross_entropy({self._copied(values, 'float')}, {target})"
        return "binary_cross_entropy.self", text, bad

    def _train(self, statements, stream):
        """A step: the backward call gets the same tensors again, and must neither fail nor report them."""
        values, bad = self._values(0, ROWS, 4)
        labels = [self.random.randrange(CLASSES) for _ in range(4)]
        bad = None if bad is None else ("embedding.indices", *bad)
        # One guarded call in a statement: one that raises an earlier fault is executed again as a whole.
        self._add(statements, f"F.embedding({self._copied(values)}, P)", stream, bad=bad)
        rows = self.visible[-1]
        text = f"F.cross_entropy({rows} @ Q, {self._copied(labels)})"
        self._add(statements, text, stream, [rows])
        loss = self.visible[-1]
        self._add(statements, f"{loss}.backward()", stream, [loss], kind="backward")
        self._add(statements, "O.step()", stream, [loss], kind="step")


OPERATIONS = (
    "embedding",
    "index_select",
    "index",
    "gather",
    "gather_strided",
    "scatter_add",
    "put",
    "labels",
    "multinomial",
    "binary",
)


class Fault(Exception):
    """What the tests' handler has raised."""

    def __init__(self, violation):
        super().__init__(violation["contract"])
        self.violation = violation


def line_of(violation, name):
    """Line of the innermost frame of file `name`."""
    for code, instruction in violation["frames"]:
        if code.co_filename == name:
            for start, end, line in code.co_lines():
                if start <= instruction < end:
                    return line
    return None


class Run:
    """Executes a program; goes on after a fault as somebody in a notebook would."""

    def __init__(self, program):
        self.program, self.name = program, f"<program {program.seed}>"
        self.lock, self.reports, self.reads, self.lost = threading.Lock(), [], [], False
        others = [torch.cuda.Stream() for _ in range(program.streams - 1)]
        self.streams = [torch.cuda.default_stream(), *others]
        self.wrong = []

    def environment(self):
        generator = torch.Generator().manual_seed(self.program.seed)

        def random(*shape):
            return torch.randn(*shape, generator=generator).to("cuda")

        variables = {
            "torch": torch, "F": F, "D": "cuda", "S": self.streams,
            "W": random(ROWS, WIDTH), "LOGITS": random(8, CLASSES), "ONE": torch.ones(8).to("cuda"),
            "P": random(ROWS, WIDTH).requires_grad_(), "Q": random(WIDTH, CLASSES).requires_grad_(),
            "order": self._order, "read": lambda value: value, "put": _put,
        }  # fmt: skip
        variables["O"] = torch.optim.SGD([variables["P"], variables["Q"]], lr=0.01)
        torch.cuda.synchronize()
        return variables

    def _order(self, earlier, later):
        event = torch.cuda.Event()
        event.record(self.streams[earlier])
        self.streams[later].wait_event(event)

    def go(self):
        shared, *environments = [self.environment() for _ in range(len(self.program.threads) + 1)]
        self._thread(self.program.beginning, shared)
        for variables in environments:
            variables.update({name: value for name, value in shared.items() if name.startswith("v")})
        threads = [
            threading.Thread(target=self._thread, args=pair)
            for pair in zip(self.program.threads, environments)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._finish()
        return self

    def _thread(self, statements, variables):
        try:
            for statement in statements:
                if self.lost:
                    return
                if all(name in variables for name in statement.needs):
                    self._execute(statement, variables)
        except Exception as error:  # of the test itself
            self.wrong.append(f"{type(error).__name__}: {error}")

    def _execute(self, statement, variables):
        again = 0
        code = compile("\n" * (statement.line - 1) + statement.text, self.name, "exec")
        while True:
            began = time.monotonic()
            try:
                with torch.cuda.stream(self.streams[statement.stream]):
                    exec(code, variables)
                break
            except Fault as fault:
                if fault.violation.get("again"):  # a value made of harmless numbers is not to be had
                    again += 1
                    if statement.kind in ("backward", "step"):
                        variables["O"].zero_grad()
                        return
                    if again > 3:
                        return
                    continue  # it may have been told for a step of this thread's
                report = self._report(fault, began)
                if statement.kind in ("backward", "step"):  # a bad step is not taken
                    variables["O"].zero_grad()
                    return
                if report.line == statement.line:
                    return
            except RuntimeError as error:
                if "CUDA error" not in str(error):
                    raise
                self.lost = True
                return
        if statement.kind in ("read", "step") or "synchronize" in statement.text:
            with self.lock:
                self.reads.append((statement, time.monotonic(), {report.line for report in self.reports}))

    def _report(self, fault, began):
        violation, scan = fault.violation, fault.violation["scan"]
        value = scan["value"] if isinstance(scan["value"], int) else round(scan["value"], 3)
        report = Report(
            line_of(violation, self.name), violation["contract"], scan["first"], value, scan["bad"],
            threading.get_ident(), began,
        )  # fmt: skip
        with self.lock:
            self.reports.append(report)
        return report

    def _finish(self):
        while not self.lost:
            began = time.monotonic()
            try:
                torch.cuda.synchronize()
                return
            except Fault as fault:
                if not fault.violation.get("again"):
                    self._report(fault, began)
            except RuntimeError:
                self.lost = True

    def read_too_early(self):
        """Reads whose value depends on a bad one that nobody had been told of."""
        early = []
        for statement, when, known in self.reads:
            for line in statement.causes - known if statement.kind != "wait" else ():
                # Told in another thread, in a statement that had begun before this one returned.
                told = [r for r in self.reports if r.line == line and r.began < when]
                if not told:
                    early.append((statement.text, line))
        return early


def _put(table, index):
    table[index] = 1.0
    return table
