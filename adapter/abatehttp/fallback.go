package abatehttp

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/abate-go/abate/core"
)

// FallbackHeader marks an answer that the policy's fallback gave and no server: its value is "true".
const FallbackHeader = "Abate-Fallback"

// fallbackResponse is the degraded answer to req.
func fallbackResponse(f *core.Fallback, req *http.Request) *http.Response {
	resp := &http.Response{
		StatusCode: f.Status,
		Status:     strings.TrimSpace(strconv.Itoa(f.Status) + " " + http.StatusText(f.Status)),
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {f.ContentType}, FallbackHeader: {"true"}},
		Body:       http.NoBody,
		Request:    req,
	}
	if f.Body == "" || bodiless(req.Method, f.Status) {
		return resp
	}
	resp.ContentLength = int64(len(f.Body))
	resp.Body = io.NopCloser(strings.NewReader(f.Body))
	return resp
}
