package abateadmin

import (
	_ "embed" // the page's parts
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ours is the header without which nothing is changed. No form, image or link can send it.
const ours = "X-Abate-Admin"

//go:embed web/page.html
var html []byte

//go:embed web/page.css
var style []byte

//go:embed web/dom.js
var domScript string

//go:embed web/chart.js
var chartScript string

//go:embed web/list.js
var listScript string

//go:embed web/detail.js
var detailScript string

//go:embed web/start.js
var startScript string

var script = []byte("'use strict';\n" + domScript + chartScript + listScript + detailScript + startScript)

// contentPolicy lets the page load its own two files and talk to where it came from, and nothing else. Nobody may frame
// it.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types " +
	"'none'"

func (p *Page) routes() {
	p.mux = http.NewServeMux()
	for path, part := range map[string]struct {
		kind string
		body []byte
	}{
		"/{$}": {"text/html; charset=utf-8", html}, "/page.css": {"text/css; charset=utf-8", style}, "/page.js": {
			"text/javascript; charset=utf-8", script,
		},
	} {
		p.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", part.kind)
			_, _ = w.Write(part.body) // the reader has left
		})
	}
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /state": p.state, "GET /events": p.events, "GET /guard": p.guard, "GET /gate": p.gate,
	} {
		p.mux.Handle(pattern, p.answering(p.seeing(handle)))
	}
	p.mux.Handle("POST /override", p.answering(p.changing(p.override)))
	p.mux.Handle("POST /reload", p.answering(p.changing(p.reload)))
}

// ServeHTTP serves the page at / and what it needs below it; see the package comment.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := p.Admit(r); err != nil {
		p.fail(w, err)
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Admit finds out whether a request may be meant for this page, which asks it by itself; whatever else the same server
// shows should ask it too. A web site that somebody has open can have its own name point to loopback and then read what
// is there: so a page on loopback answers to names of loopback only, and an error, for an answer of 421, says so.
// Elsewhere it cannot be known under which names a page is asked for.
func (p *Page) Admit(r *http.Request) error {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil || !isLoopback(at.String()) || p.hosts(r.Host) {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest, "this page is not %q: ask for it by its address, or as localhost",
		cut(r.Host, maxText))
}

func isLoopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// hosts reports whether a page on loopback may be asked for under this name. An address cannot be made to point
// elsewhere.
func (p *Page) hosts(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(host, "."), "["), "]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	return slices.ContainsFunc(p.config.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

func (p *Page) sees(r *http.Request) bool { return p.config.Sees == nil || p.config.Sees(r) }

// seeing lets those pass who may see data. Other web sites can read no answer, but each makes work.
func (p *Page) seeing(next func(http.ResponseWriter, *http.Request) error) func(
	http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			return refuse(http.StatusForbidden, "the request comes from another web site: ask for the page itself")
		}
		if !p.sees(r) {
			return refuse(http.StatusUnauthorized, "this page is for those who are known: %s", p.config.How)
		}
		return next(w, r)
	}
}

// changing lets those pass who may change something, if they do so from the page or from no browser at all.
func (p *Page) changing(next func(http.ResponseWriter, *http.Request) error) func(
	http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := p.cross.Check(r); err != nil {
			return refuse(http.StatusForbidden, "the request comes from another web site: only this page may change anything")
		}
		if r.Header.Get(ours) == "" {
			return refuse(http.StatusForbidden, "the header %s is missing: set it to anything, so that no other web site can "+
				"send this request", ours)
		}
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
			return refuse(http.StatusUnsupportedMediaType, "the body must be application/json, and say so in Content-Type")
		}
		switch {
		case p.config.Known == nil:
			return refuse(http.StatusForbidden, "%s", p.config.How)
		case !p.config.Known(r):
			return refuse(http.StatusUnauthorized, "nothing was changed: %s", p.config.How)
		}
		return next(w, r)
	}
}

// answering makes a handler of a function that may refuse.
func (p *Page) answering(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			p.fail(w, err)
		}
	})
}

// problem is an answer that says no.
type problem struct {
	status int
	text   string
}

// Error says why.
func (p *problem) Error() string { return p.text }

func refuse(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// fail says what went wrong.
func (p *Page) fail(w http.ResponseWriter, err error) {
	no := &problem{http.StatusInternalServerError, err.Error()}
	_ = errors.As(err, &no) // all of ours are problems
	if no.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, no.status, map[string]string{"error": no.text})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the reader has left
}
