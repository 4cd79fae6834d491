package spring_test

import (
	"slices"
	"testing"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/importer/spring"
	"github.com/abate-go/abate/topology"
)

// ofAFolder is one application of a folder whose application.yml all read.
const ofAFolder = `spring.application.name: gateway
server.port: 8443
spring.cloud.gateway.routes:
- {id: a, uri: 'http://${app.auth}'}
- {id: b, uri: '${ORDERS_URL:http://localhost:8082}'}
- {id: c, uri: 'http://localhost:${server.port}'}
- {id: d, uri: 'http://${loop}'}
`

const shared = `app.auth: localhost
loop: x${loop}
---
spring.config.activate.on-profile: docker
app.auth: auth-server
`

// routed reads the files of one folder and returns where the routes of the gateway lead, and what could not be read.
func routed(t *testing.T, env map[string]string) (to, remarks []string) {
	t.Helper()
	var docs []source.Document
	for name, text := range map[string]string{"config/gateway.yml": ofAFolder, "config/application.yml": shared} {
		parsed, bad := source.YAML(name, []byte(text))
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		docs = append(docs, parsed...)
	}
	f := spring.Read(docs, source.Assume{Environments: map[string]map[string]string{"gateway": env}})
	for _, c := range f.Calls {
		to = append(to, c.To)
	}
	for _, r := range f.Remarks {
		if r.Rule == "F702" && r.At.File == "config/gateway.yml" {
			remarks = append(remarks, r.Subject)
		}
	}
	return to, remarks
}

func TestPlaceholdersOfAddressesAreFilled(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want []string
	}{
		{nil, []string{"localhost", "localhost-8082"}},
		{map[string]string{"SPRING_PROFILES_ACTIVE": "docker", "ORDERS_URL": "http://orders:80"},
			[]string{"auth-server", "orders"}},
		{map[string]string{"APP_AUTH": "sso", "SERVER_PORT": "9"}, []string{"sso", "localhost-8082"}},
	} {
		to, remarks := routed(t, c.env)
		if !slices.Equal(to, c.want) || !slices.Equal(remarks, []string{"gateway route d uri"}) {
			t.Errorf("%v: to %q, remarks %q, want %q", c.env, to, remarks, c.want)
		}
	}
}

func TestProfilesThatWorkloadsSetAreActive(t *testing.T) {
	read := func(profiles string) int {
		docs, _ := source.YAML("a/application.yml", []byte("spring.application.name: a\n"+
			"resilience4j.retry.instances.x.maxAttempts: 2\n---\nspring.config.activate.on-profile: cloud\n"+
			"resilience4j.retry.instances.x.maxAttempts: 4\n---\nspring.config.activate.on-profile: dev\n"+
			"resilience4j.retry.instances.x.maxAttempts: 9\n---\nspring.config.activate.on-profile: prod\nb: 1\n"))
		f := spring.Read(docs, source.Assume{Environments: map[string]map[string]string{"a": {
			"SPRING_PROFILES_ACTIVE": profiles}}})
		return f.Policies[0].Layer.Tries(topology.S503, topology.Safe).N
	}
	for profiles, want := range map[string]int{"": 2, "cloud": 4, "dev": 2, "dev,cloud": 4} {
		if got := read(profiles); got != want {
			t.Errorf("%q: %d tries, want %d", profiles, got, want)
		}
	}
}

// Who blocks a reactive chain goes on without its caller; who does not, stops with it. No configuration says which.
func TestOfAReactiveClientItIsNotKnownWhetherItStops(t *testing.T) {
	const instance = "resilience4j.retry.instances.a.retryExceptions: "
	for text, known := range map[string]bool{
		instance + "[org.springframework.web.reactive.function.client.WebClientRequestException]\n": false,
		instance + "[java.io.IOException]\n": true,
	} {
		l := policy(t, read(t, nil, "a/application.yml", text), "a")
		if got := !l.Cancels.IsUnknown(); got != known {
			t.Errorf("%s%s", text, l.Cancels)
		}
	}
}
