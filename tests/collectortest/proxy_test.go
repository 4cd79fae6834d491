package collectortest_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/tracing"
)

// receiver takes OTLP over HTTP, and reads it with the protocol's own package.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	forms []string // of the bodies
	got   []*traceservice.ExportTraceServiceRequest
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		got := new(traceservice.ExportTraceServiceRequest)
		form := req.Header.Get("Content-Type")
		switch {
		case err != nil:
		case form == "application/x-protobuf":
			err = proto.Unmarshal(body, got)
		default:
			err = protojson.Unmarshal(base64IDs(t, body), got) // which OTLP writes in hexadecimal digits
		}
		if err != nil || req.URL.Path != "/v1/traces" || len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s: %v", req.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.forms, r.got = append(r.forms, form), append(r.got, got)
	}))
	t.Cleanup(r.Close)
	return r
}

var jsonID = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]*)"`)

func base64IDs(t *testing.T, body []byte) []byte {
	return jsonID.ReplaceAllFunc(body, func(found []byte) []byte {
		m := jsonID.FindSubmatch(found)
		id, err := hex.DecodeString(string(m[2]))
		if err != nil {
			t.Error(err)
		}
		return []byte(`"` + string(m[1]) + `":"` + base64.StdEncoding.EncodeToString(id) + `"`)
	})
}

func says(t *testing.T, all []*common.KeyValue, key string) any {
	t.Helper()
	for _, kv := range all {
		if kv.GetKey() != key {
			continue
		}
		if n, ok := kv.GetValue().GetValue().(*common.AnyValue_IntValue); ok {
			return n.IntValue
		}
		return kv.GetValue().GetStringValue()
	}
	return nil
}

// TestACollectorReadsTheSpansOfTheProxy: the proxy writes OTLP by itself, and the protocol's own package reads it.
func TestACollectorReadsTheSpansOfTheProxy(t *testing.T) {
	c := receive(t)
	var asked atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer service.Close()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("services: {pay: {upstreams: ['"+service.URL+
		"'], routes: [{path: /}], initialDelay: 1ms}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, problems := tracing.FromEnvironment(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_SERVICE_NAME": "checkout",
			"OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=checkout-7"}[name]
	})
	p, err := proxy.New(proxy.Config{Policy: policy, Log: slog.New(slog.DiscardHandler), Tracing: settings, Version: "v9"})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Serve(l) }() // until Shutdown
	client := &http.Client{Transport: &http.Transport{}}
	if resp, err := client.Get("http://" + l.Addr().String() + "/a"); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	client.CloseIdleConnections()
	if err := p.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if len(c.got) != 1 || len(c.got[0].GetResourceSpans()) != 1 || c.forms[0] != "application/x-protobuf" {
		t.Fatalf("%d batches of %q", len(c.got), c.forms)
	}
	of := c.got[0].GetResourceSpans()[0]
	for key, want := range map[string]any{"service.name": "checkout", "k8s.pod.name": "checkout-7",
		"service.version": "v9", "telemetry.sdk.language": "go"} {
		if got := says(t, of.GetResource().GetAttributes(), key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	spans := of.GetScopeSpans()[0].GetSpans()
	if len(spans) != 3 || of.GetScopeSpans()[0].GetScope().GetVersion() != "v9" {
		t.Fatalf("%v", of)
	}
	first, second, call := spans[0], spans[1], spans[2] // in the order of their ends
	if call.GetKind() != trace.Span_SPAN_KIND_SERVER || second.GetKind() != trace.Span_SPAN_KIND_CLIENT ||
		string(first.GetParentSpanId()) != string(call.GetSpanId()) || len(call.GetParentSpanId()) != 0 ||
		string(second.GetTraceId()) != string(call.GetTraceId()) || len(call.GetTraceId()) != 16 ||
		first.GetEndTimeUnixNano() > second.GetStartTimeUnixNano() ||
		first.GetStatus().GetCode() != trace.Status_STATUS_CODE_ERROR ||
		call.GetStatus().GetCode() != trace.Status_STATUS_CODE_UNSET {
		t.Errorf("%v\n%v\n%v", first, second, call)
	}
	if says(t, second.GetAttributes(), "http.request.resend_count") != int64(1) ||
		says(t, first.GetAttributes(), "http.response.status_code") != int64(503) ||
		says(t, call.GetAttributes(), "abate.attempts") != int64(2) {
		t.Errorf("%v\n%v\n%v", first, second, call)
	}
}

// TestBothFormsOfOTLPSayTheSame reads the same spans in protobuf and in JSON.
func TestBothFormsOfOTLPSayTheSame(t *testing.T) {
	c := receive(t)
	span := &tracing.Span{Trace: tracing.TraceID{1, 2}, ID: tracing.SpanID{3}, Parent: tracing.SpanID{4}, Remote: true,
		Flags: 3, Kind: tracing.Server, Name: "GET /ä", Begin: 1_700_000_000_000_000_001, End: 1_700_000_000_000_000_999,
		Failed: true, Message: strings.Repeat("long", 100)}
	span.Say("text", "ü \"'<>\n")
	span.Say("long", strings.Repeat("x", 5000))
	span.Say("not UTF-8", "a\xc3")
	span.Count("number", -1)
	for _, form := range []bool{false, true} {
		tr, err := tracing.Start(tracing.Settings{Endpoint: c.URL + "/v1/traces", JSON: form, Version: "v1",
			Resource: []tracing.Attribute{{Key: "service.name", Text: "s"}}}, slog.Default())
		if err != nil {
			t.Fatal(err)
		}
		tr.Send(span)
		tr.Close(t.Context())
	}
	if len(c.got) != 2 || c.forms[0] == c.forms[1] || !proto.Equal(c.got[0], c.got[1]) {
		t.Fatalf("%q:\n%v", c.forms, c.got)
	}
	got := c.got[0].GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0]
	if got.GetName() != "GET /ä" || got.GetFlags() != 0x303 || got.GetStartTimeUnixNano() != uint64(span.Begin) ||
		says(t, got.GetAttributes(), "number") != int64(-1) || says(t, got.GetAttributes(), "text") != "ü \"'<>\n" ||
		says(t, got.GetAttributes(), "not UTF-8") != "a\uFFFD" {
		t.Errorf("%v", got)
	}
	if !json.Valid([]byte(protojson.Format(got))) {
		t.Error("it cannot be written again")
	}
}
