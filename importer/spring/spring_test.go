package spring_test

import (
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/spring"
	"github.com/abate-go/abate/topology"
)

// read reads files, given as names and texts.
func read(t *testing.T, versions map[string]string, files ...string) topology.Form {
	t.Helper()
	var docs []source.Document
	for i := 0; i < len(files); i += 2 {
		if strings.HasSuffix(files[i], ".properties") {
			docs = append(docs, source.Document{File: files[i], Data: []byte(files[i+1])})
			continue
		}
		parsed, remarks := source.YAML(files[i], []byte(files[i+1]))
		if len(remarks) > 0 {
			t.Fatal(remarks)
		}
		docs = append(docs, parsed...)
	}
	for _, d := range docs {
		if !spring.Recognise(d) {
			t.Errorf("%s is not recognised", d.File)
		}
	}
	return spring.Read(docs, source.Assume{Versions: versions})
}

func policy(t *testing.T, f topology.Form, callee string) topology.Layer {
	t.Helper()
	for _, p := range f.Policies {
		if p.Callees[0] == callee {
			return p.Layer
		}
	}
	t.Fatalf("no policy for %s:\n%s", callee, f.YAML())
	return topology.Layer{}
}

const application = `spring:
  application:
    name: checkout
resilience4j:
  retry:
    configs:
      default:
        max-attempts: 4
      slow:
        waitDuration: 1s
    instances:
      orders:
        base-config: slow
        enableExponentialBackoff: true
        exponential-backoff-multiplier: 2
        enableRandomizedWait: true
      stock:
        maxAttempts: 5
        waitDuration: 200
        retryExceptions:
          - java.io.IOException
          - org.springframework.web.client.HttpServerErrorException
        ignoreExceptions: java.net.SocketTimeoutException
  circuitbreaker:
    instances:
      orders:
        failureRateThreshold: 25
        slidingWindowSize: 20
  timelimiter:
    instances:
      orders: {timeoutDuration: 2s}
  bulkhead:
    instances:
      orders: {}
`

