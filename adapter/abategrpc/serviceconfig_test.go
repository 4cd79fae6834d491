package abategrpc_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abategrpc"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

const fullConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [
    {
      "name": [{"service": "shop.Payment", "method": "Get"}, {"service": "shop.Catalog"}],
      "waitForReady": true,
      "timeout": "1.5s",
      "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", 10]}
    },
    {
      "name": [{"service": "shop.Search"}],
      "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.05s", "nonFatalStatusCodes": ["INTERNAL"]}
    },
    {"name": [{}], "timeout": "30s"}
  ],
  "retryThrottling": {"maxTokens": 20, "tokenRatio": 0.1}
}`

func parseConfig(t testing.TB, text string) *abategrpc.ServiceConfig {
	t.Helper()
	c, err := abategrpc.ParseServiceConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAServiceConfigBecomesPolicies(t *testing.T) {
	c := parseConfig(t, fullConfig)
	tokens := budget.Config{Kind: budget.Tokens, MaxTokens: 10, DepositPerSuccess: 0.1}
	want := []abategrpc.MethodPolicy{
		{
			Methods: []string{"/shop.Payment/Get", "/shop.Catalog/*"}, WaitForReady: true,
			Policy: abate.Policy{
				Timeout: 1500 * time.Millisecond,
				Retry: abate.Retry{MaxRetries: 3, InitialDelay: 100 * time.Millisecond, MaxDelay: time.Second, Multiplier: 2,
					Jitter: retry.FactorJitter, JitterFactor: 0.2},
				RetryOn: []string{"UNAVAILABLE", "ABORTED"}, RetryBudget: tokens,
			},
		},
		{
			Methods: []string{"/shop.Search/*"},
			Policy:  abate.Policy{Hedge: hedge.Config{Delay: 50 * time.Millisecond, MaxHedges: 2}, RetryOn: []string{"INTERNAL"}, RetryBudget: tokens},
		},
		{Methods: []string{"*"}, Policy: abate.Policy{Timeout: 30 * time.Second, RetryBudget: tokens}},
	}
	if !reflect.DeepEqual(c.Methods, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c.Methods, want)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "loadBalancingConfig: ") || !strings.Contains(notes, "methodConfig[1].hedgingPolicy.nonFatalStatusCodes: ") {
		t.Error(notes)
	}
}

// method is a service config with one methodConfig, of which some is said.
func method(rest string) string { return `{"methodConfig": [{"name": [{}], ` + rest + `}]}` }

func retried(rest string) string { return method(`"retryPolicy": {` + rest + `}`) }

const sane = `"initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, `

