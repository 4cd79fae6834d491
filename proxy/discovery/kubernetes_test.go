package discovery_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/abate-go/abate/proxy/discovery"
)

// apiServer is as much of an API server of Kubernetes as a watch of EndpointSlices needs: it lists, watches from a
// version on, forgets old versions, and asks for a token.
type apiServer struct {
	*httptest.Server
	folder string

	mu      sync.Mutex
	token   string
	version int
	oldest  int // a watch from before is answered 410
	slices  map[string]map[string]any
	log     []change
	news    chan struct{} // closed at each change
	drop    chan struct{} // closed to end all watches
	status  int           // instead of an answer; 0 for none
	inBand  bool          // 410 comes as an event
	lists   int
	watches int
}

type change struct {
	version int
	line    []byte
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	s := &apiServer{folder: t.TempDir(), token: "first", version: 10, slices: map[string]map[string]any{},
		news: make(chan struct{}), drop: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(s.dropWatches)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	write(t, filepath.Join(s.folder, "ca.crt"), string(ca))
	write(t, filepath.Join(s.folder, "token"), "first\n")
	write(t, filepath.Join(s.folder, "namespace"), "shop")
	return s
}

func (s *apiServer) watch(t testing.TB) *discovery.Watcher {
	return watch(t, discovery.Config{Service: "orders", Type: "kubernetes", Name: "orders", Zone: "eu-1",
		Cluster: &discovery.Cluster{Folder: s.folder, Server: strings.TrimPrefix(s.URL, "https://")}})
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	from, _ := strconv.Atoi(r.FormValue("resourceVersion"))
	status := s.status
	switch {
	case status != 0:
	case r.Header.Get("Authorization") != "Bearer "+s.token:
		status = http.StatusUnauthorized
	case r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices" ||
		r.FormValue("labelSelector") != "kubernetes.io/service-name=orders":
		status = http.StatusNotFound
	case r.FormValue("watch") != "" && from < s.oldest && !s.inBand:
		status = http.StatusGone
	}
	if status != 0 {
		s.mu.Unlock()
		http.Error(w, "no", status)
		return
	}
	if r.FormValue("watch") != "" {
		s.watches++
		s.serveWatch(w, r, from) // which frees the lock
		return
	}
	s.lists++
	list := map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)},
		"items": slices.Collect(maps.Values(s.slices))}
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(list)
}

func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, from int) {
	drop := s.drop
	if from < s.oldest {
		s.mu.Unlock()
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version"}}`)
		return
	}
	for {
		var out []byte
		for _, c := range s.log {
			if c.version > from {
				out, from = append(out, c.line...), c.version
			}
		}
		news := s.news
		s.mu.Unlock()
		_, _ = w.Write(out)
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-drop:
			return
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
	}
}

// change makes a change of one slice; nil deletes it. A silent one is nowhere in what watches see: it was compacted.
func (s *apiServer) change(name string, slice map[string]any, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind, object := "MODIFIED", slice
	if slice == nil {
		kind, object = "DELETED", s.slices[name]
		delete(s.slices, name)
	} else {
		s.slices[name] = slice
	}
	object["metadata"] = map[string]any{"name": name, "resourceVersion": strconv.Itoa(s.version)}
	if silent {
		s.oldest = s.version
		return
	}
	line, _ := json.Marshal(map[string]any{"type": kind, "object": object})
	s.log = append(s.log, change{s.version, append(line, '\n')})
	close(s.news)
	s.news = make(chan struct{})
}

func (s *apiServer) dropWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.drop)
	s.drop = make(chan struct{})
}

