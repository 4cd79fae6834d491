package page

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"encoding/json"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// ours is the header without which nothing is changed. No form, image or link can send it.
const ours = "X-Abate-Dlq"

// admit finds out whether a request may be meant for this page: by the host it names, and if it changes something by
// where it comes from.
func (p *Page) admit(r *http.Request) error {
	if !p.hosts(r.Host) {
		return refuse(http.StatusMisdirectedRequest, "this page is not %q: ask for it by its own address, or allow the "+
			"name with --host", cut(r.Host, 200))
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		// Other sites can read no answer, but each makes work.
		if site := r.Header.Get("Sec-Fetch-Site"); strings.HasPrefix(r.URL.Path, "/api/") && site != "" &&
			site != "same-origin" && site != "none" {
			return refuse(http.StatusForbidden, "the request comes from another web site: ask for the page itself")
		}
		return nil
	}
	if r.Header.Get(ours) == "" {
		return refuse(http.StatusForbidden, "the header %s is missing: set it to anything, so that no other web site can "+
			"send this request", ours)
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "the body must be application/json, and say so in Content-Type")
	}
	if err := p.cross.Check(r); err != nil {
		return refuse(http.StatusForbidden, "the request comes from another web site: only this page may change anything")
	}
	return nil
}

// hosts reports whether the page may be asked for under this name.
func (p *Page) hosts(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsLoopback() || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(p.config.Hosts, func(allowed string) bool {
		return allowed == "*" || strings.EqualFold(allowed, host)
	})
}

// known finds out who asks, and has the audit say so.
func (p *Page) known(r *http.Request) (*http.Request, error) {
	if p.config.Authenticate == nil {
		return r, nil
	}
	name, ok := p.config.Authenticate(r)
	if !ok {
		return r,
			refuse(http.StatusUnauthorized, "this page is for those with a token of --token-file, in Authorization: Bearer")
	}
	return r.WithContext(dlq.As(r.Context(), name)), nil
}

//go:embed page.html
var shell string

//go:embed style.css
var styleText string

//go:embed dom.js
var domText string

//go:embed views.js
var viewsText string

//go:embed replay.js
var replayText string

//go:embed start.js
var startText string

var (
	script = domText + viewsText + replayText + startText
	html   = strings.NewReplacer("{{style}}", styleText, "{{script}}", script).Replace(shell)
	policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'; script-src " + digest(script) +
		"; style-src " +
		digest(styleText)
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// secure sets what every answer says: nothing of it is kept, framed, guessed at or given to other sites.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// serveHTML answers with the page, which holds no data: it asks for it.
func serveHTML(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(html)) // the reader has left
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the reader has left
}

// cut shortens a text for a person.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