func TestInstancesAreMergedWithWhatTheyAreBasedOn(t *testing.T) {
	f := read(t, map[string]string{"resilience4j": "2.3.0"}, "checkout/application.yml", application)
	l := policy(t, f, "orders")
	for _, c := range []struct{ got, want string }{
		{strings.Join(f.Policies[0].Callers, " "), "checkout"},
		{l.Repeats[0].Tries.String(), "4 (inherited from configs.default; checkout/application.yml:8:23)"},
		{l.Backoff.First.String(), "1s (inherited from configs.slow; checkout/application.yml:10:23)"},
		{l.Backoff.Multiplier.String(), "2 (checkout/application.yml:15:41)"},
		{l.Backoff.Jitter.String(), "±50% (default of resilience4j 2.3.0; checkout/application.yml:12:7)"},
		{l.PerTry.String(), "2s (checkout/application.yml:31:33)"},
		{l.Breaker.FailureRatio.String(), "0.25 (checkout/application.yml:27:31)"},
		{l.Breaker.WindowCalls.String(), "20 (checkout/application.yml:28:28)"},
		{l.Breaker.MinimumCalls.String(), "20 (checkout/application.yml:28:28)"},
		{l.Breaker.OpenFor.String(), "1m0s (default of resilience4j 2.3.0; checkout/application.yml:26:7)"},
		{l.Breaker.InsideRetry.String(), "true (default of resilience4j 2.3.0; checkout/application.yml:26:7)"},
		{l.Limits.Requests.String(), "25 (default of resilience4j 2.3.0; checkout/application.yml:34:7)"},
		{policy(t, f, "stock").Backoff.First.String(), "200ms (checkout/application.yml:19:23)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for _, c := range []struct {
		callee string
		o      topology.Outcome
		want   int
		known  bool
	}{
		{"orders", topology.S503, 4, true}, {"orders", topology.Hang, 4, true}, {"orders", topology.S4xx, 4, true},
		{"stock", topology.Refused, 5, true}, {"stock", topology.S503, 5, true}, {"stock", topology.S429, 1, true},
		{"stock", topology.Hang, 1, true},
	} {
		l := policy(t, f, c.callee)
		if got := l.Tries(c.o, topology.Unsafe); got.N != c.want || got.Known != c.known {
			t.Errorf("%s %v: %+v, want %d", c.callee, c.o, got, c.want)
		}
	}
}

func TestPropertiesAreReadAsYAML(t *testing.T) {
	f := read(t, nil, "src/orders/src/main/resources/application.properties",
		"# orders\nresilience4j.retry.instances.orders-db.max-attempts = 7\n"+
			"resilience4j.retry.instances.orders-db.waitDuration:PT0.25S\n"+
			"resilience4j.retry.instances.orders-db.retry-exceptions[0]=\\\n"+
			"   java.net.ConnectException\n#---\nspring.config.activate.on-profile=prod\n"+
			"resilience4j.retry.instances.orders-db.maxAttempts=${T:9}\n")
	l := policy(t, f, "orders-db")
	if got := l.Backoff.First.String(); got != "250ms (src/orders/src/main/resources/application.properties:3:53)" {
		t.Errorf("first wait %s", got)
	}
	if got := l.Repeats[0].Tries; got.V != 9 || got.Origin != topology.Assumed {
		t.Errorf("tries %s", got)
	}
	if l.Tries(topology.S503, topology.Safe).N != 1 || f.Policies[0].Callers[0] != "orders" {
		t.Errorf("%s", f.YAML())
	}
}

// Spring's binder gives both names to one map; read with resilience4j 2.3.0.
func TestInstancesMayStandUnderBackends(t *testing.T) {
	f := read(t, nil, "a/application.properties", "resilience4j.retry.backends.a.max-attempts=2\n"+
		"resilience4j.circuitbreaker.backends.a.wait-duration-in-open-state=20s\n"+
		"resilience4j.retry.backends.b.max-attempts=7\nresilience4j.retry.instances.b.max-attempts=4\n"+
		"resilience4j.retry.backends.a.max-attemps=9\n"+
		"resilience4j.timelimiter.backends.a.timeout-duration=9s\n")
	a, b := policy(t, f, "a"), policy(t, f, "b")
	if n := a.Tries(topology.S503, topology.Safe).N; n != 2 || a.Breaker.OpenFor.V != 20*time.Second {
		t.Errorf("a: %d tries, open for %s", n, a.Breaker.OpenFor)
	}
	if n := b.Tries(topology.S503, topology.Safe).N; n != 4 {
		t.Errorf("b: %d tries", n)
	}
	if !a.PerTry.IsUnknown() {
		t.Errorf("a time limiter has no backends: %s", a.PerTry)
	}
	if len(f.Remarks) != 2 || !strings.Contains(f.Remarks[0].Fix+f.Remarks[1].Fix, "maxAttempts") {
		t.Errorf("%+v", f.Remarks)
	}
}

func TestProfilesLieOverTheRest(t *testing.T) {
	files := []string{"c/application-prod.yml", "resilience4j.retry.instances.a.maxAttempts: 5\n",
		"c/application.yml", "resilience4j.retry.instances.a: {maxAttempts: 2, waitDuration: " +
			"1s}\n---\nspring.config.activate.on-profile: '!eu'\n" +
			"resilience4j.retry.instances.a.waitDuration: 3s\n",
		"c/application-test.yml", "resilience4j.retry.instances.a.maxAttempts: 9\n"}
	for _, c := range []struct {
		told    string
		tries   int
		wait    time.Duration
		remarks int
	}{{"", 5, 3 * time.Second, 0}, {"test", 9, 3 * time.Second, 0}, {"prod,eu", 5, time.Second, 0}, {"other", 2,
		3 * time.Second, 2}} {
		f := read(t, map[string]string{"spring.profiles": c.told}, files...)
		l := policy(t, f, "a")
		if l.Repeats[0].Tries.V != c.tries || l.Backoff.First.V != c.wait || len(f.Remarks) != c.remarks {
			t.Errorf("%q: %s, %s, remarks %+v", c.told, l.Repeats[0].Tries, l.Backoff.First, f.Remarks)
		}
	}
}

// As somebody writes who knows what a Duration of Java has inside.
func TestAMappingIsNoDuration(t *testing.T) {
	f := read(t, nil, "a/application.yml",
		"resilience4j.retry.instances.a: {maxAttempts: 3, wait-duration: {seconds: 1}}\n")
	if l := policy(t, f, "a"); !l.Backoff.First.IsUnknown() || l.Repeats[0].Tries.V != 3 {
		t.Errorf("%+v", l)
	}
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F601" || !strings.Contains(f.Remarks[0].Text, "keys below it") {
		t.Errorf("%+v", f.Remarks)
	}
}