func (s *apiServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// sliceOf is a slice with those endpoints, ready at port 8080.
func sliceOf(addresses ...string) map[string]any {
	var all []any
	for _, a := range addresses {
		all = append(all, map[string]any{"addresses": []string{a}, "zone": "eu-1",
			"conditions": map[string]any{"ready": true, "serving": true, "terminating": false}})
	}
	return map[string]any{"addressType": "IPv4", "endpoints": all,
		"ports": []any{map[string]any{"name": "http", "port": 8080, "protocol": "TCP"}}}
}

func TestEndpointSlicesAreListedAndWatched(t *testing.T) {
	s := newAPIServer(t)
	s.change("orders-a", sliceOf("10.0.0.1"), false)
	w := s.watch(t)
	becomes(t, w, "10.0.0.1:8080")
	if got := w.List()[0]; got.Zone != "eu-1" {
		t.Errorf("%+v", got)
	}
	s.change("orders-b", sliceOf("10.0.0.2", "10.0.0.3"), false)
	becomes(t, w, "10.0.0.1:8080 10.0.0.2:8080 10.0.0.3:8080")
	s.change("orders-a", sliceOf("10.0.0.4"), false)
	becomes(t, w, "10.0.0.2:8080 10.0.0.3:8080 10.0.0.4:8080")
	s.change("orders-b", nil, false)
	becomes(t, w, "10.0.0.4:8080")
	s.change("orders-a", sliceOf(), false)
	becomes(t, w, "") // the cluster says so
	if got := w.Why(); got != "Kubernetes service (own namespace)/orders has no endpoints that are ready" {
		t.Error(got)
	}
	s.set(func() {
		if s.lists != 1 {
			t.Errorf("listed %d times", s.lists)
		}
	})
}

// TestAWatchThatEndsGoesOn from where it was: nothing that happened meanwhile is missed, and nothing is listed again.
func TestAWatchThatEndsGoesOn(t *testing.T) {
	s := newAPIServer(t)
	s.change("orders-a", sliceOf("10.0.0.1"), false)
	w := s.watch(t)
	for i := 2; i < 6; i++ {
		eventually(t, "it watches", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.watches >= i-1 })
		s.dropWatches()
		want := fmt.Sprintf("10.0.0.%d", i)
		s.change("orders-a", sliceOf(want), false)
		becomes(t, w, want+":8080")
	}
	s.set(func() {
		if s.lists != 1 {
			t.Errorf("listed %d times", s.lists)
		}
	})
}

// TestAVersionThatIsTooOldIsListedAgain: 410 as an answer, and as an event of a watch.
func TestAVersionThatIsTooOldIsListedAgain(t *testing.T) {
	for _, inBand := range []bool{false, true} {
		s := newAPIServer(t)
		s.set(func() { s.inBand = inBand })
		s.change("orders-a", sliceOf("10.0.0.1"), false)
		w := s.watch(t)
		becomes(t, w, "10.0.0.1:8080")
		s.change("orders-a", sliceOf("10.0.0.2"), true)
		s.dropWatches()
		becomes(t, w, "10.0.0.2:8080")
		s.change("orders-a", sliceOf("10.0.0.3"), false)
		becomes(t, w, "10.0.0.3:8080")
	}
}

// TestATokenIsReadAgain: a kubelet replaces it, and the API server takes the old one no longer. Until the new one is
// there, what was known is kept.
func TestATokenIsReadAgain(t *testing.T) {
	s := newAPIServer(t)
	s.change("orders-a", sliceOf("10.0.0.1"), false)
	w := s.watch(t)
	becomes(t, w, "10.0.0.1:8080")
	s.set(func() { s.token = "second" })
	s.dropWatches()
	problem := fails(t, w)
	if !strings.Contains(problem, "does not accept the token in "+filepath.Join(s.folder, "token")+" (401)") ||
		!strings.HasSuffix(problem, "the 1 endpoints of the last answer are kept") || addrs(w.List()) != "10.0.0.1:8080" {
		t.Errorf("%q, %v", problem, w.List())
	}
	write(t, filepath.Join(s.folder, "token"), "second")
	s.change("orders-a", sliceOf("10.0.0.2"), false)
	becomes(t, w, "10.0.0.2:8080")
	if s := w.Status(); s.Problem() != "" {
		t.Error(s.Problem())
	}
}

// TestWhatIsWellAgainSaysSo although nothing has changed meanwhile.
func TestWhatIsWellAgainSaysSo(t *testing.T) {
	s := newAPIServer(t)
	s.change("orders-a", sliceOf("10.0.0.1"), false)
	w := s.watch(t)
	becomes(t, w, "10.0.0.1:8080")
	s.set(func() { s.status = http.StatusForbidden })
	s.dropWatches()
	if problem := fails(t, w); !strings.Contains(problem, "(403): give this pod's service account a Role in "+
		"namespace shop with verbs list and watch on endpointslices of discovery.k8s.io") {
		t.Error(problem)
	}
	s.set(func() { s.status = 0 })
	eventually(t, "it is well again", func() bool { s := w.Status(); return s.Problem() == "" })
}

