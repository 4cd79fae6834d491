package spring_test

import (
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/spring"
	"github.com/abate-go/abate/topology"
)

func TestAnInstanceIsForTheServiceThatItsNameMeans(t *testing.T) {
	for _, c := range []struct{ instance, service, want string }{
		{"inventory", "inventory-service", "inventory-service"},
		{"inventory", "inventory", "inventory"},
		{"inventoryService", "inventory-service", "inventory-service"},
		{"inventory-service", "inventory", "inventory"},
		{"inventoryServiceCircuitBreaker", "inventory-service", "inventory-service"},
		{"inventory_cb", "inventoryservice", "inventoryservice"},
		{"backendA", "inventory-service", "backenda"},
		{"orderService", "order-service", "orderservice"}, // not the program itself
		{"retry", "inventory-service", "retry"},
	} {
		docs, _ := source.YAML("order-service/application.yaml", []byte("spring: {application: {name: order-service}}\n"+
			"resilience4j: {retry: {instances: {"+c.instance+": {maxAttempts: 3, waitDuration: 1s}}}}\n"))
		f := spring.Read(docs, source.Assume{})
		f.Services = append([]topology.Service{{Name: c.service}}, f.Services...)
		joined, _ := f.Join()
		if len(joined.Calls) != 1 || joined.Calls[0].To != c.want || joined.Calls[0].From != "order-service" {
			t.Errorf("%s beside %s: calls %+v, want one to %s", c.instance, c.service, joined.Calls, c.want)
		}
	}
}
