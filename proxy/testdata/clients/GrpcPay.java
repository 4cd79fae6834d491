// A gRPC client of a program that knows nothing of Abate: Java's grpc-netty. It does what grpc_pay.py does.
import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;

public class GrpcPay {
    static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }
    };

    static ManagedChannel channel;
    static final String PAY = "/shop.Payment/Charge";

    static ManagedChannel connect(String target) {
        return NettyChannelBuilder.forTarget(target).usePlaintext().disableRetry().maxInboundMessageSize(16 << 20).build();
    }

    static MethodDescriptor<byte[], byte[]> method(String path, MethodDescriptor.MethodType type) {
        return MethodDescriptor.newBuilder(BYTES, BYTES).setFullMethodName(path.substring(1)).setType(type).build();
    }

    static CallOptions within(long ms) {
        return CallOptions.DEFAULT.withDeadlineAfter(ms, TimeUnit.MILLISECONDS);
    }

    static String call(io.grpc.Channel on, String path, String request, long ms) {
        try {
            var unary = method(path, MethodDescriptor.MethodType.UNARY);
            return new String(ClientCalls.blockingUnaryCall(on, unary, within(ms), request.getBytes()));
        } catch (StatusRuntimeException e) {
            return e.getStatus().getCode().name();
        }
    }

    static String call(String path, String request) {
        return call(channel, path, request, 20_000);
    }

    static void say(Object... words) {
        var line = new StringBuilder();
        for (Object w : words) {
            line.append(line.length() == 0 ? "" : " ").append(w);
        }
        System.out.println(line);
    }

    static void metadata() {
        var given = new Metadata();
        var several = Metadata.Key.of("x-several", Metadata.ASCII_STRING_MARSHALLER);
        var bytes = Metadata.Key.of("x-bytes-bin", Metadata.BINARY_BYTE_MARSHALLER);
        given.put(several, "one");
        given.put(several, "two");
        given.put(bytes, new byte[] {0, -1, 1});
        var head = new AtomicReference<Metadata>();
        var trailer = new AtomicReference<Metadata>();
        var on = ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(given),
            MetadataUtils.newCaptureMetadataInterceptor(head, trailer));
        call(on, PAY, "ok meta", 20_000);
        var hex = new StringBuilder();
        for (byte b : trailer.get().get(bytes)) {
            hex.append(String.format("%02x", b));
        }
        say("metadata", head.get().get(Metadata.Key.of("x-first", Metadata.ASCII_STRING_MARSHALLER)), trailer.get().get(several), hex);
    }

    static Iterator<byte[]> watch(String request) {
        return ClientCalls.blockingServerStreamingCall(channel, method("/shop.Payment/Watch", MethodDescriptor.MethodType.SERVER_STREAMING),
            within(20_000), request.getBytes());
    }

    static void streams() throws Exception {
        long sum = 0;
        for (var i = watch("1000"); i.hasNext();) {
            sum += Long.parseLong(new String(i.next()));
        }
        say("stream", sum);
        int got = 0;
        try {
            for (var i = watch("10 fail"); i.hasNext(); i.next()) {
                got++;
            }
        } catch (StatusRuntimeException e) {
            say("late failure", got, e.getStatus().getCode().name());
        }
        var answer = new CompletableFuture<String>();
        var upload = ClientCalls.asyncClientStreamingCall(
            channel.newCall(method("/shop.Payment/Upload", MethodDescriptor.MethodType.CLIENT_STREAMING), within(20_000)),
            new StreamObserver<byte[]>() {
                public void onNext(byte[] m) {
                    answer.complete(new String(m));
                }

                public void onError(Throwable t) {
                    answer.completeExceptionally(t);
                }

                public void onCompleted() {}
            });
        for (int i = 0; i < 100; i++) {
            upload.onNext("12345".getBytes());
        }
        upload.onCompleted();
        say("upload", answer.get());
        talk();
    }

    static void talk() throws Exception {
        var over = new CountDownLatch(1);
        var heard = new AtomicInteger();
        var last = new AtomicReference<String>();
        var sender = new CompletableFuture<StreamObserver<byte[]>>();
        var talk = method("/shop.Payment/Talk", MethodDescriptor.MethodType.BIDI_STREAMING);
        sender.complete(ClientCalls.asyncBidiStreamingCall(channel.newCall(talk, within(20_000)), new StreamObserver<byte[]>() {
            public void onNext(byte[] m) {
                last.set(new String(m));
                int n = heard.incrementAndGet();
                if (n < 20) {
                    sender.join().onNext(("" + n).getBytes());
                } else {
                    sender.join().onCompleted();
                }
            }

            public void onError(Throwable t) {
                over.countDown();
            }

            public void onCompleted() {
                over.countDown();
            }
        }));
        sender.join().onNext("0".getBytes());
        over.await(20, TimeUnit.SECONDS);
        say("talk", heard.get(), last.get());
    }

    static void atOnce() {
        var unary = method(PAY, MethodDescriptor.MethodType.UNARY);
        var all = IntStream.range(0, 200).mapToObj(
            i -> ClientCalls.futureUnaryCall(channel.newCall(unary, within(20_000)), ("ok p" + i).getBytes())).toList();
        int good = 0;
        for (Future<byte[]> f : all) {
            try {
                good += new String(f.get()).equals("charged") ? 1 : 0;
            } catch (Exception e) {
                System.err.println(e);
            }
        }
        say("at once", good);
    }

    static void cancelled() throws Exception {
        var code = new CompletableFuture<String>();
        var call = channel.newCall(method("/shop.Payment/Talk", MethodDescriptor.MethodType.BIDI_STREAMING), within(60_000));
        ClientCalls.asyncBidiStreamingCall(call, new StreamObserver<byte[]>() {
            public void onNext(byte[] m) {}

            public void onError(Throwable t) {
                code.complete(Status.fromThrowable(t).getCode().name());
            }

            public void onCompleted() {
                code.complete("OK");
            }
        });
        call.cancel("enough", null);
        say("cancelled", code.get(20, TimeUnit.SECONDS));
    }

    public static void main(String[] args) throws Exception {
        channel = connect(args[0]);
        var gate = connect(args[1]);
        say("ok", call(PAY, "ok a"));
        metadata();
        say("flaky", call(PAY, "flaky b"), call(PAY, "seen b"));
        say("careful", call("/shop.Careful/Charge", "flaky c"), call(PAY, "seen c"));
        say("pushback", call(PAY, "never d"), call(PAY, "seen d"));
        say("invalid", call(PAY, "invalid e"), call(PAY, "seen e"));
        say("hedged", call("/shop.Hedged/Charge", "slow f"), call(PAY, "seen f"), call(PAY, "note f"));
        say("deadline", call(channel, PAY, "sleep g", 3_000), call(PAY, "note g"));
        say("down", call("/shop.Down/Charge", "ok h"));
        say("unknown method", call("/shop.Payment/Nothing", "ok i"));
        say("no route", call("/shop.Nobody/Charge", "ok j"));
        say("large", call(PAY, "large " + "x".repeat(3 << 20)).length());
        streams();
        atOnce();
        cancelled();
        var busy = ClientCalls.futureUnaryCall(
            gate.newCall(method("/shop.Gate/Charge", MethodDescriptor.MethodType.UNARY), within(20_000)), "busy q".getBytes());
        call(PAY, "note q");
        say("shed", call(gate, "/shop.Gate/Charge", "ok r", 20_000), call(PAY, "seen r"));
        call(PAY, "release");
        say("busy", new String(busy.get()));
        channel.shutdownNow();
        gate.shutdownNow();
    }
}
