# A gRPC client of a program that knows nothing of Abate: Python's grpcio. Arguments: the address to call, and an address that
# is guarded by a gate. What it prints is what the test expects of every language.
import sys
import threading
from concurrent import futures

import grpc

options = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", 16 << 20)]
channel = grpc.insecure_channel(sys.argv[1], options=options)
gate = grpc.insecure_channel(sys.argv[2], options=options)


def method(path, kind="unary_unary", on=channel):
    return getattr(on, kind)(path)


def call(path, request, timeout=20, metadata=None, on=channel):
    try:
        return method(path, on=on)(request, timeout=timeout, metadata=metadata).decode()
    except grpc.RpcError as e:
        return e.code().name


def say(*words):
    print(*words, flush=True)


pay = "/shop.Payment/Charge"
say("ok", call(pay, b"ok a"))

answer, rpc = method(pay).with_call(b"ok meta", timeout=20, metadata=(
    ("x-several", "one"), ("x-several", "two"), ("x-bytes-bin", b"\x00\xff\x01")))
trailer = dict(rpc.trailing_metadata())
head = dict(rpc.initial_metadata())
say("metadata", head["x-first"], trailer["x-several"], trailer["x-bytes-bin"].hex())

say("flaky", call(pay, b"flaky b"), call(pay, b"seen b"))
say("careful", call("/shop.Careful/Charge", b"flaky c"), call(pay, b"seen c"))
say("pushback", call(pay, b"never d"), call(pay, b"seen d"))
say("invalid", call(pay, b"invalid e"), call(pay, b"seen e"))
say("hedged", call("/shop.Hedged/Charge", b"slow f"), call(pay, b"seen f"), call(pay, b"note f"))
say("deadline", call(pay, b"sleep g", timeout=3), call(pay, b"note g"))
say("down", call("/shop.Down/Charge", b"ok h"))
say("unknown method", call("/shop.Payment/Nothing", b"ok i"))
say("no route", call("/shop.Nobody/Charge", b"ok j"))
say("large", len(call(pay, b"large " + b"x" * (3 << 20))))

say("stream", sum(int(m) for m in method("/shop.Payment/Watch", "unary_stream")(b"1000", timeout=20)))
got = 0
try:
    for m in method("/shop.Payment/Watch", "unary_stream")(b"10 fail", timeout=20):
        got += 1
except grpc.RpcError as e:
    say("late failure", got, e.code().name)
say("upload", method("/shop.Payment/Upload", "stream_unary")(iter([b"12345"] * 100), timeout=20).decode())

turn = threading.Semaphore(1)


def messages():
    for i in range(20):
        turn.acquire()
        yield b"%d" % i


heard = []
for m in method("/shop.Payment/Talk", "stream_stream")(messages(), timeout=20):
    heard.append(m)
    turn.release()
say("talk", len(heard), heard[-1].decode())

with futures.ThreadPoolExecutor(50) as pool:
    say("at once", sum(r == "charged" for r in pool.map(lambda i: call(pay, b"ok p%d" % i), range(200))))

ended = threading.Event()
rpc = method("/shop.Payment/Talk", "stream_stream")(iter(lambda: ended.wait() and None, None), timeout=60)
rpc.cancel()
ended.set()
say("cancelled", rpc.code().name)

busy = method("/shop.Gate/Charge", on=gate).future(b"busy q", timeout=20)
call(pay, b"note q")
say("shed", call("/shop.Gate/Charge", b"ok r", on=gate), call(pay, b"seen r"))
call(pay, b"release")
say("busy", busy.result().decode())
