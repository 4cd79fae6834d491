package proxy

import "github.com/abate-go/abate/proxy/h1"

// framing finds the content of an answer over HTTP/1.1 in what is read.
type framing struct {
	chunked bool
	left    int64 // of Content-Length; -1 for chunks, or until the connection ends
	decoder h1.Chunked
	ended   bool // all of it has been read
}

// begin points f at the content behind a head.
func (f *framing) begin(resp *h1.Response) {
	f.chunked, f.left = resp.Chunked, resp.Length
	f.ended = f.left == 0
	if f.chunked {
		f.decoder.Reset()
	}
}

// decode takes the content that has been read out of in.
func (f *framing) decode(in *input) ([]byte, error) {
	u := in.unread()
	if f.chunked {
		data, n, done, bad := f.decoder.Next(u)
		if bad != nil {
			return nil, &badAnswerError{bad.Problem}
		}
		in.take(n)
		f.ended = done
		return data, nil
	}
	if f.left >= 0 {
		u = u[:min(int64(len(u)), f.left)]
		f.left -= int64(len(u))
		f.ended = f.left == 0
	}
	in.take(len(u))
	return u, nil
}
