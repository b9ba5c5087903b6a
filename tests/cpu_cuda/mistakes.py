"""Mistakes of devices as people make them, each a program of its own, with the line that is wrong.

Sources are threads and stack traces: a forgotten ``.to(device)`` of inputs, labels, masks, hidden states,
positions, loss weights, buffers and plain attributes; ``.numpy()`` and what calls it; generators; pinned
memory; fork; the wrong GPU; a rank on the wrong GPU; operations that CUDA lacks. ``# here`` marks the line.
"""

HEAD = "import torch, torch.nn as nn, torch.nn.functional as F, numpy as np\n"

PLAIN_ATTRIBUTE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(4)
        self.layer = nn.Linear(4, 2)
    def forward(self, x):
        return self.layer(x * self.scale)  # here
Model().cuda()(torch.randn(3, 4, device="cuda"))
"""
LAYERS_IN_A_LIST = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4) for _ in range(2)]
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # here
        return x
Model().cuda()(torch.randn(3, 4, device="cuda"))
"""
POSITIONS = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(10, 4), nn.Embedding(8, 4)
    def forward(self, ids):
        return self.tokens(ids) + self.places(torch.arange(ids.shape[1]))  # here
Model().cuda()(torch.zeros(2, 5, dtype=torch.long, device="cuda"))
"""
HIDDEN_STATE = """
rnn = nn.LSTM(4, 3, batch_first=True).cuda()
state = torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)
rnn(torch.randn(2, 5, 4, device="cuda"), state)  # here
"""
FORK = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.ones(3).cuda()  # here
torch.zeros(1).cuda()
next(iter(torch.utils.data.DataLoader(Data(), num_workers=1)))
"""
COLLATE = """
def collate(batch):
    return torch.stack(batch).cuda()
next(iter(torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2, pin_memory=True, collate_fn=collate)))
"""
TWO = "TRAPLINE_CPU_DEVICES=2"

# kind, program, words of PyTorch's error, whether a report of Trapline's names the line
MISTAKES = {
    "inputs left behind": ("m = nn.Linear(4, 3).cuda()\nm(torch.randn(2, 4))  # here", "mat1 is on cpu"),
    "model left behind": ("m = nn.Linear(4, 3)\nm(torch.randn(2, 4).cuda())  # here", "mat1 is on cuda:0"),
    "convolution": (
        "m = nn.Conv2d(3, 8, 3).cuda()\nm(torch.randn(4, 3, 16, 16))  # here",
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor)",
    ),
    "labels left behind": (
        "x = torch.randn(2, 3).cuda()\nF.cross_entropy(x, torch.tensor([0, 1]))  # here", "target is on cpu",
    ),
    "class weights left behind": (
        "loss = nn.CrossEntropyLoss(weight=torch.ones(3))\n"
        "loss(torch.randn(2, 3).cuda(), torch.tensor([0, 1]).cuda())  # here", "weight is on cpu",
    ),
    "pos_weight left behind": (
        "loss = nn.BCEWithLogitsLoss(pos_weight=torch.ones(3))\n"
        "loss(torch.randn(2, 3).cuda(), torch.ones(2, 3).cuda())  # here", "cuda:0 and cpu",
    ),
    "regression target": (
        "x = torch.randn(2, 3).cuda()\nF.mse_loss(x, torch.randn(2, 3))  # here", "cuda:0 and cpu",
    ),
    "ids left behind": (
        "m = nn.Embedding(5, 3).cuda()\nm(torch.tensor([1, 2]))  # here", "index is on cpu",
    ),
    "a plain attribute": (PLAIN_ATTRIBUTE, "cuda:0 and cpu"),
    "layers in a list": (LAYERS_IN_A_LIST, "mat1 is on cuda:0"),
    "positions made in forward": (POSITIONS, "index is on cpu"),
    "hidden state": (HIDDEN_STATE, "Input and hidden tensors are not at the same device"),
    "an index on the device": (
        "x, i = torch.randn(4), torch.tensor([1]).cuda()\nx[i]  # here", "indices should be either on cpu",
    ),
    "a mask on the device": (
        "x = torch.randn(4)\nx[x.cuda() > 0]  # here", "indices should be either on cpu",
    ),
    "a mask left behind": (
        "x = torch.randn(2, 3).cuda()\nx.masked_fill(torch.ones(2, 3).bool(), 0.0)  # here", "cpu",
    ),
    "gather": (
        "x = torch.randn(2, 3).cuda()\nx.gather(1, torch.tensor([[0], [1]]))  # here", "index is on cpu",
    ),
    "scatter": (
        "x = torch.zeros(2, 3).cuda()\nx.scatter_(1, torch.tensor([[0], [1]]), 1.0)  # here",
        "index is on cpu",
    ),
    "concatenation": (
        "x = torch.randn(2, 3).cuda()\ntorch.cat([x, torch.zeros(2, 3)])  # here", "tensors is on cpu",
    ),
    "stack of losses": (
        "x = torch.randn(3).cuda()\ntorch.stack([x, torch.zeros(3)])  # here", "tensors is on cpu",
    ),
    "attention mask": (
        "q = torch.randn(1, 2, 4, 8).cuda()\n"
        "F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(4, 4).bool())  # here", "cpu",
    ),
    "norm": ("m = nn.LayerNorm(4)\nm(torch.randn(2, 4).cuda())  # here", "weight is on cpu"),
    "numpy": (
        "x = torch.randn(3).cuda()\nx.numpy()  # here",
        "can't convert cuda:0 device type tensor to numpy",
    ),
    "numpy of a list": (
        "losses = [torch.tensor(1.0).cuda()]\nnp.mean(losses)  # here",
        "can't convert cuda:0 device type tensor to numpy",
    ),
    "asarray": (
        "x = torch.randn(3).cuda()\nnp.asarray(x)  # here",
        "can't convert cuda:0 device type tensor to numpy",
    ),
    "two GPUs": (
        "a, b = torch.ones(2, device='cuda:0'), torch.ones(2, device='cuda:1')\na + b  # here",
        "cuda:0 and cuda:1", TWO,
    ),
    "a layer on another GPU": (
        "a, b = nn.Linear(3, 3).to('cuda:0'), nn.Linear(3, 3).to('cuda:1')\n"
        "b(a(torch.randn(2, 3, device='cuda:0')))  # here", "mat1 is on cuda:0", TWO,
    ),
    "a GPU that is not there": (
        "m = nn.Linear(3, 3)\nm.to('cuda:3')  # here", "CUDA error: invalid device ordinal",
    ),
    "a generator of the CPU": (
        "g = torch.Generator().manual_seed(0)\ntorch.randn(2, device='cuda', generator=g)  # here",
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ),
    "CUDA in a worker": (FORK, "Cannot re-initialize CUDA in forked subprocess"),
    "pinned memory of a batch on the device": (COLLATE, "cannot pin 'torch.cuda.FloatTensor'"),
    "what CUDA lacks": (
        "x = torch.randn(5).cuda()\ntorch.histogram(x, bins=3)  # here",
        "Could not run 'aten::histogram.bin_ct'",
    ),
}  # fmt: skip
