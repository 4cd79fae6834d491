package traces_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/traces"
	"github.com/abate-go/abate/topology"
)

func ns(ms int) string { return fmt.Sprintf("%d", int64(ms)*1_000_000) }

// otlp writes one span: ids, the service, its kind, from and to in milliseconds, and further attributes.
func otlp(service, id, parent, name string, kind, from, to int, attributes string) string {
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}}]},`+
		`"scopeSpans":[{"spans":[{"traceId":"t","spanId":%q,"parentSpanId":%q,"name":%q,"kind":%d,`+
		`"startTimeUnixNano":%q,"endTimeUnixNano":%q,"attributes":[%s]}]}]}]}`+"\n",
		service, id, parent, name, kind, ns(from), ns(to), attributes)
}

func number(key string, n int) string {
	return fmt.Sprintf(`{"key":%q,"value":{"intValue":"%d"}}`, key, n)
}

func text(key, s string) string { return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, key, s) }

// checkout asks orders three times (the first two fail), then stock and price at once; orders asks its database.
func otlpShop() string {
	return otlp("checkout", "1", "", "GET /", 2, 0, 100, "") +
		otlp("checkout", "2", "1", "GET", 3, 10, 20, number("http.response.status_code", 503)) +
		otlp("checkout", "3", "1", "GET", 3, 25, 35, number("http.response.status_code", 503)) +
		otlp("checkout", "4", "1", "GET", 3, 40, 50, number("http.request.resend_count", 2)) +
		otlp("orders", "5", "2", "GET", 2, 11, 19, "") +
		otlp("orders", "6", "3", "GET", 2, 26, 34, "") +
		otlp("orders", "7", "4", "GET", 2, 41, 49, "") +
		otlp("orders", "8", "7", "SELECT", 3, 42, 46, text("db.system", "postgresql")+","+text("server.address",
			"orders-db")) +
		otlp("checkout", "9", "1", "inside", 1, 50, 90, "") +
		otlp("checkout", "a", "9", "GET", 3, 60, 80, text("server.address", "stock")) +
		otlp("checkout", "b", "9", "GET", 3, 61, 90, text("server.address", "price"))
}

func jaegerShop() string {
	span := func(id, parent, process, kind string, from, to int, tags string) string {
		references := ""
		if parent != "" {
			references = fmt.Sprintf(`{"refType":"CHILD_OF","traceID":"t","spanID":%q}`, parent)
		}
		return fmt.Sprintf(`{"traceID":"t","spanID":%q,"operationName":"GET","references":[%s],"startTime":%d,`+
			`"duration":%d,"processID":%q,"tags":[{"key":"span.kind","value":%q}%s]}`,
			id, references, from*1000, (to-from)*1000, process, kind, tags)
	}
	failed := `,{"key":"http.status_code","value":503}`
	return `{"data":[{"traceID":"t","processes":{"c":{"serviceName":"checkout"},"o":{"serviceName":"orders"}},"spans":[` +
		strings.Join([]string{span("1", "", "c", "server", 0, 100, ""), span("2", "1", "c", "client", 10, 20, failed),
			span("3", "1", "c", "client", 25, 35, failed), span("4", "1", "c", "client", 40, 50, ""),
			span("5", "2", "o", "server", 11, 19, ""), span("7", "4", "o", "server", 41, 49, ""),
			span("6", "3", "o", "server", 26, 34, "")}, ",") + `]}]}`
}

func zipkinShop() string {
	span := func(id, parent, service, kind string, from, to int, more string) string {
		return fmt.Sprintf(`{"traceId":"t","id":%q,"parentId":%q,"name":"get","kind":%q,"timestamp":%d,"duration":%d,`+
			`"localEndpoint":{"serviceName":%q}%s}`, id, parent, kind, from*1000, (to-from)*1000, service, more)
	}
	failed := `,"tags":{"http.status_code":"503"}`
	return "[" + strings.Join([]string{span("1", "", "checkout", "SERVER", 0, 100, ""),
		span("2", "1", "checkout", "CLIENT", 10, 20, failed), span("2", "1", "orders", "SERVER", 11, 19, `,"shared":true`),
		span("3", "1", "checkout", "CLIENT", 25, 35, failed), span("3", "1", "orders", "SERVER", 26, 34, `,"shared":true`),
		span("4", "1", "checkout", "CLIENT", 40, 50, ""), span("4", "1", "orders", "SERVER", 41, 49, `,"shared":true`),
	}, ",") + "]"
}

func read(t *testing.T, data string) topology.Form {
	t.Helper()
	d := source.Document{File: "spans.json", Data: []byte(data)}
	if !traces.Recognise(d) {
		t.Fatal("not recognised")
	}
	return traces.Read([]source.Document{d}, source.Assume{})
}

func calls(f topology.Form) string {
	var all []string
	for _, c := range f.Calls {
		all = append(all, fmt.Sprintf("%s>%s %.2f #%d", c.From, c.To, c.PerRequest.V, c.Order.V))
	}
	return strings.Join(all, ", ")
}

func TestSpansShowCallsAndTheirRepeats(t *testing.T) {
	for name, c := range map[string]struct{ data, calls string }{
		"OTLP, a line for each export": {otlpShop(),
			"checkout>orders 1.00 #1, checkout>stock 1.00 #2, checkout>price 1.00 #2, orders>orders-db 0.33 #1"},
		"Jaeger":          {jaegerShop(), "checkout>orders 1.00 #1"},
		"Zipkin":          {zipkinShop(), "checkout>orders 1.00 #1"},
		"Zipkin's answer": {"[ " + zipkinShop() + ", []]", "checkout>orders 1.00 #1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := read(t, c.data)
			if got := calls(f); got != c.calls {
				t.Errorf("got  %s\nwant %s", got, c.calls)
			}
			if len(f.Remarks) != 1 || !strings.Contains(f.Remarks[0].Text, "2 for 1 calls, at most 3 tries") {
				t.Errorf("remarks %+v", f.Remarks)
			}
		})
	}
}

func TestAServicesOwnTimeIsWithoutItsCalls(t *testing.T) {
	f := read(t, otlpShop())
	own := map[string]string{}
	for _, s := range f.Services {
		own[s.Name] = s.OwnTime.String()
	}
	// checkout: 100 ms less 10+10+10 ms of orders and 60..90 of stock and price together.
	if own["checkout"] != "40ms (spans.json:1)" || own["orders"] != "8ms (spans.json:1)" {
		t.Errorf("own times %v", own)
	}
}

func TestTwoCallsOfOneRequestAreNoRetry(t *testing.T) {
	f := read(t, otlp("a", "1", "", "r", 2, 0, 100, "")+
		otlp("a", "2", "1", "GET", 3, 10, 20, text("server.address", "b"))+
		otlp("a", "3", "1", "GET", 3, 30, 40, text("server.address", "b")))
	if got := calls(f); got != "a>b 2.00 #1" || len(f.Remarks) != 0 {
		t.Errorf("%s, %+v", got, f.Remarks)
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	f := read(t, otlpShop()+otlp("x", "z", "nowhere", "r", 2, 0, 1, "")+`{"resourceSpans": [`)
	all := fmt.Sprint(f.Remarks)
	for _, want := range []string{"could not all be read: after", "1 of 12 spans name a parent"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add(otlpShop())
	f.Add(jaegerShop())
	f.Add(zipkinShop())
	f.Fuzz(func(_ *testing.T, data string) {
		traces.Read([]source.Document{{File: "f", Data: []byte(data)}}, source.Assume{})
	})
}

func TestSpansOfGRPCSayThatAServiceSpeaksIt(t *testing.T) {
	f := read(t, otlp("checkout", "1", "", "GET /", 2, 0, 100, "")+
		otlp("checkout", "2", "1", "GET", 3, 10, 20, text("server.address", "orders"))+
		otlp("checkout", "3", "1", "Stock/Get", 3, 10, 20, text("server.address", "stock")+","+text("rpc.system", "grpc"))+
		otlp("checkout", "4", "1", "Price/Get", 3, 10, 20, number("rpc.grpc.status_code", 0))+
		otlp("price", "5", "4", "Price/Get", 2, 11, 19, ""))
	joined, _ := f.Join()
	for _, s := range joined.Services {
		if grpc := s.Name == "stock" || s.Name == "price"; grpc != (s.Speaks.V == topology.SpeaksGRPC) {
			t.Errorf("%s speaks %s", s.Name, s.Speaks)
		}
	}
}
