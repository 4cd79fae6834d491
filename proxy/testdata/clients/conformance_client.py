# A gRPC client that knows nothing of Abate: Python's grpcio. It makes calls of all kinds and prints what came back. node/client.js is
# the same for Node.
import sys
import threading
import time

import grpc

STREAMS = 60


def calls(channel, name):
    def unary(method):
        return channel.unary_unary("/conf.Test/" + method)

    def say(*what):
        print(name, *[str(w).lower() if isinstance(w, bool) else w for w in what], flush=True)

    def ended(call):
        got = []
        try:
            for message in call:
                got.append(message.decode())
        except grpc.RpcError:
            pass
        return got, call.code().value[0]

    reply, call = unary("Unary").with_call(b"hello", metadata=[("x-echo", "one"), ("x-echo", "two"), ("x-echo-bin", b"\x00\xff\x01")])
    head = ",".join(v for k, v in call.initial_metadata() if k == "x-echo").replace(" ", "")
    tail = [v.hex() for k, v in call.trailing_metadata() if k == "x-echo-bin"]
    say("unary", reply.decode(), head, tail[0])
    say("empty", len(unary("Unary")(b"")))
    large = b"x" * (3 << 20)
    say("large", unary("Unary")(large) == large)
    got, code = ended(channel.unary_stream("/conf.Test/Count")(b"500"))
    say("server stream", len(got), got[499], code)
    got, code = ended(channel.unary_stream("/conf.Test/Count")(b"0"))
    say("empty server stream", len(got), code)
    say("client stream", channel.stream_unary("/conf.Test/Sum")(iter([b"12345"] * 500)).decode())
    say("empty client stream", channel.stream_unary("/conf.Test/Sum")(iter([])).decode())
    got, code = ended(channel.stream_stream("/conf.Test/Chat")(b"%d" % i for i in range(100)))
    say("chat", len(got), got[99], code)
    say("empty streams", sum(ended(channel.stream_stream("/conf.Test/Chat")(iter([]))) == ([], 0) for _ in range(STREAMS)))
    many = [unary("Unary").future(b"%d" % i) for i in range(100)]
    say("at once", sum(f.result() == b"%d" % i for i, f in enumerate(many)))
    try:
        unary("Fail")(b"")
    except grpc.RpcError as e:
        details = [v.hex() for k, v in e.trailing_metadata() if k == "grpc-status-details-bin"]
        say("status", e.code().value[0], e.details() == "b\u00e4d 100%\n", details[0])

    def code_of(method, **how):
        try:
            unary(method)(b"", **how)
        except grpc.RpcError as e:
            return e.code().value[0]
        return 0

    say("unimplemented", code_of("Nothing"))
    say("told", unary("Deadline")(b"", timeout=1800).decode())

    def cancel(wait):
        hang = unary("Sleep").future(b"")
        threading.Timer(wait, hang.cancel).start()
        try:
            hang.result()
        except grpc.FutureCancelledError:
            return hang.code().value[0]

    def heard():
        return int(unary("Cancelled")(b""))

    # A call may end before a busy machine has passed it on: then it is made again, with more time.
    def until_heard(name, call):
        for wait in 0.5, 2, 8, 30:
            before, code = heard(), call(wait)
            until = time.time() + 5
            while heard() == before and time.time() < until:
                time.sleep(0.02)
            if heard() > before:
                break
        say(name, code)
        return heard() > before

    both = [until_heard("deadline", lambda wait: code_of("Sleep", timeout=wait)), until_heard("cancel", cancel)]
    say("the service has heard of both", all(both))


for name, compression in ("plain", grpc.Compression.NoCompression), ("gzip", grpc.Compression.Gzip):
    options = [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(sys.argv[1], options=options, compression=compression) as channel:
        calls(channel, name)
