package abatehttp

import (
	"net/http"
	"strings"
)

// internal reports whether a header is meant for services of one's own, or for the proxies between them.
func internal(name string) bool {
	return strings.HasPrefix(name, "Abate-") || strings.HasPrefix(name, "X-Envoy-")
}

func internalIn(h http.Header) bool {
	for name := range h {
		if internal(name) {
			return true
		}
	}
	return false
}

// withoutInternal is h without such headers: h itself if it has none.
func withoutInternal(h http.Header) http.Header {
	if !internalIn(h) {
		return h
	}
	kept := make(http.Header, len(h))
	for name, values := range h {
		if !internal(name) {
			kept[name] = values[:len(values):len(values)]
		}
	}
	return kept
}

// redirected reports whether http.Client sends the request because another host said so: what is meant for that one is
// not for this.
func redirected(req *http.Request) bool {
	from := req.Response
	return from != nil && from.Request != nil && endpoint(from.Request) != endpoint(req)
}
