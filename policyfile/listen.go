package policyfile

import (
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/abate-go/abate/internal/upstream"
)

// SocketMode is the mode of a Unix socket whose address says none: its user and group may connect.
const SocketMode fs.FileMode = 0o660

// Socket reads an address to listen on that is a Unix socket: "unix:/run/abate.sock", perhaps with "?mode=0660". ok is
// false if it is none.
func Socket(listen string) (path string, mode fs.FileMode, ok bool) {
	u, err := url.Parse(listen)
	if err != nil || u.Scheme != "unix" || u.Host != "" || u.Fragment != "" || len(u.Path) < 2 || u.Path[0] != '/' ||
		strings.HasSuffix(u.Path, "/") || len(u.Path) > upstream.LongestSocket {
		return "", 0, false
	}
	query := u.Query()
	mode = SocketMode
	if text := query.Get("mode"); text != "" {
		n, err := strconv.ParseUint(text, 8, 32)
		if err != nil || n > 0o777 {
			return "", 0, false
		}
		mode = fs.FileMode(n)
	}
	query.Del("mode")
	return u.Path, mode, len(query) == 0
}

// isListen reports whether a text is an address to listen on.
func isListen(text string) bool {
	if strings.HasPrefix(text, "unix:") {
		_, _, ok := Socket(text)
		return ok
	}
	return isHostPort(text)
}

// isHostPort reports whether a text is a host and the number of a port.
func isHostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	n, bad := strconv.Atoi(port)
	return err == nil && bad == nil && n >= 0 && n <= 65535
}
