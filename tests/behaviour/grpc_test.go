package behaviour_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/abate-go/abate/importer/grpcconfig"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/tests/behaviour"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

var grpcFailures = []failure{{"UNAVAILABLE", topology.Unavailable}, {"INTERNAL", topology.Internal}, {"ABORTED",
	topology.Aborted},
	{"RESOURCE_EXHAUSTED", topology.ResourceExhausted}, {"UNKNOWN", topology.UnknownCode}, {"DEADLINE_EXCEEDED",
		topology.DeadlineExceeded},
	{"CANCELLED", topology.CancelledCode}, {"reset", topology.ResetSent}, {"hang", topology.Hang}, {"refused",
		topology.Refused}}

const grpcBackoff = `"initialBackoff": "0.01s", "maxBackoff": "0.05s", "backoffMultiplier": 2`

// grpcPolicies are the parts of an entry of methodConfig beside its name.
var grpcPolicies = []struct {
	name, entry string
	refused     bool
}{
	{name: "none", entry: `"timeout": "2s"`},
	{name: "two tries", entry: `"retryPolicy": {"maxAttempts": 2, ` + grpcBackoff +
		`, "retryableStatusCodes": ["UNAVAILABLE"]}`},
	{name: "four tries", entry: `"retryPolicy": {"maxAttempts": 4, ` + grpcBackoff +
		`, "retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]}`},
	{name: "more than five", entry: `"retryPolicy": {"maxAttempts": 9, ` + grpcBackoff +
		`, "retryableStatusCodes": ["UNAVAILABLE"]}`},
	{name: "numbers", entry: `"retryPolicy": {"maxAttempts": 3, ` + grpcBackoff + `, "retryableStatusCodes": [10, 8]}`},
	{name: "all codes", entry: `"retryPolicy": {"maxAttempts": 3, ` + grpcBackoff +
		`, "retryableStatusCodes": ["UNAVAILABLE", ` +
		`"INTERNAL", "ABORTED", "RESOURCE_EXHAUSTED", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED"]}`},
	{name: "a longer wait", entry: `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.3s", "maxBackoff": "0.4s", ` +
		`"backoffMultiplier": 3, "retryableStatusCodes": ["UNAVAILABLE"]}`},
	{name: "hedging and retries, of which Go knows the second", entry: `"retryPolicy": {"maxAttempts": 2, ` + grpcBackoff +
		`, "retryableStatusCodes": ["UNAVAILABLE"]}, "hedgingPolicy": {"maxAttempts": 4}`},
	{name: "no backoff", refused: true,
		entry: `"retryPolicy": {"maxAttempts": 3, "retryableStatusCodes": ["UNAVAILABLE"]}`},
	{name: "one try", refused: true, entry: `"retryPolicy": {"maxAttempts": 1, ` + grpcBackoff +
		`, "retryableStatusCodes": ["UNAVAILABLE"]}`},
	{name: "no codes", refused: true, entry: `"retryPolicy": {"maxAttempts": 3, ` + grpcBackoff +
		`, "retryableStatusCodes": []}`},
	{name: "lower case", refused: true, entry: `"retryPolicy": {"maxAttempts": 3, ` + grpcBackoff +
		`, "retryableStatusCodes": ["unavailable"]}`},
	{name: "a wait of another kind", refused: true, entry: `"retryPolicy": {"maxAttempts": 3, "initialBackoff": "10ms", ` +
		`"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}`},
}

func grpcConfig(entry string) string {
	return `{"methodConfig": [{"name": [{"service": "shop.OrderService"}], ` + entry + `}]}`
}

func TestGRPCTriesAsTheImporterSays(t *testing.T) {
	b := backend.Start(t, 1)
	server := newGRPCServer(t, b)
	configs := map[string]string{}
	var cases []behaviour.Case
	for i, p := range grpcPolicies {
		for j, f := range grpcFailures {
			config := grpcConfig(p.entry)
			if f.outcome == topology.Hang && !strings.Contains(config, "timeout") {
				config = grpcConfig(`"timeout": "0.5s", ` + p.entry)
			}
			layer, refused := readGRPC(t, config)
			if refused != p.refused {
				t.Fatalf("%s: the importer says that it is refused: %v", p.name, refused)
			}
			if refused {
				if _, err := newGRPCClient(server.address, config, nil); err == nil {
					t.Errorf("%s: the client takes a config that the importer says it refuses", p.name)
				}
				break
			}
			key := fmt.Sprintf("g%d-%d", i, j)
			configs[key] = config
			cases = append(cases, behaviour.Case{Name: p.name + ", " + f.command, Key: key, Method: "POST", Command: f.command,
				Outcome: f.outcome, Layer: layer})
		}
	}
	behaviour.Run(t, &behaviour.Product{Backend: b, Send: func(ctx context.Context, _, path string) (behaviour.Answer,
		error) {
		address := server.address
		if strings.HasSuffix(path, "/refused") {
			address = b.Dead[0]
		}
		return server.call(ctx, address, configs[strings.Split(path, "/")[1]], path)
	}}, cases)
}

