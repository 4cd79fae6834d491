package rehearse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/cmd/internal/address"
)

type topClient struct {
	base  *url.URL
	token string
	http  *http.Client
}

// topDetail is what the page says about one guard or gate, as far as a terminal shows it.
type topDetail struct {
	At       int64 `json:"at"`
	Attempts []topCount
	Refusals []topCount
	Errors   []topPast
	Events   []topPast
	Facts    []struct{ Name, Value, About string }
}

type topCount struct {
	Name         string
	Minute, Five int
}

type topPast struct {
	At          int64
	Class, Text string
}

// errGone is about a guard or gate that is no more.
var errGone = errors.New("it has gone: perhaps with a reload of the policy")

// maxTopAnswer is far above what ten thousand guards need, in bytes.
const maxTopAnswer = 16 << 20

// client makes one, and finds everything that is wrong with the files.
func (f *topFlags) client() (*topClient, error) {
	c := new(topClient)
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	raw := f.admin
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	base, err := url.Parse(raw)
	if err != nil || base.Hostname() == "" || base.Scheme != "http" && base.Scheme != "https" {
		wrong("--admin %q is not an address: write for example http://%s", address.Hidden(f.admin), defaultAdmin)
	} else {
		base.RawQuery, base.Fragment = "", ""
		c.base = base.JoinPath("/")
	}
	if f.token != "" {
		text, err := os.ReadFile(f.token)
		if err != nil {
			wrong("--token-file: %w", err)
		} else if c.token = tokenIn(string(text)); c.token == "" {
			wrong("--token-file %s: there is no token in it: write one into its first line", f.token)
		}
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		secure.RootCAs = x509.NewCertPool()
		if err != nil {
			wrong("--ca: %w", err)
		} else if !secure.RootCAs.AppendCertsFromPEM(pem) {
			wrong("--ca %s: there is no certificate in it: write those of the authorities as PEM", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			wrong("--cert %s and --key %s: %w", f.cert, f.key, err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	c.http = &http.Client{ // neither a proxy nor the target of a redirect may see the token
		Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, errors.Join(problems...)
}

// tokenIn finds the first token of a file: the last word of its first line that is no comment.
func tokenIn(text string) string {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return words[len(words)-1]
		}
	}
	return ""
}

// look asks for everything, and for one name if there is one.
func (c *topClient) look(ctx context.Context, name string, gate bool) (a topAnswer) {
	a.name, a.gate = name, gate
	if a.snapshot, a.err = c.snapshot(ctx); a.err != nil || name == "" {
		return a
	}
	path := "guard"
	if gate {
		path = "gate"
	}
	detail := new(topDetail)
	switch a.err = c.get(ctx, path, url.Values{"name": {name}}, detail); {
	case a.err == nil:
		a.detail = detail
	case errors.Is(a.err, errGone): // the snapshot says so too, and has all the others
		a.err = nil
	}
	return a
}

func (c *topClient) snapshot(ctx context.Context) (*abateadmin.Snapshot, error) {
	s := new(abateadmin.Snapshot)
	err := c.get(ctx, "state", nil, s)
	if err == nil && s.At == 0 {
		err = c.noPage("it answers something else")
	}
	for i := range s.Rows { // of a page that may be newer
		s.Rows[i].Level = min(max(s.Rows[i].Level, abateadmin.Idle), abateadmin.Trouble)
	}
	return s, err
}

func (c *topClient) get(ctx context.Context, path string, query url.Values, into any) error {
	at := c.base.JoinPath(path)
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens on %s: start a proxy (abate proxy -c POLICY) or a drill (make drill), or say "+
			"with --admin where one is", c.base.Host)
	case err != nil:
		return fmt.Errorf("%s: %w", c.base.Host, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(io.LimitReader(resp.Body, maxTopAnswer)).Decode(into); err != nil {
			return c.noPage("it answers no JSON")
		}
		return nil
	case http.StatusUnauthorized:
		if c.token != "" {
			return fmt.Errorf("%s does not know the token of --token-file", c.base.Host)
		}
		return fmt.Errorf("%s asks for a token: name a file that has one with --token-file", c.base.Host)
	case http.StatusForbidden:
		return fmt.Errorf("%s asks for a client certificate: name one with --cert and --key", c.base.Host)
	case http.StatusNotFound:
		if path != "state" {
			return errGone
		}
	case http.StatusMisdirectedRequest:
		return fmt.Errorf("the page on this machine does not answer to the name %s: write its address, or localhost, after "+
			"--admin", c.base.Hostname())
	}
	return c.noPage("it answers " + resp.Status)
}

func (c *topClient) noPage(what string) error {
	return fmt.Errorf("there is no live page at %s (%s): an older abate, or another program", c.base.Redacted(), what)
}
