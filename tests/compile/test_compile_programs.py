"""Graphs lowered by Inductor on the CPU: what is found, where, and that nothing else changes."""

from __future__ import annotations

import re

import programs
import pytest

torch = pytest.importorskip("torch")

import trapline  # noqa: E402
from torch import tensor  # noqa: E402
from trapline import DeviceAssertError  # noqa: E402
from trapline._fault.program import sites  # noqa: E402


def finding_of(call, *args):
    """The finding of a call that must be stopped."""
    sites.forget()  # the second of two faults at one place would be summed up
    with pytest.raises(DeviceAssertError) as caught:
        call(*args)
    return caught.value.finding


def advice_of(finding):
    """How many values were seen so far depends on the tests before this one."""
    return [
        re.sub(r"of (?:the last )?\d+ (ids|labels|indices) seen", r"of the \1 seen", fix)
        for fix in finding["fix"]
    ]


def element_of(finding):
    """Without the user's variable: the frames of compiled code do not have all of them."""
    return {name: value for name, value in finding["element"].items() if name != "variable"}


def assert_same(compiled, eager):
    """Cause, element, range, layer and place are those of the same program without a compiler."""
    for field in ("code", "cause", "op", "argument", "valid", "layer", "summary"):
        assert compiled.get(field) == eager.get(field), field
    assert element_of(compiled) == element_of(eager)
    assert advice_of(compiled) == advice_of(eager)
    assert compiled["tensor"]["shape"] == eager["tensor"]["shape"]
    assert compiled["origin"] == eager["origin"]


WORDS, LABELS = tensor([[1, 2, 3], [4, 5, 9]]), tensor([0, -1])
BAD_WORDS, BAD_LABELS = tensor([[1, 2, 3], [4, 12, 9]]), tensor([0, 5])


@pytest.fixture
def model(guard):
    return programs.Classifier()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_same_finding_as_without_a_compiler(model, backend):
    compiled = torch.compile(programs.step, backend=backend, fullgraph=True)
    compiled(model, WORDS, LABELS).backward()
    for arguments, marker, layer in (
        ((model, BAD_WORDS, LABELS), "word", "words"),
        ((model, WORDS, BAD_LABELS), "label", "head"),
    ):
        found, eager = finding_of(compiled, *arguments), finding_of(programs.step, *arguments)
        assert found["origin"]["line"] == programs.line_of(marker)
        assert found["origin"]["file"] == programs.__file__
        if backend == "aot_eager" and marker == "label":
            # Neither autograd nor the compiler says what computed the scores: the width alone is known.
            assert found["layer"]["name"] == layer
            assert found["origin"] == eager["origin"]
        else:
            assert_same(found, eager)
            assert found["layer"]["name"] == layer
        assert [f["line"] for f in found["stack"] if f.get("user")][-1] == programs.line_of(marker)


def test_the_loss_is_reported_and_not_what_it_is_made_of(model):
    compiled = torch.compile(programs.step, fullgraph=True)
    found = finding_of(compiled, model, WORDS, BAD_LABELS)
    assert (found["op"], found["argument"]) == ("cross_entropy", "target")
    element = {"index": [1], "value": 5, "bad": 1, "total": 2, "min": 0, "max": 5}
    assert element_of(found).items() >= element.items() and element_of(found)["strip"] == [0, 1]
    assert (found["valid"]["min"], found["valid"]["max"], found["valid"]["also"]) == (0, 4, [-1])
    assert "needed" not in found["layer"], "two labels are no count"


def test_numbers_and_gradients_are_those_without_guard(model):
    compiled = torch.compile(programs.step, fullgraph=True)

    def step():
        model.zero_grad()
        loss = compiled(model, WORDS, LABELS)
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

    guarded = step()
    trapline.uninstall()
    try:
        torch._dynamo.reset()
        plain = step()
    finally:
        trapline.install()
    assert all(torch.equal(a, b) for a, b in zip(guarded, plain))


def test_one_graph_and_no_recompilation(model):
    from torch._dynamo.utils import counters

    counters.clear()
    compiled = torch.compile(programs.step, fullgraph=True)
    for labels in (LABELS, tensor([4, 4]), BAD_LABELS, LABELS):
        try:
            compiled(model, WORDS, labels)
        except DeviceAssertError:
            continue
    assert counters["stats"]["unique_graphs"] == 1
    assert sum(counters["graph_break"].values()) == 0


def test_sizes_that_are_symbols(guard):
    compiled = torch.compile(programs.first_pick, dynamic=True, fullgraph=True)
    for width in (4, 9):
        compiled(torch.randn(3, width), tensor([[width - 1], [0], [1]]))
    found = finding_of(compiled, torch.randn(3, 7), tensor([[6], [7], [1]]))
    element = {"index": [1, 0], "value": 7, "bad": 1, "total": 3, "min": 1, "max": 7}
    assert found["element"].items() >= element.items() and found["element"]["strip"] == [0, 1, 0]
    assert (found["valid"]["min"], found["valid"]["max"]) == (0, 6)


