package proxy

import (
	"fmt"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// profilePath is where net/http/pprof has its profiles, and go tool pprof looks. That package would show them to
// whoever serves http.DefaultServeMux too, so it is not used.
const profilePath = "/debug/pprof/"

const (
	profileTime    = 30 * time.Second
	maxProfileTime = 5 * time.Minute
)

// serveProfiles shows where the proxy spends its time and memory, to those who have shown a token or a certificate.
func (p *admin) serveProfiles(mux *http.ServeMux) {
	c := &p.plane.config
	guarded := func(next http.HandlerFunc) http.Handler {
		if c.AdminTokens == "" && c.AdminTLS.ClientCA == "" {
			return p.known(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "profiles are for those with a token: start the proxy with --admin-token-file FILE, or with "+
					"--admin-client-ca FILE", http.StatusForbidden)
			}))
		}
		return p.known(next)
	}
	mux.Handle("GET "+profilePath+"{$}", guarded(listProfiles))
	mux.Handle("GET "+profilePath+"{name}", guarded(profile))
}

func listProfiles(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "profile  the processor's time; ?seconds=30\ntrace    what the scheduler does; ?seconds=1")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(w, "%-12s %d; ?debug=1 as text\n", p.Name(), p.Count())
	}
}

// profile takes a profile and sends it in the form that go tool pprof reads.
func profile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	switch name {
	case "profile":
		take(w, r, profileTime, func() error { return pprof.StartCPUProfile(w) }, pprof.StopCPUProfile)
		return
	case "trace":
		take(w, r, time.Second, func() error { return trace.Start(w) }, trace.Stop)
		return
	}
	found := pprof.Lookup(name)
	if found == nil {
		http.Error(w, "there is no such profile: "+profilePath+" lists them", http.StatusNotFound)
		return
	}
	debug, _ := strconv.Atoi(r.URL.Query().Get("debug"))
	w.Header().Set("Content-Type", "application/octet-stream")
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = found.WriteTo(w, debug) // the reader has left
}

// take takes a profile for as long as is asked for.
func take(w http.ResponseWriter, r *http.Request, usual time.Duration, start func() error, stop func()) {
	d := usual
	if text := r.URL.Query().Get("seconds"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds > 0 && seconds <= maxProfileTime.Seconds()) {
			http.Error(w, fmt.Sprintf("seconds=%q is out of range: write more than 0 and at most %.0f", text,
				maxProfileTime.Seconds()), http.StatusBadRequest)
			return
		}
		d = time.Duration(seconds * float64(time.Second))
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := start(); err != nil {
		http.Error(w, "somebody else takes such a profile now: "+err.Error(), http.StatusConflict)
		return
	}
	defer stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