func TestMistakesInAServiceConfigHaveAPlace(t *testing.T) {
	const m0, r0, h0 = "methodConfig[0]", "methodConfig[0].retryPolicy", "methodConfig[0].hedgingPolicy"
	for text, want := range map[string][]string{
		``:                                   {"the document: is not JSON"},
		`[]`:                                 {"the document: is not a JSON object"},
		`{"methodConfig": [}`:                {"the document: is not JSON, at byte 19"},
		`null`:                               {"the document: is not a JSON object"},
		`{"MethodConfig": []}`:               {"MethodConfig: is not known; write methodConfig"},
		`{"methodConfig": {}}`:               {"methodConfig: is not a list"},
		`{"methodConfig": [1, {"name": 2}]}`: {m0 + ": is not a JSON object", "methodConfig[1].name: is not a list"},
		`{"methodConfig": [{"name": [{"method": "Get"}, {"service": 5}, {"service": "a/b"}, {"service": "a b"}]}]}`: {
			m0 + ".name[0]: has a method and no service", m0 + ".name[1].service: is not a string", m0 + `.name[2]: "a/b " is no method`, m0 + `.name[3]: "a b " is no method`},
		`{"methodConfig": [{"name": [{"service": "a"}]}, {"name": [{"service": "a", "method": "b"}, {"service": "a"}]}]}`: {
			"methodConfig[1].name[1]: names the methods of methodConfig[0].name[0] again"},
		method(`"timeout": "0s"`):     {m0 + ".timeout: is not a time above 0"},
		method(`"timeout": "-1s"`):    {m0 + ".timeout: is not a time above 0"},
		method(`"timeout": "1"`):      {m0 + ".timeout: is not a time above 0"},
		method(`"timeout": 1`):        {m0 + ".timeout: is not a time above 0"},
		method(`"timeout": "1.s"`):    {m0 + ".timeout: is not a time above 0"},
		method(`"timeout": "1ms"`):    {m0 + ".timeout: is not a time above 0"},
		method(`"waitForReady": "y"`): {m0 + ".waitForReady: is neither true nor false"},
		method(`"retryPolicy": {` + sane + `"maxAttempts": 2, "retryableStatusCodes": ["UNAVAILABLE"]}, "hedgingPolicy": {}`): {h0 + ": stands beside a retryPolicy"},
		retried(``): {r0 + ".maxAttempts: is not a whole number", r0 + ".maxBackoff: is not a time", r0 + ".initialBackoff: is not a time",
			r0 + ".backoffMultiplier: is not a number above 0", r0 + ".retryableStatusCodes: names no codes"},
		retried(sane + `"maxAttempts": 1, "retryableStatusCodes": ["UNAVAILABLE"]`):   {r0 + ".maxAttempts: 1 is out of range; allowed: 2 to 5"},
		retried(sane + `"maxAttempts": 2.5, "retryableStatusCodes": ["UNAVAILABLE"]`): {r0 + ".maxAttempts: is not a whole number"},
		retried(sane + `"maxAttempts": 2, "retryableStatusCodes": ["OK", "GONE", 17, null]`): {
			r0 + `.retryableStatusCodes[0]: "OK" is no code`, r0 + `.retryableStatusCodes[1]: "GONE" is no code`, r0 + ".retryableStatusCodes[2]: 17 is no code",
			r0 + ".retryableStatusCodes[3]: null is no code", r0 + ".retryableStatusCodes: names no codes"},
		retried(`"initialBackoff": "2h", "maxBackoff": "48h", "backoffMultiplier": 0.5, "maxAttempts": 2, "retryableStatusCodes": [14]`): {
			r0 + ".maxBackoff: is not a time", r0 + ".initialBackoff: is not a time", r0 + ".backoffMultiplier: 0.5 makes pauses shorter"},
		retried(`"initialBackoff": "7200s", "maxBackoff": "172800s", "backoffMultiplier": 200, "maxAttempts": 2, "retryableStatusCodes": [14]`): {
			r0 + ".maxBackoff: 48h0m0s is out of range", r0 + ".initialBackoff: 2h0m0s is out of range", r0 + ".backoffMultiplier: 200 is out of range"},
		method(`"hedgingPolicy": {"maxAttempts": 0, "hedgingDelay": "7200s"}`): {h0 + ".maxAttempts: 0 is out of range"},
		method(`"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "7200s"}`): {h0 + ".hedgingDelay: 2h0m0s is out of range"},
		`{"retryThrottling": {"maxTokens": 1001, "tokenRatio": 0}}`:            {"retryThrottling.maxTokens: 1001 is out of range", "retryThrottling.tokenRatio: is not a number above 0"},
		`{"retryThrottling": {"maxTokens": "10"}}`:                             {"retryThrottling.maxTokens: is not a number above 0", "retryThrottling.tokenRatio: is not a number above 0"},
	} {
		_, err := abategrpc.ParseServiceConfig([]byte(text))
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: want %q in\n%v", text, w, err)
			}
		}
		if n := strings.Count(err.Error(), "\n") + 1; n != len(want) {
			t.Errorf("%s: %d mistakes, want %d:\n%v", text, n, len(want), err)
		}
		var field *abate.FieldError
		if !errors.As(err, &field) || field.Mend == "" {
			t.Errorf("%s: no way to mend it: %v", text, err)
		}
	}
}

func TestWhatIsDoneDifferentlyIsNoted(t *testing.T) {
	for text, want := range map[string]string{
		`{"methodConfig": [{}]}`:                                                    "methodConfig[0]: has no name",
		`{"methodConfig": null}`:                                                    "",
		`{"retryPolicy": {}}`:                                                       "retryPolicy: is not known",
		method(`"timeout": "999999s"`):                                              "methodConfig[0].timeout: more than a day",
		method(`"maxRequestMessageBytes": 1`):                                       "methodConfig[0].maxRequestMessageBytes: is not looked at",
		retried(sane + `"maxAttempts": 9, "retryableStatusCodes": [14]`):            "methodConfig[0].retryPolicy.maxAttempts: 9 is more than gRPC makes: 5",
		retried(sane + `"maxAttempts": 2, "retryableStatusCodes": ["UNAVAILABLE"]`): "retryThrottling: is not there",
		retried(`"initialBackoff": "0.0001s", "maxBackoff": "1s", "backoffMultiplier": 2, "maxAttempts": 2, "retryableStatusCodes": [14]`): "methodConfig[0].retryPolicy.initialBackoff: less than a millisecond",
		method(`"hedgingPolicy": {"maxAttempts": 5}`):            "methodConfig[0].hedgingPolicy.maxAttempts: 4 copies",
		`{"retryThrottling": {"maxTokens": 1, "tokenRatio": 1}}`: "retryThrottling.maxTokens: less than 2",
	} {
		c := parseConfig(t, text)
		if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, want) || want == "" && notes != "" {
			t.Errorf("%s: want %q in\n%s", text, want, notes)
		}
	}
}

