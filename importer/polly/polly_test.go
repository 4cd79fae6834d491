package polly_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/polly"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func read(t *testing.T, text string) topology.Form {
	t.Helper()
	docs, remarks := source.YAML("shop/appsettings.json", []byte(text))
	if len(docs) != 1 || !polly.Recognise(docs[0]) {
		t.Fatalf("not recognised: %v\n%s", remarks, text)
	}
	return polly.Read(docs, source.Assume{})
}

func TestTheOptionsOfTheHandlerAreRead(t *testing.T) {
	f := read(t, `{"Logging": {"Retry": {"x": 1}}, "HttpClients": {"OrderItemsClient": {"HttpStandardResilienceOptions": {
 "Retry": {"MaxRetryAttempts": 5, "Delay": "00:00:00.250", "BackoffType": "Constant", "UseJitter": false},
 "attempttimeout": {"timeout": "00:00:02"},
 "CircuitBreaker": {"FailureRatio": 0.5}}}}}`)
	if len(f.Policies) != 1 || len(f.Remarks) != 0 {
		t.Fatalf("%s", f.YAML())
	}
	p := f.Policies[0]
	l := p.Layer
	for _, c := range []struct{ got, want string }{
		{strings.Join(p.Callees, " "), "order-items"}, {strings.Join(p.Callers, " "), "shop"},
		{l.Name, "section HttpClients:OrderItemsClient:HttpStandardResilienceOptions"},
		{l.Repeats[0].Tries.String(), "6 (shop/appsettings.json:2:32)"},
		{l.PerTry.String(), "2s (shop/appsettings.json:3:32)"},
		{l.Backoff.First.String(), "250ms (shop/appsettings.json:2:44)"},
		{l.Backoff.Jitter.V, "none"}, {l.Breaker.FailureRatio.String(), "0.5 (shop/appsettings.json:4:37)"},
		{l.Overall.String(), "30s (default of .NET's standard resilience handler; shop/appsettings.json:1:104)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func TestDefaultsAreThoseOfTheHandler(t *testing.T) {
	l := read(t, `{"Resilience": {"Retry": {"UseJitter": true}}}`).Policies[0].Layer
	if l.Tries(topology.S503, topology.Unsafe).N != 4 || l.Tries(topology.S4xx, topology.Safe).N != 1 ||
		l.Breaker.MinimumCalls.V != 100 || l.Limits.Requests.V != 1000 {
		t.Errorf("%+v", l)
	}
	// Ten seconds, a wait of up to two, ten seconds, a wait of up to four: the third try is cut.
	if n := l.Tries(topology.Hang, topology.Safe).N; n != 3 {
		t.Errorf("%d tries of a hang, want 3", n)
	}
}

func TestLimitsWithWhichTheProgramDoesNotStartAreRemarks(t *testing.T) {
	for options, want := range map[string]int{
		`"AttemptTimeout": {"Timeout": "00:00:40"}`:                                                     2,
		`"AttemptTimeout": {"Timeout": "00:00:20"}`:                                                     1,
		`"TotalRequestTimeout": {"Timeout": "00:00:05"}`:                                                1,
		`"AttemptTimeout": {"Timeout": "00:00:20"}, "CircuitBreaker": {"SamplingDuration": "00:01:00"}`: 0,
		`"AttemptTimeout": {"Timeout": "fast"}`:                                                         1,
	} {
		if f := read(t, `{"OrdersResilience": {`+options+`}}`); len(f.Remarks) != want {
			t.Errorf("%s: %v, want %d", options, f.Remarks, want)
		}
	}
}

func FuzzOptionsAreReadWithoutAPanic(f *testing.F) {
	f.Add(`{"A": {"Retry": {"MaxRetryAttempts": 5, "Delay": "1.00:00:00.5"}, "AttemptTimeout": {"Timeout": "7"}}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		docs, _ := source.YAML("appsettings.json", []byte(text))
		for _, d := range docs {
			if polly.Recognise(d) {
				polly.Read([]source.Document{d}, source.Assume{})
			}
		}
	})
}
