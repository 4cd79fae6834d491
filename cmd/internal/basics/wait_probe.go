package basics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/address"
)

// connectProbe opens a connection and says nothing on it. standard is the port of an address without one; empty: it
// needs one.
func connectProbe(standard string) func(*address.Address) (func(context.Context) error, error) {
	return func(a *address.Address) (func(context.Context) error, error) {
		hosts, err := a.List(standard)
		switch {
		case err != nil:
			return nil, err
		case len(hosts) > 1:
			return nil, errors.New("several hosts: write a target for each")
		case a.Scheme == "tcp" && (a.User != "" || strings.Trim(a.Path, "/") != ""):
			return nil, errors.New("tcp:// is a host and a port and nothing else")
		}
		return dialProbe("tcp", hosts[0]), nil
	}
}

func socketProbe(a *address.Address) (func(context.Context) error, error) {
	if a.Hosts != "" || a.Path == "" || a.Path == "/" {
		return nil, errors.New("write the path of the socket with three slashes, for example unix:///run/server.sock")
	}
	return dialProbe("unix", a.Path), nil
}

func dialProbe(network, address string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// httpProbe sends GET. 2xx is there, and so is 3xx: who redirects is at work.
func httpProbe(a *address.Address) (func(context.Context) error, error) {
	if _, err := a.List("80"); err != nil {
		return nil, err
	}
	at, err := url.Parse(a.Raw)
	if err != nil {
		return nil, errors.New("it cannot be read: write " + address.Escapes)
	}
	return func(ctx context.Context) error {
		// A new client for each attempt: no connection of the last one, no answer through somebody else's proxy.
		client := &http.Client{
			Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return abate.Permanent(err)
		}
		req.Header.Set("User-Agent", "abate-wait")
		resp, err := client.Do(req)
		if err != nil {
			return address.WithoutAddress(err)
		}
		defer resp.Body.Close()
		_, _ = io.CopyN(io.Discard, resp.Body, 4096) // only its status counts
		return judgeStatus(resp)
	}, nil
}

// judgeStatus is nil for a server that is at work.
func judgeStatus(resp *http.Response) error {
	if resp.StatusCode/100 == 2 || resp.StatusCode/100 == 3 {
		return nil
	}
	err := fmt.Errorf("it answered %s", strings.TrimSpace(resp.Status))
	if pause := askedPause(resp.Header.Get("Retry-After")); pause > 0 {
		return abate.RetryAfter(fmt.Errorf("%w and asked for a pause of %v", err, pause), pause)
	}
	return err
}

// askedPause reads Retry-After: seconds, at most a day, or a date. What cannot be read is none.
func askedPause(field string) time.Duration {
	if n, err := strconv.ParseUint(field, 10, 63); err == nil {
		return time.Duration(min(n, 86400)) * time.Second
	}
	if date, err := http.ParseTime(field); err == nil {
		return max(0, time.Until(date)).Round(time.Second)
	}
	return 0
}
