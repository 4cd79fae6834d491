package abatehttp

import (
	"io"
	"io/fs"
	"net/http"
)

// A slot is for the time in which Next works. While a read of the request's body waits for the client, or a write of
// the answer does, the slot is lent: see serving.Watch.

// watchBody has Next read the body through x. It is put into the request itself, and taken out again at the end:
// another request would be another allocation.
func (x *exchange) watchBody() {
	if r := x.request; x.Lends && r.Body != nil && r.Body != http.NoBody {
		x.body, r.Body = r.Body, (*slowBody)(x)
	}
}

func (x *exchange) leaveBody() {
	if r := x.request; x.body != nil && r.Body == (*slowBody)(x) {
		r.Body = x.body
	}
}

// slowBody is the body of a request whose client may be slow.
type slowBody exchange

func (b *slowBody) Read(p []byte) (int, error) {
	w := &b.handler.watch
	w.Begin(&b.reads, &b.Loan)
	defer w.End(&b.reads, &b.Loan)
	return b.body.Read(p)
}

func (b *slowBody) Close() error { return b.body.Close() }

// piece is how much of an answer net/http keeps in its buffers before it writes to the socket, at the least. A write
// that stays within the piece that has begun cannot wait for the client.
const piece = 2 << 10

// send passes a part of the answer on.
func (x *exchange) send(p []byte) (int, error) {
	if !x.fills(len(p)) {
		return x.out.Write(p)
	}
	x.beginWrite()
	defer x.endWrite()
	return x.out.Write(p)
}

func (x *exchange) sendString(s string) (int, error) {
	if !x.fills(len(s)) {
		return io.WriteString(x.out, s)
	}
	x.beginWrite()
	defer x.endWrite()
	return io.WriteString(x.out, s)
}

// fills counts n more bytes, and reports whether writing them may have to wait for the client.
func (x *exchange) fills(n int) bool {
	begun := x.passed / piece
	x.passed += int64(n)
	return x.Lends && x.passed/piece > begun
}

func (x *exchange) beginWrite() { x.handler.watch.Begin(&x.writes, &x.Loan) }

func (x *exchange) endWrite() { x.handler.watch.End(&x.writes, &x.Loan) }

// filePiece is how much of a file is sent by one sendfile: for so much a client may need longer than an operation
// that does not wait.
const filePiece = 1 << 20

// sendFrom has to read all of src, by sendfile if src is a file. A file is read in pieces, each of which is an
// operation on the client; while anything else is read, it is not the client that is waited for.
func (x *exchange) sendFrom(to io.ReaderFrom, src io.Reader) (n int64, err error) {
	if !x.Lends {
		return to.ReadFrom(src)
	}
	from, most := src, int64(-1)
	limited, ok := src.(*io.LimitedReader)
	if ok {
		from, most = limited.R, limited.N
	}
	if !regular(from) {
		x.beginWrite()
		defer x.endWrite()
		x.source = src
		return to.ReadFrom((*otherSource)(x))
	}
	for most != 0 {
		part := io.LimitedReader{R: from, N: filePiece}
		if most > 0 {
			part.N = min(most, filePiece)
		}
		want := part.N
		x.beginWrite()
		moved, err := to.ReadFrom(&part)
		x.endWrite()
		if n += moved; most > 0 {
			most -= moved
			limited.N = most
		}
		if err != nil || moved < want {
			return n, err
		}
	}
	return n, nil
}

// regular reports whether src is a file on a disk, which does not keep its reader waiting as a pipe does.
func regular(src io.Reader) bool {
	file, ok := src.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// otherSource is the source of an answer, which is no file. While it is read the answer does not wait for its client.
type otherSource exchange

func (s *otherSource) Read(p []byte) (int, error) {
	x := (*exchange)(s)
	x.endWrite()
	defer x.beginWrite()
	return x.source.Read(p)
}
