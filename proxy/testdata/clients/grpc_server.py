# A gRPC service of a program that knows nothing of Abate: Python's grpcio, with bytes for messages. The first word of a request
# says how it is answered; the second tells requests apart. It prints its port, and ends when its standard input does.
import collections
import sys
import threading
import time
from concurrent import futures

import grpc

lock = threading.Lock()
seen = collections.Counter()
released = threading.Event()
notes = {}


def count(key):
    with lock:
        seen[key] += 1
        return seen[key]


def charge(request, context):
    word, _, rest = request.partition(b" ")
    if word == b"seen":
        return b"%d" % seen[rest]
    if word == b"note":
        deadline = time.time() + 10
        while rest not in notes and time.time() < deadline:
            time.sleep(0.01)
        return notes.get(rest, b"nothing")
    if word == b"release":
        released.set()
        return b"released"
    n = count(rest)
    if word == b"flaky" and n == 1:
        context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
    if word == b"never":
        context.set_trailing_metadata((("grpc-retry-pushback-ms", "-1"),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "never again")
    if word == b"invalid":
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such card: \u20ac %")
    if word == b"slow" and n == 1:
        context.add_callback(lambda: note(rest, b"cancelled"))
        patience = time.time() + 20  # on a busy machine the copy may take seconds
        while context.is_active() and time.time() < patience:
            time.sleep(0.01)
    if word == b"sleep":
        left = context.time_remaining()
        context.add_callback(lambda: note(rest, b"had a deadline" if left and left < 60 else b"had none"))
        while context.is_active():
            time.sleep(0.01)
    if word == b"busy":
        note(rest, b"here")
        released.wait(20)
    if word == b"large":
        return rest * 2
    given = collections.defaultdict(list)
    for key, value in context.invocation_metadata():
        given[key].append(value)
    context.send_initial_metadata((("x-first", "head"),))
    context.set_trailing_metadata((
        ("x-several", ",".join(given["x-several"])),
        ("x-bytes-bin", given["x-bytes-bin"][0] if given["x-bytes-bin"] else b""),
        ("x-attempts", ",".join(given["grpc-previous-rpc-attempts"])),
    ))
    return b"charged"


def note(key, what):
    notes[key] = what


def watch(request, context):
    n, fail = int(request.split()[0]), request.endswith(b"fail")
    for i in range(n):
        yield b"%d" % i
    if fail:
        context.abort(grpc.StatusCode.DATA_LOSS, "broke off")


def upload(messages, context):
    sizes = [len(m) for m in messages]
    return b"%d messages, %d bytes" % (len(sizes), sum(sizes))


def talk(messages, context):
    context.add_callback(lambda: note(b"talk", b"over"))
    for m in messages:
        yield b"echo " + m


services = ["shop.Payment", "shop.Careful", "shop.Hedged", "shop.Down", "shop.Gate"]
server = grpc.server(futures.ThreadPoolExecutor(max_workers=128), options=[("grpc.max_receive_message_length", 16 << 20)])
for name in services:
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {
        "Charge": grpc.unary_unary_rpc_method_handler(charge),
        "Watch": grpc.unary_stream_rpc_method_handler(watch),
        "Upload": grpc.stream_unary_rpc_method_handler(upload),
        "Talk": grpc.stream_stream_rpc_method_handler(talk),
    }),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(0)
