package abatehttp

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/startup"
)

// readyLimit is how long the checks of a readiness may take together: a kubelet gives up after a second, unless told
// otherwise.
const readyLimit = 900 * time.Millisecond

// ReadyHandler answers a readiness probe: 200 when everything is there, else 503, with a line of text for each
// dependency and check, or the same as JSON if the request accepts application/json. It takes GET and HEAD. The checks
// may take 900 ms together. The reasons are the errors of drivers, with names of hosts and users: serve it where probes
// ask, not to everybody.
//
//	mux.Handle("/readyz", abatehttp.ReadyHandler(ready))
func ReadyHandler(r *startup.Readiness) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "ask with GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		// The result of a check is kept for those who ask next: it must not say that this one has left.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), readyLimit)
		defer cancel()
		report := r.Report(ctx, core.Now())
		body, media := readyText(&report), "text/plain; charset=utf-8"
		if acceptsJSON(req) {
			body, media = readyJSON(&report), "application/json"
		}
		w.Header().Set("Content-Type", media)
		w.Header()["Cache-Control"] = noStore
		if report.Ready {
			w.WriteHeader(http.StatusOK)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write(body) // the reader has left
	})
}

// acceptsJSON reports whether the request names JSON: browsers and probes take anything, and get text.
func acceptsJSON(r *http.Request) bool {
	for _, field := range r.Header.Values("Accept") {
		for item := range strings.SplitSeq(field, ",") {
			media, params, err := mime.ParseMediaType(item)
			if q, given := params["q"]; err == nil && media == "application/json" && (!given || strings.Trim(q, "0.") != "") {
				return true
			}
		}
	}
	return false
}

func readyText(r *startup.ReadinessReport) []byte {
	text := "ready\n"
	if !r.Ready {
		text = "not ready\n"
	}
	if r.Draining != "" {
		text = "not ready: " + oneLine(r.Draining) + "\n"
	}
	for i := range r.Parts {
		text += "  " + readyLine(&r.Parts[i]) + "\n"
	}
	return []byte(text)
}

// readyLine reads, for instance, "postgres: not ready after 3 attempts in 1.2s, next in 800ms: connection refused".
func readyLine(s *startup.ReadinessState) string {
	line := s.Name + ": ready"
	if !s.Ready {
		line = s.Name + ": not ready"
	}
	switch {
	case s.Attempts == 1:
		line += fmt.Sprintf(" after 1 attempt in %v", s.Elapsed.Round(time.Millisecond))
	case s.Attempts > 1:
		line += fmt.Sprintf(" after %d attempts in %v", s.Attempts, s.Elapsed.Round(time.Millisecond))
	}
	if s.NextTry > 0 {
		line += fmt.Sprintf(", next in %v", s.NextTry.Round(time.Millisecond))
	}
	if s.Err != nil {
		line += ": " + s.Err.Error()
	}
	return oneLine(line)
}

func oneLine(text string) string { return strings.Join(strings.FieldsFunc(text, isLineBreak), "; ") }

func isLineBreak(r rune) bool { return r == '\n' || r == '\r' }

// readyState is a ReadinessState as JSON. Times are seconds.
type readyState struct {
	Name           string  `json:"name"`
	Ready          bool    `json:"ready"`
	Attempts       int     `json:"attempts,omitempty"`
	ElapsedSeconds float64 `json:"elapsedSeconds,omitempty"`
	NextTrySeconds float64 `json:"nextTrySeconds,omitempty"`
	Error          string  `json:"error,omitempty"`
}

func readyJSON(r *startup.ReadinessReport) []byte {
	parts := make([]readyState, 0, len(r.Parts))
	for _, s := range r.Parts {
		part := readyState{s.Name, s.Ready, s.Attempts, s.Elapsed.Seconds(), s.NextTry.Seconds(), ""}
		if s.Err != nil {
			part.Error = s.Err.Error()
		}
		parts = append(parts, part)
	}
	body, _ := json.Marshal(struct { // strings, numbers and truths: it cannot fail
		Ready    bool         `json:"ready"`
		Draining string       `json:"draining,omitempty"`
		Parts    []readyState `json:"parts"`
	}{r.Ready, r.Draining, parts})
	return append(body, '\n')
}
