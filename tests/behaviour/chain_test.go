package behaviour_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/tests/behaviour/backend"
	"github.com/abate-go/abate/topology"
)

// Two proxies one behind the other: their tries multiply where what the inner one answers is in the list of the outer
// one, and only there. HAProxy answers a hang with 504, a broken connection with 502, and passes a 503 on.
func TestTriesOfAChainMultiplyAsTheAnswersSay(t *testing.T) {
	outerProgram, innerProgram := needs.Program(t, "nginx"), needs.Program(t, "haproxy")
	b := backend.Start(t, 1)
	outers := []string{"proxy_next_upstream http_502 http_503;", "proxy_next_upstream error timeout http_504;",
		"proxy_next_upstream http_500 http_502 http_503 http_504; proxy_next_upstream_tries 2;"}
	inners := []string{"retries 1", "retries 2"}
	ends := []failure{{"503", topology.S503}, {"500", topology.S500}, {"close", topology.ResetSent}, {"hang",
		topology.Hang},
		{"429", topology.S429}}
	doors := []string{freeAddress(t), freeAddress(t), freeAddress(t)} // nginx tries each address once
	var innerConf, outerConf strings.Builder
	each := func(what func(outer, inner string, f failure, key string)) {
		for i, outer := range outers {
			for j, inner := range inners {
				for _, f := range ends {
					what(outer, inner, f, fmt.Sprintf("c%d-%d-%s", i, j, f.command))
				}
			}
		}
	}
	each(func(outer, inner string, f failure, key string) {
		server := "timeout server 30s"
		if f.outcome == topology.Hang {
			server = "timeout server 400ms"
		}
		pool(&innerConf, key, b.Addresses, server, "retry-on all-retryable-errors", inner)
		location(&outerConf, key, doors, " max_fails=0", outer)
	})
	innerForm, _ := startHAProxy(t, innerProgram, b, "", innerConf.String(), doors...)
	outerForm, p := startNginx(t, outerProgram, b, outerConf.String())
	var all sync.WaitGroup
	each(func(outer, inner string, f failure, key string) {
		out, in := layerAt(t, outerForm, "/"+key+"/*"), layerTo(t, innerForm, key)
		path, want := "/"+key+"/"+f.command, in.Tries(f.outcome, topology.Safe).N*out.Tries(in.Gives(f.outcome),
			topology.Safe).N
		all.Go(func() {
			if _, err := p.Send(t.Context(), "GET", path); err != nil {
				t.Error(err)
				return
			}
			b.Await(path, 30*time.Second, func(all, _ int) bool { return all >= want })
			if got := len(b.Attempts(path)); got != want {
				t.Errorf("%s over %s, %s: %d tries arrived, the importers say %d", outer, inner, f.command, got, want)
			}
		})
	})
	all.Wait()
}
