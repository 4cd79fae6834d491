package behaviour_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/tests/behaviour/backend"
)

// Each connection that nginx had kept and that breaks is one try more, whatever number of tries is set. The audit
// counts one, and says of the others beside the number.
func TestEachKeptConnectionThatBreaksIsATryMore(t *testing.T) {
	program := needs.Program(t, "nginx")
	var arrived, opening atomic.Int64 // opening is how many requests are answered only when all of them are there
	var all atomic.Pointer[sync.WaitGroup]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		if opening.Add(-1) >= 0 {
			all.Load().Done()
			all.Load().Wait()
		} else if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.Close()
		}
	}))
	defer server.Close()
	var parts strings.Builder
	location(&parts, "kept", []string{strings.TrimPrefix(server.URL, "http://")}, "keep",
		`proxy_http_version 1.1; proxy_set_header Connection ""; proxy_next_upstream_tries 1;`)
	form, p := startNginx(t, program, backend.Start(t, 1), parts.String())
	said := layerAt(t, form, "/kept/*")
	if n := said.Repeats[len(said.Repeats)-1].Tries.V; n != 2 || lint.Kept(said, 2) == "" {
		t.Errorf("the importer says %d tries, and beside it %q", n, lint.Kept(said, 2))
	}
	for _, kept := range []int{1, 2, 4} {
		var there sync.WaitGroup
		there.Add(kept)
		all.Store(&there)
		opening.Store(int64(kept))
		var wait sync.WaitGroup
		for i := range kept {
			wait.Go(func() {
				a, err := p.Send(t.Context(), http.MethodGet, fmt.Sprintf("/kept/%d", i))
				if err != nil || a.Status != 200 {
					t.Errorf("%+v, %v", a, err)
				}
			})
		}
		wait.Wait()
		arrived.Store(0)
		a, err := p.Send(t.Context(), http.MethodGet, "/kept/broken")
		if n := arrived.Load(); err != nil || a.Tries != 1+kept || n != int64(1+kept) || a.Status != 502 {
			t.Errorf("%d kept connections: %d tries arrived, nginx says %+v, %v", kept, n, a, err)
		}
	}
}
