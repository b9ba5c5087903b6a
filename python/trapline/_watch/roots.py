"""How the calls of outermost modules are noted."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from typing import Any

import torch

from trapline._watch.again import Call
from trapline._watch.backward import Arrived
from trapline._watch.forward import outputs
from trapline._watch.hot import any_autocast, gate_type
from trapline._watch.patches import Patches
from trapline._watch.quiet import quietly
from trapline._watch.suspect import modes, parameters_of

_LEARN = 2  # steps in which the outermost modules are found
_MAX_ROOTS = 64
_MAX_LEARNED = 16  # times: a program may make an optimizer for each step
_MAX_MODELS = 1024  # times that an optimizer was made for a model that is not known: of clients, of folds
_MAX_UNTRAINED = 8  # calls of them that no backward pass and no optimizer has followed

_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_dynamo_compiling


def _autocast_dtype() -> Any:
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None


@quietly
def gave(call: Call, output: Any) -> None:
    """From now on what `backward` brings to the output is noted."""
    call.watches(Arrived(outputs(output)))


_Gate = gate_type()


class _PlainGate:
    __slots__ = ("bare", "draws", "module", "trained")


class Root(_Gate or _PlainGate):  # type: ignore[misc]
    """An outermost module, and what its calls go through: where `Module.compile` puts what it has compiled.

    A hook would go with the module into a file or a copy; this place stays empty there, and costs less.
    """

    __slots__ = ("_light",)

    def __init__(self, module: Any, light: Any) -> None:
        self.module = weakref.ref(module)
        self._light = light
        self.trained = False  # from then on what is not training is evaluation
        self.draws = False  # its forward takes random numbers
        self.bare = (
            next(module.parameters(), None) is None
        )  # what it was given is kept no longer than its loss

    def _noted(self, *args: Any, **kwargs: Any) -> Any:
        module = self.module()
        call = self._keeps(module, args, kwargs)
        output = module._call_impl(*args, **kwargs)
        if call is not None:
            began = time.perf_counter()
            gave(call, output)
            self._light.budget.spends(began)
        return output

    @quietly
    def _keeps(self, module: Any, args: Any, kwargs: Any) -> Any:
        """The call, where what it gives is looked at."""
        light = self._light
        self.trained = self.trained or module.training
        if light.notes and (module.training or not self.trained) and _grad_enabled():
            autocast = _autocast_dtype() if any_autocast() else None
            random = torch.get_rng_state() if self.draws else None
            if not light.hot.keep(self.module, args, kwargs, (autocast, random)):
                call = Call((self.module, args, kwargs, light.steps.taken, autocast, random, None))
                light.calls.append(call)
                return call if light.looks and not modes() else None
        return None

    def notes(self, module: Any, args: Any, kwargs: Any) -> None:
        """The call that was on its way when the module was found."""
        if self._light.notes and _grad_enabled():
            autocast = _autocast_dtype() if any_autocast() else None
            self._light.calls.append(
                Call((self.module, args, kwargs, self._light.steps.taken, autocast, None, None))
            )
            self.trained = module.training

    def __reduce__(self) -> Any:
        return (type(None), ())

    def remove(self) -> None:
        module = self.module()
        if module is not None and module._compiled_call_impl is self:
            del module._compiled_call_impl


def _called(root: Root, *args: Any, **kwargs: Any) -> Any:
    if _is_compiling():
        return root.module()._call_impl(*args, **kwargs)
    stranger = _stranger_to(root, sys._getframe(1))
    return (root._noted if stranger is None else stranger._call_impl)(*args, **kwargs)


def _stranger_to(root: Root, caller: Any) -> Any:
    """A module that was given a copy of the members of the root's own module, or shares them as a proxy does.

    In C: ``stranger_to`` in src/kernel/watch.cpp.
    """
    module = caller.f_locals.get("self")
    if module is root.module() or getattr(module, "__dict__", {}).get("_compiled_call_impl") is not root:
        return None
    return module


_members = gc.get_referents(Root.__dict__)
if _Gate is not None and _members and type(_members[0]) is dict:
    # torch.compile reads what stands in the class and goes through it; Python calls the C function that the
    # base class has. Assigned as an attribute it would replace that.
    _members[0]["__call__"] = _called
else:
    Root.__call__ = _called  # type: ignore[method-assign]


def _learn_holders() -> None:
    """The first call of a gate in C: it notes how many hold one that its module and the watch hold."""
    module = torch.nn.Identity()
    root = module.__dict__["_compiled_call_impl"] = Root(module, None)
    module(None)
    root.remove()


if _Gate is not None:
    _learn_holders()


class Roots:
    """Finds the outermost modules by hooks on all modules, in the first steps of each optimizer.

    In a program that does not train, hooks would only cost: they go at the first call that is none of a
    training, or after a few calls that no backward pass follows, and come back when an optimizer is made or
    `backward` called.
    """

    def __init__(self, light: Any) -> None:
        self.known: weakref.WeakKeyDictionary[Any, Root] = weakref.WeakKeyDictionary()
        self._fresh: weakref.WeakSet[Any] = weakref.WeakSet()  # nobody has looked at their weights
        self.learning: list[Any] = []
        self._trains = False
        self._is_over = False  # hooks would get into compiled modules
        self._follows: set[str] = set()  # functions of Dynamo's that tell of it
        self._patches = Patches()
        self._untrained = self._begun = 0
        self._until = _LEARN
        self._light = light
        self._depth = 0
        self._before: Any = None  # the random state when the outermost forward began

    def start(self) -> None:
        from torch.nn.modules import module as modules

        self._depth = 0
        self.follows_compilation()
        self.learning = [
            modules.register_module_forward_pre_hook(self._enters),
            modules.register_module_forward_hook(self._leaves, always_call=True),
        ]

    def follows_compilation(self) -> None:
        """To be told when Dynamo begins to compile, where it is imported. Its own list of whom to tell is
        emptied by ``torch._dynamo.reset()``.
        """
        for module, kind, name, make in (
            ("callback", "CompilationCallbackHandler", "run_start_callbacks", self._around_start),
            ("eval_frame", "OptimizedModule", "__init__", self._around_compiled),
            # The first thing where nobody is told of the start: strict export, AOT compilation.
            ("convert_frame", None, "_get_frame", self._around_start),
        ):
            owner = sys.modules.get(f"torch._dynamo.{module}")
            found = owner if kind is None else getattr(owner, kind, None)
            if found is not None and hasattr(found, name) and name not in self._follows:
                self._follows.add(name)
                self._patches.wrap(found, name, make)

    def around_init(self, original: Any) -> Any:
        """Of an optimizer."""

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            if self._light.notes:
                self._light.catches_up()
                self.trains(optimizer)

        return __init__

    def _around_compiled(self, original: Any) -> Any:
        """A module that is compiled is an outermost one; its call warns of global hooks."""

        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            self._compiled(module)

        return __init__

    @quietly
    def _compiled(self, module: Any) -> None:
        self._ends()
        self._is_over = True
        self._knows(module)

    def _around_start(self, original: Any) -> Any:
        def start(*args: Any, **kwargs: Any) -> Any:
            self._compiles()
            return original(*args, **kwargs)

        return start

    @quietly
    def _compiles(self) -> None:
        """What is hooked would get into the graph, and its guards count global hooks."""
        self._ends()
        self._is_over = True
        for module, root in list(self.known.items()):
            if type(module).__name__ != "OptimizedModule":
                root.remove()

    def trains(self, optimizer: Any = None) -> None:
        """At the first sign of it, and whenever an optimizer is made."""
        self._trains = True
        for root in self.known.values():  # the training to come may leave them in evaluation
            root.trained = False
        if self._begun >= (_MAX_MODELS if self._is_of_others(optimizer) else _MAX_LEARNED):
            return
        self._begun += 1
        self._until = self._light.steps.turn + _LEARN
        if not self.learning and not self._is_over:
            self.start()

    def _is_of_others(self, optimizer: Any) -> bool:
        """It has the weights of none of the modules that are known."""
        if optimizer is None or self._begun < _MAX_LEARNED:
            return False
        known = {id(parameter) for module in list(self.known) for parameter in module.parameters()}
        return known.isdisjoint(id(parameter) for parameter in parameters_of(optimizer))

    @property
    def is_new(self) -> bool:
        """Something is, when `backward` is called."""
        return not self._trains or bool(self._fresh)

    def take_new(self) -> list[Any]:
        if not self._trains:
            self.trains()
        fresh = list(self._fresh)
        self._fresh.clear()
        return fresh

    def uninstall(self) -> None:
        self.stop()
        self._patches.undo()

    def stop(self) -> None:
        self._ends()
        for root in self.known.values():
            root.remove()
        self.known.clear()
        self._fresh.clear()

    def steps(self, turn: int) -> None:
        self._depth = 0
        if turn >= self._until:
            self._ends()

    def _ends(self) -> None:
        learning, self.learning = self.learning, []
        for handle in learning:
            handle.remove()
        self._before = None

    @quietly
    def _enters(self, module: Any, args: Any) -> None:
        if _is_traced():
            return
        if type(module).__name__ == "OptimizedModule":
            self._ends()  # before it is compiled: its guards count global hooks
            self._is_over = True
        self._depth += 1
        if self._depth != 1 or self._light.second.is_running:
            return
        if not self._light.steps.tallies and self._light.backwards > _LEARN:  # a program without an optimizer
            self._ends()
            return
        if not self._trains:
            self._untrained += 1
            # A frozen module of TorchScript has no such member: it is in evaluation.
            trains = getattr(module, "training", False) and _grad_enabled()
            if self._untrained > _MAX_UNTRAINED or not trains:
                self.stop()
                self._light.calls.clear()
                return
        self._before = None if modes() else torch.get_rng_state()
        if self._knows(module):
            if self._before is not None:
                self._light.began.enters(module.parameters(), self._light.now())
            root = self.known[module]
            # This call is on its way already, and a global hook is not given the keywords.
            kwargs = sys._getframe(2).f_locals.get("kwargs")  # 1 is what `quietly` made
            root.notes(module, args, kwargs if isinstance(kwargs, dict) else {})

    def _knows(self, module: Any) -> bool:
        """True where it was not known until now."""
        if module in self.known or len(self.known) == _MAX_ROOTS or not is_watched(module):
            return False
        self.known[module] = Root(module, self._light)
        module.__dict__["_compiled_call_impl"] = self.known[module]
        if self._light.holding.is_asked:
            self._light.holding.buffers.begins(module)
        self._fresh.add(module)
        return True

    @quietly
    def _leaves(self, module: Any, _args: Any, output: Any) -> None:
        if self._depth <= 0 or _is_traced():
            return
        self._depth -= 1
        calls = self._light.calls
        known = self.known.get(module) if self._depth == 0 and not self._light.second.is_running else None
        call = calls[-1] if known is not None and calls and calls[-1].module() is module else None
        if call is not None and call.arrived is None and not modes():
            gave(call, output)
        if known is None or known.draws or self._before is None:
            return
        if not torch.equal(self._before, torch.get_rng_state()):
            known.draws = True
            if call is not None:
                call.drew(self._before)


def _is_traced() -> bool:
    return bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


def around_replicas(original: Any) -> Any:
    def _replicate_for_data_parallel(module: Any) -> Any:
        replica = original(module)
        if type(replica._compiled_call_impl) is Root:  # it would call the module itself
            replica.__dict__.pop("_compiled_call_impl")
        return replica

    return _replicate_for_data_parallel


def is_watched(module: Any) -> bool:
    # Taken, where Module.compile was called, and unknown before 2.1.
    if isinstance(module, torch.jit.ScriptModule) or getattr(module, "_compiled_call_impl", 0) is not None:
        return False
    parameter = next(module.parameters(), None)
    with torch._C.DisableTorchFunction():
        return parameter is None or parameter.device.type == "cpu"
