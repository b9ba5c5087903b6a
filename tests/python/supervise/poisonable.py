"""An application that looks words up on the GPU, with the guard or, where the request says so, without it."""

import torch
import torch.nn.functional as F
import trapline
import trapline.asgi

TABLE = torch.arange(40.0).view(10, 4).cuda()


def look_up(word: int) -> bytes:
    return b"%.4f" % F.embedding(torch.tensor([word], device="cuda"), TABLE).sum().item()


async def serve(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    body = b"well"
    if scope["method"] == "POST":
        word = int((await receive())["body"])
        with trapline.enabled(scope["path"] != "/unguarded"):
            body = look_up(word)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b'{"answer": "%s"}' % body})


app = trapline.asgi.RequestMiddleware(serve)
