package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// waitTarget is something to wait for.
type waitTarget struct {
	shown   string   // without password and query
	secrets []string // what may not be printed, whoever prints it
	probe   func(context.Context) error
}

// probers make the question for an address of a scheme.
var probers = map[string]func(a *waitAddress) (func(context.Context) error, error){
	"postgres": postgresProbe, "postgresql": postgresProbe,
	"redis": redisProbe, "rediss": redisProbe,
	"kafka": kafkaProbe, "kafka+ssl": kafkaProbe,
	"http": httpProbe, "https": httpProbe,
	"mysql": connectProbe("3306"), "tcp": connectProbe(""),
	"unix": socketProbe,
}

const waitSchemes = "postgres, redis, rediss, kafka, kafka+ssl, http, https, mysql, tcp and unix"

// waitAddress is a target taken apart. It is read as text first: what a library says about an address that it does not
// understand may have half a password in it.
type waitAddress struct {
	raw, scheme, user, password, hosts, path string
	written                                  string // the password as it stands in raw
	query                                    url.Values
}

// parseTarget reads a target. Neither it nor its error shows a password.
func parseTarget(raw string) (waitTarget, error) {
	a, err := parseWaitAddress(raw)
	if err != nil {
		return waitTarget{}, err
	}
	t := waitTarget{shown: a.shown(), secrets: a.secrets()}
	makeProbe, ok := probers[a.scheme]
	if !ok {
		return waitTarget{}, fmt.Errorf("%s: the scheme %q is not known: there are %s", t.shown, a.scheme, waitSchemes)
	}
	if t.probe, err = makeProbe(a); err != nil {
		return waitTarget{}, fmt.Errorf("%s: %s", t.shown, t.hide(err.Error()))
	}
	return t, nil
}

func parseWaitAddress(raw string) (*waitAddress, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case !ok && isAddress(raw):
		return nil, fmt.Errorf("%q has no scheme: write tcp://%s, or the scheme of what is there: %s", hidden(raw), hidden(raw), waitSchemes)
	case !ok:
		return nil, fmt.Errorf("%q is not a target: write for example tcp://127.0.0.1:5432; a program goes after --", hidden(raw))
	}
	a := &waitAddress{raw: strings.ToLower(scheme) + "://" + rest, scheme: strings.ToLower(scheme)}
	if strings.Trim(a.scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" || scheme == "" {
		return nil, fmt.Errorf("%q is not a target: write for example tcp://127.0.0.1:5432", hidden(raw))
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
	} else if strings.Contains(tail, "@") && a.scheme != "unix" {
		// A password with a slash in it, most of the time; what it is exactly nobody can tell.
		return nil, fmt.Errorf("%s://...: there is an @ behind the host: write %s", a.scheme, escapes)
	}
	tail, _, _ = strings.Cut(tail, "#")
	path, query, _ := strings.Cut(tail, "?")
	a.hosts, a.path = authority, path
	var err error
	if a.query, err = url.ParseQuery(query); err != nil {
		return nil, fmt.Errorf("%s: what follows the ? cannot be read: write %s", a.shown(), escapes)
	}
	return a, nil
}

const escapes = "special characters of passwords and names as %40 (@), %2F (/), %3A (:), %3F (?), %23 (#), %25 (%)"

// login takes the user and the password apart.
func (a *waitAddress) login(userinfo string) (err error) {
	user, password, _ := strings.Cut(userinfo, ":")
	a.written = password
	if a.user, err = url.PathUnescape(user); err == nil {
		a.password, err = url.PathUnescape(password)
	}
	if err != nil || strings.ContainsAny(userinfo, "@ ") {
		return fmt.Errorf("%s://...: the user or the password cannot be read: write %s", a.scheme, escapes)
	}
	return nil
}

// shown is the address for people.
func (a *waitAddress) shown() string {
	user := ""
	if a.user != "" {
		user = url.PathEscape(a.user) + "@"
	}
	return strings.Map(printable, a.scheme+"://"+user+a.hosts+a.path)
}

// printable keeps what would move the cursor of a terminal out of messages.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
		return '?'
	}
	return r
}

// secrets are the texts that may not be printed.
func (a *waitAddress) secrets() (all []string) {
	if len(a.password) > 2 { // a shorter one would be found in any text
		all = append(all, a.password, url.PathEscape(a.password), url.QueryEscape(a.password), a.written)
	}
	for key, values := range a.query {
		if key = strings.ToLower(key); !strings.Contains(key, "pass") && !strings.Contains(key, "secret") && !strings.Contains(key, "token") {
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

// hide takes the secrets out of a text, and makes one line of it. A driver that has tried the same address with and without TLS
// says the same twice: once is enough.
func (t *waitTarget) hide(text string) string {
	for _, s := range t.secrets {
		text = strings.ReplaceAll(text, s, "xxxxx")
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Map(printable, strings.Join(lines, " "))
}

// hidden is a word that may have a password in it, as far as it can be shown.
func hidden(word string) string {
	if at := strings.LastIndex(word, "@"); at >= 0 {
		word = "..." + word[at:]
	}
	word, _, _ = strings.Cut(word, "?")
	return strings.Map(printable, word)
}

// list returns the hosts with their ports. standard is for those without; empty: every host needs one.
func (a *waitAddress) list(standard string) (all []string, err error) {
	var wrong []error
	for one := range strings.SplitSeq(a.hosts, ",") {
		host, port, err := net.SplitHostPort(one)
		switch n, badPort := strconv.ParseUint(port, 10, 16); {
		case one == "" || strings.HasPrefix(one, ":"):
			wrong = append(wrong, errors.New("the host is missing"))
		case err != nil && !strings.Contains(strings.TrimSuffix(one, "]"), ":") && standard == "":
			wrong = append(wrong, fmt.Errorf("the port is missing: write %s://%s:PORT", a.scheme, one))
		case err != nil && standard != "" && (!strings.Contains(one, ":") || strings.HasPrefix(one, "[") && strings.HasSuffix(one, "]")):
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
