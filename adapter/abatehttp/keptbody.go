package abatehttp

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// keptBody is the body of an answer that its call keeps while it waits for another attempt.
type keptBody struct {
	io.Reader
	io.Closer
}

// keepLimit is how much of an answer is read into memory.
const keepLimit = 64 << 10

// Keep reads the body of a failed attempt's answer, if it is short: its connection is free then, and the call can end
// with the answer when the attempt's time is over. A longer one stays where it is, and is cut off at that time. One
// that does not come in drainTime breaks off where it was, for whoever reads it.
func (c *call) Keep(resp *http.Response) {
	if resp == nil || resp.Body == http.NoBody || resp.ContentLength > keepLimit ||
		resp.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	body := resp.Body
	hurry := time.AfterFunc(drainTime, func() { body.Close() })
	data, err := io.ReadAll(io.LimitReader(body, keepLimit+1))
	late := !hurry.Stop()
	if len(data) > keepLimit {
		resp.Body = keptBody{io.MultiReader(bytes.NewReader(data), body), body}
		return
	}
	if !late {
		body.Close()
	}
	resp.Body = keptBody{bytes.NewReader(data), io.NopCloser(nil)}
	if err != nil {
		resp.Body = keptBody{io.MultiReader(bytes.NewReader(data), brokenOff{err}), io.NopCloser(nil)}
	}
}

// brokenOff is the end of a body that has none.
type brokenOff struct{ err error }

func (b brokenOff) Read([]byte) (int, error) { return 0, b.err }
