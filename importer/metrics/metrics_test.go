package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/importer/metrics"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

func answer(samples ...string) source.Document {
	return source.Document{File: "prometheus.json", Data: []byte(
		`{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`)}
}

// sample is one sample; labels are pairs.
func sample(value string, labels ...string) string {
	var parts []string
	for i := 0; i < len(labels); i += 2 {
		parts = append(parts, fmt.Sprintf("%q:%q", labels[i], labels[i+1]))
	}
	return fmt.Sprintf(`{"metric":{%s},"value":[1700000000.1,%q]}`, strings.Join(parts, ","), value)
}

func istio(reporter, from, to, value string) string {
	return sample(value, "reporter", reporter, "source_workload", from, "source_workload_namespace", "shop",
		"destination_service_name", to, "destination_service_namespace", "shop", "abate", "rate")
}

func describe(f topology.Form) []string {
	var all []string
	for _, s := range f.Services {
		all = append(all, fmt.Sprintf("%s rate %v p50 %v p99 %v", s.Name, s.Rate.V, s.OwnTime.V, s.OwnTime99.V))
	}
	for _, c := range f.Calls {
		all = append(all, fmt.Sprintf("%s>%s %.2f", c.From, c.To, c.PerRequest.V))
	}
	return all
}

func TestAServiceGraphGivesRatesLatenciesAndCalls(t *testing.T) {
	d := answer(sample("50", "client", "user", "server", "shop"), sample("100", "client", "shop", "server", "orders"),
		sample("0.02", "server", "orders", "abate", "p50"), sample("0.3", "server", "orders", "abate", "p99"),
		sample("NaN", "client", "shop", "server", "nobody"))
	if !metrics.Recognise(d) {
		t.Fatal("not recognised")
	}
	got := describe(metrics.Read([]source.Document{d}, source.Assume{}))
	want := []string{"shop rate 50 p50 0s p99 0s", "orders rate 0 p50 20ms p99 300ms", "shop>orders 2.00"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAMeshThatCountsOnBothSidesShowsRetries(t *testing.T) {
	f := metrics.Read([]source.Document{answer(istio("source", "shop", "orders", "10"), istio("destination", "shop",
		"orders", "30"),
		istio("source", "orders", "db", "10"), istio("destination", "orders", "db", "10.1"))}, source.Assume{})
	want := []string{"shop.shop rate 10 p50 0s p99 0s", "orders.shop rate 0 p50 0s p99 0s", "db.shop rate 0 p50 0s p99 0s",
		"shop.shop>orders.shop 0.00", "orders.shop>db.shop 1.00"}
	if got := describe(f); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(f.Remarks) != 1 || !strings.Contains(f.Remarks[0].Text, "3.00 tries for each") {
		t.Errorf("remarks %+v", f.Remarks)
	}
}

func TestABrokenAnswerIsARemark(t *testing.T) {
	d := source.Document{File: "p.json", Data: []byte(`{"data":{"resultType":"vector","result":[`)}
	f := metrics.Read([]source.Document{d}, source.Assume{})
	if len(f.Remarks) != 1 || f.Remarks[0].Rule != "F702" {
		t.Errorf("%+v", f)
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	d := answer(istio("source", "a", "b", "1"), sample("1", "client", "a", "server", "b"))
	f.Add(d.Data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		metrics.Read([]source.Document{{File: "f", Data: data}}, source.Assume{})
	})
}
