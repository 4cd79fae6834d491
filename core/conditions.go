package core

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
)

// conditionWords is what retryOn and neverRetryOn understand, as error messages list it.
const conditionWords = `a status such as "503", "4xx", "5xx", gateway-error, connect-failure, reset, timeout, error, ` +
	`or a gRPC code such as UNAVAILABLE`

// GRPCCodes are the names of gRPC's status codes, each at its number.
var GRPCCodes = [...]string{"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL",
	"UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"}

// conditions is a retryOn or neverRetryOn list, compiled.
type conditions struct {
	statuses [600]bool
	codes    [len(GRPCCodes)]bool
	coded    bool // a code is on the list
	connect  bool
	reset    bool
	timeout  bool
	anyError bool
}

func knownCondition(word string) bool { return new(conditions).add(word) }

func compileConditions(words []string) *conditions {
	if len(words) == 0 {
		return nil
	}
	c := new(conditions)
	for _, w := range words {
		c.add(w)
	}
	return c
}

func (c *conditions) add(word string) bool {
	switch word {
	case "connect-failure":
		c.connect = true
	case "reset":
		c.reset = true
	case "timeout":
		c.timeout = true
	case "error":
		c.anyError = true
	case "gateway-error":
		c.statuses[502], c.statuses[503], c.statuses[504] = true, true, true
	case "4xx", "5xx":
		first := int(word[0]-'0') * 100
		for s := first; s < first+100; s++ {
			c.statuses[s] = true
		}
	default:
		if code := slices.Index(GRPCCodes[:], word); code > 0 {
			c.codes[code], c.coded = true, true
			return true
		}
		s, err := strconv.Atoi(word)
		if err != nil || s < 400 || s > 599 {
			return false
		}
		c.statuses[s] = true
	}
	return true
}

// match reports whether a failed attempt is on the list. status is 0 when there was no answer.
func (c *conditions) match(status int, err error) bool {
	if status > 0 && status < len(c.statuses) && c.statuses[status] {
		return true
	}
	if err == nil {
		return false
	}
	var s interface{ StatusCode() int }
	if errors.As(err, &s) && c.match(s.StatusCode(), nil) {
		return true
	}
	return c.anyError || c.connect && isConnectFailure(err) || c.reset && isReset(err) || c.timeout && isTimeout(err)
}

func isConnectFailure(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// isReset also takes the bare EOF with which net/http reports a server that closed without a word.
func isReset(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// isTimeout asks the error itself too: net/http's TLS handshake timeout is no other error's kin.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// retryLists is retryOn over an adapter's own judgement, and neverRetryOn over both.
type retryLists struct{ on, never *conditions }

// forbid reports whether neverRetryOn names err.
func (l retryLists) forbid(err error) bool { return l.never != nil && l.never.match(0, err) }

// allowCode is allow for a gRPC code. A retryOn without codes leaves them to the adapter.
func (l retryLists) allowCode(code uint32, byDefault bool) bool {
	if l.never != nil && int(code) < len(l.never.codes) && l.never.codes[code] {
		return false
	}
	if l.on != nil && l.on.coded {
		return int(code) < len(l.on.codes) && l.on.codes[code]
	}
	return byDefault
}

func (l retryLists) allow(status int, err error, byDefault bool) bool {
	if l.never != nil && l.never.match(status, err) {
		return false
	}
	if l.on != nil {
		return l.on.match(status, err)
	}
	return byDefault
}

// Retryable applies the policy's retryOn and neverRetryOn to an adapter's own judgement of a failed attempt. status is
// the answer's HTTP status, or 0 when there was none; err is the attempt's error, or nil.
func (g *Guard) Retryable(status int, err error, byDefault bool) bool {
	return g.inForce().retries.allow(status, err, byDefault)
}

// RetryableCode is Retryable for a gRPC status code.
func (g *Guard) RetryableCode(code uint32, byDefault bool) bool {
	return g.inForce().retries.allowCode(code, byDefault)
}