// accepted has grpc-go itself read a service config.
func accepted(text []byte) error {
	conn, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(string(text)))
	if err == nil {
		err = conn.Close()
	}
	return err
}

func TestGRPCTakesWhatIsWrittenAndRefusesWhatIsRefused(t *testing.T) {
	if err := accepted([]byte(fullConfig)); err != nil {
		t.Errorf("the sample: %v", err)
	}
	text, notes, err := parseConfig(t, fullConfig).JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := accepted(text); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "Go ignore") {
		t.Error(notes)
	}
	for _, text := range []string{
		retried(``), retried(sane + `"maxAttempts": 1, "retryableStatusCodes": [14]`), `{"methodConfig": [], "retryThrottling": {"maxTokens": 1001, "tokenRatio": 1}}`,
		method(`"timeout": "1"`), `{"methodConfig": [{"name": [{"method": "Get"}]}]}`, `{"methodConfig": [{"name": [{}]}, {"name": [{}]}]}`,
	} {
		if _, err := abategrpc.ParseServiceConfig([]byte(text)); err == nil || accepted([]byte(text)) == nil {
			t.Errorf("%s: %v here, %v there", text, err, accepted([]byte(text)))
		}
	}
}

func TestAServiceConfigComesBackAsItWas(t *testing.T) {
	for _, text := range []string{
		fullConfig, `{}`, method(`"timeout": "0.000000001s"`), method(`"hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0s"}`),
		retried(`"initialBackoff": "5s", "maxBackoff": "1s", "backoffMultiplier": 1.3, "maxAttempts": 2, "retryableStatusCodes": [1, 1, 2]`),
	} {
		before := parseConfig(t, text)
		written, _, err := before.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if after := parseConfig(t, string(written)); !reflect.DeepEqual(before.Methods, after.Methods) {
			t.Errorf("%s\nbefore\n%+v\nafter\n%+v\nthrough\n%s", text, before.Methods, after.Methods, written)
		}
	}
}

