# A gRPC service of a program that knows nothing of Abate: Python's grpcio, with bytes for messages. It prints its port, and ends when
# its standard input does. node/server.js is the same for Node.
import sys
import threading
from concurrent import futures

import grpc

lock = threading.Lock()
cancelled = 0


def unary(request, context):
    sent = context.invocation_metadata()
    context.send_initial_metadata([(k, v) for k, v in sent if k == "x-echo"])
    context.set_trailing_metadata([(k, v) for k, v in sent if k == "x-echo-bin"])
    return request


def fail(request, context):
    context.set_trailing_metadata([("grpc-status-details-bin", bytes.fromhex("08091203626164"))])
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "b\u00e4d 100%\n")


def sleep(request, context):
    global cancelled
    ended = threading.Event()
    if context.add_callback(ended.set):
        ended.wait()
    with lock:
        cancelled += 1
    return b""


def heard(request, context):
    with lock:
        return b"%d" % cancelled


def deadline(request, context):
    left = context.time_remaining()
    if left is None or left > 1e6:
        return b"none"
    return b"within the hour" if 0 < left <= 3600 else b"later"


def count(request, context):
    for i in range(int(request)):
        yield b"%d" % i


def add(requests, context):
    messages = size = 0
    for message in requests:
        messages, size = messages + 1, size + len(message)
    return b"%d messages, %d bytes" % (messages, size)


def chat(requests, context):
    yield from requests


methods = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary), "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "Sleep": grpc.unary_unary_rpc_method_handler(sleep), "Cancelled": grpc.unary_unary_rpc_method_handler(heard),
    "Deadline": grpc.unary_unary_rpc_method_handler(deadline), "Count": grpc.unary_stream_rpc_method_handler(count),
    "Sum": grpc.stream_unary_rpc_method_handler(add), "Chat": grpc.stream_stream_rpc_method_handler(chat),
}
server = grpc.server(futures.ThreadPoolExecutor(64), options=[("grpc.max_receive_message_length", -1)], compression=grpc.Compression.Gzip)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("conf.Test", methods),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
sys.stdin.read()
server.stop(0)
