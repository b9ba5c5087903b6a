"""The classifier behind HTTP: a plain ASGI application, for uvicorn and any other ASGI server.

POST /predict {"text": "this film is good"} or {"ids": [2, 5, 3, 7], "weights": [1, 1, 1, 2]}
GET  /healthz: 200 as long as the process answers
GET  /readyz:  200 when the model answers
"""

import asyncio
import json

import model
import trapline.asgi

CLASSIFIER = model.load()
model.predict(CLASSIFIER, [0, 1])  # the first call is the slow one


async def serve(scope, receive, send):
    """The application as it would be without Trapline."""
    if scope["type"] == "lifespan":
        return await lifespan(receive, send)
    path = scope["path"]
    if path == "/healthz":
        return await answer(send, 200, {"status": "ok"})
    if path == "/readyz":
        return await ready(send)
    if path != "/predict" or scope["method"] != "POST":
        return await answer(send, 404, {"error": "there is POST /predict"})
    try:
        given = json.loads(await body_of(receive))
        ids = given["ids"] if "ids" in given else [model.WORDS.index(word) for word in given["text"].split()]
        weights = given.get("weights")
    except (ValueError, KeyError, TypeError, AttributeError):
        return await answer(send, 400, {"error": "send a text of known words, or ids"})
    return await answer(send, 200, await asyncio.to_thread(model.predict, CLASSIFIER, ids, weights))


async def ready(send):
    try:
        await asyncio.to_thread(model.predict, CLASSIFIER, [0])
    except RuntimeError as error:
        return await answer(send, 503, {"error": str(error).splitlines()[0]})
    return await answer(send, 200, {"status": "ready"})


async def body_of(receive):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def answer(send, status, content):
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def lifespan(receive, send):
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


app = trapline.asgi.RequestMiddleware(serve)
