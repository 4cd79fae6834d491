// Package address reads the addresses of what "abate wait" waits for.
package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/abate-go/abate/cmd/internal/cli"
)

const Escapes = "special characters of passwords and names as %40 (@), %2F (/), %3A (:), %3F (?), %23 (#), %25 (%)"

// Address is a target taken apart. It is read as text first: what a library says about an address that it does not
// understand may have half a password in it.
type Address struct {
	Raw, Scheme, User, Password, Hosts, Path string
	written                                  string // the password as it stands in raw
	Query                                    url.Values
}

func Parse(raw string) (*Address, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case !ok && cli.IsAddress(raw):
		return nil, fmt.Errorf("%q has no scheme: write tcp://%s, or the scheme of what is there: %s", Hidden(raw),
			Hidden(raw), Schemes)
	case !ok:
		return nil, fmt.Errorf("%q is not a target: write for example tcp://127.0.0.1:5432; a program goes after --",
			Hidden(raw))
	}
	a := &Address{Raw: strings.ToLower(scheme) + "://" + rest, Scheme: strings.ToLower(scheme)}
	if strings.Trim(a.Scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" || scheme == "" {
		return nil, fmt.Errorf("%q is not a target: write for example tcp://127.0.0.1:5432", Hidden(raw))
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		if err := a.login(authority[:at]); err != nil {
			return nil, err
		}
		authority = authority[at+1:]
	} else if strings.Contains(tail, "@") && a.Scheme != "unix" {
		// A password with a slash in it, most of the time; what it is exactly nobody can tell.
		return nil, fmt.Errorf("%s://...: there is an @ behind the host: write %s", a.Scheme, Escapes)
	}
	tail, _, _ = strings.Cut(tail, "#")
	path, query, _ := strings.Cut(tail, "?")
	a.Hosts, a.Path = authority, path
	var err error
	if a.Query, err = url.ParseQuery(query); err != nil {
		return nil, fmt.Errorf("%s: what follows the ? cannot be read: write %s", a.Shown(), Escapes)
	}
	return a, nil
}

func (a *Address) login(userinfo string) (err error) {
	user, password, _ := strings.Cut(userinfo, ":")
	a.written = password
	if a.User, err = url.PathUnescape(user); err == nil {
		a.Password, err = url.PathUnescape(password)
	}
	if err != nil || strings.ContainsAny(userinfo, "@ ") {
		return fmt.Errorf("%s://...: the user or the password cannot be read: write %s", a.Scheme, Escapes)
	}
	return nil
}

// Shown is the address for people.
func (a *Address) Shown() string {
	user := ""
	if a.User != "" {
		user = url.PathEscape(a.User) + "@"
	}
	return strings.Map(Printable, a.Scheme+"://"+user+a.Hosts+a.Path)
}

// Printable keeps what would move the cursor of a terminal out of messages.
func Printable(r rune) rune {
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return '?'
	}
	return r
}

// Secrets are the texts that may not be printed.
func (a *Address) Secrets() (all []string) {
	if len(a.Password) > 2 { // a shorter one would be found in any text
		all = append(all, a.Password, url.PathEscape(a.Password), url.QueryEscape(a.Password), a.written)
	}
	for key, values := range a.Query {
		if key = strings.ToLower(key); !strings.Contains(key, "pass") && !strings.Contains(key, "secret") &&
			!strings.Contains(key, "token") {
			continue
		}
		for _, v := range values {
			if len(v) > 2 {
				all = append(all, v, url.QueryEscape(v))
			}
		}
	}
	return all
}

// Hidden is a word that may have a password in it, as far as it can be shown.
func Hidden(word string) string {
	if at := strings.LastIndex(word, "@"); at >= 0 {
		word = "..." + word[at:]
	}
	word, _, _ = strings.Cut(word, "?")
	return strings.Map(Printable, word)
}

// List returns the hosts with their ports. standard is for those without; empty: every host needs one.
func (a *Address) List(standard string) (all []string, err error) {
	var wrong []error
	for one := range strings.SplitSeq(a.Hosts, ",") {
		host, port, err := net.SplitHostPort(one)
		switch n, badPort := strconv.ParseUint(port, 10, 16); {
		case one == "" || strings.HasPrefix(one, ":"):
			wrong = append(wrong, errors.New("the host is missing"))
		case err != nil && !strings.Contains(strings.TrimSuffix(one, "]"), ":") && standard == "":
			wrong = append(wrong, fmt.Errorf("the port is missing: write %s://%s:PORT", a.Scheme, one))
		case err != nil && standard != "" &&
			(!strings.Contains(one, ":") || strings.HasPrefix(one, "[") && strings.HasSuffix(one, "]")):
			all = append(all, net.JoinHostPort(strings.Trim(one, "[]"), standard))
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%q is not HOST:PORT; an IPv6 address stands in brackets: [::1]:5432", one))
		case badPort != nil || n == 0:
			wrong = append(wrong, fmt.Errorf("%q is not a port: write 1 to 65535", port))
		default:
			all = append(all, net.JoinHostPort(host, port))
		}
	}
	return all, errors.Join(wrong...)
}

// Until asks, and closes the client then, or as soon as ctx ends: go-redis and franz-go read from a silent server, or
// dial, until a time limit of their own, whatever becomes of ctx.
func Until(ctx context.Context, end func(), ask func() error) error {
	end = sync.OnceFunc(end)
	defer end()
	stop := context.AfterFunc(ctx, end)
	defer stop()
	err := ask()
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // and not that the client is closed
	}
	return err
}

// WithoutAddress takes off an error what net/url puts before it: the address is known, and may have a password.
func WithoutAddress(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

const Schemes = "postgres, redis, rediss, kafka, kafka+ssl, http, https, mysql, tcp and unix"

// All are the schemes that some program of ours knows.
var All = []string{"postgres", "postgresql", "redis", "rediss", "kafka", "kafka+ssl", "http", "https", "mysql",
	"tcp", "unix"}

// Prober makes the question for an address.
type Prober func(a *Address) (func(context.Context) error, error)