def test_equal_graphs_of_two_functions_are_told_apart(guard):
    first, second = torch.compile(programs.first_pick), torch.compile(programs.second_pick)
    good, bad = tensor([[0], [1]]), tensor([[0], [9]])
    for compiled in (first, second):
        compiled(torch.ones(2, 3), good)
    for compiled, marker in ((first, "first"), (second, "second"), (first, "first")):
        found = finding_of(compiled, torch.ones(2, 3), bad)
        assert found["origin"]["line"] == programs.line_of(marker)
        assert found["origin"]["function"] == f"{marker}_pick"


def test_a_cast_of_nan_is_the_origin_of_the_index(guard):
    compiled = torch.compile(programs.by_age, fullgraph=True)
    age, effect = tensor([31.0, float("nan"), 7.0]), torch.randn(8)
    compiled(torch.ones(3), effect)
    found, eager = finding_of(compiled, age, effect), finding_of(programs.by_age, age, effect)
    assert_same(found, eager)
    assert found["code"] == "TL108"
    assert found["origin"]["line"] == programs.line_of("cast")
    assert found["surfaced"]["line"] == programs.line_of("use") == eager["surfaced"]["line"]


def lowered_code(call, *args):
    from torch._inductor.utils import run_and_get_code

    with torch._inductor.config.patch(force_disable_caches=True):
        return "\n".join(run_and_get_code(call, *args)[1])


def test_a_cast_that_is_no_index_costs_nothing(guard):
    assert "trapline" not in lowered_code(torch.compile(programs.hidden_cast), torch.randn(5))
    assert "trapline" in lowered_code(torch.compile(programs.by_age), torch.ones(3), torch.randn(8))


def test_scores_are_not_computed_for_the_check(model):
    """A check holds sizes, the labels and weights: what is fused away without it stays fused."""
    from torch._inductor.utils import run_fw_bw_and_get_code

    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(programs.step)
        _, codes = run_fw_bw_and_get_code(lambda: compiled(model, WORDS, LABELS))
    calls = [line.partition(" = torch.ops.trapline.checked(")[2] for line in "\n".join(codes).splitlines()]
    tensors = sorted(call.partition("], [")[0] for call in calls if call)
    words, labels, table = "primals_2", "primals_7", "primals_1"
    assert tensors == [
        f"{words}, [{table}",
        f"{labels}, [primals_6, primals_5",  # the last layer, for the report
    ]


def test_the_operations_kernel_judges_as_the_compiled_code_does(guard):
    """What is not lowered, and what `cpp_wrapper` writes, goes through the dispatcher."""
    with torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(programs.first_pick, fullgraph=True)
        compiled(torch.ones(2, 3), tensor([[0], [1]]))
    calls, direct = [], torch.ops.trapline.checked
    torch.ops.trapline.checked = lambda *call: (calls.append(call), direct(*call))[1]
    try:
        compiled(torch.ones(2, 3), tensor([[0], [1]]))
    finally:
        torch.ops.trapline.checked = direct
    ((index, others, numbers, site),) = calls
    for check in (direct, torch.ops.trapline.check.default):
        assert check(index, others, numbers, site).data_ptr() == index.data_ptr()
        found = finding_of(check, tensor([[0], [9]]), others, numbers, site)
        assert (found["element"]["index"], found["element"]["value"]) == ([1, 0], 9)
        assert found["origin"]["line"] == programs.line_of("first")
        with trapline.enabled(False):
            assert check(tensor([[0], [9]]), others, numbers, site).tolist() == [[0], [9]]
        assert check(index, others, numbers, "no site") is not None


def test_inputs_are_what_they_were_after_the_backward_pass(model):
    """The result of a check is kept for the backward pass, and has the memory of the input."""
    words, labels = WORDS.clone(), LABELS.clone()
    torch.compile(programs.step)(model, words, labels).backward()
    assert torch.equal(words, WORDS) and torch.equal(labels, LABELS)


def test_cuda_graph_mode(model):
    """There are no CUDA graphs on a CPU: the mode must be legal all the same."""
    compiled = torch.compile(programs.step, mode="reduce-overhead")
    compiled(model, WORDS, LABELS).backward()
    assert finding_of(compiled, model, WORDS, BAD_LABELS)["code"] == "TL101"


def test_module_compile(model):
    model.compile()
    model(WORDS)
    found = finding_of(programs.step, model, BAD_WORDS, LABELS)
    assert found["origin"]["line"] == programs.line_of("word")
    found = finding_of(programs.step, model, WORDS, BAD_LABELS)  # the loss is not compiled here
    assert found["origin"]["line"] == programs.line_of("label")
    assert found["layer"]["name"] == "head"


def test_regional_compilation_names_the_block(guard):
    model = programs.Blocks()
    for block in model.blocks:
        block.compile()
    model(torch.ones(2, 4), tensor([0, 1]))
    found = finding_of(model, torch.ones(2, 4), tensor([0, 3]))
    assert found["layer"]["name"] == "blocks.1.offset"
    assert found["origin"]["line"] == programs.line_of("block")


def test_the_rest_of_a_function_after_a_graph_break(guard):
    compiled = torch.compile(programs.after_a_break)
    compiled(torch.ones(3), tensor([2]))
    found = finding_of(compiled, torch.ones(3), tensor([3]))
    assert found["origin"]["line"] == programs.line_of("resumed")
    assert found["origin"]["function"] == "after_a_break"