func TestWhatCannotBeSaidIsNoted(t *testing.T) {
	full := abate.Policy{
		AttemptTimeout: time.Second, Timeout: 3 * time.Second, RetryOwner: abate.OwnerEdge, RetryOn: []string{"UNAVAILABLE", "reset", "ABORTED"}, NeverRetryOn: []string{"ABORTED"},
		Retry: abate.Retry{MaxRetries: 9, Backoff: retry.LinearBackoff}, RetryBudget: budget.Config{Ratio: 0.2, Reserve: 10},
		CircuitBreaker: breaker.Config{FailureRateThreshold: 0.5}, Hedge: hedge.Config{Delay: time.Second},
	}
	c := abategrpc.ServiceConfig{Methods: []abategrpc.MethodPolicy{
		{Methods: []string{"*"}, Policy: full},
		{Methods: []string{"/a.B/C"}, Policy: abate.DefaultPolicy()},
		{Methods: []string{"/a.B/D"}, Policy: abate.Policy{Retry: abate.Retry{MaxRetries: 1, Backoff: retry.FixedBackoff}, RetryMethods: []string{"/a.B/*"}}},
	}}
	text, notes, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := accepted(text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"maxAttempts": 5`) {
		t.Errorf("%s", text)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{
		"methodConfig[0]: maxRetries 9 is written as 4", "methodConfig[0]: backoff linear", "methodConfig[0]: jitter full", "methodConfig[0]: hedge is left out",
		"methodConfig[0]: retryBudget ratio is written as retryThrottling", "methodConfig[0]: attemptTimeout cannot", "methodConfig[0]: retryOwner cannot",
		"methodConfig[0]: circuitBreaker cannot", "methodConfig[0]: a word other than a code",
		"methodConfig[1]: retries are left out", "methodConfig[1]: retryBudget differs", "methodConfig[1]: outlierDetection cannot",
		"methodConfig[2]: has no retryBudget", "methodConfig[2]: jitter full",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("want %q in\n%s", want, all)
		}
	}
	back := parseConfig(t, string(text)).Methods
	if p := back[0].Policy; p.MaxRetries != 4 || !slices.Equal(p.RetryOn, []string{"UNAVAILABLE"}) || p.RetryBudget.MaxTokens != 10 || p.RetryBudget.DepositPerSuccess != 0.2 {
		t.Errorf("%+v", p)
	}
	if back[1].Policy.MaxRetries != 0 || back[2].Policy.MaxRetries != 1 || back[2].Policy.MaxDelay != 100*time.Millisecond {
		t.Errorf("%+v", back)
	}
}

func TestPoliciesThatAreWrongAreNotWritten(t *testing.T) {
	c := abategrpc.ServiceConfig{Methods: []abategrpc.MethodPolicy{
		{Methods: []string{"Get", "*", "*"}, Policy: abate.Policy{Retry: abate.Retry{Multiplier: 0.5}}}, {},
	}}
	_, _, err := c.JSON()
	for _, want := range []string{`methodConfig[0]: "Get" is no method`, "methodConfig[0]: * has a policy already", "methodConfig[0]: multiplier: 0.5 is out of range", "methodConfig[1]: is for no method"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
	if _, err := c.Client("payments"); err == nil {
		t.Error("a client was made of it")
	}
}

func TestAClientIsMadeOfAServiceConfig(t *testing.T) {
	var calls atomic.Int32
	s := &shop{charge: func(context.Context, *text) (*text, error) {
		if calls.Add(1)%3 != 0 {
			return nil, status.Error(codes.Unavailable, "x")
		}
		return wrapperspb.String("ok"), nil
	}}
	plain := s.serve(t)
	c := parseConfig(t, `{"methodConfig": [
		{"name": [{"service": "shop.Payment", "method": "Charge"}], "waitForReady": true,
		 "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}},
		{"name": [{}, {"service": "other.Service"}], "timeout": "20s"}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`)
	var names []string
	client, err := c.Client("payments", func(guard string, p *abate.Policy) {
		names = append(names, guard)
		p.CircuitBreaker.FailureRateThreshold = 0.9
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(names); got != "[payments payments/shop.Payment/Charge]" {
		t.Error(got)
	}
	if len(client.Methods) != 2 || !client.Methods[0].WaitForReady || client.Methods[1].Guard != client.Guard || client.Methods[1].Methods[0] != "/other.Service/*" {
		t.Errorf("%+v", client.Methods)
	}
	if own := client.Methods[0].Guard; own.Budget() == nil || own.Budget() != client.Guard.Budget() || own.Breaker() == nil {
		t.Error("the guards share no budget, or have no breaker")
	}
	conn := dial(t, plain.Target(), client.DialOptions()...)
	if a := charge(t.Context(), conn, "x"); a.err != nil || a.text != "ok" || calls.Load() != 3 {
		t.Errorf("%+v after %d calls", a, calls.Load())
	}
}

func FuzzServiceConfig(f *testing.F) {
	for _, text := range []string{
		fullConfig, `{}`, retried(sane + `"maxAttempts": 2, "retryableStatusCodes": ["UNAVAILABLE"]`), method(`"hedgingPolicy": {"maxAttempts": 5, "hedgingDelay": "0s"}`),
		`{"methodConfig":[{"name":[{"service":"a","method":"b"}],"timeout":"99999999999.999999999s"}]}`, `{"retryThrottling":{"maxTokens":1e3,"tokenRatio":1e-9}}`,
		`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":1e1}}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := abategrpc.ParseServiceConfig(text)
		if err != nil {
			return
		}
		written, _, err := c.JSON()
		if err != nil {
			t.Fatalf("%s is read and cannot be written: %v", text, err)
		}
		if err := accepted(written); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		again, err := abategrpc.ParseServiceConfig(written)
		if err != nil || !reflect.DeepEqual(again.Methods, c.Methods) {
			t.Fatalf("%s\nbecame\n%s\n%v", text, written, err)
		}
		if _, err := c.Client("s"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWaitForReadyOfAServiceConfigIsThatOfTheMostExactName(t *testing.T) {
	client, err := parseConfig(t, `{"methodConfig": [{"name": [{}], "waitForReady": true},
		{"name": [{"service": "shop.Payment", "method": "Charge"}], "timeout": "20s"}]}`).Client("payments")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	waits := func(method string) (waits bool) {
		invoker := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			for _, o := range opts {
				if ready, ok := o.(grpc.FailFastCallOption); ok {
					waits = !ready.FailFast
				}
			}
			return nil
		}
		if err := client.Unary(ctx, method, new(text), new(text), nil, invoker); err != nil {
			t.Error(err)
		}
		return waits
	}
	if waits(chargeMethod) || !waits("/shop.Payment/Refund") || client.WaitForReady {
		t.Errorf("Charge waits: %v, Refund waits: %v", waits(chargeMethod), waits("/shop.Payment/Refund"))
	}
}
