package proxy_test

import (
	"io"
	"net/http"
	"testing"
)

// A client has all that Content-Length says, while the service over HTTP/2 ends its stream later, or not in time: it
// works on behind its answer. That is no failure, and the guard knows of the success before the client does.
func TestAnAnswerThatItsClientHasWholeIsNoFailure(t *testing.T) {
	for name, out := range map[string]wire{"http1": http1, "h2c": h2c} {
		t.Run(name, func(t *testing.T) {
			url := out.serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "4")
				io.WriteString(w, "good")
				flush(w)
				hold(t, r.Context().Done()) // over HTTP/2 until its stream is given up, over HTTP/1.1 until the end
			})
			r := start(t, single([]string{url}, noRetries, noEjection, brittleAtOnce, "attemptTimeout: 1s"))
			resp, err := http1.client(t).Get("http://" + r.addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(b) != "good" || err != nil {
				t.Errorf("the client got %q, %v", b, err)
			}
			if out == h2c {
				eventually(t, "the request has ended", func() bool { return r.guard().Endpoints[0].Pending == 0 })
			}
			if g := r.guard(); g.Breaker.Openings != 0 || g.Breaker.State != "closed" {
				t.Errorf("an answer that its client has whole is a failure: %+v", g.Breaker)
			}
		})
	}
}