def test_index_lists(guard):
    compiled = torch.compile(programs.mask_and_index, fullgraph=True)
    mask = tensor([True, False, True, False])
    good = tensor([0, 3, -4, 1])
    for mine, plain in zip(
        compiled(torch.eye(4), mask, good.abs() % 4),
        programs.mask_and_index(torch.eye(4), mask, good.abs() % 4),
    ):
        assert torch.equal(mine, plain)
    found = finding_of(compiled, torch.eye(4), mask, tensor([0, 4, 1, 1]))
    assert (found["element"]["index"], found["element"]["value"]) == ([1], 4)
    found = finding_of(compiled, torch.eye(4), mask, tensor([0, -1, 1, 1]))  # -1 - 4 is not in [-4, 4)
    assert (found["element"]["index"], found["element"]["value"]) == ([1], -5)


def test_assignment_by_index(guard):
    compiled = torch.compile(programs.assign, fullgraph=True)
    assert compiled(torch.zeros(4), tensor([-4, 3])).tolist() == [2.0, 0.0, 0.0, 2.0]
    found = finding_of(compiled, torch.zeros(4), tensor([0, 4]))
    assert found["op"] == "x[index] = value"
    assert found["origin"]["line"] == programs.line_of("assign")


def test_switched_off_checks_let_pytorch_speak(guard):
    compiled = torch.compile(programs.first_pick, fullgraph=True)
    bad = tensor([[0], [9]])
    finding_of(compiled, torch.ones(2, 3), bad)
    with trapline.enabled(False), pytest.raises(RuntimeError) as plain:
        compiled(torch.ones(2, 3), bad)
    assert not isinstance(plain.value, DeviceAssertError)
    finding_of(compiled, torch.ones(2, 3), bad)


def test_a_pass_of_the_users_still_runs(guard):
    from torch._inductor import config

    seen = []
    with config.patch(joint_custom_pre_pass=lambda graph: seen.append(len(graph.nodes))):
        compiled = torch.compile(programs.first_pick, fullgraph=True)
        finding_of(compiled, torch.ones(2, 3), tensor([[0], [9]]))
    assert len(seen) == 1
    assert config.joint_custom_pre_pass is None
    options = {"joint_custom_pre_pass": lambda graph: seen.append(len(graph.nodes))}
    torch._dynamo.reset()
    finding_of(torch.compile(programs.first_pick, options=options), torch.ones(2, 3), tensor([[0], [9]]))
    assert len(seen) == 2


def test_exported_programs_hold_no_check(guard):
    class Pick(torch.nn.Module):
        def forward(self, scores, index):
            return programs.first_pick(scores, index)

    from torch._inductor.decomposition import select_decomp_table

    arguments = (torch.ones(2, 3), tensor([[0], [1]]))
    program = torch.export.export(Pick(), arguments).run_decompositions(select_decomp_table())
    assert "trapline" not in str(program.graph)


def test_ahead_of_time_compilation_is_left_alone(guard):
    from torch._inductor.virtualized import V
    from trapline import _compile

    arguments = {"model_": None}
    with V.set_aot_compilation(True):
        _compile._add_checks(arguments)
    assert arguments == {"model_": None}


def test_dynamo_leaves_the_guard_alone(guard):
    """The handler runs inside a function that Dynamo compiles, and is not compiled itself."""
    from torch._dynamo.utils import counters

    table = torch.nn.Sequential(torch.nn.Embedding(5, 4))

    def call(index):
        print(end="")
        torch._dynamo.graph_break()
        return table(index)

    counters.clear()
    compiled = torch.compile(call, backend="eager")
    compiled(tensor([1]))
    before = counters["stats"]["unique_graphs"]
    finding_of(compiled, tensor([5]))
    assert counters["stats"]["unique_graphs"] == before


@pytest.mark.parametrize(
    ("make", "checked"),
    [
        (lambda x: torch.full([55, 10], 1, dtype=torch.float32).to(torch.int64), False),
        (lambda x: torch.ones(3, 4).unsqueeze(0).to(torch.int64), False),
        (lambda x: torch.full([3, 4], float("nan")).to(torch.int64), True),
        (lambda x: (torch.ones(3, 4) / x).to(torch.int64), True),
    ],
)
def test_a_tensor_filled_with_one_number_is_not_checked(guard, make, checked):
    """Inductor's patterns look for such tensors: a check between fill and cast would hide them."""
    graphs = []

    def keep(graph, inputs, **options):
        def boxed(arguments):
            return graph(*arguments)

        graphs.append(graph)
        boxed._boxed_call = True
        return boxed

    from torch._inductor.compile_fx import compile_fx

    made = torch.compile(make, backend=lambda module, inputs: compile_fx(module, inputs, inner_compile=keep))
    with torch.no_grad():
        made(torch.ones(3, 4))
    assert len(graphs) == 1
    found = [node for node in graphs[0].graph.nodes if "trapline.check" in str(node.target)]
    assert len(found) == checked