func TestDeadKeysAreRemarked(t *testing.T) {
	const conf = "resilience4j.retry:\n  instances:\n    a:\n      maxRetryAttempts: 9\n      waitDuraton: 1s\n" +
		"resilience4j.timelimiter:\n  backends: {}\n"
	f := read(t, nil, "a/application.yml", conf)
	var got []string
	for _, r := range f.Remarks {
		got = append(got, r.Rule+" "+r.At.String()+" "+r.Fix)
	}
	want := []string{"F601 a/application.yml:4:7 write maxAttempts, which is its name since resilience4j 2.0",
		"F601 a/application.yml:5:7 did you mean waitDuration?",
		"F601 a/application.yml:7:3 write instances, which is its name since resilience4j 2.0"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	l := policy(t, f, "a")
	if l.Tries(topology.S503, topology.Safe).N != 3 {
		t.Error("a dead key counts")
	}
	f = read(t, map[string]string{"resilience4j": "1.7"}, "a/application.yml", conf)
	if l = policy(t, f, "a"); l.Tries(topology.S503, topology.Safe).N != 9 || len(f.Remarks) != 1 {
		t.Errorf("before 2.0: %+v, %+v", l.Repeats, f.Remarks)
	}
}

func TestWaitsGrowOnlyFromAWrittenOne(t *testing.T) {
	f := read(t, nil, "a/application.yml", "resilience4j.retry.instances.a: {enableExponentialBackoff: true}\n")
	l := policy(t, f, "a")
	if !l.Backoff.Multiplier.IsZero() || l.Backoff.First.V != 500*time.Millisecond || len(f.Remarks) != 1 ||
		f.Remarks[0].Rule != "F602" {
		t.Errorf("%s, %+v", f.YAML(), f.Remarks)
	}
}

func TestTheTimeOfATryIsUnknownWhereOnlyCodeHasIt(t *testing.T) {
	f := read(t, nil, "a/application.yml", "resilience4j.retry.instances: {a: {}, b: "+
		"{}}\nspring.cloud.openfeign.client.config:\n  b: {readTimeout: 800}\n"+
		"  c: {connectTimeout: 100}\n")
	a, b, c := policy(t, f, "a"), policy(t, f, "b"), policy(t, f, "c")
	if got := a.Tries(topology.Hang, topology.Safe); got.Known || !a.PerTry.IsUnknown() {
		t.Errorf("a: %+v, limit of a try %s", got, a.PerTry)
	}
	if b.PerTry.V != 800*time.Millisecond || c.Connect.V != 100*time.Millisecond {
		t.Errorf("b %s, c %s", b.PerTry, c.Connect)
	}
}

func TestAMovedAspectIsOutside(t *testing.T) {
	f := read(t, nil, "a/application.yml", `resilience4j:
  retry: {retryAspectOrder: 9, instances: {a: {waitDuration: 10}}}
  circuitbreaker: {circuitBreakerAspectOrder: 1, instances: {a: {}}}
  timelimiter: {timeLimiterAspectOrder: 2, instances: {a: {}}}
`)
	if l := policy(t, f, "a"); l.Overall.V != time.Second || !l.PerTry.IsZero() || l.Breaker.InsideRetry.V {
		t.Errorf("%s", f.YAML())
	}
}

const gateway = `spring:
  application.name: edge
  cloud.gateway:
    httpclient:
      response-timeout: 3s
    default-filters:
      - AddRequestHeader=X, y # no Retry
    routes:
      - id: orders
        uri: lb://orders
        predicates: [Path=/orders/**, "Method=GET,POST"]
        filters:
          - name: Retry
            args:
              retries: 2
              statuses: BAD_GATEWAY
              methods: GET,POST
              backoff: {firstBackoff: 50ms, maxBackoff: 500ms, factor: 2}
      - id: stock
        uri: ${STOCK:http://stock:8080}
        filters: [CircuitBreaker=slow, "Retry=3,INTERNAL_SERVER_ERROR,GET,10ms,50ms,2,false"]
      - {id: none, uri: "no://op"}
      - {id: plain, uri: "http://plain"}
`

func TestRoutesOfTheGateway(t *testing.T) {
	f := read(t, nil, "edge/application.yml", gateway+"resilience4j.timelimiter.instances.slow.timeoutDuration: 4s\n")
	if len(f.Calls) != 3 || f.Services[len(f.Services)-1].Name != "edge" {
		t.Fatalf("%s", f.YAML())
	}
	orders, stock, plain := f.Calls[0].Layers[0], f.Calls[1].Layers[0], f.Calls[2].Layers[0]
	for _, c := range []struct{ got, want string }{
		{f.Calls[0].From + " " + f.Calls[0].To + " " + f.Calls[1].To + " " + f.Calls[2].To, "edge orders stock plain"},
		{orders.Match.Path + " " + strings.Join(orders.Match.Methods, " "), "/orders/* GET POST"},
		{orders.Repeats[0].Tries.String(), "3 (edge/application.yml:15:24)"},
		{orders.PerTry.String(), "3s (inherited from httpclient; edge/application.yml:5:25)"},
		{orders.Backoff.First.String() + orders.Backoff.Max.String(),
			"50ms (edge/application.yml:18:39)500ms (edge/application.yml:18:57)"},
		{orders.Connect.String(), "45s (default of Spring Cloud Gateway; edge/application.yml:13:13)"},
		{stock.Overall.String(), "4s (edge/application.yml:24:58)"},
		{stock.Backoff.First.String(), "10ms (edge/application.yml:21:40)"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	for _, c := range []struct {
		l    topology.Layer
		o    topology.Outcome
		m    topology.Methods
		want int
	}{{orders, topology.S503, topology.Unsafe, 3}, {orders, topology.ResetSent, topology.Safe, 3}, {orders,
		topology.Hang, topology.Safe, 3},
		{orders, topology.S429, topology.Safe, 1}, {stock, topology.S502, topology.Safe, 4}, {stock, topology.S502,
			topology.Unsafe, 1},
		{stock, topology.Hang, topology.Safe, 2}, {plain, topology.Refused, topology.Safe, 1}} {
		if got := c.l.Tries(c.o, c.m); got.N != c.want || !got.Known {
			t.Errorf("%s %v %v: %+v, want %d", c.l.Name, c.o, c.m, got, c.want)
		}
	}
	rules := ""
	for _, r := range f.Remarks {
		rules += r.Rule + " " + r.At.String() + "\n"
	}
	if rules != "F605 edge/application.yml:16:25\nF605 edge/application.yml:21:40\n" {
		t.Errorf("remarks\n%s", rules)
	}
}

func TestTheGatewayOf2025HasOtherKeys(t *testing.T) {
	f := read(t, nil, "edge/application.properties", "spring.cloud.gateway.server.webflux.routes[0].uri=lb://a\n"+
		"spring.cloud.gateway.server.webflux.routes[0].filters[0].name=Retry\n"+
		"spring.cloud.gateway.server.webflux.routes[0].filters[0].args.series=\n"+
		"spring.cloud.gateway.server.webflux.routes[0].filters[0].args.retrys=9\n")
	if len(f.Calls) != 1 || len(f.Remarks) != 1 || f.Remarks[0].Rule != "F601" {
		t.Fatalf("%s", f.YAML())
	}
	if l := f.Calls[0].Layers[0]; l.Tries(topology.S503, topology.Safe).N != 1 || l.Tries(topology.Refused,
		topology.Safe).N != 4 {
		t.Errorf("%+v", l.Repeats)
	}
}

func TestADefaultFilterIsAroundEveryRouteAndIsRemarkedOnce(t *testing.T) {
	f := read(t, nil, "edge/application.yml", `spring.cloud.gateway:
  default-filters: ["Retry=1,BAD_GATEWAY,POST"]
  routes:
    - {id: a, uri: "lb://a"}
    - {id: b, uri: "lb://b", filters: ["Retry=2"]}
`)
	if len(f.Calls) != 2 || len(f.Calls[0].Layers) != 1 || len(f.Calls[1].Layers) != 2 || len(f.Remarks) != 1 {
		t.Fatalf("%s", f.YAML())
	}
	outer, inner := f.Calls[1].Layers[0], f.Calls[1].Layers[1]
	if outer.Tries(topology.S503, topology.Unsafe).N != 2 || inner.Tries(topology.S503, topology.Safe).N != 3 ||
		outer.Choice == inner.Choice {
		t.Errorf("%s", f.YAML())
	}
}

func TestOtherFilesAreNotOfSpring(t *testing.T) {
	for _, text := range []string{"kind: Pod\n", "services: {a: {image: b}}\n", "[1, 2]\n", "spring: water\n"} {
		docs, _ := source.YAML("f", []byte(text))
		if spring.Recognise(docs[0]) {
			t.Errorf("%q is taken for Spring", text)
		}
	}
	docs, _ := source.YAML("a/src/test/resources/application.yml", []byte(application))
	if spring.Recognise(docs[0]) {
		t.Error("the configuration of tests is taken for that of the program")
	}
	if spring.Recognise(source.Document{File: "a.properties", Data: []byte("log4j.rootLogger=INFO\n")}) {
		t.Error("any properties file is taken for Spring")
	}
}

func FuzzApplicationsAreReadWithoutAPanic(f *testing.F) {
	f.Add([]byte(application), "resilience4j.retry.instances.a.x[0].y=\\u0041\\\n b\nspring.application.name=${X:${Y:z}}")
	f.Add([]byte(gateway), "#---\nspring.cloud.gateway.routes[0].filters[0]=Retry=,,,\n"+
		"spring.cloud.gateway.routes[0].uri=lb://\n[]..[=")
	f.Fuzz(func(t *testing.T, yaml []byte, properties string) {
		docs, _ := source.YAML("a/application.yml", yaml)
		docs = append(docs, source.Document{File: "a/application-prod.properties", Data: []byte(properties)})
		for _, d := range docs {
			spring.Recognise(d)
		}
		form := spring.Read(docs, source.Assume{})
		for i := range form.Policies {
			for _, o := range topology.AllOutcomes() {
				form.Policies[i].Layer.Tries(o, topology.Safe)
			}
		}
		for _, c := range form.Calls {
			if c.To == "" || len(c.Layers) == 0 {
				t.Errorf("a call to %q with %d layers", c.To, len(c.Layers))
			}
		}
	})
}
