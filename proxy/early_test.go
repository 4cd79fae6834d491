package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/abate-go/abate/internal/needs"
)

// TestAnEarlyAnswerToALargeUploadReachesItsClient: the service refuses an upload that is still coming, and the client
// gets that whole, however both of them speak, and whatever the policy would repeat.
func TestAnEarlyAnswerToALargeUploadReachesItsClient(t *testing.T) {
	const size = 24 << 20
	for _, closes := range []bool{true, false} {
		for _, keys := range [][]string{{noRetries}, {quickRetry, "retryMethods: [PUT]", "retryOn: ['413', '5xx', reset]"},
			{"hedge: {delay: 1h}", "retryMethods: [PUT]"}} {
			for _, length := range []int64{size, -1} {
				for name, url := range map[string]string{
					"HTTP/1.1": early(t, closes).url,
					"h2c": h2c.serve(t, func(w http.ResponseWriter, r *http.Request) {
						w.WriteHeader(413)
						io.WriteString(w, "much")
					}),
				} {
					r := start(t, single([]string{url}, append(keys, noBreaker)...))
					for _, in := range []wire{http1, h2c} {
						t.Run(fmt.Sprintf("%s to %s, closes %v, %d bytes, %s", in.name, name, closes, length, keys[0]),
							func(t *testing.T) {
								for range 3 {
									req := newRequest(t, "PUT", "http://"+r.addr+"/", io.LimitReader(zeros{}, size))
									req.ContentLength = length
									resp, err := in.client(t).Do(req)
									if err != nil {
										t.Fatal(err)
									}
									b, err := io.ReadAll(resp.Body)
									resp.Body.Close()
									if resp.StatusCode != 413 || string(b) != "much" || err != nil {
										t.Fatalf("got %d %q, %v", resp.StatusCode, b, err)
									}
								}
							})
					}
				}
			}
		}
	}
}

// TestAnEarlyAnswerIsNotOvertakenByAReset: curl takes a reset in the middle of its upload for the end of everything,
// whatever came before.
func TestAnEarlyAnswerIsNotOvertakenByAReset(t *testing.T) {
	curl := needs.Program(t, "curl")
	file := filepath.Join(t.TempDir(), "upload")
	if err := os.WriteFile(file, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, single([]string{early(t, true).url}, noRetries, noBreaker))
	for i := range 6 {
		for _, version := range []string{"--http2-prior-knowledge", "--http1.1"} {
			cmd := exec.Command(curl, "-s", version, "-H", "Expect:", "-w", " %{http_code}", "-T", file, "http://"+r.addr+"/")
			if out, err := cmd.Output(); err != nil || string(out) != "much 413" {
				t.Errorf("upload %d, %s: %v, %s", i, version, err, out)
			}
		}
	}
}

// zeros is content without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
