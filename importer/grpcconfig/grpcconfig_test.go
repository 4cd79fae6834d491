package grpcconfig_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/grpcconfig"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, file, text, owner string) topology.Form {
	t.Helper()
	docs, remarks := source.YAML(file, []byte(text))
	if len(docs) != 1 || len(remarks) > 0 || !grpcconfig.Recognise(docs[0]) {
		t.Fatalf("%s is not recognised: %v", text, remarks)
	}
	docs[0].Owner = owner
	return grpcconfig.Read(docs, source.Assume{Versions: map[string]string{"grpc": "1.80.0"}})
}

const config = `{
  "methodConfig": [{
    "name": [{"service": "shop.v1.OrderService"}, {"service": "shop.v1.Cart", "method": "Get"}],
    "timeout": "2.5s",
    "retryPolicy": {
      "maxAttempts": 4,
      "initialBackoff": "0.1s",
      "maxBackoff": "1s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]
    }
  }],
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
}`

func TestAConfigSaysTriesAndTimesWithTheirPlaces(t *testing.T) {
	f := read(t, "a.json", config, "checkout")
	if len(f.Policies) != 2 || len(f.Remarks) != 0 {
		t.Fatalf("%s", f.YAML())
	}
	p := f.Policies[1] // behind that of one method
	l := p.Layer
	for _, c := range []struct{ got, want string }{
		{strings.Join(p.Callers, " "), "checkout"},
		{p.Layer.Choice, "service config a.json:1:1"},
		{strings.Join(p.Callees, " "), "orderservice order-service order"},
		{strings.Join(f.Policies[0].Callees, " ") + " " + f.Policies[0].Layer.Match.Path, "cart /shop.v1.Cart/Get"},
		{l.Match.Path, "/shop.v1.OrderService/*"},
		{l.Repeats[1].Tries.String() + " " + l.Repeats[1].At.String(), "4 (a.json:6:22) a.json:10:47"},
		{l.Overall.String(), "2.5s (a.json:4:16)"},
		{l.Backoff.First.String(), "100ms (a.json:7:25)"},
		{l.Backoff.Max.String(), "1s (a.json:8:21)"},
		{l.Backoff.Jitter.String(), "±20% (default of gRPC 1.80.0; a.json:5:20)"},
		{l.Budget.Tokens.String() + ", " + l.Budget.Ratio.String(), "10 (a.json:13:36), 0.1 (a.json:13:54)"},
		{l.PerTry.String(), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for o, want := range map[topology.Outcome]int{topology.Unavailable: 4, topology.Internal: 4, topology.Hang: 1,
		topology.Aborted: 1,
		topology.Refused: 4, topology.ResetSent: 4, topology.S503: 4, topology.S500: 1} {
		if got := l.Tries(o, topology.Unsafe); got.N != want || !got.Known {
			t.Errorf("%v: %+v, want %d", o, got, want)
		}
	}
}

func TestAMistakeSwitchesTheWholeConfigOff(t *testing.T) {
	for _, c := range []struct{ from, to, at, fix string }{
		{`"maxAttempts": 4`, `"maxAttempts": 1`, "a.json:6:22", "write 2 to 5"},
		{`"initialBackoff": "0.1s",`, "", "a.json:5:20", "write one"},
		{`"backoffMultiplier": 2`, `"backoffMultiplier": 0`, "a.json:5:20", "write one"},
		{`["UNAVAILABLE", "INTERNAL"]`, "[]", "a.json:5:20", "UNAVAILABLE"},
		{`"INTERNAL"`, `"INTERNEL"`, "a.json:10:47", ""},
		{`"0.1s"`, `"100ms"`, "a.json:7:25", ""},
		{`"maxTokens": 10`, `"maxTokens": 0`, "a.json:13:22", "write for example 10"},
		{`{"service": "shop.v1.Cart", "method": "Get"}`, `{"service": "shop.v1.OrderService"}`, "a.json:3:51", "remove one"},
		{`{"service": "shop.v1.Cart", "method": "Get"}`, `{"method": "Get"}`, "a.json:3:51", "package"},
	} {
		f := read(t, "a.json", strings.Replace(config, c.from, c.to, 1), "")
		if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F606" || f.Remarks[0].At.String() != c.at ||
			!strings.Contains(f.Remarks[0].Fix, c.fix) {
			t.Errorf("%s: %+v", c.to, f.Remarks)
		}
		for _, p := range f.Policies {
			if got := p.Layer.Tries(topology.Unavailable, topology.Unsafe); got.N != 1 || !p.Layer.Overall.IsUnknown() {
				t.Errorf("%s: still in force: %+v", c.to, got)
			}
		}
	}
}

func TestWhatHasNoEffectIsRemarked(t *testing.T) {
	for _, c := range []struct {
		text, rule, at string
		tries          int
	}{
		{strings.Replace(config, `"maxAttempts": 4`, `"maxAttempts": 8`, 1), "F602", "a.json:6:22", 5},
		{strings.Replace(config, `"maxAttempts": 4`, `"maxAttempts": 3, "maxRetryAttempts": 4`, 1), "F601", "a.json:6:25", 3},
		{`{"retryPolicy": {"maxAttempts": 3}, "methodConfig": [{"name": [{}], "timeout": "1s"}]}`, "F602", "a.json:1:17", 1},
	} {
		f := read(t, "a.json", c.text, "")
		if len(f.Remarks) != 1 || f.Remarks[0].Rule != c.rule || f.Remarks[0].At.String() != c.at {
			t.Errorf("%+v", f.Remarks)
		}
		if got := f.Policies[0].Layer.Tries(topology.Unavailable, topology.Safe).N; got != c.tries {
			t.Errorf("%d tries, want %d", got, c.tries)
		}
	}
}

func TestGeneratedClientsTryUntilTheDeadline(t *testing.T) {
	f := read(t, "pubsub_grpc_service_config.json", `{"methodConfig": [{
 "name": [{"service": "google.pubsub.v1.Publisher"}], "timeout": "60s",
 "retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "60s", "backoffMultiplier": 1.3,
  "retryableStatusCodes": ["UNAVAILABLE"]}}]}`, "")
	l := f.Policies[0].Layer
	if got := l.Tries(topology.Unavailable, topology.Safe); got.N != topology.Unbounded || l.Product != "gapic" ||
		len(f.Remarks) != 0 {
		t.Errorf("%+v %s %+v", got, l.Product, f.Remarks)
	}
	if longest, ends := l.Longest(topology.Unavailable, topology.Safe); longest != time.Minute || !ends {
		t.Errorf("longest %v, %v", longest, ends)
	}
}

func TestCopiesRunBesideEachOther(t *testing.T) {
	f := read(t, "a.json", `{"methodConfig": [{"name": [{}],
 "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.2s"}}]}`, "")
	h := f.Policies[0].Layer.Hedge
	if h.Copies.V != 2 || h.Delay.V != 200*time.Millisecond {
		t.Errorf("%+v", h)
	}
}

func TestAConfigForAllMethodsIsNamedAfterItsFile(t *testing.T) {
	for file, want := range map[string]string{"conf/orders_service_config.json": "orders",
		"pubsub_grpc_service_config.json": "pubsub",
		"service_config.json":             "grpc-target", "a/payments/service_config.json": "payments"} {
		f := read(t, file, `{"methodConfig": [{"name": [{}], "timeout": "1s"}]}`, "")
		if got := f.Policies[0].Callees[0]; got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestTheChoicesOfDNSAreAllRead(t *testing.T) {
	f := read(t, "a.json", `[{"clientLanguage": ["go"], "serviceConfig": `+config+`}, {"serviceConfig": {}}]`, "")
	if len(f.Policies) != 2 {
		t.Errorf("%s", f.YAML())
	}
}

func FuzzConfigsAreReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(config))
	f.Add([]byte(`[{"serviceConfig": {"methodConfig": [{"name": [{}, null, 3],
 "hedgingPolicy": {"maxAttempts": 99}}, 7]}}]`))
	f.Add([]byte("methodConfig: [{name: [{service: a}], retryPolicy: {retryableStatusCodes: [99, -1, " +
		"OK]}}]\nretryThrottling: 3\n"))
	f.Add([]byte(`{"methodConfig": [{"name": [{"service": "a."}],
 "retryPolicy": {"retryableStatusCodes": ["INTERNAL"]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, _ := source.YAML("f", data)
		for _, d := range docs {
			grpcconfig.Recognise(d)
		}
		for _, p := range grpcconfig.Read(docs, source.Assume{}).Policies {
			if len(p.Callees) == 0 || p.Callees[0] == "" {
				t.Error("a policy for nobody")
			}
			for _, o := range topology.AllOutcomes() {
				p.Layer.Tries(o, topology.Safe)
			}
		}
	})
}

// gRPC takes the narrowest entry, also if that says nothing: its calls are not repeated by a wider one.
func TestAnEntryThatSaysNothingTakesItsCallsAwayFromWiderOnes(t *testing.T) {
	f := read(t, "a.json", `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s",
 "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}},
 {"name": [{"service": "shop.Orders"}]}]}`, "shop")
	if len(f.Policies) != 2 {
		t.Fatalf("%s", f.YAML())
	}
	narrow, wide := f.Policies[0].Layer, f.Policies[1].Layer
	if narrow.Match.Path != "/shop.Orders/*" || narrow.Choice != wide.Choice ||
		narrow.Tries(topology.Unavailable, topology.Safe).N != 1 || wide.Tries(topology.Unavailable, topology.Safe).N != 4 {
		t.Errorf("%s", f.YAML())
	}
}