func TestAnAuthorityThatChangesIsReadAgain(t *testing.T) {
	one, two := newAPIServer(t), newAPIServer(t)
	two.change("orders-a", sliceOf("10.0.0.2"), false)
	ca, err := os.ReadFile(filepath.Join(two.folder, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(two.folder, "ca.crt"), "no certificate")
	w := two.watch(t)
	if problem := fails(t, w); !strings.Contains(problem, "ca.crt has no certificate in PEM") {
		t.Error(problem)
	}
	write(t, filepath.Join(two.folder, "ca.crt"), string(ca))
	becomes(t, w, "10.0.0.2:8080")
	_ = one
}

func TestOutsideOfAClusterItSaysSo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	w := watch(t, discovery.Config{Type: "kubernetes", Name: "orders", Namespace: "shop",
		Cluster: &discovery.Cluster{Folder: t.TempDir()}})
	const want = "Kubernetes service shop/orders has never been found: this program runs in no pod: " +
		"KUBERNETES_SERVICE_HOST is not set; use discovery type dns or file outside of a cluster"
	<-w.First()
	if got := w.Why(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhichEndpointsOfSlicesCount(t *testing.T) {
	for _, row := range []struct{ name, slices, port, want string }{
		{"ready, or not said", `[{"endpoints":[{"addresses":["a"],"conditions":{"ready":true}},{"addresses":["b"]},
			{"addresses":["c"],"conditions":{"ready":false}}],"ports":[{"port":80}]}]`, "", "a:80 b:80"},
		{"ending ones when none is ready", `[{"endpoints":[
			{"addresses":["a"],"conditions":{"ready":false,"serving":true,"terminating":true}},
			{"addresses":["b"],"conditions":{"ready":false,"serving":false,"terminating":true}},
			{"addresses":["c"],"conditions":{"ready":false,"serving":false}}],"ports":[{"port":80}]}]`, "", "a:80"},
		{"in two slices", `[{"metadata":{"name":"x"},"endpoints":[{"addresses":["a"]}],"ports":[{"port":80}]},
			{"metadata":{"name":"y"},"endpoints":[{"addresses":["a"]}],"ports":[{"port":80}]}]`, "", "a:80"},
		{"of that port by name", `[{"endpoints":[{"addresses":["a"]}],
			"ports":[{"name":"grpc","port":90},{"name":"http","port":80}]}]`,
			"http", "a:80"},
		{"of that port by number", `[{"endpoints":[{"addresses":["a"]}],
			"ports":[{"name":"grpc","port":90},{"name":"http","port":80}]}]`,
			"90", "a:90"},
		{"the only TCP port", `[{"endpoints":[{"addresses":["a"]}],"ports":[{"name":"dns","port":53,"protocol":"UDP"},
			{"name":"http","port":80,"protocol":"TCP"}]}]`, "", "a:80"},
		{"several ports", `[{"endpoints":[{"addresses":["a"]}],
			"ports":[{"name":"grpc","port":90},{"name":"http","port":80}]}]`,
			"", "error: it has several ports: write one of them as discovery.port: grpc 90, http 80"},
		{"no such port", `[{"endpoints":[{"addresses":["a"]}],"ports":[{"name":"grpc","port":90}]}]`,
			"http", `error: it has no port "http", only: grpc 90`},
		{"hints for the zone", `[{"endpoints":[{"addresses":["a"],"hints":{"forZones":[{"name":"eu-1"}]}},
			{"addresses":["b"],"hints":{"forZones":[{"name":"eu-2"}]}}],"ports":[{"port":80}]}]`, "", "a:80"},
		{"hints for other zones", `[{"endpoints":[{"addresses":["a"],"hints":{"forZones":[{"name":"eu-3"}]}},
			{"addresses":["b"],"hints":{"forZones":[{"name":"eu-2"}]}}],"ports":[{"port":80}]}]`, "", "a:80 b:80"},
		{"a hint is missing", `[{"endpoints":[{"addresses":["a"],"hints":{"forZones":[{"name":"eu-1"}]}},
			{"addresses":["b"]}],"ports":[{"port":80}]}]`, "", "a:80 b:80"},
		{"names are no addresses", `[{"addressType":"FQDN",
			"endpoints":[{"addresses":["a"]}],"ports":[{"port":80}]}]`, "", ""},
		{"IPv6", `[{"addressType":"IPv6",
			"endpoints":[{"addresses":["fd00::1"]}],"ports":[{"port":80}]}]`, "", "[fd00::1]:80"},
		{"nothing", `[null, {"endpoints":[{}]}]`, "", "error: it has no TCP port"},
	} {
		list, err := discovery.OfSlices([]byte(row.slices), row.port, "eu-1")
		got := addrs(list)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func FuzzSlices(f *testing.F) {
	f.Add([]byte(`[{"endpoints":[{"addresses":["a"],"hints":{"forZones":[{"name":"eu-1"}]}}],`+
		`"ports":[{"port":80}]}]`), "", "eu-1")
	f.Add([]byte(`[{"endpoints":[{}],"ports":[{},{"port":-1}]}]`), "x", "")
	f.Fuzz(func(t *testing.T, data []byte, port, zone string) {
		list, err := discovery.OfSlices(data, port, zone)
		for i := range list {
			if err != nil || i > 0 && list[i-1].Addr >= list[i].Addr {
				t.Errorf("%v, %v", list, err)
			}
		}
	})
}