func readGRPC(t *testing.T, config string) (l *topology.Layer, refused bool) {
	t.Helper()
	docs, remarks := source.YAML("service_config.json", []byte(config))
	if len(docs) != 1 || len(remarks) > 0 || !grpcconfig.Recognise(docs[0]) {
		t.Fatalf("%s is not recognised: %v", config, remarks)
	}
	form := grpcconfig.Read(docs, source.Assume{Versions: map[string]string{"grpc": grpc.Version}})
	for _, r := range form.Remarks {
		refused = refused || r.Rule == "F606"
	}
	if len(form.Policies) == 1 {
		l = &form.Policies[0].Layer
	}
	return l, refused || l == nil
}

// attempts counts the tries that the client says it begins, but those that it makes because nothing was sent: they are
// no tries to it.
type attempts struct{ n atomic.Int32 }

func (*attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*attempts) HandleConn(context.Context, stats.ConnStats)                       {}
func (a *attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	if begin, ok := s.(*stats.Begin); ok && !begin.IsTransparentRetryAttempt {
		a.n.Add(1)
	}
}

func newGRPCClient(address, config string, count stats.Handler) (*grpc.ClientConn, error) {
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(config),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}))}
	if count != nil {
		options = append(options, grpc.WithStatsHandler(count))
	}
	return grpc.NewClient("passthrough:///"+address, options...)
}

func (s *grpcServer) call(ctx context.Context, address, config, path string) (behaviour.Answer, error) {
	var count attempts
	client, err := newGRPCClient(address, config, &count)
	if err != nil {
		return behaviour.Answer{}, err
	}
	defer client.Close()
	var in, out []byte
	err = client.Invoke(metadata.AppendToOutgoingContext(ctx, "case", path), "/shop.OrderService/Place", &in, &out)
	if ctx.Err() != nil {
		return behaviour.Answer{}, fmt.Errorf("the call did not end: %w", err)
	}
	said := int(count.n.Load())
	if address != s.address {
		// Where no connection can be made, grpc-go 1.80 announces each retry twice, and makes it once.
		said = (said + 1) / 2
	}
	return behaviour.Answer{Tries: said}, nil
}

// raw is a codec for bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "raw" }

// grpcServer fails on command, which the metadata "case" ends with.
type grpcServer struct {
	address string
	backend *backend.Backend
	mu      sync.Mutex
	conns   map[string]net.Conn // by the address of the client
}

func newGRPCServer(t *testing.T, b *backend.Backend) *grpcServer {
	t.Helper()
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s := &grpcServer{address: l.Addr().String(), backend: b, conns: map[string]net.Conn{}}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(s.serve))
	go func() { _ = server.Serve(noting{l, s}) }()
	t.Cleanup(server.Stop)
	return s
}

// noting remembers connections, so that they can be reset.
type noting struct {
	net.Listener
	server *grpcServer
}

func (n noting) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		n.server.mu.Lock()
		n.server.conns[c.RemoteAddr().String()] = c
		n.server.mu.Unlock()
	}
	return c, err
}

func (s *grpcServer) serve(_ any, stream grpc.ServerStream) error {
	var in []byte
	if err := stream.RecvMsg(&in); err != nil && err != io.EOF {
		return err
	}
	said, _ := metadata.FromIncomingContext(stream.Context())
	path := said.Get("case")[0]
	defer s.backend.Arrived(0, "POST", path)()
	switch command := path[strings.LastIndexByte(path, '/')+1:]; command {
	case "hang":
		<-stream.Context().Done()
		return stream.Context().Err()
	case "reset":
		if from, ok := peer.FromContext(stream.Context()); ok {
			s.mu.Lock()
			conn := s.conns[from.Addr.String()]
			s.mu.Unlock()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
		return nil
	default:
		var code codes.Code
		if err := json.Unmarshal([]byte(`"`+command+`"`), &code); err != nil {
			return err
		}
		return status.Error(code, "said on command")
	}
}
