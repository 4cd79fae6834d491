package spring_test

import (
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/spring"
	"github.com/abate-go/abate/topology"
)

func TestABreakerOfARouteIsNoCall(t *testing.T) {
	const routes = "spring.application.name: edge\nspring.cloud.gateway:\n" +
		"  default-filters: [CircuitBreaker=all]\n" +
		"  routes:\n  - {id: a, uri: 'lb://stock', filters: [{name: CircuitBreaker, args: {name: stockBreaker}}]}\n" +
		"resilience4j.circuitbreaker.instances: {stock-breaker: {}, all: {}, mail: {}, pay: {}}\n" +
		"resilience4j.retry.instances: {all: {}}\n"
	f := read(t, nil, "edge/application.yml", routes)
	var got []string
	for _, p := range f.Policies {
		got = append(got, p.Callees[0])
	}
	// An instance that retries is used by an annotation, too: the filter has no retries.
	if len(got) != 3 || got[0] != "all" || got[1] != "mail" || got[2] != "pay" {
		t.Errorf("policies of %q, want all, mail, pay", got)
	}
}

func TestTheTimeOfACallWithABreakerOnlyIsInCode(t *testing.T) {
	f := read(t, nil, "a/application.yml", "resilience4j.circuitbreaker.instances: {a: {}}\n")
	if l := policy(t, f, "a"); !l.PerTry.IsUnknown() {
		t.Errorf("the limit of a try is %s", l.PerTry)
	}
}

// configMap is a file of a ConfigMap.
func configMap(t *testing.T, file, name, text string) source.Document {
	t.Helper()
	docs, remarks := source.YAML(file, []byte(text))
	if len(docs) != 1 || len(remarks) > 0 {
		t.Fatal(remarks)
	}
	docs[0].Name = name
	return docs[0]
}

func TestTheFilesOfAConfigServerAreOneApplicationEach(t *testing.T) {
	const retry = "resilience4j.retry.instances.bank.maxAttempts: "
	docs := []source.Document{configMap(t, "map.yaml", "pay.yml", retry+"4\n"),
		configMap(t, "map.yaml", "shop.yml", retry+"5\n"),
		configMap(t, "map.yaml", "edge.yml", "spring.application.name: gate\n")}
	f := spring.Read(docs, source.Assume{})
	if len(f.Policies) != 2 || f.Policies[0].Callers[0] != "pay" || f.Policies[1].Callers[0] != "shop" {
		t.Errorf("%s", f.YAML())
	}
	alone := spring.Read([]source.Document{configMap(t, "shop.yaml", "settings.yml", retry+"4\n")}, source.Assume{})
	if got := alone.Policies[0].Callers[0]; got != "shop" {
		t.Errorf("the only file of a ConfigMap is of %q, want shop, by the name of the outer file", got)
	}
}

func TestCopiesOfAConfigurationAreOneLayerAndTheMostTriesHold(t *testing.T) {
	const text = "spring.application.name: pay\nresilience4j.retry.instances.bank.maxAttempts: "
	for _, tries := range [][2]string{{"3\n", "5\n"}, {"5\n", "3\n"}} {
		f := read(t, nil, "config/pay.yml", text+tries[0], "copy/pay.yml", text+tries[1])
		joined, _ := f.Join()
		if len(joined.Calls) != 1 || len(joined.Calls[0].Layers) != 2 {
			t.Fatalf("%s", joined.YAML())
		}
		a, b := joined.Calls[0].Layers[0], joined.Calls[0].Layers[1]
		if a.Choice == "" || a.Choice != b.Choice || a.Tries(topology.S503, topology.Safe).N != 5 {
			t.Errorf("%q: the choices %q and %q, and %d tries first", tries, a.Choice, b.Choice,
				a.Tries(topology.S503, topology.Safe).N)
		}
	}
}
