package stale

import "time"

// directives are what the Cache-Control fields of one message say (RFC 9111 section 5.2). The zero value says nothing.
type directives struct {
	noStore, noCache, private bool
	public                    bool
	revalidate                bool // must-revalidate or proxy-revalidate
	maxAge, sharedMaxAge      seconds
	staleIfError              seconds
}

// seconds is the argument of a directive. One that cannot be read counts as 0, as RFC 9111 section 4.2.1 advises, and
// of several the least is taken.
type seconds struct {
	given bool
	value time.Duration
}

// mostSeconds bounds delta-seconds (RFC 9111 section 1.2.2), and keeps sums of them far from overflow.
const mostSeconds = 1 << 31

func (s *seconds) set(argument []byte) {
	value := time.Duration(number(argument)) * time.Second
	if !s.given || value < s.value {
		*s = seconds{true, value}
	}
}

// number reads delta-seconds. Anything else is 0.
func number(digits []byte) int64 {
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0
		}
		n = min(10*n+int64(c-'0'), mostSeconds)
	}
	return n
}

// read takes in the value of one Cache-Control field. A value that breaks the syntax counts as no-store: whoever wrote
// it meant to forbid something as likely as not. Directives may have a quoted argument, and empty elements and spaces
// around "=" are let pass.
func (d *directives) read(value []byte) {
	for {
		for len(value) > 0 && (blank(value[0]) || value[0] == ',') {
			value = value[1:]
		}
		if len(value) == 0 {
			return
		}
		var name, argument []byte
		name, value = token(value)
		ok := len(name) > 0
		value = skipBlank(value)
		if ok && len(value) > 0 && value[0] == '=' {
			argument, value, ok = tokenOrQuoted(skipBlank(value[1:]))
			value = skipBlank(value)
		}
		if !ok || len(value) > 0 && value[0] != ',' {
			d.noStore = true
			return
		}
		d.apply(name, argument)
	}
}

// apply takes in one directive. private and no-cache may name the fields they are about; that is not looked at, so they
// are about all of them.
func (d *directives) apply(name, argument []byte) {
	switch {
	case equalFold(name, "no-store"):
		d.noStore = true
	case equalFold(name, "no-cache"):
		d.noCache = true
	case equalFold(name, "public"):
		d.public = true
	case equalFold(name, "private"):
		d.private = true
	case equalFold(name, "must-revalidate"), equalFold(name, "proxy-revalidate"):
		d.revalidate = true
	case equalFold(name, "max-age"):
		d.maxAge.set(argument)
	case equalFold(name, "s-maxage"):
		d.sharedMaxAge.set(argument)
	case equalFold(name, "stale-if-error"):
		d.staleIfError.set(argument)
	}
}

// token splits the token (RFC 9110 section 5.6.2) off the front of b.
func token(b []byte) (name, rest []byte) {
	n := 0
	for n < len(b) && tokenChar(b[n]) {
		n++
	}
	return b[:n], b[n:]
}

// tokenOrQuoted splits the argument of a directive off the front of b. What is quoted comes without the quotes, its
// escapes as they are: no argument that we read has any.
func tokenOrQuoted(b []byte) (argument, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		argument, rest = token(b)
		return argument, rest, true
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '"':
			return b[1:i], b[i+1:], true
		case '\\':
			i++
		}
	}
	return nil, nil, false
}

func skipBlank(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	return b
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func tokenChar(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return false
}
