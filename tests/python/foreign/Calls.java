// Calls floed by grpc-java: Calls HOST PORT METHOD REQUEST REPLY COUNT. Debian's libgrpc-java.
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

public final class Calls {
  private static final MethodDescriptor.Marshaller<byte[]> RAW = new MethodDescriptor.Marshaller<>() {
    @Override public InputStream stream(byte[] value) { return new ByteArrayInputStream(value); }
    @Override public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException error) {
        throw new IllegalStateException(error);
      }
    }
  };

  private static MethodDescriptor<byte[], byte[]> method(String path, MethodDescriptor.MethodType type) {
    return MethodDescriptor.newBuilder(RAW, RAW).setType(type).setFullMethodName(path.substring(1)).build();
  }

  private static void expect(Status.Code code, ManagedChannel channel, String path, byte[] request, CallOptions options) {
    try {
      ClientCalls.blockingUnaryCall(channel, method(path, MethodDescriptor.MethodType.UNARY), options, request);
    } catch (StatusRuntimeException error) {
      if (error.getStatus().getCode() == code) return;
      throw error;
    }
    throw new IllegalStateException(path + " was answered, not refused with " + code);
  }

  public static void main(String[] args) throws Exception {
    String path = args[2];
    byte[] request = Files.readAllBytes(Path.of(args[3]));
    byte[] expected = Files.readAllBytes(Path.of(args[4]));
    int count = Integer.parseInt(args[5]);
    int callers = 32;
    ManagedChannel channel = NettyChannelBuilder.forAddress(args[0], Integer.parseInt(args[1])).usePlaintext()
        .maxInboundMessageSize(1 << 28).build();
    CallOptions options = CallOptions.DEFAULT.withDeadlineAfter(60, TimeUnit.SECONDS);
    ExecutorService threads = Executors.newFixedThreadPool(callers);
    Future<?>[] done = new Future<?>[callers];
    for (int caller = 0; caller < callers; ++caller) {
      done[caller] = threads.submit(() -> {
        for (int i = 0; i < count / callers; ++i) {
          byte[] reply = ClientCalls.blockingUnaryCall(channel, method(path, MethodDescriptor.MethodType.UNARY), options, request);
          if (!Arrays.equals(reply, expected)) throw new IllegalStateException("another reply of " + reply.length + " bytes");
        }
      });
    }
    for (Future<?> one : done) one.get();
    threads.shutdown();
    expect(Status.Code.UNIMPLEMENTED, channel, "/no.Such/Method", request, options);
    expect(Status.Code.DEADLINE_EXCEEDED, channel, path, request, CallOptions.DEFAULT.withDeadlineAfter(1, TimeUnit.MICROSECONDS));
    var watch = ClientCalls.blockingServerStreamingCall(channel,
        method("/grpc.health.v1.Health/Watch", MethodDescriptor.MethodType.SERVER_STREAMING), options, new byte[0]);
    if (!Arrays.equals(watch.next(), new byte[] {8, 1})) throw new IllegalStateException("Watch says something else");
    channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
  }
}
